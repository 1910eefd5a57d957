"""The image of the node agent: the program, and nsenter, by which it restarts a kubelet in the host's namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .image_recipe import Image, Recipe, System
from .ui import DevError

REPOSITORY = "certroll.dev/node-agent"  # manifests/node-agent names it, too
_PROGRAM = "certroll-node-agent"
_NSENTER = "/usr/bin/nsenter"  # in a Debian and in the image


def cached(preset: str, program: Path | None = None) -> Image:
    return RECIPE.cached(preset, program)


def _files(program: Path, system: System) -> Mapping[str, Path]:
    nsenter = system.find(_NSENTER)
    if not nsenter:
        raise DevError(f"{_NSENTER} is not there: install util-linux, or run hack/deps")
    return {f"/usr/bin/{_PROGRAM}": program, _NSENTER: nsenter}


RECIPE = Recipe(REPOSITORY, _PROGRAM, "Rolls the certificates of a control plane's node", _files)
