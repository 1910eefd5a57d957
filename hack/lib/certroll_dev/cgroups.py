"""The cgroups of a cluster: a folder in each v1 hierarchy, or in the one of v2, below which its pods have theirs."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path

from .ui import DevError

_MOUNT = Path("/sys/fs/cgroup")
_V2_CONTROLLERS = ("cpu", "cpuset", "io", "memory", "pids")
# All pods of all clusters share one place among the host's processes: with the weight of one, Envoys starve beside a build.
_CPU_WEIGHTS = {"cpu.shares": "8192", "cpu.weight": "800"}  # v1, v2; a process has 1024, 100


def make(name: str) -> None:
    """Make the cgroup in every hierarchy; the kubelet wants its root to exist."""
    for hierarchy in _hierarchies():
        while True:
            # The end of another cluster may just now remove a parent that is empty.
            with contextlib.suppress(FileNotFoundError):
                _make_below(hierarchy, name)
                break


def remove(name: str, timeout: float = 10) -> None:
    """Remove it, all below it, and parents that are then empty; its processes must have ended."""
    end = time.monotonic() + timeout
    for hierarchy in _hierarchies():
        top = hierarchy / name
        while not _remove_tree(top):
            if time.monotonic() > end:
                raise DevError(f"cgroup {top} cannot be removed; still in it: process {_processes(top) or 'unknown'}")
            time.sleep(0.05)
        for parent in list(Path(name).parents)[:-1]:
            _remove_one(hierarchy / parent)


def existing(name: str) -> list[str]:
    """All cgroups of that name and below, each with the hierarchies that have it."""
    found: dict[str, list[str]] = {}
    for hierarchy in _hierarchies():
        for path in _tree(hierarchy / name):
            found.setdefault(str(path.relative_to(hierarchy)), []).append(hierarchy.name)
    return [f"{path} ({', '.join(hierarchies)})" for path, hierarchies in sorted(found.items())]


def pids_of_container(name: str, container: str) -> list[int]:
    """The processes of a container below the cgroup `name`, as this process numbers them; the first one first."""
    for hierarchy in _hierarchies():
        for path in _tree(hierarchy / name):
            if path.name == container:
                return sorted(int(pid) for pid in _listed(path))
    return []


def pids_of_pod(name: str, uid: str) -> list[int]:
    """The processes of all containers of a pod below the cgroup `name`, its sandbox among them, as this process numbers them."""
    for hierarchy in _hierarchies():
        pods = [path for path in _tree(hierarchy / name) if path.name == f"pod{uid}"]
        if pods:
            return sorted(int(pid) for path in _tree(pods[0]) for pid in _listed(path))
    return []


def _hierarchies() -> list[Path]:
    """The mount itself with cgroup v2; with v1 the folders in it that are hierarchies, without their other names."""
    if (_MOUNT / "cgroup.controllers").exists():
        return [_MOUNT]
    return sorted(path for path in _MOUNT.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink())


def _make_below(hierarchy: Path, name: str) -> None:
    current = hierarchy
    for part in Path(name).parts:
        parent, current = current, current / part
        _delegate(parent)
        current.mkdir(exist_ok=True)
        _inherit_cpuset(parent, current)
        if parent == hierarchy:
            _weigh(current)


def _weigh(top: Path) -> None:
    for name, weight in _CPU_WEIGHTS.items():
        if (top / name).exists():
            (top / name).write_text(weight)


def _delegate(parent: Path) -> None:
    """On v2 a child has only those controllers that its parent hands on."""
    available = parent / "cgroup.controllers"
    if not available.exists():
        return
    for controller in available.read_text().split():
        if controller in _V2_CONTROLLERS:
            try:
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:
                # In a container's cgroup, whose own processes stand in the way. The kubelet names what it lacks.
                continue


def _inherit_cpuset(parent: Path, child: Path) -> None:
    """A new v1 cpuset is empty, and then nothing may enter it."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = child / name
        if file.exists() and not file.read_text().strip() and not (child / "cgroup.controllers").exists():
            file.write_text((parent / name).read_text())


def _tree(top: Path) -> list[Path]:
    """The cgroup and all below it, parents first. os.walk does not mind that some may go meanwhile."""
    return [Path(folder) for folder, _, _ in os.walk(top)]


def _remove_tree(top: Path) -> bool:
    removed = [_remove_one(path) for path in reversed(_tree(top))]
    return all(removed)


def _remove_one(path: Path) -> bool:
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # busy or not empty
    return True


def _processes(top: Path) -> str:
    return " ".join(pid for path in _tree(top) for pid in _listed(path))


def _listed(path: Path) -> list[str]:
    """Nobody in a cgroup that is being removed."""
    try:
        return (path / "cgroup.procs").read_text().split()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return []
