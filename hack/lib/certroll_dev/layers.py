"""What is in an image: its files as a sorted list, written as the layer of an archive or as a folder."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One file of the image. `source` is a file to copy, bytes, a link's target (str), or None for a folder."""

    path: str
    mode: int
    source: Path | bytes | str | None
    uid: int = 0
    gid: int = 0


def write_tar(layer: Path, entries: Sequence[Entry]) -> None:
    """The same entries give the same bytes: mtime 0, and no names of users of this machine."""
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.mode, info.uid, info.gid = entry.mode, entry.uid, entry.gid
            if entry.source is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif isinstance(entry.source, str):
                info.type, info.linkname = tarfile.SYMTYPE, entry.source
                tar.addfile(info)
            elif isinstance(entry.source, bytes):
                info.size = len(entry.source)
                tar.addfile(info, io.BytesIO(entry.source))
            else:
                info.size = entry.source.stat().st_size
                with entry.source.open("rb") as file:
                    tar.addfile(info, file)


def write_folder(folder: Path, entries: Sequence[Entry]) -> None:
    """Modes and times are those of the layer; owners are left to whoever copies it, so that this needs no root."""
    for entry in entries:
        path = folder / entry.path
        if isinstance(entry.source, str):
            path.symlink_to(entry.source)
            continue
        if entry.source is None:
            path.mkdir()
        else:
            path.write_bytes(entry.source if isinstance(entry.source, bytes) else entry.source.read_bytes())
        path.chmod(entry.mode)
    for entry in reversed(entries):  # children first: each would give its folder a new time
        os.utime(folder / entry.path, (0, 0), follow_symlinks=False)
