"""certgen as a program beside the control plane, and its Secrets as others see them."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sanitizers
from control_plane import ROOT, ControlPlane

PROGRAM = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")) / "bin" / "certroll-certgen"
BEGIN = "-----BEGIN CERTIFICATE-----"

Object = dict[str, Any]
Data = Mapping[str, bytes]


@dataclass
class Certgen:
    """Runs it in a namespace; by default as the administrator."""

    plane: ControlPlane
    namespace: str
    flags: tuple[str, ...]
    kubeconfig: Path | None = None

    def words(self, *further: str) -> list[str]:
        where = ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []
        return self.plane.command([PROGRAM, "--namespace", self.namespace, *where, *self.flags, *further])

    def environment(self) -> dict[str, str]:
        return {**self.plane.environment(), **sanitizers.ENVIRONMENT}

    def run(self, *further: str, status: int = 0) -> str:
        """What it said."""
        done = subprocess.run(self.words(*further), env=self.environment(), capture_output=True, text=True, timeout=300)
        assert done.returncode == status, f"{further}: status {done.returncode}\n{done.stderr}"
        return done.stderr

    def start(self, log: Path, *further: str) -> subprocess.Popen[bytes]:
        with log.open("w") as file:
            return subprocess.Popen(self.words(*further), env=self.environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def secrets(self) -> dict[str, Object]:
        items = self.plane.get("secrets", "-n", self.namespace)["items"]
        return {each["metadata"]["name"]: each for each in items}

    def data(self) -> dict[str, Data]:
        return {name: data_of(each) for name, each in self.secrets().items() if not name.startswith("certroll-staging-")}


def data_of(secret: Object) -> Data:
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def certificates(bundle: bytes) -> list[str]:
    return [BEGIN + part for part in bundle.decode().split(BEGIN)[1:]]


def untrusted(secrets: Mapping[str, Data], folder: Path) -> list[str]:
    """Which leaf is refused by which bundle, by OpenSSL's own program; each is a server's and a client's."""
    wrong = []
    leaves = {name: data for name, data in secrets.items() if "tls.crt" in data}
    for presents, verifies in itertools.product(leaves, leaves):
        leaf, bundle = folder / "leaf.pem", folder / "bundle.pem"
        leaf.write_bytes(leaves[presents]["tls.crt"])
        bundle.write_bytes(leaves[verifies]["ca.crt"])
        for purpose in ("sslserver", "sslclient"):
            words = ["openssl", "verify", "-x509_strict", "-no-CApath", "-no-CAstore", "-purpose", purpose, "-CAfile", bundle, leaf]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                wrong.append(f"{presents} against {verifies}: {done.stderr.strip()}")
    return wrong


@dataclass(frozen=True)
class Facts:
    """What two jobs must have in common, whatever the namespace."""

    type: str
    keys: frozenset[str]
    labels: Mapping[str, str] = field(default_factory=dict)
    leaf: str = ""

    @staticmethod
    def of(secret: Object, namespace: str) -> Facts:
        data = data_of(secret)
        leaf = _described(data["tls.crt"]).replace(namespace, "NAMESPACE") if "tls.crt" in data else ""
        return Facts(secret["type"], frozenset(data), secret["metadata"].get("labels", {}), leaf)


def _described(certificate: bytes) -> str:
    words = ["openssl", "x509", "-noout", "-subject", "-ext", "subjectAltName"]
    described = subprocess.run(words, input=certificate, capture_output=True, check=True).stdout.decode()
    words = ["openssl", "x509", "-noout", "-text"]
    text = subprocess.run(words, input=certificate, capture_output=True, check=True).stdout.decode()
    key = next(line.strip() for line in text.splitlines() if "Public-Key:" in line)
    ends = text.split("Not After :")[1].splitlines()[0].split()[3]  # its year
    return f"{described}{key}\n{ends}"


def write_set(folder: Path, document: Object) -> Path:
    path = folder / "set.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    return path
