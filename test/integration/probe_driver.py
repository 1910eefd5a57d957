"""The drivers over the TLS probe and over the page of certificates (drivers/probe_driver.c, page_driver.c)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from control_plane import ROOT, ControlPlane

_PROGRAMS = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")) / "test"
PROGRAM = _PROGRAMS / "probe_driver"


@dataclass(frozen=True)
class Probe:
    results: list[dict[str, Any]]  # by address
    cost: dict[str, int]

    @property
    def one(self) -> dict[str, Any]:
        (result,) = self.results
        return result


def probe(
    plane: ControlPlane, protocol: str, port: int, *addresses: str, limits: tuple[str, ...] = (), **options: Any
) -> Probe:
    """In the network of the control plane. `limits` are words for prlimit."""
    words = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    prefix = ["prlimit", *limits] if limits else []
    done = plane.run(*prefix, PROGRAM, *words, protocol, str(port), *(addresses or ("127.0.0.1",)))
    *results, cost = (json.loads(line) for line in done.stdout.splitlines())
    return Probe(results, cost)


def canary(plane: ControlPlane, expected: str, port: int, client: Path, *addresses: str, protocol: str = "TLS") -> Any:
    """What is found of a server's trust by this canary. "unknown" means: ask again, which is done while something else is expected."""
    for _ in range(10):
        seen = probe(plane, protocol, port, *addresses, canary=client, timeout=20_000).one
        if seen["canary"] in (expected, "trusted", "untrusted", "not asked"):
            break
    return seen


def page(plane: ControlPlane, port: int, address: str = "127.0.0.1", path: str = "/certs") -> Any:
    """What Envoy's page says, in the network of the control plane."""
    return json.loads(plane.run(_PROGRAMS / "page_driver", address, str(port), path).stdout)
