"""hack/check-tidy: clang-tidy over pkg/ and cmd/.

The static analyzer takes seconds for a file, so a file is checked again only when its inputs have changed. A file without
findings is remembered in the cache under a hash of them: the file, the headers of ours that it includes, its compile
command, the checks, this program, and the versions of clang-tidy and of the packages with headers.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import commands, debian, files, paths, ui
from .ui import DevError, Step

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_FOLDERS = ("pkg", "cmd")
_SUMMARY = re.compile(r"^\d+ (warnings?|errors?)\b.*(generated|treated as errors?)\.?$|^Suppressed |^Use -header-filter")
# The unit tests are not checked: their tables of cases trip these checks.
_TOOLS = ("clang-tidy*", "libclang-common-*", "libc6-dev", "libgcc-*-dev", "linux-libc-dev")
_DESCRIPTION = """\
Checks pkg/ and cmd/ with clang-tidy (.clang-tidy has the checks). Needs build/<preset>/compile_commands.json, which
hack/build writes. Exit status 1 when there is a finding."""


@dataclass(frozen=True)
class _Source:
    path: Path
    command: str
    base: bytes
    key: str

    def is_unchanged(self) -> bool:
        """Whether what clang-tidy has read is what the key was made of."""
        _content.cache_clear()
        _included.cache_clear()
        return _key(self.base, self.path, self.command) == self.key


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("hack/check-tidy", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: every .c of pkg/ and cmd/")
    parser.add_argument("--preset", default="dev", help="whose compile commands (default: %(default)s)")
    parser.add_argument("--no-cache", action="store_true", help="check also what was found clean before")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count() or 1, help="so many at once (default: one for each core)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    ui.be_quiet(options.quiet)
    build = paths.REPOSITORY / "build" / options.preset
    sources = _sources(build, {file.resolve() for file in options.files})
    clean = paths.cache_dir() / "clang-tidy"
    clean.mkdir(parents=True, exist_ok=True)
    todo = [each for each in sources if options.no_cache or not (clean / each.key).exists()]
    with Step(f"clang-tidy: {len(todo)} of {len(sources)} files") as step:
        bad = _check(todo, build, clean, options.jobs, step)
    return 1 if bad else 0


def _check(todo: list[_Source], build: Path, clean: Path, jobs: int, step: Step) -> int:
    """How many have findings, which are printed."""
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        checks = {pool.submit(_tidy, each, build): each for each in todo}
        try:
            for number, done in enumerate(concurrent.futures.as_completed(checks), 1):
                step.note(f"{number} of {len(todo)}")
                findings = done.result()
                if findings:
                    bad += 1
                    print(findings, flush=True)
                elif checks[done].is_unchanged():
                    (clean / checks[done].key).touch()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return bad


def _tidy(source: _Source, build: Path) -> str:
    """Its findings; empty when it is clean."""
    words = ["clang-tidy", "-p", str(build), "--quiet", "--warnings-as-errors=*", str(source.path)]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stdout + done.stderr).splitlines() if not _SUMMARY.match(line)]
    return "\n".join(said).strip() or f"{source.path}: clang-tidy ended with {done.returncode}"


def _sources(build: Path, wanted: set[Path]) -> list[_Source]:
    database = build / "compile_commands.json"
    try:
        entries = json.loads(database.read_text())
    except FileNotFoundError as error:
        raise DevError(f"{database} is not there: run hack/build --preset {build.name}") from error
    base = _digest_of_tools()
    found = {}
    for entry in entries:
        path = Path(entry["file"]).resolve()
        if not any(path.is_relative_to(paths.REPOSITORY / folder) for folder in _FOLDERS) or not path.exists():
            continue
        if not wanted or path in wanted:
            found[path] = _Source(path, entry["command"], base, _key(base, path, entry["command"]))
    there = {file for folder in _FOLDERS for file in (paths.REPOSITORY / folder).rglob("*.c")}
    different = (wanted or there) ^ found.keys()
    if different:
        raise DevError(f"{min(different)}: {database} does not fit: run hack/build --preset {build.name}, and give .c files of pkg/ or cmd/")
    return [found[path] for path in sorted(found)]


def _digest_of_tools() -> bytes:
    digest = hashlib.sha256()
    checks = [each for folder in _FOLDERS for each in sorted((paths.REPOSITORY / folder).rglob(".clang-tidy"))]
    for file in [Path(__file__), paths.REPOSITORY / ".clang-tidy", *checks]:
        digest.update(file.read_bytes())
    digest.update(commands.run(["clang-tidy", "--version"]).encode())
    digest.update(debian.versions("build", _TOOLS).encode())
    return digest.digest()


def _key(base: bytes, path: Path, command: str) -> str:
    """The same for the same sources in another checkout."""
    digest = hashlib.sha256(base)
    digest.update(command.replace(str(paths.REPOSITORY), "").encode())
    for each in sorted({path, *files.reached(path, _included)}):
        digest.update(str(each.relative_to(paths.REPOSITORY)).encode() + b"\0" + _content(each) + b"\0")
    return digest.hexdigest()


@functools.cache
def _included(path: Path) -> tuple[Path, ...]:
    """The headers of ours that it includes itself."""
    names = [name.decode() for name in _INCLUDE.findall(_content(path))]
    candidates = [folder / name for name in names for folder in (path.parent, paths.REPOSITORY / "pkg", paths.REPOSITORY / "cmd")]
    return tuple(each.resolve() for each in candidates if each.is_file())


@functools.cache
def _content(path: Path) -> bytes:
    return path.read_bytes()
