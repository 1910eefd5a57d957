"""The mounts that this process sees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mount:
    """Where, of what kind, and from what: what stays the same for as long as it is mounted."""

    point: Path
    kind: str
    source: str


def mounts() -> list[Mount]:
    """In the order of mounting. Unlike os.path.ismount this knows bind mounts."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, source = right.split(" ")[:2]
        # proc(5): space, tab, newline and backslash are written as octal numbers.
        point = left.split(" ")[4].encode().decode("unicode_escape")
        found.append(Mount(Path(point), kind, source))
    return found


def is_mount(path: Path) -> bool:
    return any(mount.point == path for mount in mounts())
