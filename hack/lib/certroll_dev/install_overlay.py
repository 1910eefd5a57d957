"""The kustomization that installs the operator as asked: one of manifests/, with a few things set on top.

It is what a platform team would write for itself; nothing in it goes around the manifests.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import files, paths
from .operator_image import REPOSITORY
from .ui import DevError

MANIFESTS = paths.REPOSITORY / "manifests"
NAMESPACE = "certroll-system"
NAME = "certroll-operator"
_KUSTOMIZE = "kustomize.config.k8s.io/v1beta1"
_OPEN_METRICS = ("--metrics-bind-address=:8080", "--metrics-open")


@dataclass(frozen=True)
class Setup:
    """What to install. Without an overlay the operator has its rights, and watches, in `namespaces` only."""

    image: str  # with its tag
    overlay: str | None = None  # a folder of manifests/overlays
    namespaces: Sequence[str] = ()
    components: Sequence[str] = ()  # folders of manifests/components
    args: Sequence[str] = ()  # after those of the manifest
    env: Mapping[str, str] = field(default_factory=dict)
    replicas: int | None = None  # None: as the manifest says
    memory: str | None = None  # the limit; None: as the manifest says
    revision: str = ""  # another one makes other pods, though the image has the same tag
    open_metrics: bool = False  # at port 8080, by plain HTTP and for whoever asks


def write(folder: Path, setup: Setup) -> Path:
    """The kustomization for `setup`, in `folder`, which is emptied."""
    _check(setup)
    shutil.rmtree(folder, ignore_errors=True)
    base = MANIFESTS / "overlays" / setup.overlay if setup.overlay else MANIFESTS / "base"
    resources = [_relative(base, folder), *(_namespace(folder, name) for name in setup.namespaces)]
    repository, _, tag = setup.image.rpartition(":")
    _put(folder, {
        "kind": "Kustomization",
        "resources": resources,
        "components": [_relative(MANIFESTS / "components" / name, folder) for name in setup.components],
        "images": [{"name": REPOSITORY, "newName": repository, "newTag": tag}],
        "patches": [{"target": {"kind": "Deployment", "name": NAME}, "patch": json.dumps(_patch(setup))}],
    })
    return folder


def _check(setup: Setup) -> None:
    if setup.overlay and setup.namespaces:
        raise DevError(f"overlay {setup.overlay} says itself which namespaces are watched: give it or namespaces")
    if not setup.overlay and not setup.namespaces:
        raise DevError("say which namespaces the operator is to watch, or name an overlay")
    for kind, names in (("overlays", [setup.overlay] if setup.overlay else []), ("components", setup.components)):
        known = sorted(path.name for path in (MANIFESTS / kind).iterdir())
        for name in names:
            if name not in known:
                raise DevError(f"manifests/{kind} has no {name}; there are {', '.join(known)}")


def _namespace(folder: Path, name: str) -> str:
    """One watched namespace; a kustomization has but one namespace, so each has a folder."""
    inner = folder / name
    _put(inner, {"kind": "Kustomization", "namespace": name, "resources": [_relative(MANIFESTS / "namespace", inner)]})
    return name


def _patch(setup: Setup) -> list[dict[str, Any]]:
    """RFC 6902; the Deployment has one container, and `args` and `env` in it."""
    container = "/spec/template/spec/containers/0"
    arguments = [*(f"--namespace={name}" for name in setup.namespaces), *(_OPEN_METRICS if setup.open_metrics else ()), *setup.args]
    patch = [_add(f"{container}/args/-", argument) for argument in arguments]
    patch += [_add(f"{container}/env/-", {"name": key, "value": value}) for key, value in setup.env.items()]
    if setup.replicas is not None:
        patch.append(_add("/spec/replicas", setup.replicas))
    if setup.memory:
        patch.append(_add(f"{container}/resources/limits/memory", setup.memory))
    if setup.revision:
        patch.append(_add("/spec/template/metadata/annotations", {"certroll.dev/image-revision": setup.revision}))
    return patch


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _relative(target: Path, folder: Path) -> str:
    """kustomize refuses absolute paths."""
    return os.path.relpath(target, folder.resolve())


def _put(folder: Path, content: Mapping[str, Any]) -> None:
    files.put(folder / "kustomization.yaml", json.dumps({"apiVersion": _KUSTOMIZE, **content}, indent=1) + "\n")
