"""hack/mutations: small faults put into the product, to see whether the tests notice.

A mutation is one line or one statement of pkg/ changed: a check dropped, a comparison swapped, a precondition removed, a
wake-up forgotten. A seed chooses them, rotating through folders and kinds.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import commands, paths
from .ui import DevError

_FUNCTION = re.compile(r"^[a-z].*?\b(\w+)\([^;]*$")
_GUARD = re.compile(r"^\s+if \(.*\)$")
_LEAVES = re.compile(r"^\s+(return|continue|break)\b.*;$")
_CALL = re.compile(r"^\s+[a-z]\w*\(.*\);$")
_STATEMENT = re.compile(r"^\s+[\w>.\[\]\-*]+( [|+]?= .*|\(.*\));$")
_WAKES = re.compile(r"^\s+\w*(wake|notify|signal|broadcast|queue_add|add_after|schedule|tell|post|renew|hasten|timer_arm)\w*\(")
_PRECONDITION = re.compile(r"precondition|resource_version|resourceVersion|\buid\b|generation|fence")
_FREES = re.compile(r"^\s+(\w*free|\w*dispose|\w*unref|close|memset|memcpy)\(")
_SWAPS = ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "), (" && ", " || "), (" || ", " && "))
_DESCRIPTION = """\
Prints small faults of the product that a seed chooses, or puts one of them into the working tree. To judge the tests: put
one in, build, and run what executes its function; the fault is found when a test fails. `git checkout pkg` takes it away,
so pkg/ must be as committed."""


@dataclass(frozen=True)
class Mutation:
    kind: str
    path: Path
    line: int  # from 1, the first that changes
    function: str
    before: Sequence[str]
    after: Sequence[str]

    def __str__(self) -> str:
        head = f"{self.kind}: {self.path}:{self.line} {self.function}()"
        return "\n".join([head, *(f"  - {text.strip()}" for text in self.before), *(f"  + {text.strip()}" for text in self.after)])


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("hack/mutations", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--count", type=int, default=30, help="how many (default: %(default)s)")
    parser.add_argument("--apply", type=int, metavar="N", help="change the working tree by the N-th of them, from 1")
    options = parser.parse_args(arguments)
    chosen = choose(options.seed, options.count)
    if options.apply is None:
        for number, mutation in enumerate(chosen, 1):
            print(f"{number}. {mutation}")
        return 0
    if not 1 <= options.apply <= len(chosen):
        raise DevError(f"--apply takes a number from 1 to {len(chosen)}")
    if commands.run(["git", "status", "--porcelain", "--", "pkg"], cwd=paths.REPOSITORY):
        raise DevError("pkg/ has changes that are not committed: which mutations there are hangs on them, and they could be lost")
    apply(chosen[options.apply - 1])
    print(chosen[options.apply - 1])
    return 0


def apply(mutation: Mutation, root: Path = paths.REPOSITORY) -> None:
    file = root / mutation.path
    lines = file.read_text().split("\n")
    first = mutation.line - 1
    lines[first : first + len(mutation.before)] = mutation.after
    file.write_text("\n".join(lines))


def choose(seed: int, count: int, root: Path = paths.REPOSITORY) -> list[Mutation]:
    """In turn from each folder of pkg/ and of each kind; of another kind where a folder has none left of this one."""
    chance = random.Random(seed)
    folders = sorted({str(file.parent.relative_to(root / "pkg")) for file in (root / "pkg").rglob("*.c")})
    chance.shuffle(folders)
    candidates = {folder: _candidates(root, folder) for folder in folders}
    for found in candidates.values():
        chance.shuffle(found)
    kinds = [kind for kind, _ in _KINDS]
    chosen: list[Mutation] = []
    for number in range(count):
        left = candidates[folders[number % len(folders)]]
        kind = kinds[number % len(kinds)]
        mutation = next((each for each in left if each.kind == kind), left[0] if left else None)
        if mutation:
            left.remove(mutation)
            chosen.append(mutation)
    return chosen


def _candidates(root: Path, folder: str) -> list[Mutation]:
    found = []
    for file in sorted((root / "pkg" / folder).glob("*.c")):
        lines = file.read_text().split("\n")
        for first, function in _inside_functions(lines):
            for kind, make in _KINDS:
                changed = make(lines, first)
                if changed:
                    before, after = changed
                    found.append(Mutation(kind, file.relative_to(root), first + 1, function, before, after))
    return found


def _inside_functions(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    name = ""
    inside = False
    for number, text in enumerate(lines):
        begins = _FUNCTION.match(text)
        if begins:
            name = begins[1]
        if text in ("{", "}"):
            inside = text == "{"
        elif inside and not text.strip().startswith(("/*", "*", "#")):
            yield number, name


def _is_alone(lines: Sequence[str], first: int) -> bool:
    """Whether the statement is not the body of the line before."""
    before = lines[first - 1].strip()
    return not before or before.endswith((";", "{", "}", "*/"))


_Change = tuple[Sequence[str], Sequence[str]]


def _drop_check(lines: Sequence[str], first: int) -> _Change | None:
    if _is_alone(lines, first) and _GUARD.match(lines[first]) and _LEAVES.match(lines[first + 1]) and not lines[first + 2].strip().startswith("else"):
        return lines[first : first + 2], []
    return None


def _swap(lines: Sequence[str], first: int) -> _Change | None:
    text = lines[first]
    if '"' in text or "for (" in text:  # a text for people; a loop that never ends proves nothing
        return None
    for before, after in _SWAPS:
        if before in text:
            return [text], [text.replace(before, after, 1)]
    return None


def _remove(pattern: re.Pattern[str], statement: re.Pattern[str]) -> Callable[[Sequence[str], int], _Change | None]:
    def remove(lines: Sequence[str], first: int) -> _Change | None:
        text = lines[first]
        if '"' in text or _FREES.match(text):  # a log line; a leak is what sanitizers find
            return None
        return ([text], []) if _is_alone(lines, first) and statement.match(text) and pattern.search(text) else None

    return remove


_KINDS: Sequence[tuple[str, Callable[[Sequence[str], int], _Change | None]]] = (
    ("check dropped", _drop_check),
    ("comparison swapped", _swap),
    ("precondition removed", _remove(_PRECONDITION, _STATEMENT)),
    ("wake-up forgotten", _remove(_WAKES, _CALL)),
)
