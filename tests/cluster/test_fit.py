"""What is said before a run, against what the scheduler then does."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import build
import pytest
from support import container_of
from waiting import PATIENCE, eventually

from jupyterlab_convect.pipeline.plan import Kubernetes
from jupyterlab_convect.pipeline.quantities import quantity
from jupyterlab_convect.pipeline.resolve import plan_for_file
from jupyterlab_convect.runtimes.capacity import as_json

_BUILT = build.cache_folder() / "kubectl"
KUBECTL = shutil.which("kubectl") or (str(_BUILT) if _BUILT.exists() else None)


async def problems(lab: Any, **settings: Any) -> dict[str, tuple[str, str]]:
    """By code: severity and words."""
    lab.write("a.py", "pass")
    found = await lab.runtime.check(plan_for_file("a.py", lab.root, {}, settings))
    return {item.code: (item.severity, item.message) for item in found}


async def scheduled(bed: Any, lab: Any, **settings: Any) -> bool:
    """Whether the real scheduler finds a node for it."""
    run = await lab.start("a.py", settings=settings)

    def verdict() -> bool | None:
        for pod in bed.pods(run.id):
            for condition in pod["status"].get("conditions") or ():
                if condition["type"] == "PodScheduled":
                    return bool(condition["status"] == "True")
        return None

    async def decided() -> bool:
        return await asyncio.to_thread(verdict) is not None

    await eventually(decided, "the scheduler decided")
    answer = verdict()
    assert answer is not None
    await lab.engine.stop(run.id)
    await lab.engine.wait(run.id, PATIENCE)
    return answer


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"resources": {"gpu": {"count": 1, "type": "a100"}}}, None),
        ({"resources": {"gpu": 64}}, "no-such-node"),
        ({"resources": {"gpu": {"count": 1, "type": "H100"}}}, "no-such-node"),
        ({"resources": {"memory": "900Ti"}}, "no-such-node"),
        ({"kubernetes": {"node_selector": {"no": "such"}}}, "no-such-node"),
    ],
)
async def test_our_verdict_is_the_scheduler_s(
    make_lab: Any, bed: Any, settings: Any, code: str | None
) -> None:
    lab = make_lab("viewer")
    said = await problems(lab, **settings)
    assert said.keys() == ({code} if code else set())
    assert await scheduled(bed, lab, **settings) is (code is None)


async def test_without_rights_it_is_unknown(lab: Any) -> None:
    said = await problems(lab, resources={"gpu": 64})
    assert said["unknown"][0] == "info"


async def test_refusals_of_the_cluster_itself(make_lab: Any) -> None:
    lab = make_lab("viewer")
    lab.write("a.py", "pass")
    plan = plan_for_file("a.py", lab.root, {}, {})
    step = replace(plan.steps[0], kubernetes=Kubernetes(service_account="Not A Name"))
    found = await lab.runtime.check(replace(plan, steps=(step,)))
    assert [item.code for item in found] == ["refused"]
    said = await problems(lab, volumes=[{"claim": "no-such", "path": "/data"}])
    assert said["no-claim"][0] == "error"
    said = await problems(lab, resources={"gpu": 0.5})
    assert said["whole-gpus"][0] == "error"


async def test_what_one_may_not_do_is_said(bed: Any, make_lab: Any) -> None:
    bed.create("ServiceAccount", "nobody")
    lab = make_lab(config_file=bed._kubeconfig("nobody"))
    said = await problems(lab)
    assert said["not-allowed"][0] == "error"


async def test_a_cluster_that_is_not_there(bed: Any, make_lab: Any, tmp_path: Any) -> None:
    config = tmp_path / "config"
    config.write_text(bed.kubeconfig.read_text().replace(bed.admin.url(""), "https://127.0.0.1:1"))
    lab = make_lab(config_file=config)
    said = await problems(lab)
    assert said["unreachable"][0] == "error"


async def test_quotas_are_counted(bed: Any, make_lab: Any) -> None:
    lab = make_lab("viewer")
    bed.create("ResourceQuota", "two", spec={"hard": {"requests.nvidia.com/gpu": "2"}})
    try:

        async def told() -> Any:
            said = await problems(lab, resources={"gpu": 3})
            return said if "quota" in said else None

        said = await eventually(told, "the quota is known")
        assert said["quota"] == ("error", "It needs 3 GPUs, but the quota two allows 2 in total.")
    finally:
        bed.admin.delete(bed.admin.path("resourcequotas", "two"))


async def test_top(bed: Any, make_lab: Any) -> None:
    lab = make_lab("viewer")
    lab.write("a.py", "import time\ntime.sleep(60)")
    run = await lab.start("a.py", settings={"resources": {"gpu": 1}})

    async def held() -> Any:
        top = as_json(await lab.runtime.capacity())
        return top if any(each["run"] == run.id for each in top["holders"]) else None

    top = await eventually(held, "its GPU is held")
    gpu = next(item for item in top["gpus"] if item["resource"] == "nvidia.com/gpu")
    assert gpu["free"] == gpu["total"] - 1
    assert top["hidden"] == []
    offer = next(item for item in top["offers"] if item["title"] == gpu["type"])
    assert (offer["now"], offer["settings"]["resources"]["gpu"]["count"]) == (True, gpu["free"])
    # The scheduler finds a node for as much as is offered, and for no more.
    wanted = {**offer["settings"]["resources"]["gpu"]}
    assert await scheduled(bed, lab, resources={"gpu": wanted})
    more = {**wanted, "count": wanted["count"] + 1}
    assert not await scheduled(bed, lab, resources={"gpu": more})
    await lab.engine.stop(run.id)
    await lab.engine.wait(run.id, PATIENCE)


def requested(bed: Any, node: str) -> dict[str, Decimal]:
    """What `kubectl describe node` says is requested there."""
    words = [KUBECTL, f"--kubeconfig={bed.kubeconfig}", "describe", "node", node]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    table = said.partition("Allocated resources:")[2].partition("Events:")[0]
    return {
        line.split()[0]: quantity(line.split()[1])
        for line in table.splitlines()
        if re.match(r"  [\w./-]+ +\d", line)
    }


@pytest.mark.skipif(KUBECTL is None, reason="There is no kubectl.")
async def test_the_numbers_are_those_of_kubectl(bed: Any, make_lab: Any) -> None:
    lab = make_lab("viewer")
    lab.write("a.py", "import time\ntime.sleep(600)")
    resources = {"gpu": 1, "cpu": "70m", "memory": "50Mi"}
    run = await lab.start("a.py", settings={"resources": resources})
    await eventually(lambda: bed.pods(run.id) and bed.pods(run.id)[0]["spec"].get("nodeName"))

    async def same() -> bool:
        """Others come and go meanwhile: at some moment both say the same, of everything."""
        found = await lab.runtime.capacity()
        if found.reading:
            return False
        (node,) = found.nodes
        theirs = await asyncio.to_thread(requested, bed, node.name)
        ours = {each.name: Decimal(str(each.total - each.free)) for each in node.resources}
        assert {"cpu", "memory", "nvidia.com/gpu"} <= ours.keys() <= theirs.keys()
        return all(round(theirs[name] - held, 3) == 0 for name, held in ours.items()) and bool(
            theirs["nvidia.com/gpu"] >= 1
        )

    await eventually(same, "both say the same")
    await lab.engine.stop(run.id)
    await lab.engine.wait(run.id, PATIENCE)


class _Exporter(BaseHTTPRequestHandler):
    """What NVIDIA's exporter would say of a pod, which needs GPUs that are none of ours."""

    pod = ("", "")

    def do_GET(self) -> None:
        namespace, pod = self.pod
        words = f'gpu="0",UUID="GPU-1",container="step",namespace="{namespace}",pod="{pod}"'
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"DCGM_FI_DEV_GPU_UTIL{{{words}}} 40\n".encode())

    def log_message(self, *_: object) -> None:
        pass


