"""Steps side by side, each as soon as what it waits for is over."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from .running import Running, show
from .step import Counts, Outcome, Step


class Schedule:
    def __init__(self, steps: Sequence[Step], logs: Path) -> None:
        self._waiting = list(steps)
        self._logs = logs
        self._start = time.monotonic()
        self._running: dict[str, Running] = {}
        self._followers: list[threading.Thread] = []  # of what has begun, until it has ended
        self._ended: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self.outcomes: dict[str, Outcome] = {}

    def run(self) -> None:
        """Until every step has run, or cannot. A KeyboardInterrupt, as anything that ends us, ends those that run, in order."""
        try:
            while self._waiting or self._running:
                self._give_up_or_start()
                if self._running:
                    self._take(self._ended.get())
        except BaseException:
            self._end_all()
            raise

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def _give_up_or_start(self) -> None:
        """Giving up one step may be the end of what others wait for, so until nothing changes."""
        left = -1
        while left != len(self._waiting):
            left = len(self._waiting)
            for step in list(self._waiting):
                lost = [name for name in step.needs if name in self.outcomes and not self.outcomes[name].stands]
                if lost:
                    self._give_up(step, f"NOT RUN: it needs {', '.join(lost)}", Counts())
                elif all(name in self.outcomes for name in (*step.needs, *step.follows)):
                    self._begin(step)

    def _give_up(self, step: Step, why: str, counts: Counts) -> None:
        self._waiting.remove(step)
        now = self.seconds
        self.outcomes[step.name] = Outcome(step, now, now, counts, why)
        show(f"== {step.name}: {why}")

    def _begin(self, step: Step) -> None:
        try:
            running = Running(step, self._logs / f"{step.name}.log", self._start)
        except OSError as error:
            self._give_up(step, f"FAILED: {error}", Counts(failed=1))
            return
        self._waiting.remove(step)
        self._running[step.name] = running
        thread = threading.Thread(target=lambda: self._ended.put(running.wait()), daemon=True)
        self._followers.append(thread)
        thread.start()

    def _take(self, outcome: Outcome) -> None:
        del self._running[outcome.step.name]
        self.outcomes[outcome.step.name] = outcome

    def _end_all(self) -> None:
        """Asked to end, tests take their clusters down; asked twice, nothing is waited for."""
        show("interrupted: waiting for what runs to end in order")
        try:
            for running in self._running.values():
                running.signal(signal.SIGINT)
            for thread in self._followers:  # whose outcomes may have been lost on the way to us
                thread.join()
        except KeyboardInterrupt:
            for running in self._running.values():
                running.signal(signal.SIGKILL)
