"""A Debian 13 of its own to build in, beside whatever Debian this machine has: made by mmdebstrap, kept for a day.

It has the compiler for one architecture, and that architecture's libraries. One process at a time has it: what it builds is in
a folder beside it, is made with it and removed with it, so that no object outlives the headers that it was compiled with.
Packages come from where this machine's apt has its own, with the other suite in the place of this machine's.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import commands, locks, paths
from .images import ARCHITECTURES
from .ui import DevError, Step

SUITE = "trixie"
NAME = "debian13"
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TOOLS = ("cmake", "ninja-build", "openssl", "pkg-config")  # openssl: a server and a client of tests
_HEADERS = (
    "libc6-dev",
    "libcjson-dev",
    "libcmocka-dev",
    "libcurl4-openssl-dev",
    "libevent-dev",
    "libgnutls28-dev",
    "libselinux1",  # nsenter's
    "libssl-dev",
    "libyaml-dev",
    "zlib1g-dev",
)
# Debian 13 has the old names of zones, such as US/Pacific, in a package of their own.
_DATA = ("tzdata", "tzdata-legacy")
# There can be only one of each in a Debian: those of another architecture are unpacked beside it, for an image's files.
_BESIDE = ("base-files", "util-linux")
# What of apt's configuration says how the archive is reached and how old its lists may be; the rest is this machine's own.
_APT_SETTINGS = ("Acquire::http", "Acquire::https", "Acquire::Retries", "Acquire::Check-Valid-Until", "Acquire::Check-Date")
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


@dataclass(frozen=True)
class Mount:
    """A folder of this machine, to be seen in the root for as long as one command runs."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Root:
    """A Debian, while it is locked for this process."""

    folder: Path  # of the Debian, and of what was built in it
    arch: str  # what it builds for

    @property
    def files(self) -> Path:
        return self.folder / "root"

    @property
    def triplet(self) -> str:
        return TRIPLETS[self.arch]

    @property
    def is_cross(self) -> bool:
        return self.arch != native()

    def layers(self) -> list[Path]:
        """Where a file of this architecture is looked for, in this order."""
        beside = [self.folder / "beside" / package for package in _BESIDE]
        return [*(layer for layer in beside if layer.is_dir()), self.files]

    def builds(self, name: str) -> Path:
        """A folder for what is built in it."""
        folder = self.folder / "builds" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def command(self, argv: Sequence[str], mounts: Sequence[Mount] = (), env: Mapping[str, str] | None = None) -> list[str]:
        """The words that run a program in it: with these folders, on a loopback of its own, and without a trace of the mounts here."""
        files = shlex.quote(str(self.files))
        # The root a mount of its own, as that of a container is: programs there may unshare mounts in turn.
        lines = ["set -e", "ip link set lo up", f"mount --bind {files} {files}", f"cd {files}"]
        lines += ["mount -t proc proc proc", "mount --rbind /dev dev"]
        for mount in mounts:
            (self.files / mount.target.lstrip("/")).mkdir(parents=True, exist_ok=True)
            there = shlex.quote("." + mount.target)
            lines.append(f"mount --bind {shlex.quote(str(mount.source))} {there}")
            if not mount.writable:
                lines.append(f"mount -o remount,bind,ro {there}")
        variables = [f"{key}={value}" for key, value in {**_ENVIRONMENT, **(env or {})}.items()]
        # Not by exec: the shell, the first process there, collects what programs leave behind when they end.
        lines += [f"chroot . /usr/bin/env -i {shlex.join([*variables, *argv])}", "exit"]
        return ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", "\n".join(lines)]


