"""From the bytes of a file to components: every format, and what is wrong with the rest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from ..errors import ConvectError
from ..pipeline.plan import digest_of
from .ir import is_compiled, is_platforms, read_compiled
from .model import MAX_COMPONENTS, Component, UnreadableComponent
from .v1 import (
    ComponentReference,
    check_digest,
    inline_spec,
    read_container,
    read_graph,
    reference_of,
    tasks_of,
)
from .yaml_text import At, documents

MAX_GRAPH_DEPTH = 8

Fetch = Callable[[Sequence[str]], Mapping[str, "bytes | ConvectError"]]
"""Reads several addresses at once; what cannot be read is answered with the error."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The components of a file, and the documents of it that are none."""

    components: tuple[Component, ...] = ()
    errors: tuple[UnreadableComponent, ...] = ()
    texts: tuple[bytes, ...] = ()
    """The text of each component."""


def nothing_to_follow(addresses: Sequence[str]) -> Mapping[str, bytes | ConvectError]:
    """For reading without a network: every reference is missing."""
    return {address: ConvectError("References are not followed here.") for address in addresses}


def read(
    data: bytes,
    source: str,
    *,
    fetch: Fetch = nothing_to_follow,
    replacements: Mapping[str, str] | None = None,
) -> Reading:
    """Every component in `data`, which was found at `source` (a URL or a path).

    `replacements` names another address for references that are dead; what is
    there is taken as it is, whatever digest the graph asks for.
    """
    return _Reader(fetch, replacements or {}).read(data, source, ())


