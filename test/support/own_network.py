"""A network of a test's own, in which ports may be fixed since nobody else has them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator

_NEW_NET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """This thread, and the threads and processes that it starts meanwhile, have nothing but a loopback interface. The network goes
    with the last of them."""
    with open("/proc/thread-self/ns/net", "rb") as home:
        _check(_libc.unshare(_NEW_NET))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _check(_libc.setns(home.fileno(), _NEW_NET))


def _check(status: int) -> None:
    if status != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
