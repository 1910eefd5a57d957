"""Something that is done again and again beside a test, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def again_and_again(every: float, do: Callable[[], object]) -> Iterator[None]:
    """`do` each so many seconds, in a thread; what it raised is raised at the end."""
    end = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        while not end.wait(every):
            try:
                do()
            except BaseException as error:
                failed.append(error)
                return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    if failed:
        raise failed[0]