def digest_of_bytes(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class _Reader:
    def __init__(self, fetch: Fetch, replacements: Mapping[str, str]) -> None:
        self.fetch = fetch
        self.replacements = replacements
        self.followed: dict[str, Component] = {}
        self.texts: dict[str, str] = {}
        """The digest of the text at each address."""
        self.sizes: dict[str, int] = {}
        """How many components each graph holds, by digest."""

    def read(self, data: bytes, source: str, above: tuple[str, ...]) -> Reading:
        try:
            found = documents(data, source)
        except UnreadableComponent as error:
            return Reading(errors=(error,))
        platforms = next((item for item, _ in found if is_platforms(item)), None)
        found = [item for item in found if not is_platforms(item[0])]
        if not found:
            return Reading(errors=(UnreadableComponent(source, 0, "It contains no component."),))
        components: list[Component] = []
        errors: list[UnreadableComponent] = []
        texts: list[bytes] = []
        for document, part in found:
            text = data if len(found) == 1 else part.encode()
            try:
                component = self.component(document, digest_of_bytes(text), above, platforms)
            except UnreadableComponent as error:
                errors.append(error)
            except RecursionError:
                errors.append(document.fail("It is nested too deeply."))
            else:
                components.append(component)
                texts.append(text)
        return Reading(tuple(components), tuple(errors), tuple(texts))

    def component(
        self, document: At, digest: str, above: tuple[str, ...], platforms: At | None = None
    ) -> Component:
        name = name_from(document.file)
        if is_compiled(document):
            component = read_compiled(document, name, platforms)
            return replace(component, digest=digest, source=document.file)
        document.mapping("A component")
        implementation = document.need("implementation", "The component")
        container = implementation.mapping("“implementation”").get("container")
        if container is not None:
            component = read_container(document, container.mapping("“container”"), name)
            return replace(component, digest=digest, source=document.file)
        graph = implementation.get("graph")
        if graph is not None:
            return self.graph(document, graph.mapping("“graph”"), name, digest, above)
        raise implementation.fail("“implementation” has neither “container” nor “graph”.")

    def graph(
        self, document: At, graph: At, name: str, digest: str, above: tuple[str, ...]
    ) -> Component:
        if len(above) >= MAX_GRAPH_DEPTH:
            raise graph.fail("Graphs are nested too deeply.")
        references: dict[str, tuple[At, ComponentReference]] = {}
        found: dict[str, Component] = {}
        for key, task in tasks_of(graph):
            spec = inline_spec(task.mapping("A task"))
            if spec is not None:
                found[key] = self.component(spec, digest_of(spec.value), (*above, document.file))
            else:
                references[key] = (task, reference_of(task))
        followed = self.follow(references, (*above, document.file))
        unpinned = sorted(
            followed[reference.url].digest
            for _, reference in references.values()
            if reference.digest is None or reference.url in self.replacements
        )
        found |= {key: followed[reference.url] for key, (_, reference) in references.items()}
        if unpinned:
            digest = digest_of([digest, *unpinned])
        inner = {item.digest for item in found.values()}
        self.sizes[digest] = 1 + sum(self.sizes.get(item, 1) for item in inner)
        if self.sizes[digest] > MAX_COMPONENTS:
            raise graph.fail(f"It expands to more than {MAX_COMPONENTS} components.")
        component = read_graph(document, graph, name, found)
        assert component.graph is not None
        replaced = {
            key: replace(component.graph.tasks[key], replaces=reference.url)
            for key, (_, reference) in references.items()
            if reference.url in self.replacements
        }
        tasks = {**component.graph.tasks, **replaced}
        return replace(
            component,
            graph=replace(component.graph, tasks=tasks),
            digest=digest,
            source=document.file,
        )

    def follow(
        self, references: Mapping[str, tuple[At, ComponentReference]], above: tuple[str, ...]
    ) -> dict[str, Component]:
        """What every reference leads to, by the URL as it is written."""
        addresses = {
            reference.url: self.replacements.get(reference.url, reference.url)
            for _, reference in references.values()
        }
        for url, (task, _) in {ref.url: (task, ref) for task, ref in references.values()}.items():
            if addresses[url] in above:
                raise task.fail(f"The graph contains itself, by way of {url}.")
        needed = sorted(set(addresses.values()) - set(self.followed))
        texts = self.fetch(needed) if needed else {}
        found: dict[str, Component] = {}
        failed: dict[str, UnreadableComponent] = {}
        for key, (task, reference) in references.items():
            if reference.url in found or reference.url in failed:
                continue
            try:
                found[reference.url] = self.referred(
                    texts, addresses[reference.url], reference, above
                )
            except ConvectError as error:
                failed[reference.url] = task.fail(
                    f"The component of the task “{key}” cannot be read: {error.sentence}"
                )
        if failed:
            first = next(iter(failed.values()))
            more = f" Nor can {len(failed) - 1} more." if len(failed) > 1 else ""
            raise UnreadableComponent(
                first.file,
                first.line,
                first.reason + more,
                hint=f"Give a replacement for {', '.join(failed)}.",
            )
        return found

    def referred(
        self,
        texts: Mapping[str, bytes | ConvectError],
        address: str,
        reference: ComponentReference,
        above: tuple[str, ...],
    ) -> Component:
        if address not in self.followed:
            data = texts[address]
            if isinstance(data, ConvectError):
                raise data
            reading = self.read(data, address, above)
            if reading.errors:
                raise reading.errors[0]
            if len(reading.components) != 1:
                raise UnreadableComponent(address, 0, "It contains more than one component.")
            self.texts[address] = digest_of_bytes(data)
            self.followed[address] = reading.components[0]
        if reference.url not in self.replacements:
            check_digest(self.texts[address], reference, address)
        return self.followed[address]


def name_from(source: str) -> str:
    """A name for a component without one, from where it lies."""
    try:
        path = unquote(urlsplit(source).path)
    except ValueError:  # Half an IPv6 address, for one, is none.
        path = source
    parts = [part for part in PurePosixPath(path).parts if part != "/"]
    stems = [re.sub(r"\.(ya?ml|json)$", "", part) for part in parts]
    while len(stems) > 1 and stems[-1].lower() in ("component", "pipeline"):
        stems.pop()
    name = re.sub(r"[_\-\s]+", " ", stems[-1]).strip() if stems else ""
    return name or "component"
