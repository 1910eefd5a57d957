"""Volumes of Secrets and ConfigMaps, written as the kubelet does (kubernetes pkg/volume/util/atomic_writer.go)."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path


class AtomicVolume:
    """A folder whose files are links into `..data`, which is a link to a folder with the time in its name.

    A change makes a new folder, lets `..data` point to it by a rename, and removes the old one: programs that watch see
    just what they see in a pod.
    """

    def __init__(self, folder: Path, *, group: int, mode: int = 0o640) -> None:
        self.folder = folder
        self._group, self._mode = group, mode
        folder.mkdir(parents=True)

    def write(self, files: Mapping[str, bytes]) -> None:
        data = self.folder / "..data"
        old = os.readlink(data) if data.is_symlink() else None
        new = Path(tempfile.mkdtemp(prefix=time.strftime("..%Y_%m_%d_%H_%M_%S."), dir=self.folder))
        new.chmod(0o755)
        for name, content in files.items():
            self._put(new / name, content)
        half = self.folder / "..data_tmp"
        half.symlink_to(new.name)
        os.rename(half, data)
        for name in files:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        for link in self.folder.iterdir():
            if link.is_symlink() and link.name != "..data" and link.name not in files:
                link.unlink()
        if old:
            shutil.rmtree(self.folder / old)

    def _put(self, path: Path, content: bytes) -> None:
        """Of root and the pod's fsGroup, as a Secret volume with this defaultMode."""
        path.write_bytes(content)
        os.chown(path, 0, self._group)
        path.chmod(self._mode)
