"""Signing in to a Kubeflow Pipelines server, whatever stands before it."""

from __future__ import annotations

import json
import logging
import os
import shutil
import ssl
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from jupyterlab_convect.cli import main
from jupyterlab_convect.errors import ConvectError, Missing, Refused
from jupyterlab_convect.runtimes.base import ConnectionStep
from jupyterlab_convect.runtimes.kfp.api import Unreachable
from jupyterlab_convect.runtimes.kfp.check import Way, check, connect
from jupyterlab_convect.runtimes.kfp.credentials import KEYRING_SERVICE, stored_secret

PASSWORD, TOKEN = "correct horse", "abc.def.ghi"
LINKS = '<a href="/dex/auth/local?state=1&amp;x=2">Sign in with email</a>'
FORM = (
    '<form method="post" action="/dex/auth/local/login?state=1&amp;x=2">'
    '<input name="login" type="text"><input name="password" type="password"></form>'
)
START = '<html><a href="/oauth2/start?rd=%2F">Sign in</a></html>'
APPLICATION = "<!doctype html><title>Kubeflow</title>"


class Server(ThreadingHTTPServer):
    """Kubeflow Pipelines, and what stands before it: nothing, a token, Dex, or a page."""

    daemon_threads = True

    def __init__(self, front: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.front = front
        self.sessions: set[str] = set()
        self.signed_in = 0
        self.is_away = False
        self.elsewhere = ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        """The test's output is for what matters."""

    def answer(self, status: int, body: object, **headers: str) -> None:
        is_page = isinstance(body, str)
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if is_page else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def go(self, where: str, **headers: str) -> None:
        self.answer(302, "", Location=where, **headers)

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        front = self.server.front
        if self.server.is_away:
            self.answer(503, "upstream connect error")
        elif front == "page":
            self.answer(200, APPLICATION)
        elif front == "foreign":
            self.go(self.server.elsewhere)
        elif front == "token" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, {"error": "who are you"})
        elif front in ("dex", "oauth2-proxy") and not self.is_known():
            self.sign_in(place.path)
        elif "/apis/" in place.path:
            self.api(place.path, parse_qs(place.query))
        else:
            self.answer(200, APPLICATION)

    def do_POST(self) -> None:
        place = urlsplit(self.path).path
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if place == "/dex/auth/local/login":
            given = parse_qs(data)
            if given == {"login": ["ada"], "password": [PASSWORD]}:
                self.go("/oauth2/callback", Set_Cookie="state=done; Path=/")
            else:
                self.answer(200, f"<p>Invalid</p>{FORM}")
        elif place.endswith("/runs"):
            self.answer(500, {"code": 13, "message": "pipeline spec is invalid\ngoroutine 7 …"})
        else:
            self.answer(200, {})

    def is_known(self) -> bool:
        cookies = self.headers.get("Cookie", "")
        return any(f"oauth2_proxy={session}" in cookies for session in self.server.sessions)

    def sign_in(self, path: str) -> None:
        cookies = self.headers.get("Cookie", "")
        if path == "/oauth2/callback" and "state=done" in cookies:
            self.server.signed_in += 1
            session = f"session{self.server.signed_in}"
            self.server.sessions.add(session)
            self.go("/", Set_Cookie=f"oauth2_proxy={session}; Path=/; HttpOnly; Secure")
        elif path == "/dex/auth":
            self.answer(200, LINKS)
        elif path == "/dex/auth/local":
            self.answer(200, FORM)
        elif self.server.front == "oauth2-proxy" and path != "/oauth2/start":
            self.answer(403, START)
        else:
            self.go("/dex/auth?client_id=kubeflow")

    def api(self, path: str, query: dict[str, list[str]]) -> None:
        is_plain = self.server.front in ("", "token")
        if not is_plain and not path.startswith("/pipeline/"):
            self.answer(200, APPLICATION)
        elif path.endswith("/healthz"):
            self.answer(200, {"multi_user": self.server.front != ""})
        elif path.endswith("/runs"):
            space = query.get("namespace", [""])[0]
            if self.server.front and space != "ada":
                self.answer(403, {"code": 7, "message": "forbidden"})
            else:
                self.answer(200, {})
        else:
            words = "Failed to get a run: ResourceNotFoundError: Run r1 not found."
            self.answer(404, {"code": 5, "message": words})


