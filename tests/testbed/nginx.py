"""A real nginx before a Kubeflow Pipelines, set up to ask for a sign-in as Dex and oauth2-proxy do.

nginx is taken from the path, or unpacked from its Debian package without installing it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

USER, PASSWORD, TOKEN, SESSION = "ada", "correct horse", "abc.def.ghi", "kept-by-nginx"
COOKIE = "oauth2_proxy_kubeflow"
SETTINGS = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; default_type text/html; absolute_redirect off; client_max_body_size 10m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  map $request_body $is_right {{ default 0; "login={user}&password={password}" 1; }}
  map "$cookie_{cookie}/$http_authorization" $is_known {{
    default 0; "~^{session}/" 1; "~^/Bearer {token}$" 1;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      if ($is_known = 0) {{ {stranger} }}
      return 200 '<!doctype html><title>Kubeflow</title>';
    }}
    location /pipeline/ {{
      if ($is_known = 0) {{ {stranger} }}
      proxy_pass {upstream}/;
    }}
    location = /oauth2/start {{ return 302 /dex/auth?client_id=kubeflow&state=1; }}
    location = /dex/auth {{
      return 200 '<a href="/dex/auth/local?state=1&amp;x=2">Sign in with email</a>';
    }}
    location = /dex/auth/local {{ return 200 '{form}'; }}
    location = /dex/auth/local/login {{
      proxy_set_header X-Is-Right $is_right;
      proxy_pass http://127.0.0.1:{port}/judge;
    }}
    location = /judge {{
      if ($http_x_is_right = 0) {{ return 200 '<p>Invalid Email Address and password.</p>{form}'; }}
      return 303 /oauth2/callback?code=7;
    }}
    location = /oauth2/callback {{
      add_header Set-Cookie "{cookie}=; Max-Age=0; Path=/";
      add_header Set-Cookie "{cookie}={session}; Path=/; HttpOnly";
      return 302 /;
    }}
  }}
}}
"""
FORM = (
    '<form method="post" action="/dex/auth/local/login?state=1&amp;x=2">'
    '<input name="login" type="text"><input name="password" type="password"></form>'
)
STRANGERS = {
    "dex": "return 302 /oauth2/start;",
    "oauth2-proxy": "return 403 '<html><a href=\"/oauth2/start?rd=%2F\">Sign in</a></html>';",
}
PATIENCE = 30.0


def program(cache: Path) -> str | None:
    """The path of nginx; None where it cannot be had."""
    found = shutil.which("nginx")
    unpacked = cache / "nginx" / "usr" / "sbin" / "nginx"
    if found or unpacked.exists():
        return found or str(unpacked)
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    scratch = cache / f"nginx-{os.getpid()}"
    scratch.mkdir(parents=True)
    with contextlib.suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError):
        _run(["apt-get", "download", "-q", "nginx"], scratch)
        package = next(scratch.glob("*.deb"))
        _run(["dpkg", "-x", package.name, "whole"], scratch)
        (scratch / "whole").replace(cache / "nginx")
    shutil.rmtree(scratch, ignore_errors=True)
    return str(unpacked) if unpacked.exists() else None


@contextlib.contextmanager
def before(upstream: str, kind: str, nginx: str, folder: Path) -> Iterator[str]:
    """nginx before a server, as `dex` or `oauth2-proxy`; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = SETTINGS.format(
        folder=folder,
        port=port,
        upstream=upstream,
        stranger=STRANGERS[kind],
        form=FORM,
        user=USER,
        password=PASSWORD.replace(" ", "+"),
        token=TOKEN.replace(".", "\\."),
        session=SESSION,
        cookie=COOKIE,
    )
    (folder / "nginx.conf").write_text(settings)
    command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    command += ["-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process, folder)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nginx does not start: {(folder / 'error.log').read_text()[-500:]}")


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
