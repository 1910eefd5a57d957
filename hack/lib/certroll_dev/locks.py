"""Locks between processes; the kernel frees them when their holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .ui import Step


@contextlib.contextmanager
def locked(path: Path, waiting_for: str, *, remove: bool = False) -> Iterator[None]:
    """Hold the lock file; `waiting_for` is shown while another process has it.

    With `remove` the file is gone afterwards. Someone may then have waited on the removed file, so whoever gets a lock
    checks that its file is still the one under that name.
    """
    while True:
        fd = _open(path)
        try:
            _take(fd, waiting_for)
            if _still_there(fd, path):
                break
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    try:
        yield
    finally:
        if remove:
            path.unlink(missing_ok=True)
        os.close(fd)


def _open(path: Path) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Who else is done may just now remove the folder, as the last to use it.
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _take(fd: int, waiting_for: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with Step(f"waiting for {waiting_for}"):
            fcntl.flock(fd, fcntl.LOCK_EX)


def _still_there(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False
