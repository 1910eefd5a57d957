"""The local cluster as a whole: bring it up, take it down, tell how it is."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import (
    addresses,
    balancer,
    certificates,
    cgroups,
    cleanup,
    control_plane_pods,
    controlplane,
    daemons,
    dns,
    files,
    kubeadm,
    kubeconfig,
    layout,
    limits,
    locks,
    machines,
    network,
    node,
    starting,
    tools,
    ui,
)
from .addresses import IPV6
from .layout import Cluster, Machine, Spec
from .ui import DevError, Step


@dataclass(frozen=True)
class Wish:
    """What a caller of `up` asks for. None means as before, or for a new cluster the default."""

    nodes: int | None = None  # 0: a control plane without a node; default: 1, or as many as carry the control plane
    sync_frequency: str | None = None
    control_plane_nodes: int | None = None  # 0: processes of the first machine, which is the default
    kubeconfig_files: bool | None = None
    ip_families: tuple[str, ...] | None = None  # the primary one first; default: IPv4 alone


def up(cluster: Cluster, wish: Wish, assets: Path | None = None) -> None:
    """Start whatever of the cluster does not run; returns when it can be used. A further `up` adds what it asks for."""
    _need_root()
    with _locked(cluster):
        spec = _wanted(cluster.name, cluster.spec(), wish)
        _need_families(spec)
        programs = tools.ensure(_programs(spec), assets)
        with Step(f"cluster {cluster.name}: network and certificates"):
            inside = _prepare(cluster, spec, programs)
        starting.start(cluster, spec, programs, inside)


def down(cluster: Cluster) -> bool:
    """Take it away with all it has left; False when there was nothing."""
    _need_root()
    with _locked(cluster), Step(f"taking down cluster {cluster.name}"):
        there = cleanup.remove(cluster)
        limits.restore_after_last()
    cleanup.remove_empty_state_dir()
    return there


def load_image(cluster: Cluster, archive: Path) -> None:
    """Into every node, so that a pod with imagePullPolicy Never can run anywhere."""
    spec = need_spec(cluster)
    if not spec.nodes:
        raise DevError(f"{cluster.name} is a control plane without nodes; add one: hack/cluster up --nodes 1")
    if not archive.is_file():
        raise DevError(f"{archive}: no such file; load-image takes a Docker or OCI archive")
    for machine in cluster.machines(spec.nodes):
        with Step(f"loading {archive.name} into {machine.name}"):
            node.load_image(machine, archive)


def restart_kubelet_of(cluster: Cluster, name: str) -> None:
    """As an administrator or an agent restarts it; returns when it listens again."""
    spec = need_spec(cluster)
    nodes = {machine.name: machine for machine in cluster.machines(spec.nodes) if spec.nodes}
    if not spec.control_plane_nodes:
        raise DevError("only the kubelets of a cluster that was made with --control-plane-nodes have a command for it")
    if name not in nodes:
        raise DevError(f"{cluster.name} has no node {name}; it has {', '.join(nodes)}")
    with Step(f"restarting the kubelet of {name}"):
        node.restart_kubelet_of(nodes[name])


def status(cluster: Cluster) -> dict[str, Any]:
    """All that a test or a person may want to know, as plain values."""
    spec = cluster.spec()
    running = _daemon_states(cluster)
    return {
        "name": cluster.name,
        "state": _state(spec, running),
        "kubeconfig": str(cluster.kubeconfig),
        "server": cluster.server,
        "netns": cluster.netns,
        "ipFamilies": [family.name for family in cluster.families],
        "logs": str(cluster.logs),
        "auditLog": str(cluster.audit_log),
        "controlPlaneNodes": spec.control_plane_nodes if spec else 0,
        "bin": str(cluster.bin),
        "cgroup": cluster.cgroup,
        "nodes": [_node_status(each, spec) for each in cluster.machines(spec.nodes)] if spec and spec.nodes else [],
        "daemons": running,
    }


def need_spec(cluster: Cluster) -> Spec:
    """The spec of a cluster that exists."""
    spec = cluster.spec()
    if spec is None or not cluster.kubeconfig.exists():
        raise DevError(f"there is no cluster {cluster.name}: run hack/cluster up{_name_option(cluster)}")
    return spec


def exec_environment(cluster: Cluster) -> dict[str, str]:
    """The caller's environment, with the cluster's kubeconfig and programs, and without proxies it cannot reach."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.lower() not in ("http_proxy", "https_proxy", "all_proxy")
    }
    path = f"{cluster.bin}:{os.environ.get('PATH', os.defpath)}"
    # kubectl keeps what it discovered by the server's address, which all clusters of this machine have.
    cache = cluster.root / "kubectl-cache"
    own = {"KUBECONFIG": str(cluster.kubeconfig), "KUBECACHEDIR": str(cache), "CERTROLL_CLUSTER": cluster.name}
    return {**kept, **own, "PATH": path}


def exec_in_network(cluster: Cluster, argv: list[str]) -> None:
    """Become the command, in the cluster's network. Not by `ip netns exec`, which hides the cgroups."""
    need_spec(cluster)
    _need_root()
    if not cluster.netns_path.exists():
        raise DevError(f"cluster {cluster.name} is not running: run hack/cluster up{_name_option(cluster)}")
    nsenter = ["nsenter", f"--net={cluster.netns_path}", "--", *argv]
    os.execvpe(nsenter[0], nsenter, exec_environment(cluster))