def native() -> str:
    """The architecture of this machine, as Debian calls it."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise DevError(f"images are built on amd64 and arm64, and this machine is {machine}")
    return ARCHITECTURES[machine]


@contextlib.contextmanager
def locked(arch: str, *, fresh: bool = False, any_day: bool = False) -> Iterator[Root]:
    """Today's Debian for the architecture, made if there is none, or in any case with `fresh`. With `any_day`, for tests, the newest that
    there is, so that a run over midnight needs no archive. Others of other days are removed; that of another checkout, which may have
    other packages, stays."""
    _check()
    with locks.locked(paths.cache_dir() / "locks" / f"{SUITE}-{arch}.lock", f"another use of Debian's {SUITE} for {arch}"):
        packages = _packages(arch)
        sources, settings = _sources(), _settings()
        key = hashlib.sha256("\n".join([*packages, *_BESIDE, *sources]).encode()).hexdigest()[:12]
        folder = _cache() / f"{SUITE}-{arch}-{_today()}-{key}"
        if any_day:
            folder = max(_cache().glob(f"{SUITE}-{arch}-*-{key}"), default=folder)
        if fresh or not folder.exists():
            _make(folder, arch, packages, sources, settings)
        for old in _cache().glob(f"{SUITE}-{arch}-*"):
            if old != folder and not old.name.startswith(f"{SUITE}-{arch}-{_today()}-"):
                shutil.rmtree(old)
        yield Root(folder, arch)


def _check() -> None:
    if os.geteuid() != 0:
        raise DevError("an image on Debian's packages is built in a chroot: run this as root, or with --on host")
    for program in ("mmdebstrap", "unshare", "chroot", "readelf", "ip"):
        if shutil.which(program) is None:
            raise DevError(f"{program} is not installed: run hack/deps image")
    if not _KEYRING.is_file():
        raise DevError(f"{_KEYRING} is not there: run hack/deps image")


def _cache() -> Path:
    return paths.cache_dir() / "debian"


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _packages(arch: str) -> list[str]:
    if arch == native():
        return [*_TOOLS, "gcc", *_HEADERS, *_DATA, *_BESIDE]
    return [*_TOOLS, f"gcc-{TRIPLETS[arch].replace('_', '-')}", *(f"{name}:{arch}" for name in _HEADERS), *_DATA]


# --- where packages come from -------------------------------------------------------------------------------------------------


def _sources() -> list[str]:
    """Lines of a sources.list: those of this machine's apt that are Debian's own, with the other suite."""
    here = _codename()
    lines = {}
    wanted = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"
    for line in commands.run(["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"]).splitlines():
        uri, release, component, *origin = line.split(" ")
        suffix = release.removeprefix(here)
        if origin == ["Debian"] and component == "main" and suffix in ("", "-updates", "-security"):
            lines[suffix, uri] = f"deb [signed-by={_KEYRING}] {uri} {SUITE}{suffix} main"
    for suffix in ("", "-security"):
        if suffix not in {known for known, _ in lines}:
            raise DevError(f"apt knows no packages of Debian's {here}{suffix}: run apt-get update, or build with --on host")
    return sorted(lines.values())


def _codename() -> str:
    match = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    if not match:
        raise DevError("/etc/os-release names no suite of Debian: build with --on host")
    return match[1]


def _settings() -> list[str]:
    dump = commands.run(["apt-config", "dump", "--no-empty", *_APT_SETTINGS])
    if "Acquire::Retries" not in dump:
        dump += 'Acquire::Retries "10";\n'  # with pauses of up to half a minute: an archive that is away for some minutes
    files = 'Dir::Etc::netrc "/etc/apt/auth.conf";\nDir::Etc::netrcparts "/etc/apt/auth.conf.d";\n'
    return (dump + files).splitlines()


# --- making it ----------------------------------------------------------------------------------------------------------------


def _make(folder: Path, arch: str, packages: Sequence[str], sources: Sequence[str], settings: Sequence[str]) -> None:
    """Into a folder beside, then renamed: a killed run leaves no half Debian under a good name."""
    log = paths.cache_dir() / "logs" / f"{SUITE}-{arch}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{SUITE}-{arch}-"
    for leftover in folder.parent.glob(prefix + "*"):
        shutil.rmtree(leftover)
    with Step(f"Debian's {SUITE} for {arch}"), tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix) as scratch:
        half = Path(scratch) / "half"
        half.mkdir()
        options = [f"--aptopt={line}" for line in settings]
        if arch != native():
            options.append("--customize-hook=" + _beside(arch, Path(scratch)))
        _run_logged(_mmdebstrap(half / "root", arch, packages, sources, options), log)
        if arch != native():
            _unpack(Path(scratch), half / "beside", arch)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(half, folder)


def _mmdebstrap(root: Path, arch: str, packages: Sequence[str], sources: Sequence[str], options: Sequence[str]) -> list[str]:
    """In a mount namespace of its own: whatever becomes of it, nothing stays mounted here."""
    architectures = ",".join(dict.fromkeys([native(), arch]))
    return [
        "unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=essential", f"--architectures={architectures}",
        "--format=directory", f"--include={','.join(packages)}", "--dpkgopt=force-unsafe-io", *options,
        SUITE, str(root), *sources,
    ]  # fmt: skip


def _beside(arch: str, folder: Path) -> str:
    """A hook, while mmdebstrap's apt knows the packages."""
    names = shlex.join(f"{name}:{arch}" for name in _BESIDE)
    return f'cd {shlex.quote(str(folder))} && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -o APT::Sandbox::User=root download {names}'


def _unpack(downloads: Path, folder: Path, arch: str) -> None:
    """With the package's own records in the folder DEBIAN."""
    for name in _BESIDE:
        [archive] = downloads.glob(f"{name}_*_{arch}.deb")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        commands.run(["dpkg-deb", "--raw-extract", archive, folder / name])


def _run_logged(command: Sequence[str], log: Path) -> None:
    with log.open("w") as file:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    if done.returncode != 0:
        raise DevError(f"Debian's {SUITE} could not be made, see {log}:\n{commands.tail_of(log)}")
