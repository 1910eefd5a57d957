"""The fuzz targets of test/fuzz: where they are, one run of one of them, and what of its module it reaches."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import commands
from .paths import REPOSITORY
from .ui import DevError

SOURCES = Path("test/fuzz")
CORPUS = SOURCES / "corpus"  # the seeds, as they are committed
BUILD = REPOSITORY / "build" / "fuzz"
GROWN = BUILD / "corpus"  # what runs have found, beyond the seeds
FINDINGS = BUILD / "findings"
LOGS = BUILD / "logs"
# A process that has to wait for a busy machine is no input that takes long.
_LIMITS = ("-max_len=65536", "-timeout=60", "-rss_limit_mb=1024")
_RUNS = re.compile(r"^stat::number_of_executed_units:\s+(\d+)$", re.MULTILINE)
_FUNCTION = re.compile(r"^(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) \S+ (?:\S*/)?pkg/([\w/]+)\.c(?::\d+)?$", re.MULTILINE)
_ABOUT = re.compile(r"^/\*(.*?)\*/", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Coverage:
    """Edges of the control flow of a target's files: those that inputs have taken, and all."""

    taken: int
    edges: int

    def __str__(self) -> str:
        return f"{self.taken} of {self.edges} ({100 * self.taken // self.edges} %)" if self.edges else "none"


@dataclass(frozen=True)
class Ended:
    target: str
    status: int
    runs: int
    seconds: float
    log: Path

    @property
    def ok(self) -> bool:
        return self.status == 0


def targets(root: Path = REPOSITORY) -> list[str]:
    """All there are, by the module that they are of: "json"."""
    return sorted(each.stem.removeprefix("fuzz_") for each in (root / SOURCES).glob("fuzz_*.c"))


def seeds(target: str, root: Path = REPOSITORY) -> list[Path]:
    return sorted(each for each in (root / CORPUS / target).glob("*") if each.is_file())


def about(target: str, root: Path = REPOSITORY) -> str:
    """What its first comment says: what comes in, and what must hold."""
    found = _ABOUT.search((root / SOURCES / f"fuzz_{target}.c").read_text())
    return " ".join(found[1].replace("\n *", "\n").split()) if found else ""


def files(target: str, root: Path = REPOSITORY) -> list[str]:
    """What it is about, as "codec/json": its module and what begins with its name, unless another target is nearer."""
    nearer = {each for other in targets(root) if len(other) > len(target) for each in _files(other, root)}
    return sorted(_files(target, root) - nearer)


def _files(target: str, root: Path) -> set[str]:
    """By the rule of test/MirroredLibrary.cmake: a target has the name of its module, or of layer and module."""
    layer, _, rest = target.partition("_")
    for pattern, module in ((f"*/{target}.[ch]", target), (f"{layer}/{rest}.[ch]", rest)):
        folders = {each.parent for each in (root / "pkg").glob(pattern)}
        if folders:
            sources = (each for folder in folders for name in (module, f"{module}_*") for each in folder.glob(f"{name}.c"))
            return {f"{each.parent.name}/{each.stem}" for each in sources}
    return set()


def build(which: Sequence[str]) -> None:
    commands.show([REPOSITORY / "hack" / "build", "--no-deps", "--preset", "fuzz", *(f"fuzz_{target}" for target in which)])


def run(target: str, folders: Sequence[Path], options: Sequence[str]) -> Ended:
    """folders: corpora; what is found goes to the first. What a finding needs to be seen again is in FINDINGS."""
    for folder in (*folders[:1], FINDINGS, LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{target}.log"
    arguments = [*_LIMITS, "-print_final_stats=1", f"-artifact_prefix={FINDINGS}/{target}-", *options]
    began = time.monotonic()
    with log.open("w") as out:
        status = _start(target, [*arguments, *_there(folders)], stdout=out, stderr=out).returncode
    runs = _RUNS.search(log.read_text(errors="replace"))
    return Ended(target, status, int(runs[1]) if runs else 0, time.monotonic() - began, log)


def coverage(target: str, folders: Sequence[Path], root: Path = REPOSITORY) -> Coverage:
    """Of its files, by the inputs of these folders."""
    done = _start(target, ["-runs=0", "-print_coverage=1", *_LIMITS, *_there(folders)], capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise DevError(f"fuzz_{target} fails with its corpus:\n{commands.tail(done.stderr)}")
    own = set(files(target, root))
    found = [(int(taken), int(edges)) for taken, edges, file in _FUNCTION.findall(done.stderr) if file in own]
    return Coverage(sum(taken for taken, _ in found), sum(edges for _, edges in found))


def _there(folders: Sequence[Path]) -> list[str]:
    return [str(folder) for folder in folders if folder.is_dir()]


def _start(target: str, arguments: Sequence[str], **how: object) -> subprocess.CompletedProcess[str]:
    program = BUILD / "fuzz" / f"fuzz_{target}"
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    words = [str(program), *arguments]
    return subprocess.run(words, cwd=REPOSITORY, stdin=subprocess.DEVNULL, env=environment, **how)  # type: ignore[call-overload,no-any-return]
