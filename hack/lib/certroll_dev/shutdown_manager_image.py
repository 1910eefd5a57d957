"""The image of the shutdown manager: one static program, by the names of Contour's and Envoy Gateway's too, so that it takes
the place of either image under the same command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import elf
from .image_recipe import Image, Recipe, System
from .images import Source
from .ui import DevError

REPOSITORY = "certroll.dev/shutdown-manager"  # manifests/shutdown-manager names it, too
_PROGRAM = "certroll-shutdown-manager"
_PATH = f"/usr/bin/{_PROGRAM}"
_OTHER_NAMES = ("/bin/contour", "/usr/local/bin/envoy-gateway")


def cached() -> Image:
    return RECIPE.cached("release")


def _files(program: Path, _system: System) -> Mapping[str, Source]:
    if elf.needed(program):
        raise DevError(f"{program} is not linked statically: give the one of the preset release")
    return {_PATH: program, **dict.fromkeys(_OTHER_NAMES, _PATH)}


# Of the release build in any case: with sanitizers there is no static program, and it runs in others' containers.
RECIPE = Recipe(REPOSITORY, _PROGRAM, "Lets a proxy's connections end before its pod does", _files, sanitized=False)
