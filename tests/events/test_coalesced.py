from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyter_events.schema import EventSchema

from jupyterlab_convect.events import RUN, SCHEDULE, SCHEMAS, SWEEP, Coalesced


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def later(self, delay: float, work: Callable[..., None], *arguments: Any) -> None:
        self._due.append((self.now + delay, work, arguments))

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self._due if each[0] <= self.now]
        self._due = [each for each in self._due if each not in due]
        for _, work, arguments in due:
            work(*arguments)


def test_the_first_change_goes_out_at_once_and_the_rest_as_one() -> None:
    sent: list[tuple[str, dict[str, Any]]] = []
    clock = Clock()
    events = Coalesced(lambda schema, data: sent.append((schema, data)), 1.0, clock.later)
    for seq in range(100):
        events.tell(RUN, "a", {"seq": seq})
    events.tell(RUN, "b", {"seq": 7})
    assert sent == [(RUN, {"seq": 0}), (RUN, {"seq": 7})]
    clock.advance(0.9)
    assert len(sent) == 2
    clock.advance(0.1)
    assert sent[2:] == [(RUN, {"seq": 99})]
    clock.advance(1.0)
    events.tell(RUN, "a", {"seq": 100})
    assert sent[-1] == (RUN, {"seq": 100})


def test_an_end_waits_for_nothing() -> None:
    sent: list[int] = []
    clock = Clock()
    events = Coalesced(lambda _, data: sent.append(data["seq"]), 1.0, clock.later)
    for seq in range(3):
        events.tell(RUN, "a", {"seq": seq})
    events.tell(RUN, "a", {"seq": 3}, is_end=True)
    assert sent == [0, 3]
    clock.advance(5.0)
    assert sent == [0, 3]
    events.tell(RUN, "a", {"seq": 4})
    assert sent == [0, 3, 4]


def test_the_schemas_are_those_of_the_documentation() -> None:
    schemas = [EventSchema(path) for path in SCHEMAS]
    assert [schema.id for schema in schemas] == [RUN, SWEEP, SCHEDULE]
    assert all(isinstance(schema.version, str) for schema in schemas)
