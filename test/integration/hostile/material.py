"""Keys and certificates that cost who reads them."""

from __future__ import annotations

import base64
import secrets
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Object = dict[str, Any]

CHAIN, CROSSED = 10, 90  # beyond what limits.md allows above a leaf


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def encoded(content: dict[str, bytes]) -> Object:
    """As a Secret's data."""
    return {name: base64.b64encode(value).decode() for name, value in content.items()}


def crossed(folder: Path) -> Object:
    """A leaf whose intermediate many CAs have signed, all with one key of P-521."""
    folder.mkdir()
    key = str(folder / "key")
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521", "-out", key)
    (folder / "ca.ext").write_text("basicConstraints=critical,CA:TRUE")

    def issue(pair: tuple[str, str]) -> bytes:
        name, issuer = pair
        mine = folder / f"{name}-{issuer}"
        _openssl("req", "-x509", "-key", key, "-subj", f"/CN={issuer}", "-days", "9", "-out", str(folder / f"{issuer}.ca"))
        extension = [] if name == "leaf" else ["-extfile", str(folder / "ca.ext")]
        _openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", f"{mine}.csr")
        _openssl("x509", "-req", "-in", f"{mine}.csr", "-CA", str(folder / f"{issuer}.ca"), "-CAkey", key, "-days", "9", "-out", f"{mine}.crt", *extension)
        return Path(f"{mine}.crt").read_bytes()

    above = [(f"i{at}", f"i{at + 1}") for at in range(CHAIN)] + [(f"i{CHAIN}", f"x{at}") for at in range(CROSSED)]
    with ThreadPoolExecutor(4) as pool:
        leaf, *others = pool.map(issue, [("leaf", "i0"), *above])
    return encoded({"tls.crt": leaf, "tls.key": Path(key).read_bytes(), "ca.crt": b"".join(others)})


# --- DER (X.690), of numbers that nobody has found to be primes


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x80 | (size.bit_length() + 7) // 8]) + size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + length + content


def _numbers(*numbers: int) -> bytes:
    """A SEQUENCE of INTEGERs."""
    return _element(0x30, b"".join(_element(2, number.to_bytes(number.bit_length() // 8 + 1, "big")) for number in numbers))


def _pem(kind: str, der: bytes) -> bytes:
    return f"-----BEGIN {kind}-----\n".encode() + base64.encodebytes(der) + f"-----END {kind}-----\n".encode()


def _odd(bits: int) -> int:
    return secrets.randbits(bits) | 1 << (bits - 1) | 1


def strange_key(bits: int) -> bytes:
    """As PKCS #1 (RFC 8017, appendix A.1.2): sizes are right, and nothing else."""
    halves = [_odd(bits // 2) for _ in range(5)]
    return _pem("RSA PRIVATE KEY", _numbers(0, _odd(bits), 65537, _odd(bits), *halves))


def for_servers(folder: Path, leaf: bytes) -> None:
    """What servers.py reads. `leaf`: a certificate whose key the servers do not have."""
    folder.mkdir()
    key = str(folder / "server.key")
    _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key)
    _openssl("req", "-x509", "-key", key, "-subj", "/CN=hostile", "-days", "9", "-out", str(folder / "server.crt"))
    (folder / "server.pem").write_bytes(Path(key).read_bytes() + (folder / "server.crt").read_bytes())
    (folder / "dhe.pem").write_bytes(_pem("DH PARAMETERS", _numbers(_odd(8192), 2)))
    (folder / "public").write_bytes(_pem("RSA PUBLIC KEY", _numbers(_odd(16384), 65537)))
    _openssl("req", "-new", "-key", key, "-subj", "/CN=strange", "-out", str(folder / "csr"))
    made = ["-CA", str(folder / "server.crt"), "-CAkey", key, "-force_pubkey", str(folder / "public"), "-days", "9"]
    _openssl("x509", "-req", "-in", str(folder / "csr"), *made, "-outform", "DER", "-out", str(folder / "strange.der"))
    (folder / "foreign.crt").write_bytes(leaf)
    _openssl("x509", "-in", str(folder / "foreign.crt"), "-outform", "DER", "-out", str(folder / "foreign.der"))


def bundle(folder: Path, certificates: int) -> list[bytes]:
    """So many CAs, each a PEM: of one key, with names of their own."""
    folder.mkdir()
    key = str(folder / "key")
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)

    def issue(number: int) -> bytes:
        words = ["-key", key, "-subj", f"/CN=crowd-{number}", "-days", "9"]
        return subprocess.run(["openssl", "req", "-x509", *words], check=True, capture_output=True).stdout

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(issue, range(certificates)))