def _prepare(cluster: Cluster, spec: Spec, programs: Mapping[str, Path]) -> dict[int, int]:
    """Everything that daemons need to start; returns the pid of process 1 of each machine, by its number."""
    cluster.logs.mkdir(parents=True, exist_ok=True)
    limits.raise_while_clusters_run()
    files.put(cluster.spec_file, spec.to_json())
    certificates.ensure_control_plane(cluster)
    kubeconfig.write(cluster, cluster.kubeconfig, cluster.pki / "admin.crt")
    _link_programs(cluster, programs)
    hosts = cluster.machines(spec.nodes)
    network.ensure(hosts)
    inside = {host.number: machines.ensure(host, programs["pause"]) for host in hosts}
    for host in hosts[: spec.nodes]:
        cgroups.make(host.cgroup)
    return inside


def _wanted(name: str, before: Spec | None, wish: Wish) -> Spec:
    planes = wish.control_plane_nodes
    if before is None:
        before = Spec(0, None, planes or 0, bool(wish.kubeconfig_files), wish.ip_families or addresses.DEFAULT)
        least = max(before.control_plane_nodes, 1 if wish.nodes is None else 0)
    else:
        _refuse_another_control_plane(name, before, wish)
        _refuse_other_families(name, before, wish)
        least = before.nodes
    asked = least if wish.nodes is None else wish.nodes
    if asked < least:
        if before.nodes == 0:
            raise DevError(f"--control-plane-nodes {planes} needs as many nodes: leave out --nodes, or ask for more")
        ui.warn(f"nodes are only added: the cluster keeps the {before.nodes} it has until it is taken down")
    return dataclasses.replace(
        before, nodes=max(least, asked), sync_frequency=wish.sync_frequency or before.sync_frequency
    )


def _refuse_another_control_plane(name: str, before: Spec, wish: Wish) -> None:
    same = wish.control_plane_nodes in (None, before.control_plane_nodes)
    if not (same and wish.kubeconfig_files in (None, before.kubeconfig_files)):
        raise DevError(f"the control plane of {name} is there already, and stays as it is: take the cluster down first")


def _refuse_other_families(name: str, before: Spec, wish: Wish) -> None:
    if wish.ip_families not in (None, before.ip_families):
        there, asked = " and ".join(before.ip_families), " and ".join(wish.ip_families or ())
        raise DevError(
            f"the addresses of {name} are {there}, and cannot become {asked}: take the cluster down first, or choose another --name"
        )


def _need_families(spec: Spec) -> None:
    if IPV6.name in spec.ip_families and not Path("/proc/net/if_inet6").exists():
        raise DevError("this machine's kernel has no IPv6 (no /proc/net/if_inet6): leave out --ipv6 and --dual-stack")


def _programs(spec: Spec) -> list[str]:
    plane = control_plane_pods.PROGRAMS if spec.control_plane_nodes else controlplane.PROGRAMS
    return [*plane, "pause", *((*node.PROGRAMS, *dns.PROGRAMS) if spec.nodes else ())]


def _link_programs(cluster: Cluster, programs: Mapping[str, Path]) -> None:
    cluster.bin.mkdir(parents=True, exist_ok=True)
    for name, program in programs.items():
        link = cluster.bin / name
        if not (link.is_symlink() and os.readlink(link) == str(program)):
            link.unlink(missing_ok=True)
            link.symlink_to(program)


def _daemon_states(cluster: Cluster) -> list[dict[str, Any]]:
    states = []
    for record in sorted(cluster.daemons.glob("*/*.json")):
        process = daemons.recorded(record)
        pid = process.pid if process else None
        states.append({"machine": record.parent.name, "name": record.stem, "pid": pid})
    return states


def _node_status(machine: Machine, spec: Spec) -> dict[str, Any]:
    facts = {
        "name": machine.name,
        "address": str(machine.address),
        "podNetwork": str(machine.pod_networks[0]),
        "netns": machine.netns,
        "logs": str(machine.logs),
        "staticPods": str(machine.static_pods),
        "machinePid": machines.pid_of(machine),
    }
    return {**facts, **kubeadm.status(machine)} if spec.control_plane_nodes else facts


def _state(spec: Spec | None, running: list[dict[str, Any]]) -> str:
    if spec is None:
        return "absent"
    expected = _expected_of_control_plane(spec)
    for number in range(1, spec.nodes + 1):
        expected |= {(f"node-{number}", name) for name in ("machine", "containerd", "kubelet", "kube-proxy")}
    alive = {(state["machine"], state["name"]) for state in running if state["pid"]}
    return "running" if expected <= alive else "degraded" if alive else "stopped"


def _expected_of_control_plane(spec: Spec) -> set[tuple[str, str]]:
    """Its processes; what runs in pods is for the API to tell."""
    if spec.control_plane_nodes:
        return {(balancer.MACHINE, "haproxy")}
    names = ("machine", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return {("node-1", name) for name in names}


@contextlib.contextmanager
def _locked(cluster: Cluster) -> Iterator[None]:
    with locks.locked(cluster.lock, f"another hack/cluster that works on {cluster.name}", remove=True):
        yield


def _need_root() -> None:
    if os.geteuid() != 0:
        raise DevError("a cluster has namespaces, mounts and cgroups: run this as root, with sudo or in a container")


def _name_option(cluster: Cluster) -> str:
    return "" if cluster.name == layout.DEFAULT_NAME else f" --name {cluster.name}"
