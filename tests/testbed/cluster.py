"""A real Kubernetes of one node on this machine, for tests.

Usage: python cluster.py up | down | status

It needs root, and Debian's etcd, containerd, runc and CNI plugins, which it installs.
It listens on loopback and on a bridge of its own, and sends nothing anywhere else: a
packet filter counts and drops what tries to. It keeps everything it writes in one folder.
`down` stops what `up` started, by process id, and takes the bridge, the mounts and the
firewall rules away again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import build
import certificates
import configuration
import images
import machine
from places import (
    ADDRESS,
    API_PORT,
    DNS_HEALTH,
    ETCD_PORT,
    FIRST_SERVICE,
    GROUP,
    KUBECONFIG,
    NODE,
    PKI,
    PODS,
    SERVER,
    SERVICES,
    SHARED,
    STATE,
)

ETCD = "etcd"
"""The program; whoever needs another one than Debian's says so before `up`."""
GPUS = {"nvidia.com/gpu": "4", "example.com/npu": "2"}
LABELS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"}
__all__ = ["SHARED", "down", "is_up", "kill", "leftovers", "restart", "up", "what_is_missing"]
PARTS = (
    *("etcd", "containerd", "apiserver", "dns", "controller-manager", "scheduler", "kubelet"),
    "proxy",
)
DEBIAN = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "openssl": "openssl",
    "busybox": "busybox-static",
}


def up() -> Path:
    """Start what is not running yet; the path of the administrator's kubeconfig."""
    with build.turn("cluster"):  # Two at once would take away each other's.
        return _up()


def _up() -> Path:
    if is_up():
        return KUBECONFIG
    if missing := what_is_missing():
        raise SystemExit(missing)
    _install_packages()
    programs = build.build()
    down()
    started = time.monotonic()
    certificates.make(PKI, SERVER, certificates.identities(NODE, ADDRESS, FIRST_SERVICE))
    machine.prepare()
    configuration.write()
    for name, command in _commands(programs):
        start(name, command)
        if name == "apiserver":
            _wait("the API server", lambda: "ok" in _kubectl("get", "--raw", "/readyz"))
        if name == "containerd":
            _wait("containerd", lambda: _ctr("version").returncode == 0)
            _import_images(programs)
    _wait("the names of the cluster", _dns_is_ready)
    _wait("the node", _node_is_ready)
    _wait("the controllers", lambda: "default" in _kubectl("get", "serviceaccounts"))
    _furnish()
    _say(f"ready in {time.monotonic() - started:.0f} s; KUBECONFIG={KUBECONFIG}")
    return KUBECONFIG


def what_is_missing() -> str | None:
    """Why there can be no test bed on this machine, in a sentence."""
    if sys.platform != "linux":
        return "A cluster of our own needs Linux; or set KUBECONFIG to another one."
    if os.geteuid() != 0:
        return "A cluster of our own needs root, for bridges and mounts; or set KUBECONFIG."
    if shutil.which("go") is None and not build.is_built():
        return "A cluster of our own is built with Go 1.26, which is not installed."
    if _packages() and shutil.which("apt-get") is None:
        return f"A cluster of our own needs these Debian packages: {' '.join(_packages())}."
    return None


def down() -> None:
    """Stop everything and leave nothing behind but the cache."""
    pids = _pids()
    if "apiserver" in pids:
        _kubectl(
            "delete", "pods,jobs", "--all", "-A", "--force", "--grace-period=0", "--wait=false"
        )
        _wait("the pods to go", lambda: not _pod_tasks(), seconds=5, fatal=False)
    for name in (*(pids.keys() - set(PARTS)), *reversed(PARTS)):
        if name != "containerd":
            _stop(name)
    if "proxy" in pids:
        proxy = build.cache_folder() / "kube-proxy"
        _quiet([str(proxy), f"--config={STATE / 'proxy.yaml'}", "--cleanup"])
    if "containerd" in pids:
        for task in _pod_tasks():
            _ctr("-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", task)
        if containers := _ctr("-n", "k8s.io", "containers", "list", "-q").stdout.split():
            _ctr("-n", "k8s.io", "containers", "delete", *containers)
    _stop("containerd")
    machine.restore()
    # The images stay where they were unpacked, so that the next start is quick.
    for name in (
        "etcd",
        "kubelet",
        "kueue",
        "kfp",
        "containerd/state",
        "containerd/ipam",
        "logs",
        "podlogs",
        "shared",
    ):
        shutil.rmtree(STATE / name, ignore_errors=True)


def apply(folder: Path) -> None:
    """Everything in the folder, and wait until the API server knows it."""
    _kubectl("apply", "--server-side", "--force-conflicts", "-f", str(folder))
    _kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(folder))


def kill(name: str) -> None:
    """Stop one part at once, as a fault would."""
    _stop(name, signal.SIGKILL)


