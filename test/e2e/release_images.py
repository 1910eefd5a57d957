"""Images on Debian 13's packages, made by hack/image in checkouts of their own, and looked into."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certroll_dev import paths

IMAGES = ("operator", "node-agent", "shutdown-manager")
_FOLDER = paths.REPOSITORY / "build" / "release-image"


def run(*words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd, env={**os.environ, **(env or {})})
    assert done.returncode == 0, f"{' '.join(str(word) for word in words)} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


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
            [image] = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
            found: dict[str, Any] = json.load(outer.extractfile(image["Config"]))  # type: ignore[arg-type]
            return found

    def label(self, name: str) -> str:
        found: str = self.config()["config"]["Labels"][f"org.opencontainers.image.{name}"]
        return found

    def extract(self, folder: Path) -> Path:
        """What a container sees."""
        with tarfile.open(self.archive) as outer:
            [image] = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
            [layer] = image["Layers"]
            with tarfile.open(fileobj=io.BytesIO(outer.extractfile(layer).read())) as tar:  # type: ignore[union-attr]
                tar.extractall(folder, filter="fully_trusted")
        return folder

    def packages(self) -> set[tuple[str, str, str]]:
        """Names, versions and package URLs of Debian's, as the SBOM has them."""
        debian = [each for each in json.loads(self.sbom.read_text())["packages"] if each["SPDXID"].startswith("SPDXRef-Debian-")]
        return {(each["name"], each["versionInfo"], each["externalRefs"][0]["referenceLocator"]) for each in debian}


class Checkout:
    """A clone of what is committed here, in a folder of this name."""

    def __init__(self, name: str) -> None:
        self.folder = _FOLDER / name
        shutil.rmtree(self.folder, ignore_errors=True)
        run("git", "-c", f"safe.directory={paths.REPOSITORY}/.git", "clone", "--quiet", "--shared", paths.REPOSITORY, self.folder)

    def head(self) -> str:
        return run("git", "rev-parse", "HEAD", cwd=self.folder).strip()

    def build(self, image: str, *options: str) -> Built:
        return Built(Path(run(self.folder / "hack" / "image", image, "--quiet", *options).strip()))


def ours(image: str) -> Sequence[str]:
    """The programs of an image that are not Debian's."""
    beside = ["usr/bin/certroll-certgen", "usr/bin/certroll-sidecar"] if image == "operator" else []
    return [f"usr/bin/certroll-{image}", *beside]
