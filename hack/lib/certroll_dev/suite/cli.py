"""hack/test: all tests, from nothing."""

from __future__ import annotations

import argparse
import math
import shutil
import signal
from collections.abc import Collection

from . import plan, timeline
from .schedule import Schedule
from .step import Counts, Outcome

_EPILOG = """\
suites (default: all):
  lint          include direction, headers that compile alone, clang-format, generated pages
  unit          cmocka, with AddressSanitizer and UBSan
  tsan          the same with ThreadSanitizer
  integration   against a real API server, and the catalogue against real programs
  e2e           on real local clusters: kubelet, Envoy, Rate Limit, nginx
  soak          churn and faults: nothing missed, nothing repeated, memory and descriptors flat

What waits for nothing of the others runs beside them; unit and tsan come before what needs a cluster. Arguments for pytest
go to integration and e2e. Needs root for the local cluster.

Logs: build/test-steps/<step>.log, and of failed tests build/test-logs/<test>/; the soak's samples: build/soak.csv; when
each step ran: build/test-timeline.txt. Ends with a line "N passed, N failed, N skipped"; exit status 0 only when nothing
failed, all ran, and something passed.
"""


def run(arguments: list[str]) -> int:
    wanted = _parse(arguments)
    can_be_ended()
    logs = plan.BUILD / "test-steps"
    for leftover in (logs, plan.AUDIT):  # of the run before
        shutil.rmtree(leftover, ignore_errors=True)
    logs.mkdir(parents=True)
    busy = timeline.Busy()
    schedule = Schedule(plan.steps(wanted), logs)
    schedule.run()
    drawn = timeline.draw(list(schedule.outcomes.values()), schedule.seconds, busy)
    (plan.BUILD / "test-timeline.txt").write_text(drawn + "\n")
    print(f"\n{drawn}\n")
    return conclude(schedule.outcomes.values())


def can_be_ended() -> None:
    """By Ctrl-C, a polite kill, or a terminal that closes, unless nohup says otherwise. A shell has what it runs in the
    background ignore SIGINT, and so would all that we start."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def conclude(outcomes: Collection[Outcome]) -> int:
    """Says what is wrong, and in the last line how much; the exit status of the run."""
    counts = sum((outcome.counts for outcome in outcomes), Counts())
    for outcome in outcomes:
        if outcome.trouble:
            print(f"{outcome.step.name}: {outcome.trouble}")
        elif outcome.counts.failed:
            print(f"{outcome.step.name}: {outcome.counts}, see build/test-steps/{outcome.step.name}.log")
    if counts.failed:
        print("logs of failed tests: build/test-logs/")
    print(counts)
    return 0 if counts.passed and not counts.failed and all(outcome.stands for outcome in outcomes) else 1


def _parse(arguments: list[str]) -> plan.Wanted:
    ours, pytest = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        ours, pytest = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(
        prog="hack/test",
        usage="hack/test [--minutes N] [suite...] [-- pytest arguments]",
        description="All tests, from nothing: installs what is missing, builds, runs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=_minutes, default=20.0, metavar="N", help="how long the soak takes (default: %(default)g)")
    parser.add_argument("suites", nargs="*", metavar="suite", help=argparse.SUPPRESS)
    options = parser.parse_args(ours)
    unknown = [suite for suite in options.suites if suite not in plan.SUITES]
    if unknown:
        parser.error(f"unknown suite '{unknown[0]}'")
    return plan.Wanted(options.suites or plan.SUITES, options.minutes, pytest)


def _minutes(text: str) -> float:
    minutes = float(text)
    if not (math.isfinite(minutes) and minutes > 0):
        raise ValueError(text)
    return minutes