@pytest.fixture
def serve() -> Iterator[Callable[[str], Server]]:
    started: list[Server] = []

    def start(front: str = "") -> Server:
        server = Server(front)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def told(steps: list[ConnectionStep]) -> list[tuple[str, bool]]:
    return [(step.step, step.ok) for step in steps]


def knows(secret: str | None) -> Callable[[], str | None]:
    return lambda: secret


ALL_WELL = [("address", True), ("sign-in", True), ("namespace", True)]


def test_a_server_of_one_user_needs_nothing(serve: Callable[..., Server]) -> None:
    steps = check(Way(serve().address), knows(None))
    assert told(steps) == ALL_WELL
    assert steps[1].message == "No sign-in is needed."


def test_a_token_is_used_when_one_is_asked_for(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    address = serve("token").address
    steps = check(Way(address, namespace="ada"), knows(TOKEN))
    assert told(steps) == ALL_WELL
    assert steps[1].message == "Signed in with a token."
    (failed,) = [step for step in check(Way(address), knows(None)) if not step.ok]
    assert (failed.step, "asks to sign in" in failed.message) == ("sign-in", True)
    steps = check(Way(address, "token", "ada"), knows("wrong"))
    assert told(steps) == [("address", True), ("sign-in", False)]
    # The cluster replaces the file of a token: it is read each time.
    file = tmp_path / "token"
    file.write_text("old\n")
    way = Way(address, "token-file", "ada", token_file=str(file))
    assert told(check(way, knows(None)))[-1] == ("sign-in", False)
    file.write_text(TOKEN)
    assert told(check(way, knows(None))) == ALL_WELL
    file.unlink()
    assert "cannot be read" in check(way, knows(None))[-1].message


@pytest.mark.parametrize("front", ["dex", "oauth2-proxy"])
def test_the_form_of_dex_is_filled_in_wherever_it_is(
    serve: Callable[..., Server], front: str
) -> None:
    server = serve(front)
    way = Way(server.address, "password", "ada", "ada")
    steps = check(way, knows(PASSWORD))
    assert told(steps) == ALL_WELL
    assert steps[0].message.endswith("/pipeline.")  # It was found behind the dashboard.
    wrong = check(way, knows("wrong"))
    assert told(wrong) == [("address", True), ("sign-in", False)]
    assert wrong[-1].message == "The name or the password is wrong."


def test_who_was_signed_out_signs_in_again(serve: Callable[..., Server]) -> None:
    server = serve("dex")
    client = connect(Way(server.address, "password", "ada", "ada"), knows(PASSWORD))
    assert server.signed_in == 1
    server.sessions.clear()
    assert client.runs() == {}
    assert server.signed_in == 2


def test_a_cookie_that_has_expired_is_told(serve: Callable[..., Server]) -> None:
    server = serve("dex")
    server.sessions.add("pasted")
    way = Way(server.address, "cookie", "ada")
    assert told(check(way, knows("Cookie: a=b; oauth2_proxy=pasted"))) == ALL_WELL
    server.sessions.clear()
    failed = check(way, knows("oauth2_proxy=pasted"))[-1]
    assert (failed.step, failed.ok) == ("sign-in", False)
    assert check(way, knows("no cookie"))[-1].message == "A cookie is written as name=value."


def test_a_namespace_without_rights_and_one_that_is_missing(serve: Callable[..., Server]) -> None:
    address = serve("token").address
    failed = check(Way(address, namespace="bob"), knows(TOKEN))[-1]
    assert (failed.step, failed.ok) == ("namespace", False)
    assert failed.message.endswith("in namespace bob.")
    failed = check(Way(address), knows(TOKEN))[-1]
    assert (failed.step, failed.ok) == ("namespace", False)
    assert "several users" in failed.message


def test_a_page_where_data_was_expected(serve: Callable[..., Server]) -> None:
    (failed,) = check(Way(serve("page").address), knows(None))
    assert (failed.step, failed.ok) == ("address", False)
    assert "a web page instead of data" in failed.message
    password = Way(serve("page").address, "password", user="ada")
    assert "a web page instead of data" in check(password, knows(PASSWORD))[-1].message


def test_a_password_is_never_sent_to_another_server(serve: Callable[..., Server]) -> None:
    other, server = serve("dex"), serve("foreign")
    server.elsewhere = f"{other.address}/dex/auth"
    failed = check(Way(server.address, "password", user="ada"), knows(PASSWORD))[-1]
    assert (failed.step, failed.ok) == ("sign-in", False)
    assert "on another server" in failed.message
    assert other.signed_in == 0


@pytest.mark.parametrize("address", ["http://[", "http://127.0.0.1:99999999/"])
def test_a_sign_in_page_at_no_address_is_refused(
    serve: Callable[..., Server], address: str
) -> None:
    server = serve("foreign")
    server.elsewhere = address
    failed = check(Way(server.address, "password", user="ada"), knows(PASSWORD))[-1]
    assert (failed.step, failed.ok) == ("sign-in", False)
    assert "on another server" in failed.message


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("kubeflow.example", "is not the address"),
        ("ftp://kubeflow.example", "is not the address"),
        ("http://[", "is not the address"),
        ("http://ada:secret@kubeflow.example", "must not contain a password"),
        ("http://127.0.0.1:1", "refused the connection"),
        ("http://no-such-host.invalid", "There is no host"),
    ],
)
def test_an_address_that_cannot_be_right(address: str, words: str) -> None:
    (failed,) = check(Way(address), knows(None))
    assert (failed.step, failed.ok) == ("address", False)
    assert words in failed.message
    assert "secret" not in failed.message


