"""Long-running programs of a cluster: started once, found again by a later run, ended only when they are ours.

Each leaves a small record. A process is ours only if its pid *and* its start time are the recorded ones, since pids are
used again. The record also holds a digest of the command line and of the configuration files it names: when those have
changed, the daemon is started anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import commands, namespaces
from .ui import DevError

_POLL = 0.05
_ENDING_S = 10.0
_PF_EXITING = 0x4  # of the flags in /proc/PID/stat: linux/sched.h


@dataclass(frozen=True)
class Process:
    """A process told from a later one of the same pid by its start time, in clock ticks since boot."""

    pid: int
    start: int

    @staticmethod
    def of(pid: int) -> Process | None:
        """None when there is no such process, or only its zombie.

        While other threads of a zombie end, its sockets are still open.
        """
        fields = _stat(pid)
        is_gone = not fields or (fields[0] in "ZX" and int(fields[17]) <= 1)
        return None if is_gone else Process(pid, int(fields[19]))

    def alive(self) -> bool:
        return Process.of(self.pid) == self

    def ends(self) -> bool:
        """Whether it is on its way out, as one that was killed a moment ago."""
        fields = _stat(self.pid)
        return not fields or bool(int(fields[6]) & _PF_EXITING)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """By way of a pidfd: between the check and the signal the pid cannot become another process."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def _stat(pid: int) -> list[str]:
    """From the state on; empty for what is gone."""
    try:
        # The name in parentheses may hold anything; what follows the last one does not.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def wait_for_end(processes: Iterable[Process], timeout: float) -> list[Process]:
    """Those that still live when the time is over."""
    end = time.monotonic() + timeout
    left = [process for process in processes if process.alive()]
    while left and time.monotonic() < end:
        time.sleep(_POLL)
        left = [process for process in left if process.alive()]
    return left


def end_all(processes: Iterable[Process], timeout: float = 10) -> None:
    """Kill them and see them gone; DevError names those that stay."""
    doomed = list(processes)
    for process in doomed:
        process.kill()
    stuck = wait_for_end(doomed, timeout)
    if stuck:
        roots = {process.pid for process in stuck}
        # Process 1 of a PID namespace stays until all the others have gone: name those that hold it up.
        pids = [pid for pid in all_pids() if roots & ancestors(pid)]
        names = "\n".join(f"    {pid} {' '.join(command_line(pid))[:100]}" for pid in pids)
        raise DevError(f"killed, but not gone after {timeout:g} s (does a disk not answer?):\n{names}")


def command_line(pid: int) -> list[str]:
    """Empty for kernel threads, zombies and what is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [os.fsdecode(word) for word in words]


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent_of(pid: int) -> int:
    """0 for process 1 and for what is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def ancestors(pid: int) -> set[int]:
    """The process itself, its parent, and so on up."""
    found = set()
    while pid > 0:
        found.add(pid)
        pid = parent_of(pid)
    return found


def processes_running(argv: Sequence[str | Path]) -> list[Process]:
    """Those with exactly this command line, which for our daemons holds a path of their cluster."""
    words = [str(word) for word in argv]
    found = [Process.of(pid) for pid in all_pids() if command_line(pid) == words]
    return [process for process in found if process]


@dataclass(frozen=True)
class Daemon:
    """A program to be kept running. `files` are the configuration it reads at its start.

    `restartable`: its machine has a command that ends it and starts it again by the same command line, which writes no
    record; the new process is the daemon's, then.
    """

    name: str
    argv: Sequence[str | Path]
    log: Path
    record: Path
    files: Sequence[Path] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    restartable: bool = False

    def running(self) -> Process | None:
        """The daemon's process, whatever its configuration."""
        return recorded(self.record)

    def start(self, inside: int | None, *, unshare: int = 0, enter: Sequence[tuple[Path, int]] = ()) -> bool:
        """Start it in the namespaces of the process `inside`, unless it runs already; True when it was started."""
        process = self.running()
        if process and process.ends():
            wait_for_end([process], _ENDING_S)
            process = self.running()
        if process and self._recorded_digest() == self._digest():
            return False
        if process:
            stop(self.record)
        # A run that was killed between a start and its record left a process that no record names.
        end_all(processes_running(self.argv))
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.record.parent.mkdir(parents=True, exist_ok=True)
        entered = [*enter, *(namespaces.of_process(inside) if inside else [])]
        pid = namespaces.spawn(self.argv, log=self.log, env=environment(self.env), enter=entered, unshare=unshare)
        started = Process.of(pid)
        if started is None:
            raise DevError(self._died())
        argv = [str(word) for word in self.argv] if self.restartable else None
        _write_record(self.record, started, self._digest(), argv)
        return True

    def wait(self, ready: Callable[[], bool], timeout: float, what: str = "ready") -> None:
        """Until `ready()`; DevError with the log's last lines when the daemon ends first or takes too long."""
        end = time.monotonic() + timeout
        while not ready():
            if not self.running():
                raise DevError(self._died())
            if time.monotonic() > end:
                raise DevError(f"{self.name} is not {what} after {timeout:g} s, see {self.log}:\n{self._tail()}")
            time.sleep(_POLL)

    def _died(self) -> str:
        return f"{self.name} ended at its start, see {self.log}:\n{self._tail()}"

    def _tail(self) -> str:
        return commands.tail_of(self.log)

    def _digest(self) -> str:
        digest = hashlib.sha256(json.dumps([[str(word) for word in self.argv], dict(self.env)]).encode())
        for file in self.files:
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def _recorded_digest(self) -> str | None:
        fields = _read_record(self.record)
        return fields["digest"] if fields else None


def recorded(record: Path) -> Process | None:
    """The live process of a record."""
    fields = _read_record(record)
    if not fields:
        return None
    process = Process(fields["pid"], fields["start"])
    if process.alive():
        return process
    restarted = processes_running(fields["restartable"]) if fields.get("restartable") else []
    return restarted[0] if restarted else None


def stop(record: Path, timeout: float = 20) -> None:
    """Ask the recorded process to end, make it end, forget it."""
    process = recorded(record)
    if process:
        process.kill(signal.SIGTERM)
        if wait_for_end([process], timeout):
            process.kill()
            if wait_for_end([process], 5):
                raise DevError(
                    f"process {process.pid} ({record.stem}) does not end, even when killed: is its disk gone?"
                )
    record.unlink(missing_ok=True)


def _read_record(record: Path) -> dict[str, Any] | None:
    try:
        fields = json.loads(record.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None  # none, or the run that wrote it was killed, as was then the daemon's start
    return fields if fields["boot"] == _boot_id() else None


def _write_record(record: Path, process: Process, digest: str, restartable: Sequence[str] | None) -> None:
    half = record.with_suffix(".new")
    fields = {"pid": process.pid, "start": process.start, "boot": _boot_id(), "digest": digest}
    half.write_text(json.dumps({**fields, "restartable": restartable}) + "\n")
    os.replace(half, record)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """A plain one: nothing of the caller's shell may change what a daemon does."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **extra}