def restart(name: str) -> None:
    """Start one part again that was stopped, and whatever else did not survive that."""
    commands = {**dict(_commands(build.cache_folder())), **started_by()}

    def is_well() -> bool:
        # A port that was just let go may be taken for a moment: then it ends again.
        for part in PARTS:
            if part not in _pids():
                start(part, commands[part])
        return "ok" in _kubectl("get", "--raw", "/readyz")

    start(name, commands[name])
    _wait("the API server", is_well)


def _commands(programs: Path) -> Iterator[tuple[str, list[str]]]:
    def conf(name: str) -> str:
        return str(PKI / f"{name}.conf")

    etcd = f"http://127.0.0.1:{ETCD_PORT}"
    peer = f"http://127.0.0.1:{ETCD_PORT + 1}"
    yield "etcd", [
        ETCD, f"--data-dir={STATE / 'etcd'}", "--unsafe-no-fsync",
        f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]  # fmt: skip
    yield "containerd", ["containerd", "-c", str(STATE / "containerd.toml")]
    yield "apiserver", [
        str(programs / "kube-apiserver"), f"--etcd-servers={etcd}",
        f"--bind-address={ADDRESS}", f"--advertise-address={ADDRESS}", f"--secure-port={API_PORT}",
        f"--service-cluster-ip-range={SERVICES}", "--allow-privileged=true",
        f"--tls-cert-file={PKI / 'apiserver.crt'}",
        f"--tls-private-key-file={PKI / 'apiserver.key'}",
        f"--client-ca-file={PKI / 'ca.crt'}",
        f"--kubelet-client-certificate={PKI / 'admin.crt'}",
        f"--kubelet-client-key={PKI / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={PKI / 'sa.pub'}",
        f"--service-account-signing-key-file={PKI / 'sa.key'}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
    ]  # fmt: skip
    yield "dns", [str(programs / build.DNS), "-conf", str(STATE / "Corefile")]
    yield "controller-manager", [
        str(programs / "kube-controller-manager"), f"--kubeconfig={conf('controller-manager')}",
        "--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials",
        f"--service-account-private-key-file={PKI / 'sa.key'}",
        f"--root-ca-file={PKI / 'ca.crt'}", f"--cluster-cidr={PODS}",
        "--node-monitor-grace-period=20s",
        f"--authentication-kubeconfig={conf('controller-manager')}",
        f"--authorization-kubeconfig={conf('controller-manager')}",
    ]  # fmt: skip
    yield "scheduler", [
        str(programs / "kube-scheduler"), f"--kubeconfig={conf('scheduler')}",
        "--bind-address=127.0.0.1", "--leader-elect=false",
        f"--authentication-kubeconfig={conf('scheduler')}",
        f"--authorization-kubeconfig={conf('scheduler')}",
    ]  # fmt: skip
    yield "kubelet", [
        str(programs / "kubelet"), f"--config={STATE / 'kubelet.yaml'}",
        f"--kubeconfig={conf('kubelet')}", f"--hostname-override={NODE}", f"--node-ip={ADDRESS}",
        f"--root-dir={STATE / 'kubelet'}", f"--cert-dir={STATE / 'kubelet' / 'pki'}",
    ]  # fmt: skip
    yield "proxy", [str(programs / "kube-proxy"), f"--config={STATE / 'proxy.yaml'}"]


def _import_images(programs: Path) -> None:
    folder = STATE / "images"
    listed = _ctr("-n", "k8s.io", "images", "list", "-q").stdout.split()
    present = {name.removeprefix("docker.io/") for name in listed}
    makers: dict[str, Callable[[], Path]] = {
        images.PAUSE: lambda: images.pause_image(programs / "pause", folder),
        images.NOTEBOOK: lambda: images.python_image(folder, images.NOTEBOOK, images.PACKAGES),
        images.TOOLS: lambda: images.tools_image(folder),
        images.BARE: lambda: images.python_image(folder, images.BARE, ()),
        images.EXAMPLE: lambda: images.python_image(
            folder, images.EXAMPLE, images.EXAMPLE_PACKAGES
        ),
        images.SERVER: lambda: images.python_image(folder, images.SERVER, images.SERVER_PACKAGES),
    }
    for name, make in makers.items():
        if name in present:
            continue
        _say(f"making the image {name}")
        path = make()
        import_image(path)
        path.unlink()
    for name in listed:
        if "local/" in name and name.removeprefix("docker.io/") not in makers:
            _ctr("-n", "k8s.io", "images", "remove", name)


def _furnish() -> None:
    """Fake GPUs, and the address of the cluster's names."""
    patch = [
        {"op": "add", "path": f"/status/capacity/{name.replace('/', '~1')}", "value": count}
        for name, count in GPUS.items()
    ]
    _kubectl("patch", "node", NODE, "--subresource=status", "--type=json", "-p", json.dumps(patch))
    _kubectl("label", "node", NODE, "--overwrite", *(f"{k}={v}" for k, v in LABELS.items()))
    service = STATE / "dns.json"
    service.write_text(json.dumps(configuration.dns_service()))
    _kubectl("apply", "--server-side", "-f", str(service))


