"""A program beside the cluster's own, in its network: with flags that kubeadm does not set, and files of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rows.folder import Folder

_START = 180.0  # seconds; the machine may have much else to do
_STOP = 10.0


@dataclass
class Beside:
    """A process as a static pod's manifest would have it, by which the product is asked about it."""

    name: str
    image: str  # as it is in a registry, with the version that really runs
    program: Path
    flags: Sequence[str]
    place: Path  # its files and its log
    serves: Callable[[], bool]
    files: Folder
    probe: Sequence[str] = ()  # the command of a probe of type exec
    env: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None  # a host name of its own, by which API servers on one machine are told apart
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.place / f"{self.name}.log"

    def manifest(self) -> dict[str, Any]:
        """The kubelet's own way to run it: the node's files at the same place in the container."""
        container: dict[str, Any] = {
            "name": self.program.name,
            "image": self.image,
            "command": [self.program.name, *self.flags],
            "volumeMounts": [{"name": "files", "mountPath": str(self.place)}],
        }
        if self.probe:
            container["livenessProbe"] = {"exec": {"command": list(self.probe)}}
        volume = {"name": "files", "hostPath": {"path": str(self.place), "type": "Directory"}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": "kube-system"},
            "spec": {"hostNetwork": True, "containers": [container], "volumes": [volume]},
        }

    def write_manifest(self, folder: Path) -> None:
        (folder / f"{self.name}.yaml").write_text(json.dumps(self.manifest(), indent=1) + "\n")

    def start(self) -> None:
        self.begin()
        self.wait()

    def begin(self) -> None:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.place), **self.env}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.place, start_new_session=True,
            )  # fmt: skip

    def _command(self) -> list[str | Path]:
        """No program of these stays as a parent: the pid is the program's own."""
        words = [self.program, *self.flags]
        if self.host is None:
            return words
        script = 'echo "$0" > /proc/sys/kernel/hostname; exec "$@"'
        return ["/usr/bin/unshare", "--uts", "/bin/sh", "-ec", script, self.host, *words]

    def wait(self) -> None:
        end = time.monotonic() + _START
        while not self.serves():
            self.check()
            assert time.monotonic() < end, f"{self.name} does not serve; its log says:\n{self.log_tail()}"
            time.sleep(0.2)

    def check(self) -> None:
        ended = self._process is None or self._process.poll() is not None
        assert not ended, f"{self.name} has ended; its log says:\n{self.log_tail()}"

    def signal(self, name: str) -> None:
        assert self._process
        os.kill(self._process.pid, signal.Signals[name])

    def stop(self) -> None:
        """Killed at last: an API server takes its leave for a minute."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1 if self.program.name == "kube-apiserver" else _STOP)
        process.kill()
        process.wait()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        try:
            self.start()
            yield
        finally:
            self.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else "(no log)"
