"""hack/image: the operator's image, from a program that hack/build has made."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import commands, images, paths, ui
from .ui import DevError, Step

REPOSITORY = "certroll.dev/operator"  # manifests/base names it, too
PRESETS = ("release", "dev", "tsan")
_PROGRAM = "certroll-operator"
_PATH = f"/usr/bin/{_PROGRAM}"  # the Dockerfile's ENTRYPOINT
_BESIDE = ("certroll-certgen", "certroll-reloader")  # in the operator's folder, here and in the image: of Jobs, of sidecars
_USER = "65532:65532"  # the Dockerfile's USER, and the Deployment's runAsUser
_ZONES = Path("/usr/share/zoneinfo")  # here and in the image
_DESCRIPTION = """\
Builds the image of certroll-operator without a registry and without a container engine: the program, certroll-certgen,
certroll-reloader, the shared libraries that they need, this machine's time zones, and nothing else that could run. The
archive is OCI's and Docker's at once:

    ctr -n k8s.io images import FILE        docker load -i FILE        hack/cluster load-image FILE
    skopeo copy oci-archive:FILE docker://registry.example.org/certroll/operator:TAG

The same programs, libraries and time zones give the same bytes. The path of what was built is printed."""


@dataclass(frozen=True)
class Image:
    reference: str
    archive: Path
    sanitized: bool


def run(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    ui.be_quiet(options.quiet)
    program = options.program or built(options.preset)
    if options.rootfs:
        print(_write_rootfs(program, options.rootfs))
        return 0
    reference = _reference(program, options.preset, options.tag)
    out = options.output or paths.REPOSITORY / "build" / "image" / f"{_PROGRAM}-{reference.rpartition(':')[2]}.tar"
    with Step(f"image {reference}"):
        images.build_image(out, reference, _files(program), entrypoint=[_PATH], user=_USER)
    ui.say(f"{reference}: {out.stat().st_size / 1e6:.1f} MB")
    print(out)
    return 0


def cached(preset: str, program: Path | None = None) -> Image:
    """The image of the program (default: that of hack/build), from the cache if nothing in it has changed."""
    program = program or built(preset)
    reference = _reference(program, preset, None)
    archive = images.cached_image(reference, _files(program), entrypoint=[_PATH], user=_USER)
    return Image(reference, archive, sanitized=preset != "release")


def built(preset: str) -> Path:
    """The program, after hack/build, which shows its own progress; those beside it are built, too."""
    commands.show([paths.HACK / "build", "--preset", preset, _PROGRAM, *_BESIDE])
    return paths.REPOSITORY / "build" / preset / "bin" / _PROGRAM


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("hack/image", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--preset", choices=PRESETS, default="release", help="how to build it; dev and tsan have sanitizers (default: %(default)s)"
    )
    parser.add_argument("--program", type=Path, metavar="FILE", help="take this certroll-operator, and the programs beside it, and build none")
    parser.add_argument("--tag", help="the image's tag (default: the version; with another preset VERSION-PRESET)")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", "-o", type=Path, metavar="FILE", help="default: build/image/certroll-operator-TAG.tar")
    target.add_argument(
        "--rootfs", type=Path, metavar="DIR", help="write the files into this new folder instead, for the Dockerfile"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _write_rootfs(program: Path, folder: Path) -> Path:
    if folder.exists():
        raise DevError(f"{folder} is there already: give a folder that is not, or remove it first")
    _version(program)
    with Step(f"root file system in {folder}"):
        return images.build_rootfs(folder, _files(program), user=_USER)


def _files(program: Path) -> Mapping[str, Path | bytes]:
    beside = {f"/usr/bin/{name}": program.with_name(name) for name in _BESIDE}
    return {_PATH: program, **{path: file for path, file in beside.items() if file.is_file()}, **_time_zones()}


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


def _reference(program: Path, preset: str, tag: str | None) -> str:
    version = _version(program)
    tag = tag or (version if preset == "release" else f"{version}-{preset}")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", tag):
        raise DevError(f"{tag!r} is no tag: up to 128 of A-Z, a-z, 0-9, _, . and - (the last two not at the start)")
    return f"{REPOSITORY}:{tag}"


def _version(program: Path) -> str:
    if not program.is_file():
        raise DevError(f"{program} is not there: run hack/build, or leave --program away")
    match = re.fullmatch(rf"{_PROGRAM} (\S+)\n", commands.run([program.absolute(), "--version"], timeout=30))
    if not match:
        raise DevError(f"{program} is no {_PROGRAM}: that is not how it answers to --version")
    return match[1]
