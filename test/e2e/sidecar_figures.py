"""What reloading came to, program by program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from certroll_dev.demo.calls import Call

_COLUMNS = (
    "program", "pods", "changes", "served everywhere, p50 / p95 / max", "settled, p50 / p95", "calls", "a second", "failed", "restarts",
)  # fmt: skip


@dataclass
class _Program:
    pods: int
    served: list[float] = field(default_factory=list)
    settled: list[float] = field(default_factory=list)
    calls: int = 0
    failed: int = 0
    restarts: int = 0
    seconds: float = 0.0

    def cells(self, name: str) -> tuple[str, ...]:
        return (
            name, str(self.pods), str(len(self.served)), _seconds(self.served, 0.5, 0.95, 1.0), _seconds(self.settled, 0.5, 0.95),
            str(self.calls), f"{self.calls / self.seconds:.0f}", str(self.failed), str(self.restarts),
        )  # fmt: skip


class Figures:
    def __init__(self) -> None:
        self._programs: dict[str, _Program] = {}

    def add(self, served: Mapping[str, float], settled: Mapping[str, float]) -> None:
        """One change of the leaves."""
        for name, seconds in served.items():
            self._program(name).served.append(seconds)
            self._program(name).settled.append(settled[name])

    def count(self, calls: Sequence[Call], seconds: float, pods: Mapping[str, int], restarts: Mapping[str, int]) -> None:
        """A stretch of time, with and without changes."""
        for name, number in pods.items():
            program = self._program(name)
            program.pods = number
            program.seconds += seconds
            program.restarts += restarts[name]
        for call in calls:
            program = self._program(call.target.partition("/")[0])
            program.calls += 1
            program.failed += not call.ok

    def lines(self) -> list[str]:
        """A table in Markdown."""
        rows = [_COLUMNS, *(program.cells(name) for name, program in self._programs.items() if program.served)]
        return [_line(rows[0]), "|" + " --- |" * len(_COLUMNS), *(_line(row) for row in rows[1:])] if rows[1:] else []

    def _program(self, name: str) -> _Program:
        return self._programs.setdefault(name, _Program(0))


def _seconds(values: Sequence[float], *shares: float) -> str:
    """By the nearest rank."""
    ordered = sorted(values)
    return " / ".join(f"{ordered[max(0, math.ceil(share * len(ordered)) - 1)]:.1f}" for share in shares) + " s"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
