"""Steps run as processes that can be found, watched and stopped, also from elsewhere."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import Amount, Gpu, Resources, Secret
from jupyterlab_convect.runner.limits import can_limit
from jupyterlab_convect.runner.processes import identify

pytestmark = pytest.mark.slow

WARM_AND_COLD = pytest.mark.parametrize("spare_kernels", [1, 0], ids=["warm", "cold"])


@WARM_AND_COLD
async def test_a_notebook_from_start_to_end(make, spare_kernels):
    driver = make(spare_kernels=spare_kernels)
    called = asyncio.Event()
    driver.runtime.changed = called.set
    attempt = driver.attempt(["print('hello')", "print(x)"], parameters={"x": "值"}, expected=2.0)
    assert driver.runtime.admit(attempt) is None
    attempt = await driver.start(attempt)
    assert set(attempt.handle) - {"keeper"} == {"pid", "start_time", "host", "boot"}
    await asyncio.wait_for(called.wait(), 60)
    (status,) = await driver.runtime.poll([attempt])
    assert status.state == "succeeded"
    assert (attempt.folder / "log.txt").read_text() == "hello\n值\n"
    driver.runtime.release(attempt)
    assert driver.runtime.reservations.used() == {}


@WARM_AND_COLD
async def test_a_script_and_a_failure(make, spare_kernels):
    driver = make(spare_kernels=spare_kernels)
    _, status, log = await driver.run((".sh", "echo out; exit 4"))
    assert (status.state, status.reason) == ("failed", "s1.sh exited with code 4: out")
    assert log == "out\n"
    _, status, _ = await driver.run(["1/0"])
    assert status.reason == "Cell 1 raised ZeroDivisionError: division by zero"


@WARM_AND_COLD
async def test_progress_while_it_runs(make, spare_kernels, wait_for):
    driver = make(spare_kernels=spare_kernels)
    attempt = driver.attempt(["1", "import time; time.sleep(600)"], expected=7.0)
    attempt = await driver.start(attempt)

    async def in_a_cell():
        status = await driver.until(attempt, "running")
        return status if status.progress and status.progress.cell else None

    status = await wait_for(in_a_cell)
    assert (status.progress.cell, status.progress.cells) == (1, 2)
    assert status.progress.expected == 7.0
    await driver.runtime.stop(attempt)
    status = await driver.until(attempt, "cancelled")
    assert status.reason == "Stopped."
    await driver.runtime.stop(attempt)


@WARM_AND_COLD
async def test_stopping_ends_everything_it_started(make, spare_kernels, wait_for, alive):
    driver = make(spare_kernels=spare_kernels, stop_grace=0.2)
    stubborn = (
        "import os, signal, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print(os.getpid(), child.pid, flush=True)\n"
        "while True:\n    try: time.sleep(600)\n    except KeyboardInterrupt: pass"
    )
    attempt = await driver.start(driver.attempt([stubborn]))
    log = attempt.folder / "log.txt"
    await wait_for(lambda: log.exists() and log.read_text().count(" ") == 1)
    kernel, child = map(int, log.read_text().split())
    os.kill(attempt.handle["pid"], signal.SIGSTOP)  # a runner that does not even answer
    from jupyterlab_convect.runtimes.local import runtime

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "FORCE_AFTER", 0.1)
        await driver.runtime.stop(attempt)
    await wait_for(lambda: not alive(attempt.handle))
    await wait_for(lambda: not alive(kernel))
    await wait_for(lambda: not alive(child))
    assert (await driver.until(attempt, "cancelled")).reason == "Stopped."


@WARM_AND_COLD
async def test_a_runner_that_is_killed_is_no_success(make, spare_kernels, wait_for, alive):
    driver = make(spare_kernels=spare_kernels)
    attempt = driver.attempt(["import os, time; print(os.getpid(), flush=True); time.sleep(600)"])
    attempt = await driver.start(attempt)
    log = attempt.folder / "log.txt"
    await wait_for(lambda: log.exists() and log.read_text())
    os.kill(attempt.handle["pid"], signal.SIGKILL)
    status = await driver.until(attempt, "failed")
    assert status.reason.startswith("The runner was killed before it could write the result")
    kernel = int(log.read_text())
    await wait_for(lambda: not alive(kernel))


@WARM_AND_COLD
async def test_another_process_finds_it_by_its_folder_alone(make, spare_kernels):
    driver = make(spare_kernels=spare_kernels)
    attempt = await driver.start(driver.attempt(["import time; time.sleep(600)"]))
    await driver.until(attempt, "running")
    await driver.runtime.close()
    other = make()
    forgotten = replace(attempt, handle=None)
    assert (await other.until(forgotten, "running")).key == attempt.key
    await other.runtime.stop(forgotten)
    await other.until(forgotten, "cancelled")


async def test_an_attempt_is_executed_once(make):
    driver = make(spare_kernels=0)
    attempt = driver.attempt((".sh", "echo once; sleep 0.5"))
    first, second = await asyncio.gather(driver.start(attempt), driver.start(attempt))
    for found in (first, second):
        assert (await driver.until(found, "succeeded")).state == "succeeded"
    assert (attempt.folder / "log.txt").read_text() == "once\n"


async def test_what_was_never_started_or_ran_elsewhere(make):
    driver = make()
    attempt = driver.attempt((".sh", "true"))
    (status,) = await driver.runtime.poll([attempt])
    assert (status.state, status.reason) == ("lost", "It was never started.")
    await driver.runtime.stop(attempt)
    elsewhere = {**identify(os.getpid()), "host": "elsewhere"}
    (status,) = await driver.runtime.poll([replace(attempt, handle=elsewhere)])
    assert status.state == "lost"
    assert "elsewhere" in status.reason


async def test_a_process_with_the_same_id_is_not_it(make):
    driver = make()
    attempt = driver.attempt((".sh", "true"))
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        found = identify(stranger.pid)
        stale = replace(attempt, handle={**found, "start_time": found["start_time"] - 1})
        (status,) = await driver.runtime.poll([stale])
        assert status.state == "failed"
        await driver.runtime.stop(stale)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_the_host_may_be_killed(make, tmp_path, wait_for):
    """A process starts a step and dies at once; the step ends well."""
    driver = make()
    attempt = driver.attempt(["import time; time.sleep(1)", "print('went on')"])
    code = f"""
