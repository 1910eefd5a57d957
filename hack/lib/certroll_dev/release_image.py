"""An image of our programs on Debian 13's packages, with its SBOM and its provenance beside it.

It has, beside what any image of the program has: dpkg's records and the licences of the packages that its files are of, Debian's
os-release, and labels that say what it was built from.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from . import archives, elf, release_statements
from .debian_records import Package, Records, merged
from .image_recipe import Recipe, System
from .images import About, Source
from .release_build import Build
from .release_statements import Statements
from .ui import DevError

_OS_RELEASE = "/usr/lib/os-release"
_LABEL = "org.opencontainers.image"


@dataclass(frozen=True)
class Plan:
    """All files of the image, and the packages that they come from, sorted by name."""

    files: Mapping[str, Source]
    packages: list[Package]


def plan(recipe: Recipe, build: Build) -> Plan:
    system = System(build.root.layers())
    records = Records(system, build.root.arch)
    files = dict(recipe.files(build.program(recipe.program), system))
    files |= libraries([file for file in files.values() if isinstance(file, Path) and elf.is_elf(file)], system, build.root.triplet)
    files |= {_OS_RELEASE: _there(system, _OS_RELEASE), "/etc/os-release": f"..{_OS_RELEASE}"}
    owned: dict[str, dict[str, Path]] = {name: {} for name in _linked_in(recipe, build, records)}
    for path, source in files.items():
        if isinstance(source, Path) and not source.is_relative_to(build.folder):
            owned.setdefault(records.owner(path).name, {})[merged(path).lstrip("/")] = source
    packages = [records.named(name) for name in sorted(owned)]
    for package in packages:
        files |= _records(package, owned[package.name], system)
    return Plan(files, packages)


def write(out: Path, recipe: Recipe, build: Build, reference: str, planned: Plan, source: str | None) -> Statements:
    """The archive, and beside it what is stated of it. A statement never lies beside another image's archive: the old ones are
    removed before the archive is replaced, and the new ones come after it."""
    statements = release_statements.beside(out)
    about = About(build.root.arch, _time(build.revision.epoch), _labels(recipe, build, source))
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".release-", dir=out.parent) as scratch:
        archive = Path(scratch) / out.name
        recipe.write(archive, reference, planned.files, about)
        halves = release_statements.beside(archive)
        release_statements.write(halves, recipe, build, reference, archives.digest(archive), planned.packages, about)
        release_statements.remove(out)
        os.replace(archive, out)
        for half, file in zip(halves.files(), statements.files(), strict=True):
            os.replace(half, file)
    return statements


def write_rootfs(folder: Path, recipe: Recipe, planned: Plan) -> Path:
    return recipe.write_rootfs(folder, planned.files, libs=False)


# --- files --------------------------------------------------------------------------------------------------------------------


def libraries(programs: Iterable[Path], system: System, triplet: str) -> dict[str, Path]:
    """What the programs need, and what that needs, by the paths at which their loader looks."""
    found: dict[str, Path] = {}
    names: set[str] = set()
    todo = list(programs)
    while todo:
        for name in elf.needed(todo.pop()):
            short = PurePosixPath(name).name
            if short not in names:
                names.add(short)
                path = name if name.startswith("/") else f"/usr/lib/{triplet}/{name}"
                found[path] = _there(system, path)
                todo.append(found[path])
    return found


def _there(system: System, path: str) -> Path:
    found = system.find(path)
    if not found:
        raise DevError(f"Debian 13's packages have no {path}: add the one that has it to hack/lib/certroll_dev/debian_root.py")
    return found


def _linked_in(recipe: Recipe, build: Build, records: Records) -> set[str]:
    """The packages whose code is in a program that is linked statically. Of others what is linked in is a few lines of start-up."""
    if elf.needed(build.program(recipe.program)):
        return set()
    archives_of_it = [file for file in build.linked(recipe.program) if file.endswith((".a", ".o"))]
    return {records.owner(os.path.normpath(file)).name for file in archives_of_it}


def _records(package: Package, owned: Mapping[str, Path], system: System) -> dict[str, Source]:
    licence = f"/usr/share/doc/{package.name}/copyright"
    status = f"/var/lib/dpkg/status.d/{package.name}"
    return {licence: _there(system, licence), status: package.status(), f"{status}.md5sums": _sums(owned)}


def _sums(files: Mapping[str, Path]) -> bytes:
    """As md5sum writes them, and as dpkg has them: to find what is damaged, not what is forged."""
    md5 = {path: hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest() for path, file in sorted(files.items())}
    return "".join(f"{digest}  {path}\n" for path, digest in md5.items()).encode()


# --- what it says of itself ---------------------------------------------------------------------------------------------------


def _labels(recipe: Recipe, build: Build, source: str | None) -> dict[str, str]:
    said = {
        "title": recipe.program,
        "description": recipe.about,
        "version": build.version,
        "revision": str(build.revision),
        "created": _time(build.revision.epoch),
        "licenses": "Apache-2.0",
        "base.name": "scratch",
        **({"source": source} if source else {}),
    }
    return {f"{_LABEL}.{key}": value for key, value in said.items()}


def _time(epoch: int) -> str:
    return datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
