"""Would it run here? Every property is honoured, or its fate said aloud."""

import sys
import types
from dataclasses import replace

import pytest

from jupyterlab_convect import secret_values
from jupyterlab_convect.pipeline.plan import (
    Amount,
    Distributed,
    Gpu,
    Kubernetes,
    Plan,
    Resources,
    Secret,
    Step,
    Volume,
)
from jupyterlab_convect.runtimes.local import checks, machine
from jupyterlab_convect.runtimes.local.machine import GpuDevice


@pytest.fixture
def check(make):
    async def check(traits=None, **step):
        step = {"id": "train", "kind": "notebook", "name": "Train", "kernel": "python3", **step}
        runtime = make(
            cpus=4.0, memory="8Gi", spare_kernels=0, **{"gpus": [], **(traits or {})}
        ).runtime
        return await runtime.check(Plan("p", (Step(**step),)))

    return check


async def test_what_fits_has_no_problems(check):
    resources = Resources(cpu=Amount("4"), memory=Amount("8Gi"))
    assert await check(resources=resources) == []


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (Resources(cpu=Amount("64")), "“Train” needs 64 CPUs; this machine has 4."),
        (Resources(cpu=Amount(limit="5")), "“Train” needs 5 CPUs; this machine has 4."),
        (
            Resources(memory=Amount("1Ti")),
            "“Train” needs 1 TiB of memory; this machine has 8 GiB.",
        ),
    ],
)
async def test_what_can_never_fit_is_refused(check, resources, message):
    problems = await check(resources=resources)
    assert ("error", message) in [(each.severity, each.message) for each in problems]


async def test_this_machine_is_one_node(check):
    how = {"kind": "command", "command": ("true",), "kernel": None}
    assert await check(distributed=Distributed(processes=3), **how) == []
    (problem,) = await check(distributed=Distributed(nodes=2), **how)
    assert problem.severity == "error"
    assert problem.message == "“Train” asks for 2 nodes, but there is only this machine."


async def test_each_process_counts_as_a_cpu(check):
    step = Step("s", "command", "S", command=("true",), distributed=Distributed(processes=3))
    machine_of_four = machine.MachineCapacity(cpu=4, memory=1e9)
    assert checks.need_of(step, machine_of_four).cpu == 3
    assert checks.need_of(replace(step, distributed=None), machine_of_four).cpu == 1
    wide = replace(step, distributed=Distributed(processes="cpu"))
    assert checks.need_of(wide, machine_of_four).cpu == 4


async def test_gpus(check):
    (problem,) = await check(resources=Resources(gpu=Gpu(1)))
    assert (problem.severity, problem.code) == ("warning", "no-gpu")
    (problem,) = await check({"gpus": ["0"]}, resources=Resources(gpu=Gpu(2)))
    assert problem.message == "“Train” needs 2 GPUs; this machine has 1."
    assert problem.severity == "error"
    assert await check({"gpus": ["0"]}, resources=Resources(gpu=Gpu(1))) == []


async def test_an_unknown_kernel_names_the_installed(check):
    (problem,) = await check(kernel="klingon")
    assert problem.severity == "error"
    assert problem.message.startswith("The kernel klingon is not installed here; installed are ")
    assert (problem.node, problem.path) == ("train", ("kernel",))


async def test_jupyter_calls_the_native_kernel_python(check):
    assert await check(kernel="python") == []


async def test_a_missing_program(check, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    (problem,) = await check(kind="script", path="a.R", kernel=None)
    assert problem.message == "a.R needs Rscript, which is not installed here."


async def test_what_is_for_clusters_is_said_to_be_ignored(check, monkeypatch):
    monkeypatch.setattr(checks, "can_limit", lambda controller: False)
    (problem,) = await check(
        image="x",
        volumes=(Volume("c", "/d"),),
        kubernetes=Kubernetes(priority="high"),
        resources=Resources(shared_memory="1Gi", cpu=Amount("1", "2")),
    )
    assert problem.severity == "info"
    for name in ("image", "volumes", "kubernetes", "shared_memory", "cpu.limit"):
        assert name in problem.message


async def test_secrets(check, monkeypatch):
    secret = Secret("PASSWORD", "my-db", "pass.word")
    (problem,) = await check(secrets=(secret,))
    assert (problem.severity, problem.code) == ("error", "missing-secret")
    monkeypatch.setenv("CONVECT_SECRET_MY_DB_PASS_WORD", "x")
    assert await check(secrets=(secret,)) == []


def test_the_keyring_is_asked_where_it_is_installed(monkeypatch):
    secret = Secret("P", "service", "user")
    stored = {("service", "user"): "from the keyring"}
    fake = types.SimpleNamespace(get_password=lambda *key: stored.get(key))
    monkeypatch.setitem(sys.modules, "keyring", fake)
    assert secret_values.look_up(secret) == "from the keyring"
    assert secret_values.look_up(Secret("P", "service", "other")) is None

    def broken(*_):
        raise RuntimeError("locked")

    fake.get_password = broken
    assert secret_values.look_up(secret) is None


def test_the_machine():
    assert machine.cpus() > 0
    assert machine.memory() > 2**20
    assert isinstance(machine.gpus(), tuple)


def test_gpus_are_listed_by_their_own_tool(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, NVIDIA A100-SXM4-40GB'\necho '1, NVIDIA A100-SXM4-40GB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    machine.gpus.cache_clear()
    try:
        assert machine.gpus() == tuple(GpuDevice(n, "NVIDIA A100-SXM4-40GB") for n in "01")
        machine.gpus.cache_clear()
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        assert [device.id for device in machine.gpus()] == ["1"]
        machine.gpus.cache_clear()
        tool.write_text("#!/bin/sh\nexit 9\n")
        assert machine.gpus() == ()
    finally:
        machine.gpus.cache_clear()
