"""kubeconfig files with everything inline, so that a copy works anywhere inside of the cluster's network."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from . import files
from .layout import Cluster


def write(cluster: Cluster, path: Path, certificate: Path) -> Path:
    """For the client certificate, whose key lies beside it. In JSON, which every reader of YAML reads too."""
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
    return files.put(path, json.dumps(document, indent=1) + "\n", mode=0o600)


def _inline(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
