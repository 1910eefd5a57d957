"""Pods that are asked for their certificates, and answer as servers.py does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from control_plane import ControlPlane

from .material import encoded, strange_key
from .tenant import Object, Tenant, Way, consumer

LABEL = "hostile"  # of these pods, and of no others
ADDRESS = "10.97.0.7"  # of the control plane's network, and not of loopback, where no pod is
_PROGRAM = Path(__file__).with_name("servers.py")
_PODS, _ENDPOINTS = 3, 8
_PROTOCOLS = {"a greeting of 16 MiB": "MySQL", "a yes without end": "PostgreSQL"}


@dataclass(frozen=True)
class Servers:
    """Their ports, by what they do."""

    handshakes: dict[str, int]
    pages: dict[str, int]


@contextmanager
def servers(plane: ControlPlane, folder: Path) -> Iterator[Servers]:
    """In the network of the control plane. `folder`: material.for_servers()."""
    plane.run("ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo")
    with plane.popen([sys.executable, _PROGRAM, ADDRESS, folder], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield Servers(*json.loads(process.stdout.readline()))
            assert process.poll() is None, "the servers have ended by themselves"
        finally:
            process.kill()


class Pods:
    def __init__(self, tenant: Tenant, good: Sequence[Object], servers: Servers) -> None:
        self._tenant, self._good, self._servers = tenant, good, servers
        self._pages = list(servers.pages.items())

    def prepare(self) -> None:
        self._tenant.secret("asked", self._good[0])
        self._tenant.secret("presented", {**self._good[0], **encoded({"tls.key": strange_key(8192)})})
        for at in range(len(self._pages)):
            self._run(f"asked-{at}")
            self._ask(at, 0)
        for name, port in (("told-zeros", self._servers.pages["zeros"]), ("told-slowly", self._servers.pages["a page byte by byte"])):
            self._run(name, {"name": "r", "image": "example.com/certroll-sidecar:1", "ports": [{"name": "certroll-reload", "containerPort": port}]})
            self._tenant.watch(name, "asked", target=name)

    def ways(self) -> list[Way]:
        return [Way(self.what_they_are_asked_for, 3), Way(self.other_endpoints, 1)]

    def said(self) -> list[str]:
        """Each is a way of its own."""
        return [*self._servers.handshakes, *self._servers.pages]

    def _run(self, name: str, *sidecars: Object) -> None:
        mounts = {"volumeMounts": [{"name": "tls", "mountPath": "/tls"}]}
        containers = [{**each, **mounts} for each in ({"name": "c", "image": "example.com/unknown:1"}, *sidecars)]
        volumes = [{"name": "tls", "secret": {"secretName": "asked"}}]
        self._tenant.deployment(name, {"containers": containers, "volumes": volumes}, replicas=_PODS, labels={LABEL: "asked"})

    def _ask(self, at: int, first: int) -> None:
        """Eight kinds of handshakes, from that one on, and a page."""
        kinds = list(self._servers.handshakes.items())
        chosen = [kinds[(first + number) % len(kinds)] for number in range(_ENDPOINTS)]
        endpoints = [{"port": port, "protocol": _PROTOCOLS.get(kind, "TLS")} for kind, port in chosen]
        page = {"port": self._pages[at][1]}
        verify = {"endpoints": endpoints, "certsPage": page, "clientSecretName": "presented", "timeout": "1h", "onTimeout": "Report"}
        watching = {role: {"method": "Watch"} for role in ("serverLeaf", "clientLeaf", "clientCA", "serverCA")}
        named = consumer(f"asked-{at}", reload=watching, verify=verify)
        self._tenant.policy(f"asked-{at}", {"secrets": [{"name": "asked"}], "consumers": [named], "restart": {"coalesce": "0s"}})

    def what_they_are_asked_for(self, turn: int) -> None:
        """Each change has all pods asked until they show it, which they never do."""
        self._tenant.merge("secrets", "asked", {"data": self._good[turn % len(self._good)]})

    def other_endpoints(self, turn: int) -> None:
        """What was seen belongs to an endpoint: others are asked from the beginning."""
        self._ask(turn % len(self._pages), turn)
