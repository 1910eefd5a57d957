"""What became of the calls: how many, how many failed, when and why. Reads the lines that load.py writes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Failures further apart than this are two outages, not one.
_GAP = 1.0

_WHY = {
    "HTTP 500": "HTTP 500: Envoy could not ask Rate Limit (failure_mode_deny)",
    "HTTP 503": "HTTP 503: Envoy has no answer",
}


@dataclass(frozen=True)
class Call:
    at: float  # seconds since the epoch when it began
    target: str
    number: int  # of those to this target, from 0
    ok: bool
    reason: str
    leaf: str  # SHA-256 of the certificate it was served, in hexadecimal; empty if there was no handshake

    @staticmethod
    def parse(line: str) -> Call:
        record = json.loads(line)
        return Call(record["t"], record["target"], record["n"], record["ok"], record.get("reason", ""), record.get("leaf", ""))


@dataclass
class Window:
    """A stretch of time with failures; calls between them may have succeeded."""

    first: float
    last: float
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Summary:
    """The calls to one target in one stretch of time."""

    target: str
    total: int
    failed: int
    windows: Sequence[Window]

    def lines(self, since: float) -> list[str]:
        """As text; times are seconds after `since`."""
        head = f"{self.target}: {self.total} calls, {self.failed} failed"
        return [head, *(f"    {_describe(window, since)}" for window in self.windows)]


class CallLog:
    """Follows the file of a load generator that is still writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = ""
        self.calls: list[Call] = []

    def read(self) -> list[Call]:
        """What was written since the last time; also kept in `calls`."""
        if not self._path.exists():
            return []
        with self._path.open(encoding="utf-8") as file:
            file.seek(self._offset)
            text = file.read()
            self._offset = file.tell()
        *lines, self._rest = (self._rest + text).split("\n")
        new = [Call.parse(line) for line in lines if line]
        self.calls.extend(new)
        return new

    def answered(self, before: float) -> bool:
        """Whether the outcome of every call that began before then is known; one that hangs is written down only when it ends."""
        self.read()
        return all(self._answered(target, before) for target in {call.target for call in self.calls})

    def _answered(self, target: str, before: float) -> bool:
        numbers = {call.number: call.at for call in self.calls if call.target == target}
        later = [number for number, at in numbers.items() if at >= before]
        return bool(later) and all(number in numbers for number in range(min(later)))

    def between(self, start: float, end: float | None = None) -> list[Call]:
        self.read()
        return [call for call in self.calls if start <= call.at < (end or time.time())]


def summarise(calls: Iterable[Call]) -> list[Summary]:
    """Per target, in the order of their names."""
    by_target: dict[str, list[Call]] = {}
    for call in calls:
        by_target.setdefault(call.target, []).append(call)
    return [_summary(target, sorted(found, key=lambda call: call.at)) for target, found in sorted(by_target.items())]


def _summary(target: str, calls: Sequence[Call]) -> Summary:
    windows: list[Window] = []
    failures = [call for call in calls if not call.ok]
    for call in failures:
        if not windows or call.at - windows[-1].last > _GAP:
            windows.append(Window(call.at, call.at))
        window = windows[-1]
        window.last = call.at
        window.failed += 1
        window.reasons[call.reason] += 1
    return Summary(target, len(calls), len(failures), windows)


def _describe(window: Window, since: float) -> str:
    reasons = "; ".join(f"{count} × {_WHY.get(reason, reason)}" for reason, count in window.reasons.most_common(3))
    return f"{window.first - since:+.1f} s to {window.last - since:+.1f} s ({window.failed} failed): {reasons}"
