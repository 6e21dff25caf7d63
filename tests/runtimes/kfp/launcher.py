"""Executes the tasks of a compiled pipeline on this machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from jupyterlab_convect.runtimes.kfp.compile import Compiled


class Launcher:
    """Executes tasks of the root DAG on this machine, as Kubeflow's driver and launcher do."""

    def __init__(self, compiled: Compiled, store: Path, *, begins: bool = True) -> None:
        self.spec = compiled.pipeline_spec
        self.store = store
        self.values: dict[tuple[str, str], Any] = {}
        self.metadata: dict[str, Any] = {}
        assert not begins or self.execute("files").returncode == 0

    def path(self, task: str, name: str) -> Path:
        return self.store / task / name

    def text(self, task: str, name: str) -> str:
        return self.path(task, name).read_text("utf-8")

    def execute(self, key: str) -> subprocess.CompletedProcess[str]:
        task = self.spec["root"]["dag"]["tasks"][key]
        component = self.spec["components"][task["componentRef"]["name"]]
        container = self.spec["deploymentSpec"]["executors"][component["executorLabel"]]
        given = task.get("inputs", {})
        outputs = component.get("outputDefinitions", {})
        told = {
            "inputs": {
                "parameterValues": {
                    name: self._parameter(spec)
                    for name, spec in given.get("parameters", {}).items()
                },
                "artifacts": {
                    name: self._artifacts(*spec["taskOutputArtifact"].values())
                    for name, spec in given.get("artifacts", {}).items()
                },
            },
            "outputs": {
                "parameters": {
                    name: {"outputFile": str(self.path(key, f"{name}.value"))}
                    for name in outputs.get("parameters", {})
                },
                "artifacts": {name: self._artifacts(key, name) for name in outputs["artifacts"]},
                "outputFile": str(self.path(key, "metadata.json")),
            },
        }
        command = [*container["container"]["command"], *container["container"]["args"]]
        assert command[0] == "python3"
        command = [sys.executable, *(self._filled(word, key, told) for word in command[1:])]
        done = subprocess.run(command, capture_output=True, text=True)
        for name, definition in outputs.get("parameters", {}).items():
            path = self.path(key, f"{name}.value")
            if path.exists():
                text = path.read_text("utf-8")
                is_text = definition["parameterType"] == "STRING"
                self.values[key, name] = text if is_text else strictly(text)
        metadata = self.path(key, "metadata.json")
        if metadata.exists():
            self.metadata[key] = strictly(metadata.read_text("utf-8"))["artifacts"]
        return done

    def _filled(self, word: str, key: str, told: dict[str, Any]) -> str:
        if word == "{{$}}":
            return json.dumps(told)
        found = re.fullmatch(r"\{\{\$\.(inputs|outputs)\.artifacts\['(.+)'\]\.path\}\}", word)
        if found is None:
            return word
        uri: str = told[found[1]]["artifacts"][found[2]]["artifacts"][0]["uri"]
        return uri

    def _parameter(self, spec: dict[str, Any]) -> Any:
        if "runtimeValue" in spec:
            facts = {"{{$.pipeline_job_uuid}}": "the-run", "{{$.pipeline_job_name}}": "a run"}
            return facts[spec["runtimeValue"]["constant"]]
        told = spec["taskOutputParameter"]
        return self.values[told["producerTask"], told["outputParameterKey"]]

    def _artifacts(self, task: str, name: str) -> dict[str, Any]:
        return {"artifacts": [{"name": name, "uri": str(self.path(task, name))}]}


def strictly(text: str) -> Any:
    """JSON as the launcher reads it, which knows of no NaN."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)
