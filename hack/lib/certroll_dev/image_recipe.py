"""What an image of one of our programs is made of, and how it is called."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import commands, images
from .images import Source
from .ui import DevError

PRESETS = ("release", "dev", "tsan")
_USER = "65532:65532"  # the Dockerfile's USER, and the Deployment's runAsUser


@dataclass(frozen=True)
class Image:
    reference: str
    archive: Path
    sanitized: bool


@dataclass(frozen=True)
class Recipe:
    repository: str
    program: str  # the name of the file, and what it calls itself with --version
    files: Callable[[Path], Mapping[str, Source]]  # from where the program is
    built: Callable[[str], Path]  # the program of a preset, after hack/build
    sanitized: bool = True  # by presets other than release

    @property
    def path(self) -> str:
        """In the image; the Dockerfile's ENTRYPOINT."""
        return f"/usr/bin/{self.program}"

    def reference(self, program: Path, preset: str, tag: str | None) -> str:
        version = self.version(program)
        tag = tag or (f"{version}-{preset}" if preset != "release" and self.sanitized else version)
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", tag):
            raise DevError(f"{tag!r} is no tag: up to 128 of A-Z, a-z, 0-9, _, . and - (the last two not at the start)")
        return f"{self.repository}:{tag}"

    def version(self, program: Path) -> str:
        if not program.is_file():
            raise DevError(f"{program} is not there: run hack/build, or leave --program away")
        match = re.fullmatch(rf"{self.program} (\S+)\n", commands.run([program.absolute(), "--version"], timeout=30))
        if not match:
            raise DevError(f"{program} is no {self.program}: that is not how it answers to --version")
        return match[1]

    def build(self, out: Path, program: Path, reference: str) -> None:
        images.build_image(out, reference, self.files(program), entrypoint=[self.path], user=_USER)

    def build_rootfs(self, folder: Path, program: Path) -> Path:
        return images.build_rootfs(folder, self.files(program), user=_USER)

    def cached(self, preset: str, program: Path | None = None) -> Image:
        """The image of the program (default: that of hack/build), from the cache if nothing in it has changed."""
        program = program or self.built(preset)
        reference = self.reference(program, preset, None)
        archive = images.cached_image(reference, self.files(program), entrypoint=[self.path], user=_USER)
        return Image(reference, archive, sanitized=self.sanitized and preset != "release")
