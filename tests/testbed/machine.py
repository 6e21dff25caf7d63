"""What the test bed changes on this machine outside of its own folder, and takes back."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from places import ADDRESS, BRIDGE, BRIDGE_MAC, BRIDGE_PORT, ELSEWHERE, GROUP, SERVICES, STATE

SETTINGS = (
    "net.ipv4.ip_forward",
    "net.ipv4.conf.all.route_localnet",
    "vm.overcommit_memory",
    "kernel.panic",
    "kernel.panic_on_oops",
)
"""Of the kernel, which kubelet, kube-proxy or we set."""
FOLDERS = (
    "/run/containerd",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/usr/libexec/kubernetes",
    "/etc/kueue",
    "/var/log/containers",
)
"""Which the parts make wherever they are told to live."""
LOGS = Path("/var/log/containers")
"""Where kubelet links to the logs of containers, wherever these are."""
BEFORE = STATE / "before.json"
LEAVING = "CONVECT-LEAVING"
"""The chain that counts and drops packets of the test bed on their way out of this machine."""


def prepare() -> None:
    """Remember how it was, and make the bridge."""
    if not BEFORE.exists():
        settings = {
            name: _setting(name).read_text() for name in SETTINGS if _setting(name).exists()
        }
        absent = [name for name in FOLDERS if not Path(name).exists()]
        STATE.mkdir(parents=True, exist_ok=True)
        BEFORE.write_text(json.dumps({"settings": settings, "absent": absent}))
    # A bridge takes its address from its ports, and is down without any: with pods that come and
    # go, the gateway would be somebody else for the next one, or nobody, for as long as a minute.
    _quiet("ip", "link", "add", BRIDGE, "address", BRIDGE_MAC, "type", "bridge")
    _quiet("ip", "link", "add", BRIDGE_PORT, "type", "dummy")
    _quiet("ip", "link", "set", BRIDGE_PORT, "master", BRIDGE, "up")
    _quiet("ip", "address", "add", f"{ADDRESS}/24", "dev", BRIDGE)
    _quiet("ip", "link", "set", BRIDGE, "up")
    if BRIDGE not in _links():
        raise SystemExit("The test bed cannot make a network bridge on this machine.")
    _setting("net.ipv4.ip_forward").write_text("1")
    _guard()


def packets_that_left(*, to_elsewhere: bool = False) -> int:
    """How many packets of pods or of the cluster's parts wanted to leave, and were not let.

    `to_elsewhere`: those of a test that tries, which the others do not include. Packets to
    Services that are not there are dropped as well, and not counted.
    """
    listing = subprocess.run(
        ["iptables", "-t", "mangle", "-nvxL", LEAVING], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    elsewhere, _, others = (int(line.split()[0]) for line in listing[2:5])
    return elsewhere if to_elsewhere else others


def _guard() -> None:
    """Whatever does not stay on loopback or the bridge is counted and dropped.

    In the table that comes before those of kube-proxy and of the network plugin.
    """
    ours = ("-m", "owner", "--gid-owner", str(GROUP), "--suppl-groups")
    rules = (
        ("-N", LEAVING),
        ("-A", LEAVING, "-d", ELSEWHERE, "-j", "DROP"),
        # Of a Service that kube-proxy does not know yet, or no longer: that is nobody's address.
        ("-A", LEAVING, "-d", SERVICES, "-j", "DROP"),
        ("-A", LEAVING, "-j", "DROP"),
        ("-A", "FORWARD", "-i", BRIDGE, "!", "-o", BRIDGE, "-j", LEAVING),
        # Not in OUTPUT: what goes to a Service has its real address only afterwards.
        ("-N", f"{LEAVING}-OURS"),
        ("-A", f"{LEAVING}-OURS", "-o", "lo", "-j", "RETURN"),
        ("-A", f"{LEAVING}-OURS", "-o", BRIDGE, "-j", "RETURN"),
        ("-A", f"{LEAVING}-OURS", "-j", LEAVING),
        ("-A", "POSTROUTING", *ours, "-j", f"{LEAVING}-OURS"),
    )
    for rule in rules:
        done = subprocess.run(
            ["iptables", "-w", "-t", "mangle", *rule], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"The packet filter cannot be set up: {done.stderr.strip()}")


def restore() -> None:
    """As it was before, as far as we changed it."""
    for link in (BRIDGE, BRIDGE_PORT):
        _quiet("ip", "link", "delete", link)
    rules = _rules()
    kept = [line for line in rules if not _is_ours(line)]
    if len(kept) < len(rules):
        subprocess.run(["iptables-restore"], input="\n".join(kept) + "\n", text=True, check=False)
    for place in sorted(_mounts(), reverse=True):
        _quiet("umount", "-l", place)
    for group in _groups():
        for folder in sorted(group.rglob("*"), reverse=True):
            if folder.is_dir():
                _quiet("rmdir", str(folder))
        _quiet("rmdir", str(group))
    for link in _links_to_logs():
        link.unlink()
    if not BEFORE.exists():
        return
    before = json.loads(BEFORE.read_text())
    for name, value in before["settings"].items():
        _setting(name).write_text(value)
    for name in before["absent"]:
        shutil.rmtree(name, ignore_errors=True)
    BEFORE.unlink()


def leftovers() -> list[str]:
    """What is there of us, in words; nothing after `restore`."""
    found = [f"the mount {place}" for place in _mounts()]
    found += [f"the control group {group}" for group in _groups()]
    found += [f"the network link {link}" for link in (BRIDGE, BRIDGE_PORT) if link in _links()]
    rules = sum(_is_ours(line) for line in _rules())
    if rules:
        found.append(f"{rules} firewall rules")
    if _links_to_logs():
        found.append(f"links in {LOGS}")
    if BEFORE.exists():
        found.append("changed settings of the kernel")
    return found


def _is_ours(rule: str) -> bool:
    return any(name in rule for name in ("KUBE-", "CNI-", LEAVING))


def _rules() -> list[str]:
    if shutil.which("iptables-save") is None:
        return []
    done = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def _links() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


def _mounts() -> list[str]:
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [place for place in places if place.startswith(f"{STATE}/")]


def _groups() -> list[Path]:
    places = (*Path("/sys/fs/cgroup").glob("*/kubepods"), Path("/sys/fs/cgroup/kubepods"))
    return [place for place in places if place.exists()]


def _links_to_logs() -> list[Path]:
    links = [path for path in LOGS.iterdir() if path.is_symlink()] if LOGS.exists() else []
    return [link for link in links if link.readlink().is_relative_to(STATE)]


def _setting(name: str) -> Path:
    return Path("/proc/sys", *name.split("."))


def _quiet(*command: str) -> None:
    subprocess.run(command, capture_output=True, check=False)
