"""The files of one program, written as whoever writes them on a node."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path


class Folder:
    """As a kubelet keeps a Secret's volume: links into `..data`, which is exchanged by one rename."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, bytes] = {}
        self._lock = threading.Lock()
        path.mkdir(parents=True)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def write(self, files: Mapping[str, bytes]) -> None:
        """These, and all others as they were. From any thread."""
        with self._lock:
            self._files |= files
            self._swap()

    def _swap(self) -> None:
        new = Path(tempfile.mkdtemp(prefix=time.strftime("..%Y_%m_%d_%H_%M_%S."), dir=self.path))
        new.chmod(0o755)
        for name, content in self._files.items():
            (new / name).write_bytes(content)
            (new / name).chmod(0o600)
        data = self.path / "..data"
        old = os.readlink(data) if data.is_symlink() else None
        half = self.path / "..data_tmp"
        half.symlink_to(new.name)
        os.rename(half, data)
        for name in self._files:
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(f"..data/{name}")
        if old:
            shutil.rmtree(self.path / old)


class Plain:
    """As kubeadm writes: in place, one file after the other, with the same inodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def write(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            fd = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(content)
