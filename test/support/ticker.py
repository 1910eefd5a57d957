"""Something that is done again and again beside a test, in a thread of its own."""

from __future__ import annotations

import threading
from typing import Self


class Ticker:
    """Calls `tick` every so many seconds until that says False. Use it as a context; what is under way at its end is finished."""

    def __init__(self, name: str, every: float) -> None:
        self._every = every
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def tick(self) -> bool:
        """Whether there is to be another."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._end.wait(self._every) and self.tick():
            pass
