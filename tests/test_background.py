"""What is meant to last goes on, whatever happens."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading

import pytest
from waiting import eventually

from jupyterlab_convect.background import MOST, Health, forever, forever_in_thread
from jupyterlab_convect.errors import ConvectError


class Done(BaseException):
    """Ends what would go on for ever."""


async def lasting(outcomes: list[Exception | None], health: Health) -> list[float]:
    """Work that comes out as told, one time after the other; the pauses in between."""
    pauses: list[float] = []

    async def work() -> None:
        if not outcomes:
            raise Done
        if (error := outcomes.pop(0)) is not None:
            raise error

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    with pytest.raises(Done):
        await forever("Counting sheep", work, health, sleep=sleep)
    return pauses


async def test_any_exception_is_followed_by_another_try_after_a_longer_pause() -> None:
    health = Health()
    errors = [KeyError("x"), OSError(errno.ENOSPC, "No space left on device"), RuntimeError()]
    assert await lasting([*errors], health) == [1.0, 2.0, 4.0]
    (trouble,) = health.troubles()
    assert (trouble.name, trouble.tries) == ("Counting sheep", 3)
    assert trouble.sentence == "RuntimeError."
    assert max(await lasting([ValueError()] * 20, Health())) == MOST


async def test_what_works_again_is_healthy_and_starts_with_short_pauses() -> None:
    health = Health()
    assert await lasting([ValueError(), ValueError(), None, ValueError()], health) == [1, 2, 1]
    assert await lasting([None], health) == []
    assert health.troubles() == []


async def test_each_distinct_trouble_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    full, away = OSError(errno.ENOSPC, "No space left on device"), ConvectError("It is away.")
    with caplog.at_level(logging.INFO, "jupyterlab_convect.background"):
        await lasting([full, full, full, away, away, None, full], Health())
    assert [record.getMessage() for record in caplog.records] == [
        "Counting sheep failed: No space is left on the disk. Trying again.",
        "Counting sheep failed: It is away. Trying again.",
        "Counting sheep works again.",
        "Counting sheep failed: No space is left on the disk. Trying again.",
    ]
    assert "Traceback" not in caplog.text


def test_an_unexpected_error_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with Health().guard("Counting sheep"):
        raise ZeroDivisionError
    assert "Traceback" in caplog.text


def test_a_guarded_item_spoils_only_itself() -> None:
    health, done = Health(), []
    for item in (1, 0, 2):
        with health.guard(f"Dividing by {item}"):
            done.append(1 / item)
    assert done == [1.0, 0.5]
    assert [trouble.name for trouble in health.troubles()] == ["Dividing by 0"]


async def test_it_can_be_cancelled_while_it_waits_to_try_again() -> None:
    health = Health()

    async def work() -> None:
        raise ValueError

    task = asyncio.create_task(forever("Counting sheep", work, health))
    await eventually(health.troubles)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_thread_goes_on_until_it_is_told_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyterlab_convect.background.FIRST", 0.0)
    health, closing, tries = Health(), threading.Event(), 0

    def work() -> None:
        nonlocal tries
        tries += 1
        if tries == 5:
            closing.set()
        elif tries != 3:
            raise ValueError(tries)

    forever_in_thread("Counting sheep", work, health, closing).join(60)
    assert tries == 5
    assert health.troubles() == []
