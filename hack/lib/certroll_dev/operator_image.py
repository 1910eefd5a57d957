"""hack/image: our images, from programs that hack/build has made; and the operator's in particular."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from . import archives, commands, node_agent_image, paths, shutdown_manager_image, ui
from .image_recipe import PRESETS, Image, Recipe
from .ui import DevError, Step

__all__ = ["PRESETS", "REPOSITORY", "Image", "built", "cached", "given", "run"]

REPOSITORY = "certroll.dev/operator"  # manifests/base names it, too
_PROGRAM = "certroll-operator"
_BESIDE = ("certroll-certgen", "certroll-sidecar")  # in the operator's folder, here and in the image: of Jobs, of sidecars
_ZONES = Path("/usr/share/zoneinfo")  # here and in the image
_DESCRIPTION = """\
Builds an image without a registry and without a container engine. That of the operator has certroll-operator,
certroll-certgen, certroll-sidecar, the shared libraries that they need, this machine's time zones, and nothing else that
could run; that of the shutdown manager one static program; that of the node agent certroll-node-agent and nsenter. The
archive is OCI's and Docker's at once:

    ctr -n k8s.io images import FILE        docker load -i FILE        hack/cluster load-image FILE
    skopeo copy --preserve-digests oci-archive:FILE docker://registry.example.org/certroll/operator:TAG

The same programs, libraries and time zones give the same bytes, and so the same digest. The path of what was built is
printed; with --digest that of its manifest, by which a registry has it when it was copied there as it is:

    kustomize edit set image certroll.dev/operator=registry.example.org/certroll/operator@$(hack/image --digest)"""


def run(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    ui.be_quiet(options.quiet)
    recipe = _RECIPES[options.image]
    program = options.program or recipe.built(options.preset)
    if options.rootfs:
        print(_write_rootfs(recipe, program, options.rootfs))
        return 0
    reference = recipe.reference(program, options.preset, options.tag)
    out = options.output or paths.REPOSITORY / "build" / "image" / f"{recipe.program}-{reference.rpartition(':')[2]}.tar"
    with Step(f"image {reference}"):
        recipe.build(out, program, reference)
    digest = archives.digest(out)
    ui.say(f"{reference}: {out.stat().st_size / 1e6:.1f} MB, {digest}")
    print(digest if options.digest else out)
    return 0


def cached(preset: str, program: Path | None = None) -> Image:
    """The operator's image of the program (default: that of hack/build), from the cache if nothing in it has changed."""
    return _RECIPES["operator"].cached(preset, program)


def given(archive: Path) -> Image:
    """The operator's image in an archive from elsewhere, under the name that it has there."""
    reference = archives.reference(archive)
    return Image(reference, archive, sanitized=reference.endswith(tuple(f"-{preset}" for preset in PRESETS if preset != "release")))


def built(preset: str) -> Path:
    """The operator, after hack/build, which shows its own progress; those beside it are built, too."""
    commands.show([paths.HACK / "build", "--preset", preset, _PROGRAM, *_BESIDE])
    return paths.REPOSITORY / "build" / preset / "bin" / _PROGRAM


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("hack/image", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", nargs="?", choices=sorted(_RECIPES), default="operator", help="which one (default: %(default)s)")
    parser.add_argument(
        "--preset", choices=PRESETS, default="release",
        help="how to build it; dev and tsan have sanitizers, but not in the shutdown manager (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--program", type=Path, metavar="FILE", help="take this program, for the operator also those beside it, and build none"
    )
    parser.add_argument("--tag", help="the image's tag (default: the version; with another preset VERSION-PRESET)")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", "-o", type=Path, metavar="FILE", help="default: build/image/PROGRAM-TAG.tar")
    target.add_argument(
        "--rootfs", type=Path, metavar="DIR", help="write the files into this new folder instead, for the Dockerfile"
    )
    parser.add_argument("--digest", action="store_true", help="print the digest of the image in the place of its path")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _write_rootfs(recipe: Recipe, program: Path, folder: Path) -> Path:
    if folder.exists():
        raise DevError(f"{folder} is there already: give a folder that is not, or remove it first")
    recipe.version(program)
    with Step(f"root file system in {folder}"):
        return recipe.build_rootfs(folder, program)


def _files(program: Path) -> Mapping[str, Path]:
    beside = {f"/usr/bin/{name}": program.with_name(name) for name in _BESIDE}
    return {f"/usr/bin/{_PROGRAM}": program, **{path: file for path, file in beside.items() if file.is_file()}, **_time_zones()}


def _time_zones() -> dict[str, Path]:
    """What spec.restart.windows may name, 1.2 MB. Without the same once more in posix/ and right/, and what is no zone."""
    zones = {}
    for path in sorted(_ZONES.rglob("[A-Z]*")):
        name = path.relative_to(_ZONES).as_posix()
        if path.is_file() and re.fullmatch(r"[A-Z][A-Za-z0-9_+/-]*", name) and path.read_bytes()[:4] == b"TZif":
            zones[path.as_posix()] = path
    if not zones:
        raise DevError(f"{_ZONES} has no time zones: install tzdata, or run hack/deps")
    return zones


_RECIPES = {
    "operator": Recipe(REPOSITORY, _PROGRAM, _files, built),
    "shutdown-manager": shutdown_manager_image.RECIPE,
    "node-agent": node_agent_image.RECIPE,
}
