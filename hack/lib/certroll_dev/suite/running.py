"""A step while it runs: its process, its log, and what is shown of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
import xml.etree.ElementTree as tree
from pathlib import Path

from certroll_dev import paths

from . import junit
from .step import Counts, Outcome, Step

_LOOK_EVERY = 0.2
_screen = threading.Lock()


def show(line: str) -> None:
    """Lines of several steps come whole, one after the other. That nobody reads them any more (a pipe, a terminal that has
    gone, one that knows no such letters) is no reason to leave what runs alone: the logs have them too."""
    with _screen, contextlib.suppress(OSError, UnicodeError):
        print(line, flush=True)


class Running:
    """Begins with its making. The log is a file, not a pipe: what outlives the step keeps nobody waiting."""

    def __init__(self, step: Step, log: Path, start: float) -> None:
        self.step = step
        self._log = log
        self._start = start
        self._began = time.monotonic()
        if step.report:
            step.report.unlink(missing_ok=True)
        show(f"== {step.name}")
        with log.open("wb") as out:
            # A session of its own: Ctrl-C is for us, and we end all of them in order.
            self._process = subprocess.Popen(
                [str(word) for word in step.argv],
                cwd=paths.REPOSITORY, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def wait(self) -> Outcome:
        """Shows what it says until it has ended. Raises nothing: an end that nobody tells would be waited for."""
        try:
            self._follow()
            counts, trouble = self._judge(self._process.wait())
        except Exception as error:
            self._process.wait()  # what needs it, or is ended with it, must not meet it
            counts, trouble = Counts(failed=1), f"FAILED: {error!r}"
        outcome = Outcome(self.step, self._began - self._start, time.monotonic() - self._start, counts, trouble)
        show(f"== {self.step.name}: {trouble or _said(outcome)}, {outcome.seconds:.0f} s")
        return outcome

    def signal(self, number: signal.Signals) -> None:
        """To all of its processes, as a terminal does it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _follow(self) -> None:
        with self._log.open(errors="replace") as log:
            rest = ""
            while True:
                ended = self._process.poll() is not None
                *lines, rest = (rest + log.read()).split("\n")
                for line in lines:
                    show(f"{self.step.name} | {line}")
                if ended:
                    break
                time.sleep(_LOOK_EVERY)
            if rest:
                show(f"{self.step.name} | {rest}")

    def _judge(self, status: int) -> tuple[Counts, str]:
        if self.step.is_test and not self.step.report:
            return (Counts(passed=1), "") if status == 0 else (Counts(failed=1), "")
        if status not in self.step.ran:
            return Counts(failed=1), f"FAILED: ended with {status}, see {self._log}"
        if not self.step.report:
            return Counts(), ""
        try:
            counts = junit.read(self.step.report)
        except (OSError, tree.ParseError) as error:
            return Counts(failed=1), f"FAILED: it left no report ({error})"
        # ctest calls what it could not start "notrun", and is content when there is nothing to run.
        if status and not counts.failed:
            return counts + Counts(failed=1), f"FAILED: ended with {status}, and its report has no failure, see {self._log}"
        if counts == Counts():
            return Counts(failed=1), f"FAILED: its report has no test, see {self._log}"
        return counts, ""


def _said(outcome: Outcome) -> str:
    return str(outcome.counts) if outcome.counts != Counts() else "done"
