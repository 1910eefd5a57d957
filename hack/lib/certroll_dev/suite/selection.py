"""Which tests a run has: test/selection.toml, read, and held against what has changed since a commit.

A test is named as pytest names it, below test/: "e2e/test_mesh.py", "e2e/test_mesh.py::test_no_handshake_fails", or with the
parameters of one case in brackets.
"""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from certroll_dev import commands, paths
from certroll_dev.ui import DevError

FILE = Path("test/selection.toml")
FOLDERS = ("integration", "e2e", "soak")  # of test/, with pytest's tests
SLOW_S = 60.0  # a test of the gate that takes longer is listed with its reason


@dataclass(frozen=True)
class Area:
    """Files that belong together, and the tests that a change of them concerns."""

    name: str
    paths: Sequence[str]  # patterns, from the top of the checkout
    tests: Sequence[str]  # modules, patterns too


@dataclass(frozen=True)
class OnlyAll:
    """Tests that the gate leaves out."""

    tests: Sequence[str]
    protects: str
    areas: Sequence[str]  # a change of these is done when they have passed
    but: Sequence[str] = ()  # those among them that the gate keeps

    def has(self, test: str) -> bool:
        return any(is_of(test, name) for name in self.tests) and not any(is_of(test, name) for name in self.but)


@dataclass(frozen=True)
class Slow:
    test: str
    why: str


@dataclass(frozen=True)
class Selection:
    areas: Sequence[Area]
    only_all: Sequence[OnlyAll]
    slow: Sequence[Slow]

    def is_in_gate(self, test: str) -> bool:
        return not any(each.has(test) for each in self.only_all)

    def is_known_slow(self, test: str) -> bool:
        return any(is_of(test, each.test) for each in self.slow)


def is_of(test: str, name: str) -> bool:
    """Whether the test is the one of that name, or one of the module or of the cases that it names."""
    return test == name or test.startswith((f"{name}::", f"{name}["))


def load(root: Path = paths.REPOSITORY) -> Selection:
    """Raises DevError where the file contradicts itself."""
    with (root / FILE).open("rb") as file:
        data: Mapping[str, Any] = tomllib.load(file)
    selection = Selection(
        [Area(**each) for each in data["area"]],
        [OnlyAll(**each) for each in data["only-all"]],
        [Slow(**each) for each in data["slow"]],
    )
    names = {area.name for area in selection.areas}
    for each in selection.only_all:
        for unknown in set(each.areas) - names:
            raise DevError(f"{FILE}: there is no area '{unknown}' ({each.tests[0]})")
    return selection


def changed_since(revision: str, root: Path = paths.REPOSITORY) -> list[str]:
    """Files that differ from the commit, those that git does not know yet among them."""
    try:
        changed = commands.run(["git", "diff", "--name-only", revision, "--"], cwd=root)
        new = commands.run(["git", "ls-files", "--others", "--exclude-standard"], cwd=root)
    except DevError as error:
        raise DevError(f"--since {revision}: {error}") from error
    return sorted({*changed.splitlines(), *new.splitlines()})


def modules(root: Path = paths.REPOSITORY) -> list[str]:
    """All of pytest's, as "e2e/test_mesh.py"."""
    return sorted(f"{folder}/{file.name}" for folder in FOLDERS for file in (root / "test" / folder).glob("test_*.py"))


def concerned(selection: Selection, changed: Iterable[str], known: Sequence[str]) -> list[str]:
    """The modules that the changed files concern; all of them where a file belongs to no area."""
    found: set[str] = set()
    for path in changed:
        found.update(_of_file(selection, path, known))
    return sorted(found)


def _of_file(selection: Selection, path: str, known: Sequence[str]) -> Iterable[str]:
    below = PurePosixPath(path).relative_to("test").as_posix() if path.startswith("test/") else ""
    if below in known:
        return [below]
    areas = [area for area in selection.areas if any(fnmatch.fnmatchcase(path, pattern) for pattern in area.paths)]
    if not areas:
        return known
    return [module for module in known for area in areas if any(fnmatch.fnmatchcase(module, pattern) for pattern in area.tests)]
