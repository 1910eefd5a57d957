"""What a program for any architecture needs, as its ELF headers say: read by readelf, nothing is run."""

from __future__ import annotations

import re
from pathlib import Path

from . import commands


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(program: Path) -> list[str]:
    """The names of its shared libraries (DT_NEEDED), and the path of its loader."""
    text = commands.run(["readelf", "--wide", "--dynamic", "--program-headers", program])
    loader = re.findall(r"\[Requesting program interpreter: (/\S+)\]", text)
    return [*loader, *re.findall(r"\(NEEDED\)\s+Shared library: \[(\S+)\]", text)]


def machine(program: Path) -> str:
    """Such as "AArch64"."""
    match = re.search(r"^\s*Machine:\s+(.*)$", commands.run(["readelf", "--file-header", program]), re.MULTILINE)
    return match[1] if match else "unknown"
