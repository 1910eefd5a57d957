"""Real servers in the network of the control plane, for probes of them."""

from __future__ import annotations

import dataclasses
import hashlib
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from control_plane import ROOT, ControlPlane

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev import namespaces  # noqa: E402
from programs.material import Generations, Identity  # noqa: E402
from programs.program import Program  # noqa: E402
from programs.sandbox import Sandbox  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Running:
    sandbox: Sandbox
    port: int
    leaf: str
    good: Identity
    bad: Identity
    name: str  # of its CA: SHA-256 of the subject's DER


def subject_digest(certificate: bytes) -> str:
    """SHA-256 of the subject's DER (RFC 5280, section 4.1): the sixth field of what was signed."""
    der = ssl.PEM_cert_to_DER_cert(certificate.decode())

    def element(at: int) -> tuple[int, int]:
        """Where its content begins, and where it ends."""
        size, content = der[at + 1], at + 2
        if size & 0x80:
            content += size & 0x7F
            size = int.from_bytes(der[at + 2 : content], "big")
        return content, content + size

    at, _ = element(element(0)[0])
    for _ in range(5):  # version, serial number, algorithm, issuer, validity
        _, at = element(at)
    return hashlib.sha256(der[at : element(at)[1]]).hexdigest()


@contextmanager
def run(plane: ControlPlane, program: Program, generations: Generations, folder: Path) -> Iterator[Running]:
    """In the network of the control plane, which only the thread that starts it is in."""
    running = program.running(folder, generations[1].secret())
    sandbox = namespaces.in_network(Path("/run/netns") / plane.netns, running.__enter__)
    try:
        name = subject_digest(generations[1].authority.certificate)
        yield Running(sandbox, program.server.port, generations[1].program_leaf, generations[1].client, generations[2].client, name)
    finally:
        running.__exit__(None, None, None)
