"""Our programs, built in a Debian 13 from this checkout, and which commit that is.

Whatever the checkout's folder is called, in there it is /source and what is built /build: that is all that a compiler can put
into a program, so two checkouts of one commit give the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import commands, paths
from .debian_root import Mount, Root
from .ui import DevError, Step

_SOURCE = "/source"
_BUILD = "/build"


@dataclass(frozen=True)
class Revision:
    """Of the checkout."""

    commit: str | None  # None if it is no git repository
    changed: bool  # against the commit
    epoch: int  # when the commit was made; 0 without one

    def __str__(self) -> str:
        return "none" if self.commit is None else self.commit + ("-dirty" if self.changed else "")


@dataclass(frozen=True)
class Build:
    root: Root
    preset: str
    folder: Path
    revision: Revision

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    @property
    def version(self) -> str:
        """Of the project, which its programs print with --version."""
        match = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(\S+)$", (self.folder / "CMakeCache.txt").read_text(), re.MULTILINE)
        if not match:
            raise DevError(f"{self.folder} names no version of the project")
        return match[1]

    def linked(self, program: str) -> list[str]:
        """The files of the Debian that the program was linked from, such as archives."""
        text = run(self.root, self.folder, ["ninja", "-C", _BUILD, "-t", "deps", f"bin/{program}"])
        return sorted({line.strip() for line in text.splitlines() if line.strip().startswith("/usr/")})


def revision() -> Revision:
    commit = _git("rev-parse", "--verify", "--quiet", "HEAD")
    top = _git("rev-parse", "--show-toplevel")
    if not commit or Path(top).resolve() != paths.REPOSITORY:  # a folder in somebody's repository
        return Revision(None, False, 0)
    changed = _git("status", "--porcelain")
    return Revision(commit, changed != "", int(_git("show", "--no-patch", "--format=%ct", "HEAD") or 0))


def build(root: Root, preset: str, targets: Sequence[str], variables: Sequence[str] = ()) -> Build:
    """The programs of a preset, with these variables of CMake's. What was built before and has not changed is not built again."""
    now = revision()
    name = "-".join([preset, *re.findall(r"^CERTROLL_(\w+)=", "\n".join(variables), re.MULTILINE)])
    folder = root.builds(f"{hashlib.sha256(str(paths.REPOSITORY).encode()).hexdigest()[:12]}-{name}")
    log = paths.cache_dir() / "logs" / f"{root.folder.name}-{name}.log"
    with Step(f"build ({preset}, Debian 13, {root.arch})"):
        with log.open("w") as file:
            _run_logged(root, folder, _configure(root, preset, variables), now, log, file.fileno())
            jobs = str(len(os.sched_getaffinity(0)))
            words = ["cmake", "--build", _BUILD, "--parallel", jobs, *(["--target", *targets] if targets else [])]
            _run_logged(root, folder, words, now, log, file.fileno())
    return Build(root, preset, folder, now)


def run(root: Root, folder: Path, argv: Sequence[str]) -> str:
    """What a program prints that runs where the build did."""
    return commands.run(root.command(argv, mounts(folder)))


def mounts(folder: Path) -> list[Mount]:
    """What a build, and what runs beside it, sees of this machine."""
    return [Mount(paths.REPOSITORY, _SOURCE), Mount(folder, _BUILD, writable=True)]


def _configure(root: Root, preset: str, variables: Sequence[str]) -> list[str]:
    words = ["cmake", "--preset", preset, "-S", _SOURCE, "-B", _BUILD, *(f"-D{variable}" for variable in variables)]
    if root.is_cross:
        machine = root.triplet.partition("-")[0]
        words += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}", f"-DCMAKE_C_COMPILER={root.triplet}-gcc"]
    return words


def _run_logged(root: Root, folder: Path, argv: Sequence[str], now: Revision, log: Path, to: int) -> None:
    env = {"SOURCE_DATE_EPOCH": str(now.epoch), "PKG_CONFIG_LIBDIR": f"/usr/lib/{root.triplet}/pkgconfig:/usr/share/pkgconfig"}
    done = subprocess.run(root.command(argv, mounts(folder), env), stdin=subprocess.DEVNULL, stdout=to, stderr=to)
    if done.returncode != 0:
        raise DevError(f"the build failed, see {log}:\n{commands.tail_of(log, lines=40)}")


def _git(*words: str) -> str:
    """What git says of the checkout, whoever owns it; nothing if it is no repository."""
    command = ["git", "-c", f"safe.directory={paths.REPOSITORY}", "-C", str(paths.REPOSITORY), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
