"""hack/prove: what test/proofs/proofs.toml says of small parsers, shown by CBMC for every input up to a length.

CBMC takes a program apart into one formula, with its loops unrolled as often as the proof says, and asks a solver for an
input that breaks a rule. That no loop goes further is one of the rules, so what is proved is proved of all inputs that the
harness allows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import cbmc, commands, paths, ui
from .ui import DevError

FOLDER = paths.REPOSITORY / "test" / "proofs"
_COMMON = ("stubs.c",)
_CPU_S = 600  # a proof takes a tenth of that: it will not end
_MEMORY = 8 << 30
_CHECKS = (
    "--pointer-overflow-check",
    "--unsigned-overflow-check",
    "--unwinding-assertions",
    "--no-malloc-may-fail",  # the program ends when memory is gone: pkg/base/alloc.h
    "--drop-unused-functions",
    "--slice-formula",
)
_PROVED, _REFUTED = 0, 10  # what CBMC ends with
_DESCRIPTION = """\
Proves rules of small parsers for all inputs up to a length, with CBMC: no read or write out of bounds, no overflow, an end
of every loop, and what the harness in test/proofs requires. CBMC is fetched from Debian into the cache at the first time.
Exit status 0 when all hold. test/proofs/README.md has what is proved, and what is assumed."""


@dataclass(frozen=True)
class Broken:
    """A fault by which the proof must fail, or it shows nothing."""

    what: str
    file: str
    before: str  # must be there exactly once
    after: str


@dataclass(frozen=True)
class Proof:
    name: str
    what: str
    harness: str
    sources: Sequence[str]
    max: int  # bytes of the input that may be any
    unwind: int  # of each loop; what `unwindset` has is for loops of their own, as CBMC names them
    unwindset: Mapping[str, int] = field(default_factory=dict)
    function: str = "main"  # of the harness
    beginning: str | None = None  # what the input begins with
    broken: Sequence[Broken] = ()


@dataclass(frozen=True)
class Answer:
    failed: Sequence[str]  # a line for each rule that does not hold
    seconds: float  # of a core


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("hack/prove", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PROOF", help="default: all")
    parser.add_argument("--list", action="store_true", help="print the proofs and what they show")
    parser.add_argument("--broken", action="store_true", help="show that each fails once a check is taken out of a copy of the parser")
    options = parser.parse_args(arguments)
    chosen = _choose(load(), options.names)
    if options.list:
        for proof in chosen:
            print(f"{proof.name:20} {proof.what}")
        return 0
    checker = cbmc.fetch()
    bad = sum(_break(checker, proof) if options.broken else _prove(checker, proof) for proof in chosen)
    if bad:
        print(f"{bad} {'of the faults were not found' if options.broken else 'of the proofs failed'}")
    return 1 if bad else 0


def load(folder: Path = FOLDER) -> list[Proof]:
    """Raises DevError when the file is malformed."""
    file = folder / "proofs.toml"
    try:
        data: Mapping[str, Any] = tomllib.loads(file.read_text())
        return [Proof(**{**each, "broken": [Broken(**fault) for fault in each.get("broken", [])]}) for each in data["proof"]]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DevError(f"{file}: {error}") from error


def _choose(known: Sequence[Proof], names: Sequence[str]) -> Sequence[Proof]:
    unknown = sorted(set(names) - {proof.name for proof in known})
    if unknown:
        raise DevError(f"there is no proof {', '.join(unknown)}; there are: {', '.join(proof.name for proof in known)}")
    return [proof for proof in known if not names or proof.name in names]


def _prove(checker: Sequence[str], proof: Proof) -> int:
    """How many failed: this one, or none."""
    answer = _check(checker, proof, [paths.REPOSITORY / source for source in proof.sources])
    _print_line(not answer.failed, proof.name, answer)
    for line in answer.failed:
        print(f"    {line}")
    return 1 if answer.failed else 0


def _break(checker: Sequence[str], proof: Proof) -> int:
    """How many of its faults the proof does not find."""
    missed = 0
    if not proof.broken:
        raise DevError(f"{proof.name} has no fault by which it could be seen to fail")
    for fault in proof.broken:
        with tempfile.TemporaryDirectory(prefix="prove-") as scratch:
            answer = _check(checker, proof, list(with_fault(proof, fault, Path(scratch))))
        _print_line(bool(answer.failed), f"{proof.name}: {fault.what}", answer)
        for line in answer.failed[:2]:
            print(f"    {line}")
        missed += not answer.failed
    return missed


def with_fault(proof: Proof, fault: Broken, scratch: Path) -> Iterator[Path]:
    """The sources of the proof, with a copy in `scratch` for the one that has the fault. Raises DevError when it does not fit."""
    if fault.file not in proof.sources:
        raise DevError(f"{proof.name}: {fault.what}: {fault.file} is none of its sources")
    for source in proof.sources:
        original = paths.REPOSITORY / source
        if source != fault.file:
            yield original
            continue
        text = original.read_text()
        if text.count(fault.before) != 1:
            raise DevError(f"{proof.name}: {fault.what}: {source} must have once, and has {text.count(fault.before)} times: {fault.before}")
        copy = scratch / original.name
        copy.write_text(text.replace(fault.before, fault.after))
        yield copy


def _print_line(good: bool, text: str, answer: Answer) -> None:
    print(f"{'✓' if good else '✗'} {text}  {answer.seconds:.1f} s", flush=True)


def _check(checker: Sequence[str], proof: Proof, sources: Sequence[Path]) -> Answer:
    files = [FOLDER / proof.harness, *(FOLDER / name for name in _COMMON), *sources]
    argv = [*checker, "--json-ui", *_CHECKS, *_options(proof), *map(str, files)]
    begun = _cpu_seconds()
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=_limit)
    seconds = _cpu_seconds() - begun
    if done.returncode not in (_PROVED, _REFUTED):
        raise DevError(f"{proof.name}: CBMC ended with {done.returncode} after {seconds:.0f} s:\n{commands.tail(_words(done.stdout) or done.stderr)}")
    failed = _failures(done.stdout)
    if bool(failed) != (done.returncode == _REFUTED):
        raise DevError(f"{proof.name}: CBMC ended with {done.returncode}, and names {len(failed)} rules that do not hold")
    missing = [line for line in failed if "no body for callee" in line]
    if missing:
        raise DevError(f"{proof.name}: what is called is not among its sources:\n{commands.tail(chr(10).join(missing))}")
    return Answer(failed, seconds)


def _options(proof: Proof) -> Iterator[str]:
    yield from ("-D", "_GNU_SOURCE", "-D", f"MAX={proof.max}", "-I", str(paths.REPOSITORY / "pkg"), "-I", str(FOLDER))
    if proof.beginning is not None:
        yield from ("-D", f"BEGINNING={_literal(proof.beginning)}")
        # So that what is known of the input's bytes stays known of each.
        yield from ("--max-field-sensitivity-array-size", str(max(64, len(proof.beginning.encode()) + proof.max)))
    yield from ("--function", proof.function, "--unwind", str(proof.unwind))
    if proof.unwindset:
        yield from ("--unwindset", ",".join(f"{loop}:{count}" for loop, count in proof.unwindset.items()))


def _literal(text: str) -> str:
    """As a string of C."""
    escaped = "".join(chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\' else f"\\{byte:03o}" for byte in text.encode())
    return f'"{escaped}"'


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _cpu_seconds() -> float:
    """Of all that was run so far and has ended: what a busy machine does not change."""
    times = os.times()
    return times.children_user + times.children_system


def _messages(said: str) -> list[Mapping[str, Any]]:
    try:
        return list(json.loads(said))
    except ValueError:  # it was killed
        return []


def _words(said: str) -> str:
    return "\n".join(each["messageText"] for each in _messages(said) if "messageText" in each)


def _failures(said: str) -> list[str]:
    results = [result for each in _messages(said) for result in each.get("result", [])]
    return [_describe(result) for result in results if result["status"] == "FAILURE"]


def _describe(result: Mapping[str, Any]) -> str:
    where = result.get("sourceLocation", {})
    return f"{Path(where.get('file', '?')).name}:{where.get('line', '?')} {where.get('function', '?')}: {result['description']}"
