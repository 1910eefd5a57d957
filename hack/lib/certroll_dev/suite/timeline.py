"""When each step ran, how long, and how busy the machine was meanwhile: where the time of a run goes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from . import junit, selection
from .step import Outcome

_EVERY = 1.0  # seconds between two looks at the machine
_WIDTH = 48


class Busy:
    """Seconds that all cores together have worked, second by second. Of the whole machine: others that use it count."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._samples = [(0.0, _worked())]
        threading.Thread(target=self._sample, daemon=True).start()

    def cores(self, began: float, ended: float) -> float:
        """How many cores worked between the two, on average."""
        inside = [sample for sample in self._samples if began - _EVERY <= sample[0] <= ended + _EVERY]
        if len(inside) < 2:
            return 0.0
        (first, before), (last, after) = inside[0], inside[-1]
        return (after - before) / (last - first)

    def _sample(self) -> None:
        while True:
            time.sleep(_EVERY)
            self._samples.append((time.monotonic() - self._start, _worked()))


def _worked() -> float:
    """proc(5), /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, ..."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:8]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def draw(outcomes: Sequence[Outcome], seconds: float, busy: Busy) -> str:
    """One line for each step that ran, in the order in which they began."""
    ran = sorted((each for each in outcomes if each.seconds > 0), key=lambda each: each.began)
    lines = [f"{'':16} {'began':>6} {'took':>6}  cores"]
    for each in ran:
        cores = busy.cores(each.began, each.ended)
        lines.append(f"{each.step.name:16} {_clock(each.began):>6} {_clock(each.seconds):>6} {cores:6.1f}  {_bar(each, seconds)}")
    lines.append(f"{'in all':16} {'':6} {_clock(seconds):>6} {busy.cores(0, seconds):6.1f}  of {os.cpu_count()}")
    return "\n".join(lines)


def draw_slow(outcomes: Sequence[Outcome], chosen: selection.Selection) -> str:
    """The tests of the gate that took longer than one may, and whether docs/development.md says why; empty: none did."""
    reports = [each.step.report for each in outcomes if each.step.report and each.seconds and "pytest" in each.step.report.name]
    tests = [(seconds, test) for report in reports for test, seconds in junit.durations(report) if seconds > selection.SLOW_S]
    slow = [(seconds, test) for seconds, test in sorted(tests, reverse=True) if chosen.is_in_gate(test)]
    lines = [f"  {_clock(s)}  {test}{'' if chosen.is_known_slow(test) else '   (not in test/selection.toml)'}" for s, test in slow]
    return "\n".join([f"of the gate, longer than {selection.SLOW_S:g} s:", *lines]) if slow else ""


def _bar(outcome: Outcome, seconds: float) -> str:
    first = int(_WIDTH * outcome.began / seconds)
    last = max(first + 1, round(_WIDTH * outcome.ended / seconds))
    return " " * first + "█" * (last - first)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
