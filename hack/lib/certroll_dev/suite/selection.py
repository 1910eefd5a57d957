"""Which tests a run has: test/selection.toml, read, and held against what has changed since a commit.

A test is named as pytest names it, below test/: "e2e/test_mesh.py", "e2e/test_mesh.py::test_no_handshake_fails", or with the
parameters of one case in brackets.
"""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certroll_dev import commands, paths
from certroll_dev.ui import DevError

FILE = Path("test/selection.toml")
RIGHTS = "e2e/test_rights.py"
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

    def areas_of(self, entry: OnlyAll) -> list[str]:
        """The areas whose change is not finished before these tests have passed."""
        modules = {name.partition("::")[0] for name in entry.tests}
        return [area.name for area in self.areas if any(_matches(module, area.tests) for module in modules)]

    def is_known_slow(self, test: str) -> bool:
        return any(is_of(test, each.test) for each in self.slow)


def is_of(test: str, name: str) -> bool:
    """Whether the test is the one of that name, or one of the module or of the cases that it names."""
    return test == name or test.startswith((f"{name}::", f"{name}["))


def load(root: Path = paths.REPOSITORY) -> Selection:
    """Raises DevError when the file is malformed."""
    try:
        with (root / FILE).open("rb") as file:
            data: Mapping[str, Any] = tomllib.load(file)
        return Selection(
            [Area(**each) for each in data["area"]],
            [OnlyAll(**each) for each in data["only-all"]],
            [Slow(**each) for each in data["slow"]],
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DevError(f"{FILE}: {error}") from error


def changed_since(revision: str, root: Path = paths.REPOSITORY) -> list[str]:
    """Files that differ from the commit, with both names of a renamed one, and files that git does not know yet."""
    try:
        commit = commands.run(["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"], cwd=root)
    except DevError as error:
        raise DevError(f"--since takes a commit, a branch or a tag; '{revision}' is none") from error
    changed = commands.run(["git", "diff", "--name-only", "--no-renames", "-z", commit.strip(), "--"], cwd=root)
    new = commands.run(["git", "ls-files", "--others", "--exclude-standard", "-z"], cwd=root)
    return sorted({*changed.split("\0"), *new.split("\0")} - {""})


def modules(root: Path = paths.REPOSITORY) -> list[str]:
    """All of pytest's, as "e2e/test_mesh.py"."""
    return sorted(f"{folder}/{file.name}" for folder in FOLDERS for file in (root / "test" / folder).glob("test_*.py"))


def concerned(selection: Selection, changed: Iterable[str], known: Sequence[str]) -> list[str]:
    """The modules that the changed files concern; all of them where a file belongs to no area. What judges all end-to-end
    tests needs all of them."""
    found: set[str] = set()
    for path in changed:
        found.update(_of_file(selection, path, known))
    if RIGHTS in found:
        found.update(module for module in known if module.startswith("e2e/"))
    return sorted(found)


def _of_file(selection: Selection, path: str, known: Sequence[str]) -> Iterable[str]:
    module = path.removeprefix("test/")
    if module in known:
        return [module]
    areas = [area for area in selection.areas if _matches(path, area.paths)]
    if not areas:
        return known
    return [module for module in known for area in areas if _matches(module, area.tests)]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
