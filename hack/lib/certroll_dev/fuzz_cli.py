"""hack/fuzz: runs of the fuzz targets, long ones and those of the gate."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import tempfile
import xml.etree.ElementTree as tree
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from . import commands, fuzz, fuzz_docs, ui
from .paths import REPOSITORY
from .ui import DevError, Step

T = TypeVar("T")
_DESCRIPTION = """\
Builds fuzz targets with clang, AddressSanitizer and UBSan, and runs them with libFuzzer, from the seeds of
test/fuzz/corpus and from what earlier runs have found (build/fuzz/corpus). At the end it prints how many edges of the
control flow of a target's files were taken."""
_EPILOG = """\
examples:
  hack/fuzz                                every target, a minute each
  hack/fuzz all --seconds 600              every target, ten minutes each
  hack/fuzz json yaml --seconds 3600       two of them, for an hour
  hack/fuzz all --seconds 300 --write-docs also the table of docs/fuzzing.md
  hack/fuzz --gate                         as hack/test does: the seeds, then a bounded number of runs, always the same

A finding is a file build/fuzz/findings/<target>-crash-…; `build/fuzz/fuzz/fuzz_<target> FILE` shows it again. What was
mended becomes a seed. The output of a run: build/fuzz/logs/<target>.log. Exit status 1 when there is a finding."""
# Some seconds of each: what a change breaks at once is found, and a slow machine has the seeds at least.
_GATE = ("-seed=1", "-runs=50000", "-max_total_time=3")


def run(arguments: list[str]) -> int:
    options = _parse(arguments)
    ui.be_quiet(options.quiet)
    which = _chosen(options.targets)
    if not options.no_build:
        fuzz.build(which)
    if options.gate:
        return _gate(which, options.jobs, options.report)
    ended = _each(which, options.jobs, f"fuzzing, {options.seconds} s each", lambda target: _long(target, options.seconds))
    if options.report:
        _write_report(ended, options.report)
    reached = _each(which, options.jobs, "measuring coverage", _measure) if all(each.ok for each in ended) else None
    print(_table(ended, reached))
    if options.write_docs and reached:
        _write_docs(ended, reached, options.seconds)
    return _conclude(ended)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "hack/fuzz", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", metavar="TARGET", nargs="*", help="json, yaml, …: test/fuzz/fuzz_<target>.c; all (the default)")
    parser.add_argument("--seconds", type=int, default=60, help="how long each runs (default: %(default)s)")
    parser.add_argument("--jobs", "-j", type=int, default=min(2, os.cpu_count() or 1), help="so many at once (default: %(default)s)")
    parser.add_argument("--gate", action="store_true", help="the seeds, and a few seconds of each; nothing is kept")
    parser.add_argument("--report", type=Path, help="JUnit, into this file")
    parser.add_argument("--write-docs", action="store_true", help="write the figures of docs/fuzzing.md")
    parser.add_argument("--no-build", action="store_true", help="they are built")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser.parse_args(arguments)


def _chosen(words: Sequence[str]) -> list[str]:
    known = fuzz.targets()
    unknown = [word for word in words if word not in known and word != "all"]
    if unknown:
        raise DevError(f"there is no target {unknown[0]}; there are {', '.join(known)}")
    return known if not words or "all" in words else sorted(set(words))


def _each(which: Sequence[str], jobs: int, what: str, do: Callable[[str], T]) -> list[T]:
    """In the order of which."""
    with Step(what) as step, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(do, target) for target in which]
        try:
            for number, _ in enumerate(concurrent.futures.as_completed(futures), 1):
                step.note(f"{number} of {len(which)}")
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _long(target: str, seconds: int) -> fuzz.Ended:
    return fuzz.run(target, [fuzz.GROWN / target, REPOSITORY / fuzz.CORPUS / target], [f"-max_total_time={seconds}"])


def _short(target: str) -> fuzz.Ended:
    with tempfile.TemporaryDirectory(prefix="certroll-fuzz-") as scratch:
        return fuzz.run(target, [Path(scratch), REPOSITORY / fuzz.CORPUS / target], _GATE)


def _measure(target: str) -> tuple[fuzz.Coverage, fuzz.Coverage]:
    """By the seeds alone, and by all that was found."""
    tree_corpus = REPOSITORY / fuzz.CORPUS / target
    return fuzz.coverage(target, [tree_corpus]), fuzz.coverage(target, [fuzz.GROWN / target, tree_corpus])


def _table(ended: Sequence[fuzz.Ended], reached: Sequence[tuple[fuzz.Coverage, fuzz.Coverage]] | None) -> str:
    lines = [f"{'target':28} {'runs':>10} {'a second':>9}" + (f"  {'edges, by the seeds':>22}  {'by all inputs':>22}" if reached else "")]
    for at, each in enumerate(ended):
        speed = f"{each.runs / each.seconds:.0f}" if each.seconds else ""
        line = f"{each.target:28} {each.runs:>10} {speed:>9}" + ("" if each.ok else "  FAILED")
        if reached:
            seeds, everything = reached[at]
            line += f"  {seeds!s:>22}  {everything!s:>22}"
        lines.append(line)
    return "\n".join(lines)


def _conclude(ended: Sequence[fuzz.Ended]) -> int:
    for each in ended:
        if not each.ok:
            print(f"\nfuzz_{each.target} ended with {each.status}, see {each.log}:\n{commands.tail_of(each.log, 40)}")
    return 0 if all(each.ok for each in ended) else 1


def _write_docs(ended: Sequence[fuzz.Ended], reached: Sequence[tuple[fuzz.Coverage, fuzz.Coverage]], seconds: int) -> None:
    """What was not run this time stays."""
    path = REPOSITORY / fuzz_docs.RESULT
    figures = json.loads(path.read_text()) if path.exists() else {}
    known = fuzz.targets()
    for each, (seeds, everything) in zip(ended, reached, strict=True):
        figures[each.target] = {
            "edges": everything.edges, "by_seeds": seeds.taken, "by_all": everything.taken, "runs": each.runs, "seconds": seconds,
        }  # fmt: skip
    path.write_text(json.dumps({name: figures[name] for name in sorted(figures) if name in known}, indent=2) + "\n")
    commands.show([REPOSITORY / "hack" / "docs", "fuzz"])


# --- the gate ---


def _gate(which: Sequence[str], jobs: int, report: Path | None) -> int:
    bare = [target for target in which if not fuzz.seeds(target)]
    if bare:
        raise DevError(f"{', '.join(bare)}: there are no seeds in {fuzz.CORPUS}/<target>")
    ended = _each(which, jobs, "fuzzing, a few seconds each", _short)
    if report:
        _write_report(ended, report)
    print(_table(ended, None))
    return _conclude(ended)


def _write_report(ended: Sequence[fuzz.Ended], report: Path) -> None:
    failed = sum(not each.ok for each in ended)
    suite = tree.Element("testsuite", name="fuzz", tests=str(len(ended)), failures=str(failed))
    for each in ended:
        case = tree.SubElement(suite, "testcase", classname="fuzz", name=each.target, time=f"{each.seconds:.1f}")
        if not each.ok:
            tree.SubElement(case, "failure", message=f"ended with {each.status}").text = commands.tail_of(each.log, 60)
    report.parent.mkdir(parents=True, exist_ok=True)
    tree.ElementTree(suite).write(report)
