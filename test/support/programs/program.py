"""What a program under test is made of."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from programs.handshake import Server
from programs.sandbox import Sandbox

SECRET = "program-tls"
CERTS = "/certs"
CONFIG = "/etc/program"

_START = 60.0  # seconds

Roles = frozenset[str]
SERVES: Roles = frozenset({"serverLeaf", "clientCA"})
CALLS: Roles = frozenset({"clientLeaf", "serverCA"})


def _nothing(_: Sandbox) -> None:
    pass


@dataclass(frozen=True)
class Program:
    """A pod template of one container, its configuration, and where its TLS can be seen."""

    name: str
    image: str  # as it is in a registry, with the version that really runs
    command: Sequence[str]
    server: Server
    roles: Roles  # those that it plays here and that can be seen
    config: Mapping[str, str] = field(default_factory=dict)  # files of a ConfigMap
    config_at: Sequence[str] = (CONFIG,)  # where it is mounted
    usr: Path | None = None
    programs: Mapping[str, Path] = field(default_factory=dict)
    prepare: Callable[[Sandbox], object] = _nothing  # once, before the first start
    provoke: Callable[[], bool] = lambda: True  # makes it call our peer; by default it does so by itself
    peer_port: int | None = None
    # Executes a trigger of the catalogue that is no signal; raises for what it does not understand.
    commands: Callable[[Sandbox, str], None] | None = None

    def pod(self) -> dict[str, Any]:
        mounts = [("certs", CERTS), *(("config", path) for path in self.config_at)]
        container = {
            "name": self.name,
            "image": self.image,
            "command": list(self.command),
            "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in mounts],
        }
        volumes = [
            {"name": "certs", "secret": {"secretName": SECRET, "defaultMode": 0o640}},
            {"name": "config", "configMap": {"name": "program"}},
        ]
        return {"containers": [container], "volumes": volumes, "securityContext": {"fsGroup": 65532}}

    @contextlib.contextmanager
    def running(self, folder: Path, secret: Mapping[str, bytes]) -> Iterator[Sandbox]:
        """Started in the network of this thread, with these files, and shown to answer by a handshake."""
        sandbox = Sandbox(folder, self.pod(), configs={"program": self.config}, usr=self.usr, programs=self.programs)
        try:
            sandbox.write_secret(SECRET, secret)
            self.prepare(sandbox)
            sandbox.start()
            self._wait_answers(sandbox)
            yield sandbox
        finally:
            sandbox.remove()

    def _wait_answers(self, sandbox: Sandbox) -> None:
        end = time.monotonic() + _START
        while self.server.leaf() is None:
            sandbox.check()
            if time.monotonic() > end:
                raise AssertionError(f"{self.name} does not answer; its log says:\n{sandbox.log_tail()}")
            time.sleep(0.1)
