"""Progress on stderr and errors a person can act on. Stdout belongs to what a command was asked for."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

_HEARTBEAT = 20.0  # seconds between signs of life where there is no terminal
_REDRAW = 0.2
_lock = threading.Lock()
_quiet = False


class DevError(Exception):
    """Something the user can mend; the text says what and how."""


def be_quiet(quiet: bool = True) -> None:
    """Print no progress from here on; errors and warnings are still printed."""
    global _quiet
    _quiet = quiet


def say(text: str) -> None:
    """One line of progress."""
    if not _quiet:
        _write(text + "\n")


def warn(text: str) -> None:
    _write(f"warning: {text}\n")


def _write(text: str) -> None:
    with _lock:
        sys.stderr.write(text)
        sys.stderr.flush()


class Step:
    """One step with its name and the seconds it takes, as a context manager.

    On a terminal the line is redrawn in place; elsewhere the name is printed at the start of a slow step and again now
    and then, so that a log shows that something is still going on.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._note = ""
        self._started = time.monotonic()
        self._done = threading.Event()
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Step:
        self._started = time.monotonic()
        if not _quiet:
            self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if _quiet:
            return
        self._ticker.join()
        self._line("✓" if kind is None else "✗", last=True)

    def note(self, text: str) -> None:
        """Say beside the name what is being waited for."""
        self._note = text

    def _tick(self) -> None:
        while not self._done.wait(_REDRAW if self._terminal else _HEARTBEAT):
            self._line("…", last=False)

    def _line(self, mark: str, *, last: bool) -> None:
        note = f" ({self._note})" if self._note and not last else ""
        text = f"{mark} {self._name}{note}  {time.monotonic() - self._started:.1f} s"
        if self._terminal:
            text = "\r\033[K" + text
        _write(text + ("\n" if last or not self._terminal else ""))


def main(run: Callable[[list[str]], int]) -> None:
    """Run a command line: errors of ours without a traceback, an interrupt as the shell expects it."""
    try:
        status = run(sys.argv[1:])
    except DevError as error:
        _write(f"error: {error}\n")
        status = 1
    except KeyboardInterrupt:
        _write("\ninterrupted\n")
        status = 130
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    sys.exit(status)
