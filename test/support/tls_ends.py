"""TLS on both sides of a program that stands between a client and the API server."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def self_signed(folder: Path, name: str, address: str) -> Path:
    """A server's certificate, its own authority, as `name`.crt; the key lies beside it."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    os.close(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", f"/CN=certroll-{name}", "-addext", f"subjectAltName=IP:{address}"]
        + ["-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate


def server_context(certificate: Path, protocols: Sequence[str]) -> ssl.SSLContext:
    """With the key that lies beside the certificate. A client that offers another protocol as well falls back to these."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    context.set_alpn_protocols(list(protocols))
    return context


def client_context(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    """As a kubeconfig's cluster and user have it; a token goes before a certificate."""
    context = ssl.create_default_context(cadata=_text(cluster, "certificate-authority"))
    certificate, key = _text(user, "client-certificate"), _text(user, "client-key")
    if certificate and key and not user.get("token"):
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # mode 0600; ssl reads keys only from files
            file.write(f"{certificate}\n{key}")
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    """A PEM that a kubeconfig holds inline (…-data) or by path."""
    if f"{name}-data" in fields:
        return base64.b64decode(fields[f"{name}-data"]).decode()
    return Path(fields[name]).read_text() if name in fields else None