def test_encryption_that_is_missing_or_not_trusted(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    plain = serve()
    (failed,) = check(Way(plain.address.replace("http:", "https:")), knows(None))
    assert "does not speak HTTPS" in failed.message
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*make.split(), *names], cwd=tmp_path, check=True, capture_output=True)
    server = Server("")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = server.address.replace("http:", "https:")
        (failed,) = check(Way(address), knows(None))
        assert "is not trusted here" in failed.message
        trusted = Way(address, ca_file=str(tmp_path / "cert.pem"))
        assert told(check(trusted, knows(None))) == ALL_WELL
        missing = check(Way(address, ca_file=str(tmp_path / "none.pem")), knows(None))
        assert "There is no file" in missing[-1].message
    finally:
        server.shutdown()
        server.server_close()


def test_what_a_server_refuses_is_one_sentence(serve: Callable[..., Server]) -> None:
    server = serve()
    client = connect(Way(server.address), knows(None))
    with pytest.raises(Missing, match=r"no such thing: Run r1 not found\.$"):
        client.run("r1")
    with pytest.raises(Refused) as refused:
        client.create_run("name", {})
    assert refused.value.sentence == "Kubeflow Pipelines rejected it: pipeline spec is invalid."
    server.is_away = True
    with pytest.raises(Unreachable, match="the error 503"):
        client.runs()


def test_no_secret_is_in_any_sentence_or_log(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    dex, token = serve("dex").address, serve("token").address
    steps = check(Way(dex, "password", "ada", "ada"), knows(PASSWORD))
    steps += check(Way(dex, "password", "ada", "eve"), knows(PASSWORD))
    steps += check(Way(token, namespace="eve"), knows(TOKEN))
    steps += check(Way(dex, "cookie"), knows(f"x={TOKEN}"))
    everything = caplog.text + "".join(f"{step.message} {step.hint}" for step in steps)
    assert PASSWORD not in everything
    assert TOKEN not in everything
    assert "session1" not in everything


def test_a_secret_comes_from_the_variable_or_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVECT_KFP_SECRET", TOKEN)
    assert stored_secret("http://x") == TOKEN
    monkeypatch.setenv("CONVECT_KFP_SECRET", "two\nlines")
    with pytest.raises(ConvectError, match="damaged"):
        connect(Way("http://127.0.0.1:1", "token"))
    monkeypatch.delenv("CONVECT_KFP_SECRET")
    kept = {(KEYRING_SERVICE, "http://x"): "from the keyring"}
    keyring = types.SimpleNamespace(get_password=lambda *place: kept.get(place))
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    assert stored_secret("http://x") == "from the keyring"
    assert stored_secret("http://y") is None


def test_the_command_names_the_step_that_fails(
    serve: Callable[..., Server], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kfp", "check", serve().address]) == 0
    assert capsys.readouterr().out.count("ok") == 3
    assert main(["kfp", "check", "http://127.0.0.1:1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["steps"][-1]["step"] == "address"
    assert "KF_PIPELINES_ENDPOINT" not in os.environ
    assert main(["kfp", "check"]) == 2
    assert "Specify the address" in capsys.readouterr().err
