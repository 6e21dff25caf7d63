"""Training jobs of Kubeflow in YAML, as they are in an editor: nothing is read or written."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..pipeline.plan import to_json
from .base import Handler
from .pipelines import RESOURCE


class TrainingCheckHandler(Handler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        self.answer(await self.aside(_checked, self.body("TrainingBody")["text"]))


def _checked(text: str) -> dict[str, Any]:
    from ..pipeline.training.job_check import mend  # Seldom used, as all of it.
    from ..pipeline.training.job_form import read_jobs

    mended, faults = mend(text)
    return {
        "faults": [asdict(fault) for fault in faults],
        "mended": None if mended == text else mended,
        "jobs": [
            {
                "kind": job.kind,
                "name": job.name,
                "fields": [asdict(each) for each in job.fields],
            }
            for job in read_jobs(text)
        ],
    }


class TrainingChangeHandler(Handler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        from ..pipeline.training.job_form import change

        body = self.body("TrainingChangeBody")
        paths = [tuple(path) for path in body["paths"]]
        self.answer({"text": await self.aside(change, body["text"], paths, body["value"])})


class TrainingConvertHandler(Handler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        from ..pipeline.training.job_convert import as_train_job

        text, report = await self.aside(as_train_job, self.body("TrainingBody")["text"])
        self.answer({"text": text, "report": [to_json(problem) for problem in report]})


routes = [
    ("training/check", TrainingCheckHandler),
    ("training/change", TrainingChangeHandler),
    ("training/convert", TrainingConvertHandler),
]
