"""The operator's image: the operator, the programs of Jobs and sidecars, and time zones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from . import archives
from .image_recipe import PRESETS, Image, Recipe, System
from .ui import DevError

__all__ = ["PRESETS", "RECIPE", "REPOSITORY", "Image", "built", "cached", "given"]

REPOSITORY = "certroll.dev/operator"  # manifests/base names it, too
_PROGRAM = "certroll-operator"
_BESIDE = ("certroll-certgen", "certroll-sidecar")  # in the operator's folder, here and in the image: of Jobs, of sidecars
_ZONES = "/usr/share/zoneinfo"  # in a Debian and in the image


def cached(preset: str, program: Path | None = None) -> Image:
    """The operator's image of the program (default: that of hack/build), from the cache if nothing in it has changed."""
    return RECIPE.cached(preset, program)


def given(archive: Path) -> Image:
    """The operator's image in an archive from elsewhere, under the name that it has there."""
    reference = archives.reference(archive)
    return Image(reference, archive, sanitized=reference.endswith(tuple(f"-{preset}" for preset in PRESETS if preset != "release")))


def built(preset: str) -> Path:
    """The operator, after hack/build, which shows its own progress; those beside it are built, too."""
    return RECIPE.built(preset)


def _files(program: Path, system: System) -> Mapping[str, Path]:
    beside = {f"/usr/bin/{name}": program.with_name(name) for name in _BESIDE}
    present = {path: file for path, file in beside.items() if file.is_file()}
    return {f"/usr/bin/{_PROGRAM}": program, **present, **_time_zones(system)}


def _time_zones(system: System) -> dict[str, Path]:
    """What spec.restart.windows may name, 1.2 MB. Without the same once more in posix/ and right/, and what is no zone."""
    folder = system.find(_ZONES)
    zones = {}
    for path in sorted(folder.rglob("[A-Z]*")) if folder else []:
        name = path.relative_to(folder).as_posix()
        if path.is_file() and re.fullmatch(r"[A-Z][A-Za-z0-9_+/-]*", name) and path.read_bytes()[:4] == b"TZif":
            zones[f"{_ZONES}/{name}"] = path
    if not zones:
        raise DevError(f"{_ZONES} has no time zones: install tzdata, or run hack/deps")
    return zones


RECIPE = Recipe(REPOSITORY, _PROGRAM, "Rolls TLS certificates through a Kubernetes cluster without an outage", _files, _BESIDE)