async def test_how_busy_a_gpu_is_goes_to_who_holds_it(bed: Any, make_lab: Any) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Exporter) as exporter:
        thread = threading.Thread(target=exporter.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{exporter.server_address[1]}/metrics"
        lab = make_lab("viewer", gpu_metrics=address)
        try:
            lab.write("a.py", "import time\ntime.sleep(600)")
            run = await lab.start("a.py", settings={"resources": {"gpu": 1}})
            (pod,) = await eventually(lambda: bed.pods(run.id))
            _Exporter.pod = (bed.namespace, pod["metadata"]["name"])

            async def told() -> Any:
                found = await lab.runtime.capacity()
                mine = [each for each in found.holders if each.run == run.id]
                return found if mine and mine[0].gpu_use is not None else None

            found = await eventually(told, "it is told")
            (mine,) = (each for each in found.holders if each.run == run.id)
            assert mine.gpu_use == 0.4
            (gpu,) = (each for each in found.gpus if each.resource == "nvidia.com/gpu")
            assert gpu.use == 0.4
            await lab.engine.stop(run.id)
            await lab.engine.wait(run.id, PATIENCE)
        finally:
            exporter.shutdown()
            thread.join()


async def test_top_without_rights_shows_our_own(lab: Any) -> None:
    top = as_json(await lab.runtime.capacity())
    assert top["nodes"] is None
    assert top["gpus"] is None
    assert top["quotas"] == []
    assert [each["part"] for each in top["hidden"]] == ["nodes", "pods"]
    assert all(each["now"] is None for each in top["offers"])


async def test_top_with_no_rights_at_all_says_what_would_show_it(bed: Any, make_lab: Any) -> None:
    bed.create("ServiceAccount", "stranger")
    lab = make_lab(config_file=bed._kubeconfig("stranger"))
    top = as_json(await lab.runtime.capacity())
    assert (top["nodes"], top["quotas"], top["holders"]) == (None, None, [])
    parts = [each["part"] for each in top["hidden"]]
    assert parts[:4] == ["nodes", "pods", "own-pods", "quotas"]
    assert all(each["rule"].startswith("- apiGroups") for each in top["hidden"])


async def test_a_change_is_seen_by_the_next_look(bed: Any, make_lab: Any) -> None:
    lab = make_lab("viewer")

    async def known() -> Any:
        top = as_json(await lab.runtime.capacity())
        return None if top["reading"] else top

    before = await eventually(known, "all pods are read")
    assert before["nodes"]
    container = container_of(bed, cpu="10m")
    name = before["nodes"][0]["name"]
    bed.create("Pod", "seen", spec={"nodeName": name, "containers": [container]})
    try:

        async def held() -> bool:
            top = as_json(await lab.runtime.capacity())
            return any(each["name"] == "seen" for each in top["holders"])

        await eventually(held, "the pod is seen")
    finally:
        bed.admin.delete(bed.admin.path("pods", "seen"), gracePeriodSeconds=0)


async def test_top_and_shell_on_the_command_line(bed: Any, lab: Any, tmp_path: Any) -> None:
    config = tmp_path / "jupyter_jupyterlab_convect_config.py"
    config.write_text(f"c.KubernetesRuntime.config_file = {str(bed.account('convect'))!r}\n")
    env = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(tmp_path),
        "CONVECT_RUNS_DIR": str(lab.store.folder),
        "CONVECT_INDEX_DIR": str(tmp_path),
    }

    async def convect(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("convect")), *words]
        return await asyncio.to_thread(
            subprocess.run,
            command,
            env=env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    done = await convect("top", "kubernetes")
    assert done.returncode == 0, done.stderr
    assert bed.namespace in done.stdout
    lab.write("a.py", "open('up', 'w'); import time; time.sleep(60)")
    run = await lab.start("a.py")
    await eventually((lab.root / "up").exists, "the step runs")
    done = await convect(
        "runs", "shell", run.id, "-c", "sh", "-c", "echo $CONVECT_SECRETS $0; exit 3"
    )
    assert (done.returncode, done.stdout.strip()) == (3, "sh"), done.stderr
    await lab.engine.stop(run.id)
    await lab.engine.wait(run.id, PATIENCE)
    done = await convect("runs", "shell", run.id)
    assert done.returncode == 2
    assert "is running" in done.stderr


async def test_room_on_one_node_counts(make_lab: Any, bed: Any) -> None:
    """On nodes that only the API server and the scheduler know of."""
    if bed.testbed is None:
        pytest.skip("Not on a cluster of others.")
    from fakes import fake_node, held

    kind = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    wish = {"resources": {"gpu": {"count": 4, "type": "A100-SXM4-80GB"}}}
    lab = make_lab("viewer")
    with (
        fake_node(bed.admin, "gpu-7", kind, gpu=4),
        fake_node(bed.admin, "gpu-8", kind, gpu=4),
        held(bed.admin, "gpu-8", 3, bed.image),
    ):
        with held(bed.admin, "gpu-7", 2, bed.image):
            said = await problems(lab, **wish)
            needs = (
                "needs 4 GPUs of type A100-SXM4-80GB on one node; the largest free is 2 on gpu-7."
            )
            assert said["would-wait"] == ("info", f"It would wait: it {needs}")
            run = await lab.start("a.py", settings=wish)

            def waiting() -> Any:
                attempts = lab.store.read(run.id).state.steps["a"].attempts
                return [item for item in attempts if "largest" in (item.reason or "")]

            (attempt,) = await until(waiting)
            assert (attempt.state, attempt.reason) == ("queued", f"Waiting: {needs}")
            assert "2 Insufficient nvidia.com/gpu" in attempt.detail
        (pod,) = await until(
            lambda: [pod for pod in bed.pods(run.id) if pod["spec"].get("nodeName")]
        )
        assert pod["spec"]["nodeName"] == "gpu-7"
        await lab.engine.stop(run.id)
        # Nobody is there to confirm that it has ended.
        place = bed.admin.path("pods", pod["metadata"]["name"])
        await asyncio.to_thread(bed.admin.delete, place, gracePeriodSeconds=0)
        assert (await lab.engine.wait(run.id, PATIENCE)).state == "cancelled"


async def until(check: Any) -> Any:
    return await eventually(lambda: asyncio.to_thread(check))
