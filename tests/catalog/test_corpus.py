"""All real specs as one catalog, over a real connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.catalog.fetch import Policy
from jupyterlab_convect.catalog.model import preview
from jupyterlab_convect.catalog.sources import Catalog
from jupyterlab_convect.catalog.store import CatalogStore

HOST = b"https://raw.githubusercontent.com/kubeflow/pipelines"
GRAPH = "graph-xgboost-train-and-cross-validate.yaml"
DEAD = (
    "/7ea9363fe201918d419fecdc00d1275e657ff712"
    "/components/ml_metrics/Aggregate_regression_metrics/component.yaml"
)


@pytest.fixture
def served(corpus: Path, site: Any) -> Any:
    """The corpus on a server of our own, which also answers what the graph refers to."""
    for path in corpus.glob("*.yaml"):
        site.put(f"/{path.name}", path.read_bytes().replace(HOST, site.url.encode()))
    for path in (corpus / "refs").rglob("*.yaml"):
        site.put(f"/{path.relative_to(corpus / 'refs').as_posix()}", path.read_bytes())
    names = sorted(path.name for path in corpus.glob("*.yaml"))
    site.put("/list.txt", "\n".join(names))
    return site


@pytest.fixture
def store(tmp_path: Path) -> CatalogStore:
    return CatalogStore(tmp_path / "catalog", Policy(hosts=("127.0.0.1",)))


def test_one_list_imports_all_that_can_be_read_and_reports_the_rest(
    store: CatalogStore, served: Any, corpus: Path
) -> None:
    store.add(Catalog(id="all", name="All", urls=(served.url + "/list.txt",)))
    entries = store.refresh("all").entries
    assert len(entries) == len(list(corpus.glob("*.yaml")))
    broken = {entry.name: entry.error for entry in entries if not entry.digest}
    assert set(broken) == {"bad-v1-name-is-number.yaml", GRAPH}
    reported = broken[GRAPH]
    assert reported is not None
    assert reported["line"] == 295
    assert f"{served.url}{DEAD} was not found (404)" in str(reported["message"])
    for entry in entries:
        if entry.digest:
            assert store.component(entry.digest).digest == entry.digest


def test_the_graph_imports_with_a_twin_and_works_offline(
    store: CatalogStore, served: Any, twin: bytes
) -> None:
    stand_in = served.put("/twin.yaml", twin)
    store.add(
        Catalog(
            id="graph",
            name="Graph",
            urls=(f"{served.url}/{GRAPH}",),
            replacements={served.url + DEAD: stand_in},
        )
    )
    (entry,) = store.refresh("graph").entries
    assert entry.error is None
    served.close()
    graph = CatalogStore(store.folder).component(entry.digest).graph
    assert graph is not None
    assert len(graph.tasks) == 32
    assert len(graph.components) == 7
    shown = preview(CatalogStore(store.folder).component(entry.digest))["tasks"]
    replaced = {(task["source"], task["replaces"]) for task in shown if task["replaces"]}
    assert replaced == {(stand_in, served.url + DEAD)}
    asked = [path for path, _ in served.asked if "/components/" in path]
    assert len(asked) == len(set(asked)) == 6, "each reference is fetched once"


def test_a_reference_that_changed_is_not_what_the_graph_was_made_with(
    store: CatalogStore, served: Any, twin: bytes
) -> None:
    served.put(DEAD, twin)
    store.add(Catalog(id="graph", name="Graph", urls=(f"{served.url}/{GRAPH}",)))
    (entry,) = store.refresh("graph").entries
    assert entry.error is not None
    assert "is not what the graph was made with" in str(entry.error["message"])
