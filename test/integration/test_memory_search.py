"""What a debugger finds of private keys in the operator's memory, some seconds after a rotation: nothing.

The release build: a sanitizer keeps what was freed."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import RULES, Operator, account

PROGRAM = Path(os.environ.get("CERTROLL_BUILDS", ROOT / "build")) / "release" / "bin" / "certroll-operator"
SECRETS = 6
SETTLED = 5.0  # seconds after the last change
_SECRET = ("privateExponent", "prime1", "prime2", "exponent1", "exponent2", "coefficient", "priv")  # as openssl calls them
_PAGE = 64 * 1024
PIECES = 6  # that are looked for
PIECE = 24  # bytes: no chance finds so many


@dataclass(frozen=True)
class Key:
    name: str
    certificate: str  # PEM, as the key
    key: str
    numbers: dict[str, int]

    def needles(self) -> dict[str, bytes]:
        """By what they are of."""
        pem = self.key.encode()
        # Without what is public: in an RSA key the first third, in an EC key the second half.
        secret = pem[len(pem) // 3 :] if len(pem) > 1000 else pem[: len(pem) // 2]
        found = {"PEM": secret}
        for shift in range(3):
            encoded = base64.b64encode(secret[shift:])
            found[f"base64 of the API, {shift}"] = encoded[4:-4]
        for name, number in self.numbers.items():
            length = (number.bit_length() + 7) // 8
            found[f"{name}, big end first"] = number.to_bytes(length, "big")
            found[f"{name}, little end first"] = number.to_bytes(length, "little")
        return found


def _openssl(*words: str, given: str = "") -> str:
    return subprocess.run(["openssl", *words], input=given, capture_output=True, text=True, check=True).stdout


def _new_key(number: int) -> Key:
    kind = ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if number % 2 == 0 else ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    key = _openssl("genpkey", "-algorithm", *kind)
    certificate = _openssl("req", "-x509", "-new", "-key", "/dev/stdin", "-subj", f"/CN=memory-{number}", "-days", "2", given=key)
    # "prime1:", and below it lines of "    00:c3:5a:...".
    parts = re.findall(r"^(\w+):\n((?:\s+[0-9a-f:]+\n)+)", _openssl("pkey", "-noout", "-text", given=key), re.MULTILINE)
    numbers = {name: int("".join(text.split()).replace(":", ""), 16) for name, text in parts if name in _SECRET}
    assert numbers
    return Key(f"tls-{number}", certificate, key, numbers)


class Memory:
    """All that a process can write to, at one moment."""

    def __init__(self, pid: int) -> None:
        regions = []
        with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for line in maps:
                span, rights = line.split()[:2]
                if "w" not in rights or "[vvar" in line or "[vsyscall" in line:
                    continue
                begin, end = (int(each, 16) for each in span.split("-"))
                regions += [page for page in _pages(memory, begin, end) if page.strip(b"\0")]
        self.bytes = b"".join(regions)

    def pieces_of(self, needle: bytes) -> list[int]:
        """Where pieces of it begin, in the needle; each is of PIECE bytes. Some are looked for, over all of it."""
        last = max(0, len(needle) - PIECE)
        starts = sorted({last * number // PIECES for number in range(1, PIECES)})
        return [at for at in starts if needle[at : at + PIECE] in self.bytes]


def _pages(memory: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    """Those that are there."""
    for at in range(begin, end, _PAGE):
        try:
            yield os.pread(memory.fileno(), _PAGE, at)
        except OSError:
            continue


@pytest.fixture
def operator(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
    kubeconfig = account(control_plane, namespace, "operator", RULES, tmp_path)
    running = Operator(
        control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}",
        program=PROGRAM, extra_environment={"GLIBC_TUNABLES": "glibc.malloc.tcache_max=128"},
    )  # fmt: skip
    try:
        running.wait_line("all caches are in sync")
        yield running
    finally:
        running.end()


def _write(plane: ControlPlane, namespace: str, key: Key) -> None:
    data = {"tls.crt": base64.b64encode(key.certificate.encode()).decode(), "tls.key": base64.b64encode(key.key.encode()).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": key.name, "namespace": namespace}, "type": "kubernetes.io/tls"}
    plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps({**secret, "data": data}))


def _is_read(plane: ControlPlane, namespace: str) -> bool:
    """All Secrets, as they are now."""
    status = plane.get("certrotationpolicy", "p", "-n", namespace).get("status", {})
    seen = {each["name"]: each.get("observedResourceVersion") for each in status.get("secrets", [])}
    return seen == {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in plane.get("secrets", "-n", namespace)["items"]}


def test_no_key_is_found_some_seconds_after_a_rotation(control_plane: ControlPlane, namespace: str, operator: Operator) -> None:
    old, new = [[_new_key(number) for number in range(SECRETS)] for _ in range(2)]
    for key in old:
        _write(control_plane, namespace, key)
    names = [{"name": key.name} for key in old]
    consumers = [{"name": "web", "targetRef": {"kind": "Deployment", "name": "web"}}]
    control_plane.create({
        "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": {"name": "p", "namespace": namespace},
        "spec": {"secrets": names, "consumers": consumers},
    })  # fmt: skip
    for keys in (old, new):
        for key in keys:
            _write(control_plane, namespace, key)
        wait_until("the Secrets to be read", lambda: _is_read(control_plane, namespace), 60)
    # What is read must be findable, or the search proves nothing: this process has the keys.
    own = Memory(os.getpid())
    assert all(own.pieces_of(key.needles()["PEM"]) for key in new)
    time.sleep(SETTLED)  # the time that is promised
    memory = Memory(operator.process.pid)
    assert namespace.encode() in memory.bytes
    found = [
        f"{'new' if key in new else 'old'} {key.name}, {what}: {len(pieces)} pieces of {PIECE} bytes"
        for key in (*old, *new)
        for what, needle in key.needles().items()
        if (pieces := memory.pieces_of(needle))
    ]
    assert not found, "\n".join(found)
