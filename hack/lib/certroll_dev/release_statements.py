"""What is stated of an image, in files beside its archive, for whoever signs it: an SBOM (SPDX 2.3) and the provenance (SLSA 1.0).

Both follow from the commit, the packages and the image: the same build gives the same bytes, so they have no time of their own.
https://spdx.github.io/spdx-spec/v2.3/ https://slsa.dev/spec/v1.0/provenance
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .debian_records import Package, all_packages
from .image_recipe import Recipe
from .images import About
from .release_build import Build

_TOOL = "certroll hack/image"
_BUILD_TYPE = "https://certroll.dev/hack/image/v1"
_NOT_SAID = "NOASSERTION"


@dataclass(frozen=True)
class Statements:
    sbom: Path
    provenance: Path

    def files(self) -> list[Path]:
        return [self.sbom, self.provenance]


def beside(archive: Path) -> Statements:
    return Statements(archive.with_name(f"{archive.stem}.spdx.json"), archive.with_name(f"{archive.stem}.provenance.json"))


def remove(archive: Path) -> None:
    """Those beside the archive, before another image takes its place."""
    for file in beside(archive).files():
        file.unlink(missing_ok=True)


def write(
    to: Statements, recipe: Recipe, build: Build, reference: str, digest: str, packages: Iterable[Package], about: About
) -> None:
    to.sbom.write_text(_json(_sbom(recipe, build, reference, digest, packages, about)))
    to.provenance.write_text(_json(_provenance(recipe, build, about)))


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


# --- SBOM ---------------------------------------------------------------------------------------------------------------------


def _sbom(recipe: Recipe, build: Build, reference: str, digest: str, packages: Iterable[Package], about: About) -> dict[str, Any]:
    name = reference.rpartition(":")[0]
    image = _package("Image", name, digest, _NOT_SAID, f"pkg:oci/{name.rpartition('/')[2]}@{quote(digest)}?arch={about.arch}")
    ours = [_package(f"Program-{name}", name, build.version, "Apache-2.0", None) for name in recipe.targets]
    theirs = [_debian(package) for package in packages]
    contains = {"spdxElementId": image["SPDXID"], "relationshipType": "CONTAINS"}
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": reference,
        "documentNamespace": f"https://certroll.dev/spdx/{recipe.program}-{about.arch}-{digest.partition(':')[2]}",
        "creationInfo": {"created": about.created, "creators": [f"Tool: {_TOOL}"]},
        "documentDescribes": [image["SPDXID"]],
        "packages": [image, *ours, *theirs],
        "relationships": [{**contains, "relatedSpdxElement": each["SPDXID"]} for each in [*ours, *theirs]],
    }


def _debian(package: Package) -> dict[str, Any]:
    """The licences are in the image, as Debian's copyright files."""
    found = _package(f"Debian-{package.name}", package.name, package.version, _NOT_SAID, package.url)
    return {**found, "supplier": "Organization: Debian", "sourceInfo": f"source package {package.source}"}


def _package(spdx_id: str, name: str, version: str, licence: str, url: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", spdx_id),
        "name": name,
        "versionInfo": version,
        "downloadLocation": _NOT_SAID,
        "filesAnalyzed": False,
        "licenseConcluded": _NOT_SAID,
        "licenseDeclared": licence,
        "copyrightText": _NOT_SAID,
    }
    if url:
        found["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}]
    return found


# --- provenance ---------------------------------------------------------------------------------------------------------------


def _provenance(recipe: Recipe, build: Build, about: About) -> dict[str, Any]:
    """What it was built from: the commit, and every package of the Debian in which it was built."""
    source: dict[str, Any] = {"name": "source", "annotations": {"revision": str(build.revision)}}
    if build.revision.commit and not build.revision.changed:
        source["digest"] = {"gitCommit": build.revision.commit}
    packages = [{"uri": package.url} for package in all_packages(build.root.layers())]
    return {
        "buildDefinition": {
            "buildType": _BUILD_TYPE,
            "externalParameters": {"program": recipe.program, "arch": about.arch, "preset": build.preset, "on": "debian13"},
            "resolvedDependencies": [source, *packages],
        },
        "runDetails": {"builder": {"id": _BUILD_TYPE}},
    }