import asyncio, os, signal
from pathlib import Path
from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.runtimes.local import LocalRuntime

async def main():
    runtime = LocalRuntime()
    folder, step = Path({str(attempt.folder)!r}), Step("s", "notebook", "s")
    about = {{"root": folder, "plan": Plan("p", (step,)), "runs": folder}}
    attempt = Attempt("r", step, 1, folder, **about)
    async for handle in runtime.start(attempt):
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    host = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code])
    assert host.returncode == -signal.SIGKILL
    await wait_for(lambda: (attempt.folder / "runner.json").exists())
    assert (await driver.until(attempt, "succeeded")).state == "succeeded"
    assert "went on" in (attempt.folder / "log.txt").read_text()


async def test_secrets_reach_the_step_that_asks_and_nothing_else(make, monkeypatch):
    driver = make(spare_kernels=0)
    monkeypatch.setenv("CONVECT_SECRET_MY_DB_PASSWORD", "hunter22")
    monkeypatch.setenv("CONVECT_SECRET_OTHER_KEY", "other-secret")
    show = (".py", "import os\nprint(sorted(v for k, v in os.environ.items() if 'unte' in v))\n"
            "print([k for k in os.environ if k.startswith('CONVECT_SECRET')])")  # fmt: skip
    secret = Secret("PASSWORD", "my-db", "password")
    attempt, status, log = await driver.run(show, settings={"secrets": (secret,)})
    assert status.state == "succeeded"
    assert log == "['***']\n[]\n"
    for path in attempt.folder.rglob("*"):
        assert "hunter22" not in path.read_text()
    _, _, log = await driver.run(show)
    assert log == "[]\n[]\n"


