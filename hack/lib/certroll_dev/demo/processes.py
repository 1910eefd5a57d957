"""The processes that the demo and the tests run beside the cluster: the load generator."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from certroll_dev.commands import tail_of
from certroll_dev.demo import load
from certroll_dev.ui import DevError

_STOP_DEADLINE = 20.0


class Background:
    """A process with its output in a file. In a session of its own, so that Ctrl-C reaches only the demo itself."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True, env={**os.environ, **(env or {})},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def identity(self) -> str:
        """For a file that end_left_over reads."""
        return f"{self.pid} {_start_time(self.pid)}"

    def running(self) -> bool:
        return self._process.poll() is None

    def check(self) -> None:
        """Raises when it has ended though nobody asked it to."""
        if not self.running():
            raise DevError(f"{self.name} ended with {self._process.returncode}; {self.log} ends with:\n{tail_of(self.log)}")

    def kill(self) -> None:
        """SIGKILL: as a crash, without any clean-up on its side."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM, and SIGKILL when that is not heeded; returns the exit status."""
        if self.running():
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_DEADLINE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()


class Load(Background):
    """The load generator; its calls are in `calls`, one JSON line each."""

    def __init__(self, targets: Sequence[str], trust: Path | None, rate: float, calls: Path, log: Path, timeout: float = 10.0) -> None:
        """`trust`: the CAs that the caller trusts; None: plain HTTP. `timeout`: seconds until a call counts as failed."""
        command: list[str | Path] = [sys.executable, load.__file__, "--rate", str(rate), "--timeout", str(timeout), "--out", calls]
        command += ["--ca", trust] if trust else []
        for target in targets:
            command += ["--target", target]
        super().__init__("the load generator", command, log)


def left_over(pid_file: Path) -> int | None:
    """The pid of the process that an earlier run left, if it still is the one it was: numbers are given again."""
    try:
        pid, started = pid_file.read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if started == _start_time(int(pid)) else None


def end_left_over(pid_file: Path) -> bool:
    """Returns whether there was one."""
    pid = left_over(pid_file)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_DEADLINE
    while left_over(pid_file) and time.monotonic() < deadline:
        time.sleep(0.1)
    return True


def _start_time(pid: int) -> str | None:
    """In clock ticks since boot (proc(5)): together with the pid it names one process for ever; None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
