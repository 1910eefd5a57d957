"""What containers wrote, also those whose pods are gone: a kubelet removes the logs of a pod together with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .layout import Cluster


class PodLogs:
    """Logs of the pods of one namespace whose names begin with `prefix`.

    `keep` gives each file of a kubelet's a second name (a hard link), so that what is written to it later is there, too.
    It has to be called while a pod is there, the earlier the better.
    """

    def __init__(self, cluster: Cluster, namespace: str, prefix: str) -> None:
        self._cluster = cluster
        self._names = f"{namespace}_{prefix}*"
        self._pattern = f"{self._names}/*/*.log*"  # NAMESPACE_NAME_UID/CONTAINER/RESTARTS.log
        self._kept = cluster.logs / "kept" / namespace

    def keep(self) -> None:
        self._kept.mkdir(parents=True, exist_ok=True)
        for machine in self._cluster.known_machines():
            with contextlib.suppress(FileNotFoundError):  # a folder has gone between two looks: the next call finds the rest
                for log in (machine.logs / "pods").glob(self._pattern):
                    self._link(log)

    def _link(self, log: Path) -> None:
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            # With its inode: a kubelet that rotates a log starts another one of the same name.
            os.link(log, self._kept / f"{log.parts[-3]}_{log.name}_{log.stat().st_ino}")

    def text(self, uid: str | None = None) -> str:
        """Of one pod, or of all there ever were; containers one after the other, in the order in which they began."""
        self.keep()
        contents = [_read(path) for path in self._kept.glob(self._names) if uid is None or f"_{uid}_" in path.name]
        return "".join("".join(_messages(content)) for content in sorted(contents))

    def uids(self) -> set[str]:
        """Of all pods there ever were."""
        self.keep()
        return {path.name.split("_")[2] for path in self._kept.glob(self._names)}

    def forget(self) -> None:
        for path in self._kept.glob(self._names):
            path.unlink()


def _read(log: Path) -> str:
    return log.read_text(errors="replace")


def _messages(content: str) -> Iterator[str]:
    """The CRI's format: time, stream, F or P (the line goes on), and the message; a last line may still be on its way."""
    for line in content.splitlines(keepends=True):
        _, _, rest = line.partition(" ")
        _, _, rest = rest.partition(" ")
        tag, _, message = rest.partition(" ")
        yield message.rstrip("\n") if tag == "P" else message
