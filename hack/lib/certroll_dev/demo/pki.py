"""A small PKI on the openssl command line: authorities in generations, and leaves for the demo's Services."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from certroll_dev.ui import DevError

NAMESPACE = "certroll-demo"


class PKIError(DevError):
    """openssl refused; the text is what it said."""


@dataclass(frozen=True)
class Material:
    """What a kubernetes.io/tls Secret carries, PEM encoded."""

    certificate: bytes
    key: bytes = field(repr=False)  # not into tracebacks and reports
    trust: bytes

    def secret(self, name: str, namespace: str = NAMESPACE) -> dict[str, object]:
        data = {"tls.crt": self.certificate, "tls.key": self.key, "ca.crt": self.trust}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }

    def fingerprint(self) -> str:
        """SHA-256 of the leaf's DER, in hexadecimal: what a handshake shows."""
        der = _openssl(["x509", "-outform", "DER"], stdin=self.certificate)
        return hashlib.sha256(der).hexdigest()


@dataclass(frozen=True)
class Authority:
    """One generation of a CA. Each has a subject of its own: with two of one name, verifiers may try only the first."""

    generation: int
    certificate: bytes
    key: bytes = field(repr=False)

    def serial(self) -> str:
        return serial(self.certificate)

    def issue(self, service: str, *, key: bytes | None = None, days: int = 90, namespace: str = NAMESPACE) -> Material:
        """A leaf for a Service, good as server and as client, with a new key unless one is given."""
        key = key or new_key()
        names = [service, f"{service}.{namespace}", f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"]
        extensions = "\n".join([
            "basicConstraints=critical,CA:FALSE",
            "keyUsage=critical,digitalSignature",
            "extendedKeyUsage=serverAuth,clientAuth",
            "subjectAltName=" + ",".join(f"DNS:{name}" for name in names),
            "subjectKeyIdentifier=hash",
            # With the key's identifier, a verifier finds the right one of several CAs.
            "authorityKeyIdentifier=keyid:always",
        ])
        with tempfile.TemporaryDirectory(prefix="certroll-pki-") as scratch:
            at = _Files(Path(scratch))
            at.write(key=key, ca=self.certificate, ca_key=self.key, extensions=extensions.encode())
            request = _openssl(["req", "-new", "-key", at["key"], "-subj", f"/O=certroll demo/CN={service}"])
            certificate = _openssl([
                "x509", "-req", "-CA", at["ca"], "-CAkey", at["ca_key"], "-set_serial", _serial(),
                "-days", str(days), "-extfile", at["extensions"],
            ], stdin=request)
        return Material(certificate, key, self.certificate)


    def cross_sign(self, other: Authority) -> bytes:
        """A certificate of the other one's name and key, by this one."""
        extensions = "\n".join([
            "basicConstraints=critical,CA:TRUE",
            "keyUsage=critical,keyCertSign,cRLSign",
            "subjectKeyIdentifier=hash",
            "authorityKeyIdentifier=keyid:always",
        ])
        with tempfile.TemporaryDirectory(prefix="certroll-pki-") as scratch:
            at = _Files(Path(scratch))
            at.write(key=other.key, own=other.certificate, ca=self.certificate, ca_key=self.key, extensions=extensions.encode())
            request = _openssl(["x509", "-x509toreq", "-in", at["own"], "-key", at["key"]])
            return _openssl([
                "x509", "-req", "-CA", at["ca"], "-CAkey", at["ca_key"], "-set_serial", _serial(),
                "-days", "1800", "-extfile", at["extensions"],
            ], stdin=request)


def serial(certificate: bytes) -> str:
    """In lower-case hexadecimal, without leading zeros."""
    text = _openssl(["x509", "-noout", "-serial"], stdin=certificate).decode()
    return text.strip().removeprefix("serial=").lower().lstrip("0")


def certificates(bundle: bytes) -> list[bytes]:
    """The certificates of a PEM text, each by itself."""
    return re.findall(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", bundle, re.DOTALL)


def save(authority: Authority, folder: Path) -> None:
    """For a later run; the key is for its owner's eyes only."""
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / f"ca-{authority.generation}.key"
    key.touch(mode=0o600)
    key.write_bytes(authority.key)
    key.with_suffix(".crt").write_bytes(authority.certificate)


def load(folder: Path) -> list[Authority]:
    """Those that were saved there, the oldest first."""
    keys = {int(key.stem.removeprefix("ca-")): key for key in folder.glob("ca-*.key")}
    return [Authority(n, key.with_suffix(".crt").read_bytes(), key.read_bytes()) for n, key in sorted(keys.items())]


def new_authority(generation: int, *, days: int = 3650) -> Authority:
    key = new_key()
    with tempfile.TemporaryDirectory(prefix="certroll-pki-") as scratch:
        at = _Files(Path(scratch))
        at.write(key=key)
        certificate = _openssl([
            "req", "-x509", "-new", "-key", at["key"], "-days", str(days), "-set_serial", _serial(),
            "-subj", f"/O=certroll demo/CN=certroll demo CA {generation}",
            "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        ])
    return Authority(generation, certificate, key)


def new_key() -> bytes:
    """ECDSA P-256: every TLS library at hand takes it (BoringSSL, so Envoy, refuses Ed25519)."""
    return _openssl(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])


class _Files:
    """Inputs that openssl reads only from files; the folder is readable by its owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, **contents: bytes) -> None:
        for name, content in contents.items():
            (self._folder / name).write_bytes(content)

    def __getitem__(self, name: str) -> str:
        return str(self._folder / name)


def _serial() -> str:
    return f"0x{secrets.randbits(127) | 1 << 126:x}"


def _openssl(arguments: list[str], stdin: bytes = b"") -> bytes:
    done = subprocess.run(["openssl", *arguments], input=stdin, capture_output=True)
    if done.returncode != 0:
        raise PKIError(f"openssl {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
