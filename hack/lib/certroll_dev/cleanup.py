"""Taking a cluster away, whatever state it is in: by what is found on the machine, not by what was written down."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from . import balancer, cgroups, commands, daemons, machines, namespaces, network, paths, ui
from .layout import Cluster
from .mounts import mounts


def remove(cluster: Cluster) -> bool:
    """End every process, then remove what they used; False when there was nothing. DevError names what resists."""
    found = [*machines.processes_one(cluster), *balancer.processes(cluster)]
    names = network.namespaces_of(cluster.netns)
    there = bool(found or names or cluster.root.exists())
    daemons.end_all(found)
    cgroups.remove(cluster.cgroup)
    _warn_of_guests(names)
    network.remove(names)
    _unmount_below(cluster.root)
    if cluster.root.exists():
        shutil.rmtree(cluster.root)
    return there


def remove_empty_state_dir() -> None:
    with contextlib.suppress(OSError):  # other clusters are in it
        paths.state_dir().rmdir()


def _unmount_below(root: Path) -> None:
    """There is nothing to unmount unless someone mounted it by hand: the machines' mounts are private to them."""
    for mount in reversed(mounts()):
        if mount.point.is_relative_to(root):
            commands.run(["umount", mount.point])


def _warn_of_guests(names: list[str]) -> None:
    """Processes that someone else runs in the cluster's network are not ours to end, but they keep it alive."""
    inodes = {namespaces.inode(Path("/run/netns") / name) for name in names}
    ours = daemons.ancestors(os.getpid())
    for pid in daemons.all_pids():
        if pid not in ours and namespaces.inode(Path(f"/proc/{pid}/ns/net")) in inodes:
            command = " ".join(daemons.command_line(pid))[:80]
            if command:
                ui.warn(f"process {pid} ({command}) still runs in the cluster's network, which ends with it")
