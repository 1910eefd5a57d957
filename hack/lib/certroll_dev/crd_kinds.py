"""The manifests of TrustDomain and ClusterTrustDomain are one text, crds/trustdomains.yaml.in: two kinds, one schema.

Lines between "#if <kind>" and the next "#if" or "#end" are of that kind alone.
"""

from __future__ import annotations

from pathlib import Path

from .ui import DevError

SOURCE = Path("crds/trustdomains.yaml.in")
_KINDS = ("namespaced", "cluster")


def namespaced(_: str, root: Path) -> str:
    return _of("namespaced", (root / SOURCE).read_text())


def cluster(_: str, root: Path) -> str:
    return _of("cluster", (root / SOURCE).read_text())


def _of(kind: str, source: str) -> str:
    lines = [f"# Made by hack/docs crds from {SOURCE.name}: change that one."]
    only = kind
    for line in source.splitlines():
        word, _, name = line.partition(" ")
        if word == "#if":
            only = _known(name)
        elif word == "#end":
            only = kind
        elif only == kind:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _known(name: str) -> str:
    if name not in _KINDS:
        raise DevError(f"{SOURCE}: '#if {name}': only {' and '.join(_KINDS)} are known")
    return name
