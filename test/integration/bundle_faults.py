"""hack/bundle-faults: a fix of the bundle rule taken out, and the first seed of the game (bundle_game.py) that shows it.

test/integration/bundle/faults.toml has the faults. Each is put into a copy of the tree, and the game's driver is built of it.
"""

from __future__ import annotations

import argparse
import shutil
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bundle_game as game
from bundle_cases import make
from bundle_clients import Clients
from certroll_dev import commands, paths, tools, ui
from certroll_dev.ui import DevError, Step

FILE = paths.REPOSITORY / "test" / "integration" / "bundle" / "faults.toml"
SEEDS = 1_000
_SCRATCH = paths.REPOSITORY / "build" / "bundle-faults"
_BATCH = 50
_CONTROL, _BROKEN = "control", "broken"
_DESCRIPTION = f"""\
Takes each fix of the bundle rule out of a copy of the tree, builds the driver of the property game with it, and plays the
game's seeds until a client loses a leaf. Shows that the game notices: exit status 1 if a fault survives {SEEDS} seeds. A
seed counts only if nobody loses anything in the same tree with the fix in it.

The copy and its builds are in build/bundle-faults; the checkout stays as it is."""


@dataclass(frozen=True)
class Edit:
    """One place of the product without the fix."""

    file: str
    before: str  # must be there exactly once
    after: str


@dataclass(frozen=True)
class Fault:
    name: str
    fix: str  # that is taken out
    edits: Sequence[Edit]
    alone: bool = True  # False: only beside others
    beside: Sequence[str] = ()  # names of others that are taken out as well, also where the fix is in: they would hide it


@dataclass(frozen=True)
class Found:
    seed: int
    client: str  # that lost a leaf
    path: str  # which program published the bundle: policy, domain, certgen


@dataclass(frozen=True)
class Row:
    fault: Fault
    found: Found | None
    seconds: float  # of the game

    def cells(self) -> tuple[str, ...]:
        found = (str(self.found.seed), self.found.client, self.found.path) if self.found else ("none", "", "")
        return (self.fault.name, self.fault.fix, *found, f"{self.seconds:.0f}")


_COLUMNS = ("fault", "the fix that is taken out", "first seed", "client", "path", "seconds")


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("hack/bundle-faults", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FAULT", help="default: all")
    parser.add_argument("--list", action="store_true", help="print the faults and the fixes they take out")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="play so many seeds at most (default: %(default)s)")
    options = parser.parse_args(arguments)
    known = load()
    chosen = [fault for fault in _choose(known, options.names) if fault.alone or options.names]
    if options.list:
        for fault in chosen:
            print(f"{fault.name:20} {fault.fix}")
        return 0
    rows = []
    for row in examine(known, chosen, options.seeds):
        ui.say("  ".join(row.cells()))
        rows.append(row)
    print(table(rows))
    survived = [row.fault.name for row in rows if not row.found]
    if survived:
        print(f"not found within {options.seeds} seeds: {', '.join(survived)}")
    return 1 if survived else 0


def load(file: Path = FILE) -> list[Fault]:
    """Raises DevError when the file is malformed."""
    try:
        data: Mapping[str, Any] = tomllib.loads(file.read_text())
        return [Fault(**{**each, "edits": [Edit(**edit) for edit in each["edits"]]}) for each in data["fault"]]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DevError(f"{file}: {error}") from error


def _choose(known: Sequence[Fault], names: Sequence[str]) -> Sequence[Fault]:
    unknown = sorted(set(names) - {fault.name for fault in known})
    if unknown:
        raise DevError(f"there is no fault {', '.join(unknown)}; there are: {', '.join(fault.name for fault in known)}")
    return [fault for fault in known if not names or fault.name in names]


def table(rows: Sequence[Row]) -> str:
    """In Markdown."""
    lines = [_COLUMNS, ("---",) * len(_COLUMNS), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# --- the copy with a fault in it


def with_faults(known: Sequence[Fault], fault: Fault, *, itself: bool = True, root: Path = paths.REPOSITORY) -> dict[str, str]:
    """The files that change, by their names, with what they then have; without `itself` only those beside it. Raises DevError when an
    edit does not fit."""
    texts: dict[str, str] = {}
    beside = [edit for name in fault.beside for other in _choose(known, [name]) for edit in other.edits]
    for edit in [*beside, *(fault.edits if itself else [])]:
        text = texts.get(edit.file) or (root / edit.file).read_text()
        if text.count(edit.before) != 1:
            raise DevError(f"{fault.name}: {edit.file} must have once, and has {text.count(edit.before)} times: {edit.before}")
        texts[edit.file] = text.replace(edit.before, edit.after)
    return texts


def _copy(tree: Path) -> None:
    """The checkout as it is, without what git ignores. What has not changed is left alone, so that it is not built again."""
    listed = commands.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=paths.REPOSITORY)
    names = [name for name in listed.split("\0") if name and (paths.REPOSITORY / name).is_file()]
    for name in names:
        _put(tree / name, (paths.REPOSITORY / name).read_bytes(), (paths.REPOSITORY / name).stat().st_mode)
    for folder in ("cmake", "cmd", "pkg", "test"):  # what is no longer there must not be built
        for file in (tree / folder).rglob("*"):
            if file.is_file() and not (paths.REPOSITORY / file.relative_to(tree)).exists():
                file.unlink()


def _put(file: Path, content: bytes, mode: int = 0o644) -> None:
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(mode & 0o777)


def _build(name: str, texts: Mapping[str, str]) -> Path:
    """The folder with the programs of the game, built with these texts. It stays until another one of that name is built."""
    tree, out = _SCRATCH / "tree", _SCRATCH / name
    _copy(tree)
    for file, text in texts.items():
        _put(tree / file, text.encode())
    with Step(f"building the game's driver: {name}"):
        commands.run([tree / "hack" / "build", "--no-deps", "bundle_driver", "gnutls_clients"], cwd=tree)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(tree / "build" / "dev" / "test", out / "test")
    return out


# --- the game


def examine(known: Sequence[Fault], chosen: Sequence[Fault], seeds: int) -> Iterator[Row]:
    tools.ensure(["certcheck"])
    for fault in chosen:  # before anything is built
        with_faults(known, fault)
    controls: dict[Sequence[str], Path] = {}
    for fault in chosen:
        if tuple(fault.beside) not in controls:
            name = "-".join([_CONTROL, *fault.beside])
            controls[tuple(fault.beside)] = _build(name, with_faults(known, fault, itself=False))
        broken = _build(_BROKEN, with_faults(known, fault))
        began = time.monotonic()
        with Clients(broken) as clients, Clients(controls[tuple(fault.beside)]) as control:
            found = _play(clients, control, seeds)
        yield Row(fault, found, time.monotonic() - began)


def _play(clients: Clients, control: Clients, seeds: int) -> Found | None:
    for first in range(1, seeds + 1, _BATCH):
        batch = range(first, min(first + _BATCH, seeds + 1))
        outcomes = game.play(clients, [make(seed) for seed in batch])
        for seed, outcome in zip(batch, outcomes, strict=True):
            found = _lost(outcome)
            if found and not _lost(game.play(control, [make(seed)])[0]):
                return Found(seed, found, outcome.case.path)
    return None


def _lost(outcome: game.Outcome) -> str | None:
    """A client that has lost a leaf, though some bundle would have kept it."""
    return next((loss.client for loss in outcome.failures), None)
