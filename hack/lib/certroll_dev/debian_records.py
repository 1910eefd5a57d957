"""dpkg's records of a Debian: which package a file is of, and what is known of that package.

An image keeps the records of the packages that it has files of, in var/lib/dpkg/status.d, as distroless images do: scanners
look there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .image_recipe import System
from .ui import DevError

_MERGED = re.compile(r"^/(bin|sbin|lib|lib64)/")


@dataclass(frozen=True)
class Package:
    name: str
    arch: str
    version: str
    stanza: str  # all of dpkg's fields

    @property
    def source(self) -> str:
        """The source package, by which vulnerabilities are listed; with its version, as name@version, if that is another one."""
        field = re.search(r"^Source: (\S+)(?: \((\S+)\))?$", self.stanza, re.MULTILINE)
        return "@".join(part for part in field.groups() if part) if field else self.name

    @property
    def url(self) -> str:
        """https://github.com/package-url/purl-spec"""
        name, version = quote(self.name, safe=""), quote(self.version, safe="")
        upstream = f"&upstream={quote(self.source, safe='')}" if self.source != self.name else ""
        return f"pkg:deb/debian/{name}@{version}?arch={self.arch}&distro=debian-13{upstream}"

    def status(self) -> bytes:
        return (self.stanza + "\n").encode()


class Records:
    """Of the packages for one architecture. Of several folders the first that has a file counts."""

    def __init__(self, system: System, arch: str) -> None:
        self._packages: dict[str, Package] = {}
        self._owners: dict[str, Package] = {}
        for layer in reversed(system.layers):
            for package, files in _packages(layer):
                if package.arch in (arch, "all"):
                    self._packages[package.name] = package
                    self._owners.update(dict.fromkeys((merged(file) for file in files), package))

    def named(self, name: str) -> Package:
        if name not in self._packages:
            raise DevError(f"there is no package {name}")
        return self._packages[name]

    def owner(self, path: str) -> Package:
        """Of a file, by its path in the Debian."""
        found = self._owners.get(merged(path))
        if not found:
            raise DevError(f"{path} is of no Debian package, so it cannot go into an image")
        return found


def all_packages(layers: Iterable[Path]) -> list[Package]:
    """Of whatever architecture, sorted by name."""
    found = [package for layer in layers for package, _ in _packages(layer)]
    return sorted(found, key=lambda package: (package.name, package.arch))


def merged(path: str) -> str:
    """As it is where /bin, /lib and so on are links into /usr; older packages list the links' names."""
    return _MERGED.sub(r"/usr/\1/", path)


def _packages(layer: Path) -> Iterable[tuple[Package, list[str]]]:
    return _unpacked(layer) if (layer / "DEBIAN").is_dir() else _installed(layer)


def _installed(layer: Path) -> Iterable[tuple[Package, list[str]]]:
    folder = layer / "var/lib/dpkg"
    for stanza in (folder / "status").read_text().strip().split("\n\n"):
        if "\nStatus: install ok installed\n" not in stanza:
            continue
        package = _package(stanza)
        names = (f"{package.name}:{package.arch}.list", f"{package.name}.list")
        [files] = [folder / "info" / name for name in names if (folder / "info" / name).is_file()]
        yield package, files.read_text().splitlines()


def _unpacked(layer: Path) -> Iterable[tuple[Package, list[str]]]:
    """One package, as `dpkg-deb --raw-extract` leaves it."""
    files = [f"/{path.relative_to(layer)}" for path in layer.rglob("*") if "DEBIAN" not in path.relative_to(layer).parts]
    stanza = (layer / "DEBIAN/control").read_text().strip()
    head, _, rest = stanza.partition("\n")
    yield _package(f"{head}\nStatus: install ok installed\n{rest}"), files


def _package(stanza: str) -> Package:
    return Package(_field(stanza, "Package"), _field(stanza, "Architecture"), _field(stanza, "Version"), stanza)


def _field(stanza: str, name: str) -> str:
    match = re.search(rf"^{name}: (\S+)$", stanza, re.MULTILINE)
    if not match:
        raise DevError(f"a package of dpkg's has no {name}: {stanza[:100]}")
    return match[1]
