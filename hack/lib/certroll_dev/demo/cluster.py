"""hack/cluster as the demo and the tests use it: by its command line, like everybody else."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from certroll_dev import commands, paths
from certroll_dev.demo.api import API
from certroll_dev.layout import Cluster
from certroll_dev.ui import DevError

_PROGRAM = paths.HACK / "cluster"
_NEW_NET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class LocalCluster:
    def __init__(self, name: str) -> None:
        self.name = name
        self.layout = Cluster(name)

    def up(self, *options: str) -> None:
        """Shows its own progress. Interrupted or failed, it leaves what `down` removes."""
        self._show("up", *options)

    def exists(self) -> bool:
        """Whether there is anything for `down` to remove, be it half a cluster."""
        return self.layout.root.exists()

    def down(self) -> None:
        self._show("down")

    def load_image(self, archive: Path) -> None:
        commands.run([*self._command("load-image"), archive])

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return commands.run([*self._command("kubectl"), *arguments], stdin=stdin)

    def api(self) -> API:
        """As the cluster's administrator; to be used from within network()."""
        return API.from_kubeconfig(json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json")))

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """This thread, and the threads and processes it starts, are in the cluster's network: Pod and Service addresses answer."""
        with open("/proc/self/ns/net", "rb") as home, self.layout.netns_path.open("rb") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def _command(self, verb: str) -> list[str | Path]:
        return [_PROGRAM, verb, "--name", self.name]

    def _show(self, verb: str, *options: str) -> None:
        """In a process group of its own: Ctrl-C is for the demo, which then ends things in order."""
        with subprocess.Popen([*self._command(verb), *options], process_group=0) as process:
            try:
                status = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGINT)
                process.wait()
                raise
        if status != 0:
            raise DevError(f"hack/cluster {verb} --name {self.name} ended with {status}")


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _NEW_NET) != 0:
        error = ctypes.get_errno()
        raise DevError(f"cannot enter the cluster's network: {os.strerror(error)}")
