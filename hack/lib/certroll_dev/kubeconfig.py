"""kubeconfig files with everything inline, so that a copy works anywhere inside of the cluster's network."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from .layout import Cluster


def write(cluster: Cluster, path: Path, certificate: Path) -> Path:
    """For the holder of the client certificate, whose key lies beside it. JSON, which every reader of YAML reads too."""
    authority = {"certificate-authority-data": _inline(cluster.pki / "ca.crt")}
    identity = {
        "client-certificate-data": _inline(certificate),
        "client-key-data": _inline(certificate.with_suffix(".key")),
    }
    user = certificate.stem
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster.name, "cluster": {"server": cluster.server, **authority}}],
        "users": [{"name": user, "user": identity}],
        "contexts": [{"name": cluster.name, "context": {"cluster": cluster.name, "user": user}}],
        "current-context": cluster.name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(half, path)
    return path


def _inline(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
