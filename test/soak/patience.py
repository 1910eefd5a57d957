"""The API server is away now and then: whoever writes something that may be written twice tries again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from certroll_dev.demo.api import APIError

T = TypeVar("T")

_PATIENCE = 300.0  # seconds: a small machine may have much else to do
_PAUSE = 0.2
# No answer; what a server that has just started says; conflicts; too many requests. Beyond these, 500 and more.
_PASSING = frozenset({0, 401, 403, 404, 409, 429})


def persistently(call: Callable[[], T]) -> T:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return call()
        except APIError as error:
            if (error.code not in _PASSING and error.code < 500) or time.monotonic() > end:
                raise
        time.sleep(_PAUSE)
