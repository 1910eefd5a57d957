"""Generations of material: each has a CA of its own, and nothing of one is accepted by who trusts another."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from certroll_dev.demo import pki
from certroll_dev.demo.pki import Authority, Material


@dataclass(frozen=True)
class Identity:
    """A leaf as the ssl module wants it: in a file, key and certificate."""

    file: Path
    fingerprint: str

    @staticmethod
    def save(material: Material, file: Path) -> Identity:
        file.touch(mode=0o600)
        file.write_bytes(material.key + material.certificate)
        return Identity(file, material.fingerprint())


@dataclass(frozen=True)
class Generation:
    number: int
    authority: Authority
    program: Material  # what the Secret holds
    program_leaf: str  # its fingerprint
    client: Identity  # of a client that calls the program
    peer: Identity  # of a server that the program calls; its name is "peer"

    def secret(self) -> Mapping[str, bytes]:
        return {"tls.crt": self.program.certificate, "tls.key": self.program.key, "ca.crt": self.program.trust}


class Generations:
    """Made when they are asked for, and then the same for everybody. Usable from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._made: list[Generation] = []

    def __getitem__(self, number: int) -> Generation:
        with self._lock:
            while len(self._made) <= number:
                self._made.append(self._make(len(self._made)))
            return self._made[number]

    def trust(self) -> str:
        """The CAs of all generations so far, PEM encoded."""
        with self._lock:
            return "".join(each.authority.certificate.decode() for each in self._made)

    def _make(self, number: int) -> Generation:
        authority = pki.new_authority(number)
        program = authority.issue("program")
        client, peer = (
            Identity.save(authority.issue(name), self._folder / f"{name}-{number}.pem") for name in ("client", "peer")
        )
        return Generation(number, authority, program, program.fingerprint(), client, peer)
