"""What is made for one attempt before it starts, and removed when it has ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from ..pipeline.plan import Plan, Step
from ..pipeline.problems import Problem
from ..runtimes.base import Attempt, Runtime


class Provision(ABC):
    @abstractmethod
    def is_for(self, step: Step) -> bool:
        """Whether the step asks for it."""

    @abstractmethod
    def check(self, plan: Plan, runtime: Runtime) -> list[Problem]:
        """What keeps it from being made for the steps of the plan, there. Blocks."""

    @abstractmethod
    async def make(self, attempt: Attempt, tell: Callable[[str], None]) -> Mapping[str, str]:
        """Make it, unless an earlier process has, and return the variables that the attempt needs.

        `tell` is called, at least every few seconds, with what it waits for, and raises when
        nobody wants it any more. A ConvectError says why it cannot be made; it may be half made.
        """

    @abstractmethod
    async def remove(self, attempt: Attempt) -> None:
        """Remove what was made for the attempt, as far as it was. Idempotent."""

    @abstractmethod
    async def remove_left(self) -> None:
        """Remove what attempts that have ended could not remove."""


class Provisions:
    """All of them, for one attempt."""

    def __init__(self, all_of_them: Sequence[Provision] = ()) -> None:
        self._all = all_of_them

    def check(self, plan: Plan, runtime: Runtime) -> list[Problem]:
        return [problem for each in self._all for problem in each.check(plan, runtime)]

    def wanted(self, step: Step) -> bool:
        return any(each.is_for(step) for each in self._all)

    async def make(self, attempt: Attempt, tell: Callable[[str], None]) -> dict[str, str]:
        variables: dict[str, str] = {}
        for each in self._all:
            if each.is_for(attempt.step):
                variables |= await each.make(attempt, tell)
        return variables

    async def remove(self, attempt: Attempt) -> None:
        for each in self._all:
            if each.is_for(attempt.step):
                await each.remove(attempt)

    async def remove_left(self) -> None:
        for each in self._all:
            await each.remove_left()
