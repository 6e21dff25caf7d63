from __future__ import annotations

from pathlib import Path
from typing import Any

from ..pipeline.training.jobs import GOOD, TRAIN_JOB


async def test_a_job_is_checked_and_mended(api: Any) -> None:
    text = GOOD.replace("              image", "        image", 1)
    status, found = await api("POST", "training/check", {"text": text})
    assert status == 200
    assert [(fault["line"], fault["is_mended"]) for fault in found["faults"]] == [(14, True)]
    assert found["mended"] == GOOD
    assert found["jobs"] == []
    _, found = await api("POST", "training/check", {"text": GOOD})
    assert (found["faults"], found["mended"]) == ([], None)
    (job,) = found["jobs"]
    assert (job["kind"], job["name"]) == ("PyTorchJob", "train")
    (image,) = (each for each in job["fields"] if each["name"] == "image")
    body = {"text": GOOD, "paths": image["paths"], "value": "other:2"}
    _, changed = await api("POST", "training/change", body)
    assert changed["text"] == GOOD.replace("registry:5000/train:v1", "other:2")


async def test_a_job_is_converted(api: Any, jp_root_dir: Path) -> None:
    text = GOOD.replace("args:", "command: [python, train.py]\n              args:")
    status, made = await api("POST", "training/convert", {"text": text})
    assert (status, "kind: TrainJob" in made["text"]) == (200, True)
    (jp_root_dir / "job.yaml").write_text(text)
    status, made = await api("POST", "pipelines/import", {"path": "job.yaml"})
    assert (status, made["document"]["nodes"]["train"]["kind"]) == (200, "command")
    (jp_root_dir / "a.params").write_text("command=ls\npriority=1\n")
    status, made = await api("POST", "pipelines/import", {"path": "a.params"})
    assert (status, len(made["report"])) == (200, 1)


async def test_bad_requests_get_a_sentence(api: Any, jp_root_dir: Path) -> None:
    status, error = await api("POST", "training/convert", {"text": TRAIN_JOB})
    assert (status, error["message"]) == (400, "This is a TrainJob already.")
    body = {"text": GOOD, "paths": [[0, "kind", "x"]], "value": 1}
    status, error = await api("POST", "training/change", body)
    assert (status, error["code"]) == (400, "bad-change")
    assert (await api("POST", "training/change", {"text": GOOD}))[0] == 400
    (jp_root_dir / "bad.params").write_text("wrong")
    assert (await api("POST", "pipelines/import", {"path": "bad.params"}))[0] == 400
