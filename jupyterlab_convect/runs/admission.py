"""The order in which ready steps get room: fair between runs, and never a scan of all."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class AdmissionQueue(Generic[T]):
    """Items stand in lines; one line for all that ask for the same.

    When the first of a line does not fit, nobody in it does, so that a look at the
    queue costs no more than what it lets through. In a line, runs take turns.
    """

    def __init__(self) -> None:
        self._lines: OrderedDict[Hashable, OrderedDict[str, deque[T]]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(items) for line in self._lines.values() for items in line.values())

    def put(self, line: Hashable, run_id: str, item: T) -> None:
        self._lines.setdefault(line, OrderedDict()).setdefault(run_id, deque()).append(item)

    def remove(self, run_id: str) -> None:
        """Forget all items of a run."""
        for key in list(self._lines):
            self._lines[key].pop(run_id, None)
            if not self._lines[key]:
                del self._lines[key]

    def let_in(self, admit: Callable[[T], bool | None]) -> list[T]:
        """Ask `admit` for one line after the other, again and again, until nobody fits.

        An item of which it knows nothing, None, keeps its place and holds up nobody.
        """
        admitted: list[T] = []
        passed: list[tuple[Hashable, str, T]] = []
        willing = deque(self._lines)
        while willing:
            key = willing.popleft()
            line = self._lines[key]
            run_id, items = next(iter(line.items()))
            fits = admit(items[0])
            if fits is False:
                continue
            item = items.popleft()
            if fits:
                admitted.append(item)
            else:
                passed.append((key, run_id, item))
            line.move_to_end(run_id)
            if not items:
                del line[run_id]
            if not line:
                del self._lines[key]
                continue
            self._lines.move_to_end(key)
            willing.append(key)
        for key, run_id, item in reversed(passed):
            line = self._lines.setdefault(key, OrderedDict())
            line.setdefault(run_id, deque()).appendleft(item)
            line.move_to_end(run_id, last=False)
        return admitted
