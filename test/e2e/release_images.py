"""Images on Debian 13's packages, made by hack/image in checkouts of their own, and looked into."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certroll_dev import commands, paths

IMAGES = ("operator", "node-agent", "shutdown-manager")
_FOLDER = paths.REPOSITORY / "build" / "release-image"


@dataclass(frozen=True)
class Built:
    """An archive and what is beside it."""

    archive: Path

    @property
    def sbom(self) -> Path:
        return self.archive.with_name(f"{self.archive.stem}.spdx.json")

    @property
    def provenance(self) -> Path:
        return self.archive.with_name(f"{self.archive.stem}.provenance.json")

    def files(self) -> list[Path]:
        return [self.archive, self.sbom, self.provenance]

    def config(self) -> dict[str, Any]:
        with tarfile.open(self.archive) as outer:
            found: dict[str, Any] = json.loads(_read(outer, _image(outer)["Config"]))
            return found

    def label(self, name: str) -> str:
        found: str = self.config()["config"]["Labels"][f"org.opencontainers.image.{name}"]
        return found

    def extract(self, folder: Path) -> Path:
        """What a container sees."""
        with tarfile.open(self.archive) as outer:
            [layer] = _image(outer)["Layers"]
            with tarfile.open(fileobj=io.BytesIO(_read(outer, layer))) as tar:
                tar.extractall(folder, filter="fully_trusted")
        return folder

    def packages(self) -> set[tuple[str, str, str]]:
        """Names, versions and package URLs of Debian's, as the SBOM has them."""
        debian = [each for each in json.loads(self.sbom.read_text())["packages"] if each["SPDXID"].startswith("SPDXRef-Debian-")]
        return {(each["name"], each["versionInfo"], each["externalRefs"][0]["referenceLocator"]) for each in debian}


def _image(archive: tarfile.TarFile) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(_read(archive, "manifest.json"))
    [image] = found
    return image


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file, name
    return file.read()


class Checkout:
    """A clone of what is committed here, in a folder of this name."""

    def __init__(self, name: str) -> None:
        self.folder = _FOLDER / name
        shutil.rmtree(self.folder, ignore_errors=True)
        commands.run(["git", "-c", f"safe.directory={paths.REPOSITORY}/.git", "clone", "--quiet", "--shared", paths.REPOSITORY, self.folder])

    def head(self) -> str:
        return commands.run(["git", "rev-parse", "HEAD"], cwd=self.folder).strip()

    def build(self, image: str, *options: str) -> Built:
        return Built(Path(commands.run([self.folder / "hack" / "image", image, "--quiet", *options]).strip()))


def ours(image: str) -> Sequence[str]:
    """The programs of an image that are not Debian's."""
    beside = ["usr/bin/certroll-certgen", "usr/bin/certroll-sidecar"] if image == "operator" else []
    return [f"usr/bin/certroll-{image}", *beside]
