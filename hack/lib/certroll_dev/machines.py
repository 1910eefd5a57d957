"""A machine: the namespaces that the daemons of one node, and with the first the control plane, live in.

Process 1 of a PID namespace is the handle of all this. When it is killed, the kernel kills every process in there, the
containers' too, and with the last of them the private mounts go: nothing can be forgotten, whatever state a cluster
was in. /run, /var/log and what is written to /var/lib are the machine's own, and so are the few kernel settings that a
kubelet insists on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from . import cgroups, commands, daemons, files, namespaces, paths
from .daemons import Daemon, Process
from .layout import Cluster, Machine
from .ui import DevError

# What the kubelet would otherwise set for the whole host (its setupKernelTunables), where it would stay for ever.
_KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}

_BOOT = """set -eu
mount --make-rslave /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 machine /run
mount --bind "$LOGS" /var/log
# The kubelet and libcni write to fixed places in /var/lib: let that be forgotten, all but our own state.
mkdir /run/state /run/var-lib /run/var-lib/upper /run/var-lib/work
mount --bind "$STATE" /run/state
mount -t overlay -o lowerdir=/var/lib,upperdir=/run/var-lib/upper,workdir=/run/var-lib/work machine /var/lib
mount --move /run/state "$STATE"
if [ -n "$KUBEADM" ]; then    # the control plane as pods: kubeadm's folders, which are ours to keep
    mkdir /run/etc /run/etc/upper /run/etc/work /run/service
    mount -t overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work machine /etc
    mkdir -p /etc/kubernetes /var/lib/etcd /var/lib/kubelet
    mount --bind "$KUBEADM/kubernetes" /etc/kubernetes
    mount --bind "$KUBEADM/etcd" /var/lib/etcd
    mount --bind "$KUBEADM/kubelet" /var/lib/kubelet
    mount --bind "$KUBEADM/service" /run/service
    echo "${KUBEADM##*/}" > /proc/sys/kernel/hostname
    printf '%s localhost\n' $LOOPBACKS > /etc/hosts    # in a container it was a mount, which is not in the overlay
fi
cd "$SETTINGS"
for setting in $(find . -type f); do
    [ ! -e "/proc/sys/$setting" ] || mount --bind "$setting" "/proc/sys/$setting"
done
echo 1 > /proc/sys/net/ipv4/ip_forward
if [ -n "$IPV6" ]; then
    echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
    # A pod's gateway is an address of the machine's end of its link: to be used at once, not after a search for another.
    echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad
    echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
fi
mount --make-rshared /    # volumes are mounted by the kubelet and seen by containers
exec "$@"
"""


def ensure(machine: Machine, pause: Path) -> int:
    """Boot the machine unless it runs; its network namespace must be there. Returns the pid of its process 1."""
    settings = machine.root / "settings"
    for name, value in _KERNEL_SETTINGS.items():
        files.put(settings / name, value + "\n")
    machine.logs.mkdir(parents=True, exist_ok=True)
    holder = _holder(machine, pause)
    running = holder.running()
    if not (running and in_network_of(machine, running)):
        daemons.end_all(processes_one(machine.cluster, [machine]))
        # As a reboot would; the kubelet tries for seconds to find the container of every cgroup it meets.
        cgroups.remove(machine.cgroup)
        holder.record.unlink(missing_ok=True)
        _forget_daemons(machine)
        own = namespaces.NEW_MOUNT | namespaces.NEW_PID
        if machine.cluster.has_control_plane_pods:
            own |= namespaces.NEW_UTS  # API servers of the same host name have one identity, and one Lease
        holder.start(None, unshare=own, enter=[(machine.netns_path, namespaces.NEW_NET)])
    process = holder.running()
    holder.wait(lambda: process is not None and _holds(daemons.command_line(process.pid)), 60, "up")
    if process is None:
        raise DevError(f"{machine.name} went down while it booted, see {holder.log}")
    return process.pid


def pid_of(machine: Machine) -> int | None:
    """Process 1 of the machine, if it is up."""
    process = daemons.recorded(_record(machine))
    return process.pid if process else None


def enter(machine: Machine, argv: Sequence[str | Path]) -> list[str]:
    """The command line that runs a command on the machine."""
    pid = pid_of(machine)
    if pid is None:
        raise DevError(f"{machine.name} of {machine.cluster.name} is not up: run hack/cluster up")
    return ["nsenter", f"--target={pid}", "--net", "--uts", "--mount", "--pid", "--", *[str(word) for word in argv]]


def run(
    machine: Machine, argv: Sequence[str | Path], *, stdin: str | BinaryIO | None = None, timeout: float = 60
) -> str:
    """What the command, run on the machine, printed; DevError when it fails."""
    return commands.run(enter(machine, argv), env=daemons.environment({}), stdin=stdin, timeout=timeout)


def succeeds(machine: Machine, argv: Sequence[str | Path]) -> bool:
    return commands.succeeds(enter(machine, argv), env=daemons.environment({}))


def in_network_of(machine: Machine, process: Process) -> bool:
    """False when someone has removed the namespace's name and `up` made a new one."""
    inode = namespaces.inode(machine.netns_path)
    return inode is not None and namespaces.inode(Path(f"/proc/{process.pid}/ns/net")) == inode


def processes_one(cluster: Cluster, machines: Sequence[Machine] | None = None) -> list[Process]:
    """Process 1 of each machine of a cluster, found by its command line, with or without a record."""
    roots = [str(machine.root) for machine in machines] if machines else None
    found = []
    for pid in daemons.all_pids():
        root = _root_held_by(daemons.command_line(pid))
        if root and (root in roots if roots else Path(root).parent == cluster.root / "machines"):
            found.append(Process.of(pid))
    return [process for process in found if process]


def _root_held_by(words: list[str]) -> str | None:
    """The machine's folder is the last word, both while the shell boots it and once `pause` holds it."""
    booting = words[:2] == ["/bin/sh", "-c"] and words[2:3] == [_BOOT]
    return words[-1] if booting or _holds(words) else None


def _holds(words: list[str]) -> bool:
    """Whether it has booted. By the program's name only: one that was built anew has another path."""
    return len(words) == 2 and os.path.basename(words[0]) == "pause"


def _holder(machine: Machine, pause: Path) -> Daemon:
    families = machine.cluster.families
    return Daemon(
        name=machine.name,
        argv=["/bin/sh", "-c", _BOOT, "sh", pause, machine.root],
        log=machine.logs / "machine.log",
        record=_record(machine),
        env={
            "STATE": str(paths.state_dir()),
            "LOGS": str(machine.logs),
            "SETTINGS": str(machine.root / "settings"),
            "IPV6": "yes" if any(family.version == 6 for family in families) else "",
            "LOOPBACKS": " ".join(str(family.loopback) for family in families),
            **_folders(machine),
        },
    )


def _folders(machine: Machine) -> dict[str, str]:
    """Made here, and what the boot binds of them. Empty text: today's machine, whose kubelet is told other places."""
    if not machine.cluster.has_control_plane_pods:
        return {"KUBEADM": ""}
    for folder in (machine.kubernetes, machine.root / "etcd", machine.kubelet, machine.service):
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    return {"KUBEADM": str(machine.root)}


def _record(machine: Machine) -> Path:
    return machine.cluster.daemons / machine.name / "machine.json"


def _forget_daemons(machine: Machine) -> None:
    """They ended with process 1, and their pids may be given out again."""
    for record in _record(machine).parent.glob("*.json"):
        record.unlink()
