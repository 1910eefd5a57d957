"""What an image of one of our programs is made of, and how it is called."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import commands, images, paths
from .images import About, Source
from .ui import DevError

PRESETS = ("release", "dev", "tsan")
_USER = "65532:65532"  # the Dockerfile's USER, and the Deployment's runAsUser
_MOST_LINKS = 40


@dataclass(frozen=True)
class Image:
    reference: str
    archive: Path
    sanitized: bool


@dataclass(frozen=True)
class System:
    """The Debian that an image has files of: folders in which they are looked for, one after the other."""

    layers: Sequence[Path] = (Path("/"),)

    def find(self, path: str) -> Path | None:
        """The file or folder itself, past all links."""
        return next((found for layer in self.layers if (found := _within(layer, path))), None)


HOST = System()


@dataclass(frozen=True)
class Recipe:
    repository: str
    program: str  # the name of the file, and what it calls itself with --version
    about: str  # in one line
    files: Callable[[Path, System], Mapping[str, Source]]  # from where the program is, and of a system
    beside: tuple[str, ...] = ()  # programs that are built with it
    sanitized: bool = True  # by presets other than release

    @property
    def path(self) -> str:
        """In the image; the Dockerfile's ENTRYPOINT."""
        return f"/usr/bin/{self.program}"

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.program, *self.beside)

    def preset(self, wanted: str) -> str:
        return wanted if self.sanitized else "release"

    def built(self, preset: str) -> Path:
        """The program of this machine's own build, after hack/build, which shows its progress itself."""
        commands.show([paths.HACK / "build", "--preset", self.preset(preset), *self.targets])
        return paths.REPOSITORY / "build" / self.preset(preset) / "bin" / self.program

    def reference(self, version: str, preset: str, tag: str | None) -> str:
        tag = tag or (f"{version}-{preset}" if self.preset(preset) != "release" else version)
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", tag):
            raise DevError(f"{tag!r} is no tag: up to 128 of A-Z, a-z, 0-9, _, . and - (the last two not at the start)")
        return f"{self.repository}:{tag}"

    def version(self, program: Path) -> str:
        """As a program of this machine's answers."""
        if not program.is_file():
            raise DevError(f"{program} is not there: run hack/build, or leave --program away")
        match = re.fullmatch(rf"{self.program} (\S+)\n", commands.run([program.absolute(), "--version"], timeout=30))
        if not match:
            raise DevError(f"{program} is no {self.program}: that is not how it answers to --version")
        return match[1]

    def write(self, out: Path, reference: str, files: Mapping[str, Source], about: About | None = None) -> None:
        """With the libraries of this machine, or, if it is told what the image is about, with what is among the files."""
        images.build_image(out, reference, files, entrypoint=[self.path], user=_USER, libs=about is None, about=about)

    def write_rootfs(self, folder: Path, files: Mapping[str, Source], *, libs: bool) -> Path:
        return images.build_rootfs(folder, files, user=_USER, libs=libs)

    def cached(self, preset: str, program: Path | None = None) -> Image:
        """The image of the program (default: that of hack/build), from the cache if nothing in it has changed."""
        program = program or self.built(preset)
        reference = self.reference(self.version(program), preset, None)
        archive = images.cached_image(reference, self.files(program, HOST), entrypoint=[self.path], user=_USER)
        return Image(reference, archive, sanitized=self.preset(preset) != "release")


def _within(layer: Path, path: str) -> Path | None:
    """As a chroot would find it. A link through which it leads out of the folder is an error."""
    found = layer / path.lstrip("/")
    for _ in range(_MOST_LINKS):
        if not found.is_symlink():
            break
        target = os.readlink(found)
        found = layer / target.lstrip("/") if target.startswith("/") else found.parent / target
    real = found.resolve()
    if not real.is_relative_to(layer.resolve()):
        raise DevError(f"{path} leads out of {layer}")
    return real if real.exists() else None
