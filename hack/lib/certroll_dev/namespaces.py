"""Starting programs inside other Linux namespaces, detached from the caller.

Python 3.11 has neither setns(2) nor unshare(2), and `nsenter --pid` stays behind as a parent whose pid is not the
program's: hence the two system calls and one double fork.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .ui import DevError

T = TypeVar("T")

NEW_MOUNT = 0x00020000
NEW_PID = 0x20000000
NEW_NET = 0x40000000
NEW_UTS = 0x04000000

_libc = ctypes.CDLL(None, use_errno=True)


def of_process(pid: int) -> list[tuple[Path, int]]:
    """The network, host name, mount and PID namespace of a process, to be entered."""
    kinds = {"net": NEW_NET, "uts": NEW_UTS, "mnt": NEW_MOUNT, "pid": NEW_PID}
    return [(Path(f"/proc/{pid}/ns/{name}"), kind) for name, kind in kinds.items()]


def inode(path: Path) -> int | None:
    """Identifies a namespace; None where there is none."""
    try:
        return path.stat().st_ino
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None


def in_network(path: Path, call: Callable[[], T]) -> T:
    """The result of `call`, made in the network namespace by a thread of its own: each thread has a network."""

    def enter_and_call() -> T:
        with path.open("rb") as namespace:
            _check(_libc.setns(namespace.fileno(), NEW_NET), "setns")
        return call()

    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(enter_and_call).result()


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str],
    enter: Sequence[tuple[Path, int]] = (),
    unshare: int = 0,
) -> int:
    """Start a program in a session of its own, inside of `enter` and of new namespaces `unshare`; returns its pid.

    The pid is the one this process sees. The program's parent is process 1 of its PID namespace, its output is appended
    to `log`. Raises DevError when it cannot be started at all.
    """
    log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        _middle([str(word) for word in argv], dict(env), log_fd, write_end, enter, unshare)
    os.close(log_fd)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        answer = pipe.read()  # ends when the program's exec has closed the other end, or with an error's text
    os.waitpid(middle, 0)
    pid, _, error = answer.partition("\n")
    if error or not pid.isdigit():
        reason = (error or answer).strip() or "its process died at once"
        raise DevError(f"cannot start {argv[0]}: {reason}")
    return int(pid)


def _middle(
    argv: list[str], env: dict[str, str], log_fd: int, answer: int, enter: Sequence[tuple[Path, int]], unshare: int
) -> None:
    """The first child: changes namespaces and forks the program, which a new PID namespace takes only as a child."""
    status = 1
    try:
        handles = [(os.open(path, os.O_RDONLY | os.O_CLOEXEC), kind) for path, kind in enter]
        for handle, kind in handles:
            _check(_libc.setns(handle, kind), "setns")
        if unshare:
            _check(_libc.unshare(unshare), "unshare")
        program = os.fork()
        if program == 0:
            _exec(argv, env, log_fd, answer)
        os.write(answer, f"{program}\n".encode())
        status = 0
    except OSError as error:
        os.write(answer, f"\n{error}".encode())
    finally:
        os._exit(status)


def _exec(argv: list[str], env: dict[str, str], log_fd: int, answer: int) -> None:
    try:
        os.setsid()
        os.umask(0o022)
        os.chdir("/")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        # A lock or pipe that the caller was given by its own parent would otherwise be held as long as we run.
        for handle in [int(name) for name in os.listdir("/proc/self/fd")]:
            if handle > 2 and handle != answer:
                _close(handle)
        # Python ignores SIGPIPE, a shell's background job SIGINT; programs inherit that.
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execve(argv[0], argv, env)
    except OSError as error:
        os.write(answer, f"\n{error}".encode())
    finally:
        os._exit(127)


def _close(handle: int) -> None:
    try:
        os.close(handle)
    except OSError:
        pass  # the one that listed the folder


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
