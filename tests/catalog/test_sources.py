"""Third parties add sources by entry point, with a form of their own."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from jupyterlab_convect.catalog import fetch, sources
from jupyterlab_convect.catalog.fetch import Fetcher
from jupyterlab_convect.catalog.sources import Catalog, Text
from jupyterlab_convect.catalog.store import CatalogStore
from jupyterlab_convect.errors import ConvectError

SpecText = Callable[..., str]
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "title": "Word"}},
    "required": ["word"],
}


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Make a source known as `theirs`, as a package's entry point would."""

    def install(source: Any) -> None:
        class Found:
            name = "theirs"

            def load(self) -> Any:
                return source

        def entry_points(group: str, name: str | None = None) -> list[Found]:
            assert group == "jupyterlab_convect.catalogs"
            return [Found()] if name in (None, "theirs") else []

        monkeypatch.setattr(sources, "entry_points", entry_points)

    return install


def test_others_add_sources(store: CatalogStore, install: Any, spec_text: SpecText) -> None:
    def theirs(catalog: Catalog, fetcher: Fetcher) -> list[Text]:
        return [Text("theirs:1", spec_text(catalog.options["word"]).encode())]

    install(theirs)
    assert "theirs" in sources.kinds()
    assert sources.options_schemas() == {"theirs": {"type": "object"}}
    store.add(Catalog(id="t", name="T", kind="theirs", options={"word": "Hi"}))
    assert [entry.name for entry in store.refresh("t").entries] == ["Hi"]
    with pytest.raises(ConvectError, match="no catalogs of kind"):
        store.add(Catalog(id="u", name="U", kind="nobody"))


def test_what_a_source_wants_to_know_is_a_form_and_is_checked(
    store: CatalogStore, install: Any
) -> None:
    def theirs(catalog: Catalog, fetcher: Fetcher) -> list[Text]:
        return []

    theirs.options_schema = SCHEMA  # type: ignore[attr-defined]
    install(theirs)
    assert sources.options_schemas() == {"theirs": SCHEMA}
    with pytest.raises(ConvectError, match="'word' is a required property"):
        store.add(Catalog(id="t", name="T", kind="theirs"))
    with pytest.raises(ConvectError, match="at “word”: 3 is not of type 'string'"):
        store.add(Catalog(id="t", name="T", kind="theirs", options={"word": 3}))
    store.add(Catalog(id="t", name="T", kind="theirs", options={"word": "Hi"}))
    with pytest.raises(ConvectError, match="required"):
        store.configure(Catalog(id="t", name="T", kind="theirs"))


def test_a_mistake_in_somebody_elses_source_is_an_error_of_the_catalog(
    store: CatalogStore, install: Any
) -> None:
    def theirs(catalog: Catalog, fetcher: Fetcher) -> list[Text]:
        raise KeyError("oops")

    install(theirs)
    store.add(Catalog(id="t", name="T", kind="theirs"))
    shelf = store.refresh("t")
    assert shelf.error is not None
    assert "oops" in shelf.error["message"]


def test_a_schema_that_is_none_is_said(store: CatalogStore, install: Any) -> None:
    def theirs(catalog: Catalog, fetcher: Fetcher) -> list[Text]:
        return []

    theirs.options_schema = {"type": "nothing"}  # type: ignore[attr-defined]
    install(theirs)
    with pytest.raises(ConvectError, match="invalid schema"):
        store.add(Catalog(id="t", name="T", kind="theirs"))


def test_an_archive_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"top/{number}.yaml", bytes(1 << 20))
        archive.writestr("top/large.csv", bytes(50 << 20))
    monkeypatch.setattr(fetch, "MAX_UNPACKED", 20 << 20)
    taken = []
    with pytest.raises(ConvectError, match="unpacks to more than 20 MB"):
        taken.extend(fetch.files_in_zip(packed.getvalue(), "", 8 << 20, (".yaml",)))
    few = fetch.files_in_zip(packed.getvalue(), "", 60 << 20, (".none",))
    assert list(few) == []
