"""What each way of rotating came to, side by side."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mesh_handshakes import Count

_COLUMNS = ("way", "runs", "handshakes", "a second", "failed", "longest outage", "seconds, median", "stages, median")


@dataclass
class _Way:
    counts: list[Count] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    stages: list[Mapping[str, float]] = field(default_factory=list)

    def cells(self, name: str) -> tuple[str, ...]:
        total = sum(len(count.calls) for count in self.counts)
        return (
            name,
            str(len(self.counts)),
            str(total),
            f"{total / sum(count.seconds for count in self.counts):.0f}",
            str(sum(count.failed for count in self.counts)),
            f"{max(count.outage for count in self.counts):.1f} s",
            f"{statistics.median(self.seconds):.1f}",
            ", ".join(f"{stage} {statistics.median(found):.1f}" for stage, found in self._by_stage().items()),
        )

    def _by_stage(self) -> dict[str, list[float]]:
        names = dict.fromkeys(name for stages in self.stages for name in stages)
        return {name: [stages[name] for stages in self.stages if name in stages] for name in names}


class Figures:
    def __init__(self) -> None:
        self._ways: dict[str, _Way] = {}

    def add(self, way: str, count: Count, seconds: float, stages: Mapping[str, float]) -> None:
        """One run."""
        found = self._ways.setdefault(way, _Way())
        found.counts.append(count)
        found.seconds.append(seconds)
        found.stages.append(stages)

    def lines(self) -> list[str]:
        """A table in Markdown, in the order in which the ways were first seen."""
        if not self._ways:
            return []
        rows = [_COLUMNS, *(way.cells(name) for name, way in self._ways.items())]
        return [_line(rows[0]), "|" + " --- |" * len(_COLUMNS), *(_line(row) for row in rows[1:])]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
