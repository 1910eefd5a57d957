"""kubeconfig files with everything inline, so that a copy works anywhere inside of the cluster's network."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from .layout import Cluster


_TEMPLATE = """\
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {user}
current-context: {name}
"""


def write(cluster: Cluster, path: Path, certificate: Path) -> Path:
    """For the holder of the client certificate, whose key lies beside it."""
    text = _TEMPLATE.format(
        name=cluster.name,
        server=cluster.server,
        authority=_inline(cluster.pki / "ca.crt"),
        user=certificate.stem,
        certificate=_inline(certificate),
        key=_inline(certificate.with_suffix(".key")),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(half, path)
    return path


def _inline(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
