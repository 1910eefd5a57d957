"""Two generations of a CA, and leaves of them for servers and for clients of the cluster's programs.

Everybody trusts the first. A bundle of both is what the first step of a CA's rotation writes: whoever has read it again
takes a leaf of the second.
"""

from __future__ import annotations

import hashlib
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from certroll_dev import commands
from certroll_dev.demo import pki
from certroll_dev.demo.pki import Authority

# Whoever presents a leaf of this organization may do everything (system:masters is bound to cluster-admin).
MASTERS = "system:masters"


@dataclass(frozen=True)
class Leaf:
    """A certificate with its key, PEM encoded."""

    certificate: bytes
    key: bytes

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.certificate.decode())).hexdigest()

    @property
    def both(self) -> bytes:
        return self.certificate + self.key


class Authorities:
    """The old CA and the new one."""

    def __init__(self) -> None:
        self.old, self.new = pki.new_authority(1), pki.new_authority(2)

    @property
    def bundle(self) -> bytes:
        return self.old.certificate + self.new.certificate

    def server(self, *names: str, new: bool = False) -> Leaf:
        """For these names and addresses, and for this node by all that it is called."""
        return issue(self.new if new else self.old, "server", names=[*_HERE, *names])

    def client(self, name: str, organization: str = MASTERS, *, new: bool = False) -> Leaf:
        return issue(self.new if new else self.old, name, organization=organization)


_HERE = ("DNS:localhost", "IP:127.0.0.1", "IP:192.168.96.1", "DNS:kubernetes.default.svc", "DNS:node-1")


def issue(authority: Authority, common_name: str, *, organization: str = "certroll", names: Sequence[str] = ()) -> Leaf:
    """A leaf for a client and, with names, a server: with a new key."""
    key = pki.new_key()
    lines = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature"]
    lines += ["extendedKeyUsage=clientAuth" + (",serverAuth" if names else "")]
    lines += ["authorityKeyIdentifier=keyid:always"]
    if names:
        lines += ["subjectAltName=" + ",".join(names)]
    with tempfile.TemporaryDirectory(prefix="certroll-rows-") as scratch:
        at = Path(scratch)
        for name, content in {"key": key, "ca": authority.certificate, "ca.key": authority.key}.items():
            (at / name).write_bytes(content)
        (at / "extensions").write_text("\n".join(lines) + "\n")
        request = commands.run(["openssl", "req", "-new", "-key", at / "key", "-subj", f"/O={organization}/CN={common_name}"])
        certificate = commands.run(
            ["openssl", "x509", "-req", "-CA", at / "ca", "-CAkey", at / "ca.key", "-days", "30", "-extfile", at / "extensions"]
            + ["-set_serial", f"0x{secrets.token_hex(16)}"],
            stdin=request,
        )
    return Leaf(certificate.encode(), key)
