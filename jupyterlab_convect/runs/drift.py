"""What differs between the environment here and the one that a step worked in, told in time."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from ..errors import ConvectError
from ..pipeline.plan import Step
from ..pipeline.problems import Problem
from ..pipeline.python_code import imports
from ..runner.environment import Environment
from ..runner.outcome import StepFailed
from . import environments
from .environments import EnvironmentChange
from .index import Query
from .model import Request, Run
from .run_file import pipeline_name
from .store import Store

MOST_STEPS, MOST_RUNS = 50, 20
"""How far it is looked."""
UNKNOWN = (OSError, ValueError, KeyError, TypeError, StepFailed, ConvectError)
"""What it means that nothing can be said: no such kernel, a run that is gone, a broken file."""
DISTRIBUTIONS = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages that are imported by another name than they are installed by."""


def drift(store: Store, run: Run) -> list[Problem]:
    """How the Python here differs from that of the last good run, or of the image, step by step.

    Only where both are known; what is the same for several steps is said of the first.
    """
    found: dict[str, Problem] = {}
    store.flush()
    for step in run.plan.steps[:MOST_STEPS]:
        with contextlib.suppress(*UNKNOWN):
            problem = _drift_of(store, run, step)
            if problem is not None:
                found.setdefault(problem.message, problem)
    return list(found.values())


def _drift_of(store: Store, run: Run, step: Step) -> Problem | None:
    image, there = _earlier(store, run, step)
    here = None if there is None else _here(store, run.request, step)
    if there is None or here is None:
        return None
    changes = environments.differences(there, here)
    used = _imported(Path(run.request.root, step.path or ""))
    matter = [change for change in changes if change.name in used or _is_other_python(change)]
    if image is not None:
        changes = matter  # Another image has many other packages.
    if not changes:
        return None
    first = (matter or sorted(changes, key=lambda each: not (each.before and each.after)))[0]
    more = len(changes) - 1
    return Problem(
        "warning" if matter else "info",
        "differs-from-last-run" if image is None else "differs-from-image",
        _said_of_last(first) if image is None else _said_of_image(image, first),
        node=step.id,
        hint=(f"There are {more} more differences." if more > 1 else "There is 1 more difference.")
        if more
        else None,
    )


def _said_of_last(change: EnvironmentChange) -> str:
    name = _word(change.name)
    if change.after is None:
        return f"{name} is not installed here; the last successful run used {change.before}."
    if change.before is None:
        return f"{name} is {change.after} here; the last successful run did not have it."
    return f"{name} is {change.after} here; the last successful run used {change.before}."


def _said_of_image(image: str, change: EnvironmentChange) -> str:
    name = _word(change.name)
    if change.after is None:
        return f"The image {image} had {name} {change.before}; here it is not installed."
    if change.before is None:
        return f"The image {image} did not have {name}; here it is {change.after}."
    return f"The image {image} had {name} {change.before}; here it is {change.after}."


def _word(name: str) -> str:
    return {"python": "Python", "implementation": "Python", "platform": "The platform"}.get(
        name, name
    )


def _is_other_python(change: EnvironmentChange) -> bool:
    if change.name != "python" or not (change.before and change.after):
        return change.name == "implementation"
    return change.before.split(".")[:2] != change.after.split(".")[:2]


def _earlier(store: Store, run: Run, step: Step) -> tuple[str | None, Environment | None]:
    """The environment that the step last worked in; with the image, if it was one's."""
    last = store.index.last_result(pipeline_name(run), step.id)
    before = None if last is None else store.read(last.run).run
    planned = [] if before is None else [each for each in before.plan.steps if each.id == step.id]
    if last is None or before is None or not planned or planned[0].image != step.image:
        if run.runtime == "local" or step.image is None:
            return None, None
        return step.image, _of_image(store, run.runtime, step.image)
    image = None if before.runtime == "local" else step.image
    if run.runtime != "local" and image is None:
        return None, None
    return image, environments.of_step(store, last.run, step.id, last.attempt)


def _of_image(store: Store, runtime: str, image: str) -> Environment | None:
    """What an image had when some step was executed in it lately."""
    page = store.find(Query(states=("succeeded",), runtime=runtime, limit=MOST_RUNS))
    for summary in page.runs:
        run, state = store.read(summary["id"])
        for step in state.steps.values():
            attempts = len(step.attempts)
            if state.graph.steps[step.node].image == image and attempts:
                found = environments.of_step(store, run.id, step.id, attempts)
                if found is not None:
                    return found
    return None


def _here(store: Store, request: Request, step: Step) -> Environment | None:
    """The environment that the step would have on this machine now."""
    digest = environments.digest_here(store, Path(request.root), step)
    return None if digest is None else environments.read(store.folder, digest)


def _imported(source: Path) -> set[str]:
    """The packages whose modules a notebook or script imports, as far as it can be read."""
    try:
        text = source.read_text("utf-8")
    except (OSError, ValueError):
        return set()
    if source.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    else:
        texts = [text]
    modules = (
        name.partition(".")[0] for text in texts for level, name in imports(text) if not level
    )
    return {DISTRIBUTIONS.get(name, name).replace("_", "-").lower() for name in modules}
