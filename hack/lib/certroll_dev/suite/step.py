"""One step of the run: a command, what it has to wait for, and what its end means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """A command whose end says something about tests, or that others stand on."""

    name: str
    argv: Sequence[str | Path]
    needs: Sequence[str] = ()  # cannot be without them
    follows: Sequence[str] = ()  # comes after them, however they ended
    report: Path | None = None  # JUnit, which it writes
    is_test: bool = False  # without a report: its end is one test
    # Tests ran, and the report says how; anything else is trouble of the step's own, and no result.
    ran: frozenset[int] = frozenset({0})


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


@dataclass(frozen=True)
class Outcome:
    """When a step ran, in seconds since the run began, and what came of it."""

    step: Step
    began: float
    ended: float
    counts: Counts = Counts()
    trouble: str = ""  # why there is no result

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def stands(self) -> bool:
        """Whether what needs it can begin. Tests that failed have run."""
        return not self.trouble
