"""The image of the node agent: the program, and nsenter, by which it restarts a kubelet in the host's namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import commands, paths
from .image_recipe import Image, Recipe
from .ui import DevError

REPOSITORY = "certroll.dev/node-agent"  # manifests/node-agent names it, too
_PROGRAM = "certroll-node-agent"
_NSENTER = Path("/usr/bin/nsenter")  # here and in the image


def cached(preset: str, program: Path | None = None) -> Image:
    return RECIPE.cached(preset, program)


def _built(preset: str) -> Path:
    commands.show([paths.HACK / "build", "--preset", preset, _PROGRAM])
    return paths.REPOSITORY / "build" / preset / "bin" / _PROGRAM


def _files(program: Path) -> Mapping[str, Path]:
    if not _NSENTER.is_file():
        raise DevError(f"{_NSENTER} is not there: install util-linux, or run hack/deps")
    return {f"/usr/bin/{_PROGRAM}": program, _NSENTER.as_posix(): _NSENTER}


RECIPE = Recipe(REPOSITORY, _PROGRAM, _files, _built)
