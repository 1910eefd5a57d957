"""kubeconfig files: with everything inline, so that a copy works anywhere in the cluster's network, or by files' names."""

from __future__ import annotations

import base64
import json
import re
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


def with_files(server: str, user: str, authority: Path | str, certificate: str, key: str) -> str:
    """In YAML, as kubeadm writes it. The authority is inline when it is a Path, and a file's name when it is text."""
    inline = isinstance(authority, Path)
    value = _inline(authority) if isinstance(authority, Path) else authority
    return f"""\
apiVersion: v1
clusters:
- cluster:
    certificate-authority{"-data" if inline else ""}: {value}
    server: {server}
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: {user}
  name: {user}@kubernetes
current-context: {user}@kubernetes
kind: Config
users:
- name: {user}
  user:
    client-certificate: {certificate}
    client-key: {key}
"""


def move_into_files(path: Path, pair: Path, pair_inside: str, authority_inside: str) -> None:
    """Of one that kubeadm wrote: certificate and key into `pair`.crt and .key, and their names in the place of them.

    By line: each value stands on one, and there is no YAML in Python's library.
    """
    text = path.read_text()
    for field, suffix in (("client-certificate", ".crt"), ("client-key", ".key")):
        match = re.search(rf"{field}-data: (\S+)", text)
        if match is None:
            continue  # an `up` was killed after the file was written
        data = base64.b64decode(match[1]).decode()
        files.put(pair.with_name(pair.name + suffix), data, mode=0o600)
        text = text.replace(match[0], f"{field}: {pair_inside}{suffix}")
    text = re.sub(r"certificate-authority-data: \S+", f"certificate-authority: {authority_inside}", text)
    files.put(path, text, mode=0o600)


def _inline(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