SERVER_SECRETS = (
    "CONVECT_SECRET_OTHER_KEY",
    "JUPYTER_TOKEN",
    "JUPYTER_TOKEN_FILE",
    "JUPYTERHUB_API_TOKEN",
    "JPY_API_TOKEN",
    "JUPYTER_GATEWAY_AUTH_TOKEN",
    "JUPYTER_GATEWAY_HTTP_PWD",
    "CONFIGPROXY_AUTH_TOKEN",
)
SEE_ALL = """
import os
from pathlib import Path
place = os.getpid()
seen = [repr(dict(os.environ))]
while place > 1:
    seen.append(Path(f"/proc/{place}/environ").read_text())
    status = Path(f"/proc/{place}/stat").read_text().rpartition(")")[2].split()
    seen.append(Path(f"/proc/{place}/cmdline").read_text())
    place = int(status[1]) if place != os.getsid(0) else 1
print("other-" + "secret" in "".join(seen), os.environ.get("JUPYTER_PLATFORM_DIRS"))
"""


@WARM_AND_COLD
@pytest.mark.parametrize("kind", ["notebook", "script"])
async def test_no_secret_of_the_server_is_in_any_process_of_a_step(
    make, monkeypatch, spare_kernels, kind
):
    for name in SERVER_SECRETS:
        monkeypatch.setenv(name, "other-secret")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    driver = make(spare_kernels=spare_kernels)
    source = [SEE_ALL] if kind == "notebook" else (".py", SEE_ALL)
    _, status, log = await driver.run(source)
    assert status.state == "succeeded", log
    assert log == "False 1\n"


async def test_a_missing_secret_is_said_before_the_start(make):
    driver = make()
    attempt = driver.attempt(
        (".sh", "true"), settings={"secrets": (Secret("P", "db", "password"),)}
    )
    with pytest.raises(Refused, match="The secret db/password is not known") as caught:
        await driver.start(attempt)
    assert "CONVECT_SECRET_DB_PASSWORD" in caught.value.hint
    assert not (attempt.folder / "runner.json").exists()


@WARM_AND_COLD
async def test_limits_and_gpus(make, spare_kernels):
    driver = make(spare_kernels=spare_kernels, gpus=["2", "5", "7"])
    resources = Resources(memory=Amount(limit="1Gi"), gpu=Gpu(2))
    source = [
        "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])",
        "print(open('/proc/self/cgroup').read() if os.path.isdir('/proc') else '')",
        "bytearray(2**31)",
    ]
    attempt = driver.attempt(source, settings={"resources": resources})
    assert driver.runtime.admit(attempt) is None
    attempt = await driver.start(attempt)
    status = await driver.until(attempt, "failed")
    assert status.reason.startswith("Cell 3 raised MemoryError")
    log = (attempt.folder / "log.txt").read_text()
    assert log.startswith("2,5\n")
    assert ("/convect-" in log) == can_limit("memory")


async def test_room_is_kept_by_what_runs_and_given_back_at_its_end(make):
    driver = make(cpus=1.0, spare_kernels=0)
    first = driver.attempt((".sh", "sleep 600"))
    second = driver.attempt((".sh", "true"))
    assert driver.runtime.admit(first) is None
    assert driver.runtime.admit(first) is None
    assert driver.runtime.admit(second) == "Waiting for 1 CPU: 1 of 1 are in use by “s”."
    first = await driver.start(first)
    driver.runtime.release(first)  # the host lets go, the step goes on
    assert driver.runtime.admit(second) is not None
    other = make(cpus=1.0)
    assert other.runtime.admit(first) is None  # found again
    await driver.runtime.stop(first)
    driver.runtime.release(first)
    assert driver.runtime.admit(second) is None


async def test_a_damaged_result_is_a_failure(make):
    driver = make()
    attempt = driver.attempt((".sh", "true"))
    (attempt.folder / "outputs.json").write_text('{"state": ')
    (status,) = await driver.runtime.poll([attempt])
    assert status.state == "failed"
    assert json.loads((attempt.folder / "step.json").read_text())


async def test_a_runner_that_could_not_write_that_it_begins(make):
    driver = make(spare_kernels=0)
    attempt = driver.attempt((".sh", "true"))
    ended = subprocess.Popen(["sleep", "600"])
    attempt = replace(attempt, handle=identify(ended.pid))
    ended.kill()
    ended.wait()
    shutil.rmtree(attempt.folder)  # as good as a full disk, and to be had everywhere
    (status,) = await driver.runtime.poll([attempt])
    sentence = "It could not begin: its folder cannot be written, no such file or directory."
    assert (status.state, status.reason) == ("failed", sentence)
