"""hack/test: the tests, from nothing."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
from collections.abc import Collection

from . import junit, plan, selection, timeline
from .schedule import Schedule
from .step import Counts, Outcome

_RUNS = {"quick": plan.QUICK, "all": plan.SUITES}
_EPILOG = """\
runs:
  (none)        the gate: lint, unit, tsan, fuzz, integration, e2e. Half an hour on two cores
  quick         lint and unit; minutes
  all           the gate, and what docs/development.md lists: long matrices, the soak, TSan of all programs,
                proofs (hack/prove), CERTROLL_LONG=1. Hours. With --since, only what the changes since that commit concern

suites (also after `all`; default: those of the run):
  lint          include direction, headers that compile alone, clang-format, clang-tidy, generated pages
  unit          cmocka, with AddressSanitizer and UBSan
  tsan          the unit tests that start threads, with ThreadSanitizer
  fuzz          the fuzz targets: their seeds, and some seconds of each; with all ten seconds of each
  integration   against a real API server, and the catalogue against real programs
  e2e           on real local clusters: kubelet, Envoy, Rate Limit, nginx
  soak          churn and faults: nothing missed, nothing repeated, memory and descriptors flat (only of `all`)

Steps that do not need one another run side by side; e2e waits for unit, integration also for tsan. Arguments for pytest go to integration
and e2e, and choose among all of their tests. Needs root for the local cluster.

Logs: build/test-steps/<step>.log, and of failed tests build/test-logs/<test>/; the soak's samples: build/soak.csv; when
each step ran, and which tests took long: build/test-timeline.txt. Ends with a line "N passed, N failed, N skipped"; exit
status 0 only when nothing failed, all ran, and something passed.
"""
_USAGE = """\
hack/test [suite...]
       hack/test integration|e2e -- pytest arguments
       hack/test quick
       hack/test all [--since REVISION] [--minutes N] [suite...]"""


def run(arguments: list[str]) -> int:
    wanted = _parse(arguments)
    chosen = selection.load()
    can_be_ended()
    if wanted.everything:
        os.environ["CERTROLL_LONG"] = "1"
    logs = plan.BUILD / "test-steps"
    for leftover in (logs, plan.AUDIT):  # of the run before
        shutil.rmtree(leftover, ignore_errors=True)
    logs.mkdir(parents=True)
    busy = timeline.Busy()
    schedule = Schedule(plan.steps(wanted), logs)
    schedule.run()
    outcomes = list(schedule.outcomes.values())
    slow = "" if wanted.everything else timeline.draw_slow(outcomes, chosen)
    drawn = "\n\n".join(filter(None, [timeline.draw(outcomes, schedule.seconds, busy), slow]))
    (plan.BUILD / "test-timeline.txt").write_text(drawn + "\n")
    print(f"\n{drawn}\n")
    return conclude(outcomes)


def can_be_ended() -> None:
    """By Ctrl-C, a polite kill, or a terminal that closes, unless nohup says otherwise. A shell has what it runs in the
    background ignore SIGINT, and so would all that we start."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def conclude(outcomes: Collection[Outcome]) -> int:
    """Says what failed, and in the last line how much; the exit status of the run. A log that keeps its end keeps this."""
    counts = sum((outcome.counts for outcome in outcomes), Counts())
    for outcome in outcomes:
        if outcome.trouble:
            print(f"{outcome.step.name}: {outcome.trouble}")
        elif outcome.counts.failed:
            print(f"{outcome.step.name}: {outcome.counts}, see build/test-steps/{outcome.step.name}.log")
            for failure in junit.failures(outcome.step.report) if outcome.step.report else ():
                print(f"  {failure}")
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
        usage=_USAGE,
        description="Tests, from nothing: installs what is missing, builds, runs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--since", metavar="REVISION", help="with `all`: only what the files changed since that commit concern")
    parser.add_argument("--minutes", type=_minutes, default=20.0, metavar="N", help="how long the soak takes (default: %(default)g)")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args(ours)
    which = options.words[0] if options.words and options.words[0] in _RUNS else "gate"
    suites = options.words if which == "gate" else options.words[1:]
    for unknown in (suite for suite in suites if suite not in plan.SUITES):
        parser.error(f"there is no run or suite '{unknown}'; runs: {', '.join(_RUNS)}; suites: {', '.join(plan.SUITES)}")
    if options.since and which != "all":
        parser.error("--since goes with `all`: hack/test all --since REVISION")
    if which == "quick" and suites:
        parser.error("quick takes no suites; for some of the gate: hack/test SUITE...")
    if pytest and (which != "gate" or not suites or not set(suites) <= {"integration", "e2e"}):
        parser.error("arguments for pytest go to the suites that are named: hack/test integration -- ARGUMENTS")
    return plan.Wanted(
        suites or _RUNS.get(which, plan.GATE),
        everything=which == "all" or "soak" in suites,
        minutes=options.minutes,
        modules=_since(options.since) if options.since else None,
        pytest=pytest,
    )


def _since(revision: str) -> list[str] | None:
    changed = selection.changed_since(revision)
    known = selection.modules()
    chosen = selection.concerned(selection.load(), changed, known)
    print(f"since {revision}: {len(changed)} files changed, which concern {len(chosen)} of {len(known)} modules of tests")
    return None if chosen == known else chosen


def _minutes(text: str) -> float:
    minutes = float(text)
    if not (math.isfinite(minutes) and minutes > 0):
        raise ValueError(text)
    return minutes
