"""What clusters and tests could leave on a machine, as values that can be compared before and after.

Only what is told apart from the rest of the machine by its name or place is listed, so that the comparison does not
fail over somebody's editor: processes in namespaces of ours or of programs of ours, every mount, the named network
namespaces, every network link, our cgroups and our folders. With a cluster's name, only what belongs to that one.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from . import cgroups, commands, daemons, namespaces, network, paths
from .layout import Cluster
from .mounts import Mount, mounts
from .ui import DevError

Snapshot = dict[str, list[str]]

# Programs that nothing else on such a machine runs; what they start shares their namespaces or is their child.
_PROGRAMS = frozenset(
    "certroll-operator containerd containerd-shim-runc-v2 coredns envoy etcd kube-apiserver kube-controller-manager "
    "kube-proxy kube-scheduler kubelet nginx pause ratelimit redis-server runc".split()
)
_NETNS_DIR = Path("/run/netns")
_NETNS_PREFIX = "cr-"
# Where a program that was not told otherwise would write for good.
_FOLDERS = ("/var/lib/cni", "/var/lib/kubelet", "/run/containerd", "/var/lib/containerd", "/var/log/pods", "/etc/cni")


def take(cluster: Cluster | None = None) -> Snapshot:
    """The footprint of this machine, or of one cluster on it."""
    ours = _is_of(cluster) if cluster else lambda text: True
    return {
        "processes": _processes(cluster),
        "mounts": sorted(line for line in map(_mount_line, mounts()) if ours(line)),
        "namespaces": sorted(name for name in network.namespaces() if ours(name)),
        "links": [] if cluster else _links(),
        "cgroups": cgroups.existing(cluster.cgroup if cluster else "certroll"),
        "folders": _folders(cluster),
    }


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """One line per thing that came (+) or went (-)."""
    lines = []
    for kind in sorted({*before, *after}):
        old, new = set(before.get(kind, [])), set(after.get(kind, []))
        lines += [f"+ {kind}: {item}" for item in sorted(new - old)]
        lines += [f"- {kind}: {item}" for item in sorted(old - new)]
    return lines


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="hack/footprint",
        description="Prints what clusters have on this machine, as JSON: processes, mounts, namespaces, links, …",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="only what belongs to this cluster (default: all that could be ours)"
    )
    parser.add_argument(
        "--diff", type=Path, metavar="FILE", help="compare with an earlier output; exit 1 on a difference"
    )
    options = parser.parse_args(arguments)
    now = take(Cluster(options.name) if options.name else None)
    if options.diff is None:
        print(json.dumps(now, indent=1, sort_keys=True))
        return 0
    try:
        before = json.loads(options.diff.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise DevError(f"{options.diff} holds no output of hack/footprint: {error}") from error
    lines = differences(before, now)
    print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0


def _is_of(cluster: Cluster) -> Callable[[str], bool]:
    """Whether a mount's or a namespace's line names the cluster, and no other whose name begins like it."""
    names = (cluster.netns, str(cluster.root), cluster.cgroup)

    def mentions(text: str) -> bool:
        return any(_mentions(text, name) for name in names)

    return mentions


def _mentions(text: str, name: str) -> bool:
    position = text.find(name)
    rest = text[position + len(name) :]
    # "cr-test.2" is the second node of "test"; "cr-test-2" is another cluster.
    return position >= 0 and (not rest or rest[0] in "/ .")


def _processes(cluster: Cluster | None) -> list[str]:
    named = [name for name in network.namespaces() if name.startswith(_NETNS_PREFIX)]
    if cluster:
        named = [name for name in named if _is_of(cluster)(name)]
    inodes = {namespaces.inode(_NETNS_DIR / name) for name in named}
    holders = _machine_roots(cluster)
    # Whoever takes the snapshot may itself run in a cluster's network.
    own = daemons.ancestors(os.getpid())
    found = []
    for pid in daemons.all_pids():
        words = daemons.command_line(pid)
        if not words or pid in own:
            continue
        inside = namespaces.inode(Path(f"/proc/{pid}/ns/net")) in inodes or bool(holders & daemons.ancestors(pid))
        if inside or (cluster is None and os.path.basename(words[0]) in _PROGRAMS):
            found.append(_describe(pid, words))
    return sorted(found)


def _machine_roots(cluster: Cluster | None) -> set[int]:
    """Process 1 of each machine: what is below it is ours whatever its network namespace, like a pod's containers."""
    base = f"{cluster.root if cluster else paths.state_dir()}/"
    roots = set()
    for pid in daemons.all_pids():
        words = daemons.command_line(pid)
        if len(words) == 2 and os.path.basename(words[0]) == "pause" and words[1].startswith(base):
            roots.add(pid)
    return roots


def _describe(pid: int, words: Iterable[str]) -> str:
    process = daemons.Process.of(pid)
    start = process.start if process else 0
    return f"{os.path.basename(' '.join(words).split()[0])} pid {pid} start {start}: {' '.join(words)[:160]}"


def _mount_line(mount: Mount) -> str:
    return f"{mount.point} {mount.kind} {mount.source}"


def _links() -> list[str]:
    return sorted(link["ifname"] for link in json.loads(commands.run(["ip", "-json", "link", "show"])))


def _folders(cluster: Cluster | None) -> list[str]:
    if cluster:
        return [str(cluster.root)] if cluster.root.exists() else []
    base = paths.state_dir()
    clusters = [str(path) for path in base.glob("*")]
    return sorted(clusters + [folder for folder in _FOLDERS if Path(folder).exists()])
