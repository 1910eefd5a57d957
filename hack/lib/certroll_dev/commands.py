"""Running programs to their end, with errors that show what they said."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from .ui import DevError

_TAIL_LINES = 15


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | BinaryIO | None = None,
    timeout: float | None = None,
) -> str:
    """What the program printed to stdout; DevError with its last words when it fails."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            env=env,
            cwd=cwd,
            timeout=timeout,
            capture_output=True,
            text=True,
            errors="replace",
            **({"input": stdin} if isinstance(stdin, str) else {"stdin": stdin or subprocess.DEVNULL}),
        )
    except FileNotFoundError as error:
        raise DevError(f"{words[0]} is not installed: run hack/deps") from error
    except subprocess.TimeoutExpired as error:
        raise DevError(f"{_shorten(words)} gave no answer within {timeout:g} s") from error
    if done.returncode != 0:
        raise DevError(f"{_shorten(words)} ended with {done.returncode}:\n{tail(done.stderr or done.stdout)}")
    return done.stdout


def show(argv: Sequence[str | Path]) -> None:
    """Run one of our own scripts, which shows its progress itself; DevError when it fails.

    In a process group of its own: Ctrl-C is for the caller, who ends things in order.
    """
    with subprocess.Popen([str(word) for word in argv], process_group=0) as process:
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            raise
    if status != 0:
        raise DevError(f"{_shorten([Path(argv[0]).name, *map(str, argv[1:])])} ended with {status}")


def succeeds(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, timeout: float | None = 30) -> bool:
    """Whether the program ends with 0; its output is of no interest."""
    words = [str(word) for word in argv]
    try:
        return (
            subprocess.run(words, env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout).returncode
            == 0
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Asks it to, and kills it where it has not by then."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(text: str, lines: int = _TAIL_LINES) -> str:
    """The last lines, indented, as part of an error."""
    return "\n".join("    " + line for line in text.strip().splitlines()[-lines:])


def tail_of(log: Path, lines: int = _TAIL_LINES) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 32768))
            return tail(file.read().decode(errors="replace"), lines)
    except FileNotFoundError:
        return "    (no log)"


def _shorten(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 200 else text[:200] + "…"
