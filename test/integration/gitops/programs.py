"""A program that runs beside a control plane until its test is over."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from certroll_dev import commands
from control_plane import ControlPlane, wait_until

Words = Sequence[str | Path]
_STARTED_S = 180.0


@contextlib.contextmanager
def running(plane: ControlPlane, name: str, words: Words, folder: Path, ready: Words, **environment: str) -> Iterator[None]:
    """Once the command `ready` succeeds. What it writes is in `folder`, as are its files."""
    scratch = folder / name
    scratch.mkdir()
    log = folder / f"{name}.log"
    settings: Mapping[str, str] = plane.environment() | {"HOME": str(scratch), "TMPDIR": str(scratch)} | environment
    with log.open("w") as file:
        process = plane.popen(words, env=settings, cwd=scratch, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        wait_until(f"{name} to be ready, see {log}", lambda: _is_ready(plane, process, name, log, ready), _STARTED_S)
        yield
    finally:
        commands.end(process, 20)


def page(address: str) -> Words:
    """Ready once this answers."""
    return ["curl", "-sSf", "--max-time", "5", f"http://{address}"]


def _is_ready(plane: ControlPlane, process: subprocess.Popen[bytes], name: str, log: Path, ready: Words) -> bool:
    assert process.poll() is None, f"{name} has ended:\n{log.read_text()[-3000:]}"
    return plane.run(*ready, check=False).returncode == 0