def start(name: str, command: list[str], **environment: str) -> None:
    """Start a part that `down` stops."""
    with (STATE / "logs" / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            extra_groups=[GROUP],
            env={**os.environ, **environment},
        )
    pids = {**_pids(), name: [process.pid, _start_time(process.pid)]}
    (STATE / "pids.json").write_text(json.dumps(pids))
    (STATE / "commands.json").write_text(json.dumps({**started_by(), name: command}))


def started_by() -> dict[str, list[str]]:
    """The command that each part was started by: others may have chosen another program."""
    try:
        found: dict[str, list[str]] = json.loads((STATE / "commands.json").read_text())
    except FileNotFoundError:
        return {}
    return found


def _stop(name: str, sign: int = signal.SIGTERM) -> None:
    pids = _pids()
    pid, _ = pids.pop(name, (None, None))
    if pid is None:
        return
    os.kill(pid, sign)
    _wait(f"{name} to end", lambda: name not in _pids(), seconds=15, fatal=False)
    if name in _pids():
        os.kill(pid, signal.SIGKILL)
    (STATE / "pids.json").write_text(json.dumps(pids))


def _pids() -> dict[str, list[int]]:
    """The parts that run: name, process id and start time, so that no stranger is stopped."""
    try:
        known = json.loads((STATE / "pids.json").read_text())
    except FileNotFoundError:
        return {}
    return {name: entry for name, entry in known.items() if _start_time(entry[0]) == entry[1]}


def _start_time(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] == "Z" else int(fields[19])


def parts() -> list[str]:
    """The names of those that run."""
    return list(_pids())


def program_of(name: str) -> Path:
    """What a part that runs was started from."""
    return Path(f"/proc/{_pids()[name][0]}/exe").resolve()


def has_image(name: str) -> bool:
    return f"docker.io/{name}" in _ctr("-n", "k8s.io", "images", "list", "-q").stdout.split()


def import_image(path: Path) -> None:
    done = _ctr("-n", "k8s.io", "images", "import", str(path))
    if done.returncode:
        raise SystemExit(f"The image {path.name} cannot be imported: {done.stderr.strip()}")


def leftovers() -> list[str]:
    """What `down` should have taken away and did not."""
    running = [f"the process {name} ({pid})" for name, (pid, _) in _pids().items()]
    return [*running, *machine.leftovers()]


def is_up() -> bool:
    """On a busy machine its node may be away for a moment; that is no reason to start anew."""
    if not _pids().keys() >= set(PARTS):
        return False
    _wait("the node", _node_is_ready, seconds=30, fatal=False)
    return _node_is_ready()


def _dns_is_ready() -> bool:
    try:
        with contextlib.closing(HTTPConnection(DNS_HEALTH, timeout=1)) as connection:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
    except OSError:
        return False


def _node_is_ready() -> bool:
    return "True" in _kubectl(
        "get", "node", NODE, "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    )


def _pod_tasks() -> list[str]:
    listing = _ctr("-n", "k8s.io", "tasks", "list", "-q")
    return listing.stdout.split() if listing.returncode == 0 else []


def _kubectl(*arguments: str) -> str:
    command = [str(build.cache_folder() / "kubectl"), f"--kubeconfig={KUBECONFIG}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _ctr(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["ctr", "-a", str(STATE / "containerd" / "socket"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _quiet(command: list[str]) -> None:
    subprocess.run(command, capture_output=True, check=False)


def _wait(what: str, done: Callable[[], bool], *, seconds: int = 300, fatal: bool = True) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            if fatal:
                raise SystemExit(f"Waited {seconds} s for {what} in vain: see {STATE / 'logs'}.")
            return
        time.sleep(0.3)


def _packages() -> list[str]:
    """Those of Debian that are not installed yet."""
    missing = [package for program, package in DEBIAN.items() if shutil.which(program) is None]
    if not Path("/usr/lib/cni/bridge").exists():
        missing.append("containernetworking-plugins")
    return missing


def _install_packages() -> None:
    missing = _packages()
    if not missing:
        return
    _say(f"installing {' '.join(missing)}")
    _quiet(["apt-get", "update"])
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
    install += ["-o", "DPkg::Lock::Timeout=600"]  # somebody else may be installing
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if subprocess.run(install, env=environment, capture_output=True, check=False).returncode:
        raise SystemExit(f"Could not install {' '.join(missing)}.")


def _say(text: str) -> None:
    print(f"test bed: {text}", file=sys.stderr, flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["up"]:
            print(up())
        case ["down"]:
            down()
        case ["status"]:
            print("\n".join(f"{name} {pid}" for name, (pid, _) in _pids().items()) or "down")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
