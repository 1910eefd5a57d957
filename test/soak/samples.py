"""What a process holds, from second to second, and whether it grows."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from ticker import Ticker

_FIELDS = {"Rss": "resident", "Private_Dirty": "private_dirty"}


@dataclass(frozen=True)
class Sample:
    at: float  # seconds since sampling began
    resident: int  # KiB
    private_dirty: int  # KiB
    descriptors: int
    threads: int
    series: int  # of metrics

    @staticmethod
    def of(pid: int, at: float, series: int) -> Sample:
        proc = Path(f"/proc/{pid}")
        found = re.findall(r"^(\w+): +(\d+) kB", (proc / "smaps_rollup").read_text(), re.MULTILINE)
        memory = {_FIELDS[name]: int(value) for name, value in found if name in _FIELDS}
        return Sample(at, **memory, descriptors=_count(proc / "fd"), threads=_count(proc / "task"), series=series)


class Sampler(Ticker):
    """Looks about once a second. Use it as a context."""

    def __init__(self, pid: int, series: Callable[[], int | None], every: float = 1.0) -> None:
        super().__init__("sampler", every)
        self.samples: list[Sample] = []
        self._pid = pid
        self._series = series
        self._began = time.monotonic()
        self._last_series = 0

    def tick(self) -> bool:
        if len(self.samples) % 10 == 0:
            self._last_series = self._series() or self._last_series
        try:
            self.samples.append(Sample.of(self._pid, time.monotonic() - self._began, self._last_series))
        except (FileNotFoundError, ProcessLookupError):
            return False  # it has ended; whoever started it finds out why
        return True


@dataclass(frozen=True)
class Growth:
    """Of the least in the second and in the last quarter: one is after the warm-up, and what is let go again is no growth."""

    what: str
    before: float
    after: float
    bound: float

    @property
    def too_much(self) -> bool:
        return self.after - self.before > self.bound

    def __str__(self) -> str:
        return f"{self.what}: {self.before:g} → {self.after:g} (at most {self.bound:g} more)"


def growth(samples: Sequence[Sample], bounds: dict[str, float]) -> list[Growth]:
    quarter = len(samples) // 4
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]

    def least(part: Sequence[Sample], what: str) -> float:
        return min(getattr(sample, what) for sample in part)

    return [Growth(what, least(second, what), least(last, what), bound) for what, bound in bounds.items()]


def save(samples: Sequence[Sample], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Sample)])
        writer.writerows(astuple(sample) for sample in samples)


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())
