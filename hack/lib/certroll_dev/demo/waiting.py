"""Waiting for something to become true, with a deadline and an error that says what was still missing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from certroll_dev.ui import DevError

T = TypeVar("T")


class WaitTimeout(DevError):
    """It did not become true in time."""


def wait_for(
    what: str, look: Callable[[], T | None], *, deadline: float, every: float = 0.2, missing: Callable[[], str] | None = None
) -> T:
    """The first true value of `look`, tried until `deadline` seconds are over.

    `missing` tells, for the error, what it looked like in the end.
    """
    started = time.monotonic()
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() - started >= deadline:
            rest = f": {missing()}" if missing else ""
            raise WaitTimeout(f"waited {deadline:g} s for {what}{rest}")
        time.sleep(every)
