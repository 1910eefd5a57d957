"""A program under test, as a process: started, waited for, weighed, ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from . import commands, paths
from .bench_world import NAMESPACE, World
from .ui import DevError

_IN_SYNC = 120.0  # seconds


@dataclass(frozen=True)
class Memory:
    """KiB, as the kernel counts."""

    peak: int
    resident: int
    anonymous: int
    private_dirty: int


@dataclass(frozen=True)
class Use:
    """What a process has used so far."""

    cpu_ns: int
    received: int  # bytes of TLS over the connections that are open


class Client:
    """The floor or certroll. `with` ends it."""

    def __init__(
        self, world: World, name: str, argv: Sequence[str | Path], in_sync: str, environment: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self._world = world
        self._log = world.folder / f"{name}.log"
        self._synced = threading.Event()
        self._word = in_sync
        self._started = time.monotonic()
        self.in_sync_s = 0.0
        self._process = subprocess.Popen(
            world.inside(list(argv)),
            env=world.as_account() | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_in_sync(self) -> float:
        """Seconds from its start until it said so."""
        if not self._synced.wait(_IN_SYNC) or not self.in_sync_s:
            raise DevError(f"{self.name} did not come in sync:\n{commands.tail_of(self._log)}")
        return self.in_sync_s

    def port(self) -> int:
        """Of its HTTP server, by its log; certroll only."""
        match = re.search(r'"port":"(\d+)"', self._log.read_text(errors="replace"))
        if not match:
            raise DevError(f"{self.name} serves no pages, see {self._log}")
        return int(match[1])

    def memory(self) -> Memory:
        status = Path(f"/proc/{self.pid}/status").read_text()
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return Memory(
            peak=_kib(status, "VmHWM"),
            resident=_kib(status, "VmRSS"),
            anonymous=_kib(status, "RssAnon"),
            private_dirty=_kib(rollup, "Private_Dirty"),
        )

    def use(self) -> Use:
        return Use(self._cpu_ns(), self._received())

    def _cpu_ns(self) -> int:
        """Of all threads, in ns: the scheduler's own account, not ticks of 10 ms."""
        total = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total

    def _received(self) -> int:
        lines = commands.run(self._world.inside(["ss", "-tinpHO", "state", "established"])).splitlines()
        ours = [line for line in lines if f"pid={self.pid}," in line]
        return sum(int(match[1]) for line in ours if (match := re.search(r"bytes_received:(\d+)", line)))

    def _read(self) -> None:
        assert self._process.stdout
        with self._log.open("wb") as log:
            for line in self._process.stdout:
                if not self._synced.is_set() and self._word.encode() in line:
                    self.in_sync_s = time.monotonic() - self._started
                    self._synced.set()
                log.write(line)
                log.flush()
        self._synced.set()  # it has ended: nobody need wait


def floor(world: World, policies: int) -> Client:
    return Client(world, "floor", [world.bin / "bench-floor", NAMESPACE, str(policies)], "in sync")


def certroll(world: World, program: Path, *flags: str) -> Client:
    own = ["--kubeconfig", world.kubeconfig, "--operator-namespace", "certroll-system", "--metrics-bind-address", "127.0.0.1:0"]
    argv = [program, *own, *_if_known(program), *flags]
    return Client(world, "certroll", argv, "all caches are in sync", _as_installed())


def _as_installed() -> dict[str, str]:
    """What the Deployment sets for the C library."""
    deployment = (paths.REPOSITORY / "manifests" / "base" / "deployment.yaml").read_text()
    tunables = re.search(r"\{name: GLIBC_TUNABLES, value: ([^}]+)\}", deployment)
    return {"GLIBC_TUNABLES": tunables[1]} if tunables else {}


# What is measured is how fast restarts can be, and no controller ends a rollout here: no limits. Its metrics are read as they are,
# and no admission policy guards its account.
_NEWER_FLAGS = {
    "--max-restarts": "0", "--max-restarts-per-namespace": "0", "--metrics-open": "true", "--health-probe-bind-address": "",
    "--require-admission-policy": "false",
}  # fmt: skip


def _if_known(program: Path) -> list[str]:
    """An older program has none of them."""
    usage = commands.run([program, "--help"])
    return [f"{flag}={value}" for flag, value in _NEWER_FLAGS.items() if flag in usage]


def cpu_over(client: Client, seconds: float) -> float:
    """Part of one core that it used, of 1."""
    before, begun = client.use().cpu_ns, time.monotonic_ns()
    time.sleep(seconds)
    return (client.use().cpu_ns - before) / (time.monotonic_ns() - begun)


def as_dict(memory: Memory) -> dict[str, int]:
    return asdict(memory)


def _kib(text: str, field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    if not match:
        raise DevError(f"the kernel tells no {field}; is this Linux with /proc?")
    return int(match[1])


def cores() -> int:
    return len(os.sched_getaffinity(0))
