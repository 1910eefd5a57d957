"""Writing files that others read meanwhile; following the ones that a file includes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path


def put(path: Path, text: str, mode: int = 0o644) -> Path:
    """Make the file hold the text: in one step, and not at all when it does already.

    kube-proxy, for one, ends when its configuration is written to, whatever is written.
    """
    try:
        if path.read_text() == text:
            return path
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
    os.replace(half, path)
    return path


def reached(start: Path, direct: Callable[[Path], Iterable[Path]]) -> set[Path]:
    """All files that `start` names by `direct`, those that these name, and so on."""
    found: set[Path] = set()
    todo = [start]
    while todo:
        new = set(direct(todo.pop())) - found
        found |= new
        todo += new
    return found
