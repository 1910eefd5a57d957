"""The local cluster as a whole: bring it up, take it down, tell how it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import (
    certificates,
    cgroups,
    cleanup,
    controlplane,
    daemons,
    dns,
    files,
    kubeconfig,
    layout,
    limits,
    locks,
    machines,
    network,
    node,
    tools,
    ui,
)
from .layout import Cluster, Machine, Spec
from .ui import DevError, Step


def up(
    cluster: Cluster, nodes: int | None = None, sync_frequency: str | None = None, assets: Path | None = None
) -> None:
    """Start whatever of the cluster does not run; returns when it can be used.

    `nodes` is 0 for a control plane without a node. A further `up` adds what it asks for and keeps the rest: None means
    as before, or for a new cluster one node and the kubelet's own frequency.
    """
    _need_root()
    with _locked(cluster):
        spec = _wanted(cluster.spec(), nodes, sync_frequency)
        programs = tools.ensure(_programs(spec), assets)
        with Step(f"cluster {cluster.name}: network and certificates"):
            inside = _prepare(cluster, spec, programs)
        if spec.nodes:
            _start_with_nodes(cluster, spec, programs, inside)
        else:
            _start_control_plane(cluster, programs, inside[1])


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
        "logs": str(cluster.logs),
        "auditLog": str(cluster.audit_log),
        "bin": str(cluster.bin),
        "cgroup": cluster.cgroup,
        "nodes": [_node_status(machine) for machine in cluster.machines(spec.nodes)] if spec and spec.nodes else [],
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


def _start_control_plane(cluster: Cluster, programs: Mapping[str, Path], inside: int) -> None:
    with Step("control plane") as step:
        controlplane.start(cluster, programs, inside)
        step.note("waiting for the default service account")
        controlplane.wait_for_controllers(cluster, programs)


def _start_with_nodes(cluster: Cluster, spec: Spec, programs: Mapping[str, Path], inside: Mapping[int, int]) -> None:
    nodes = cluster.machines(spec.nodes)
    runtimes = [(machine, node.start_containerd(machine, inside[machine.number])) for machine in nodes]
    # The images go in while the API server starts, which takes the longest.
    with ThreadPoolExecutor(max_workers=1) as executor:
        images = executor.submit(_load_images, runtimes, programs)
        with Step("control plane"):
            controlplane.start(cluster, programs, inside[1])
        with Step("containerd and images"):
            images.result()
    with Step("kubelet and kube-proxy") as step:
        dns.apply(cluster, programs["kubectl"])
        kubelets = [(machine, node.start_kubelet(machine, spec, programs, inside[machine.number])) for machine in nodes]
        for machine in nodes:
            node.start_proxy(machine, programs, inside[machine.number])
        step.note("waiting for Ready")
        for machine, kubelet in kubelets:
            node.wait_for_ready(machine, kubelet, programs["kubectl"])
    with Step("CoreDNS"):
        dns.wait(cluster, programs["kubectl"])


def _load_images(runtimes: list[tuple[Machine, daemons.Daemon]], programs: Mapping[str, Path]) -> None:
    for machine, containerd in runtimes:
        node.wait_for_containerd(machine, containerd)
        node.load_pause(machine, programs["pause"])
    dns.load([machine for machine, _ in runtimes], programs["coredns"])


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


def _wanted(before: Spec | None, nodes: int | None, sync_frequency: str | None) -> Spec:
    if before is None:
        return Spec(1 if nodes is None else nodes, sync_frequency)
    asked = before.nodes if nodes is None else nodes
    if asked < before.nodes:
        ui.warn(f"nodes are only added: the cluster keeps the {before.nodes} it has until it is taken down")
    return Spec(max(before.nodes, asked), sync_frequency or before.sync_frequency)


def _programs(spec: Spec) -> list[str]:
    return [*controlplane.PROGRAMS, "pause", *((*node.PROGRAMS, *dns.PROGRAMS) if spec.nodes else ())]


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


def _node_status(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "address": str(machine.address),
        "podNetwork": str(machine.pod_network),
        "netns": machine.netns,
        "logs": str(machine.logs),
        "staticPods": str(machine.static_pods),
        "machinePid": machines.pid_of(machine),
    }


def _state(spec: Spec | None, running: list[dict[str, Any]]) -> str:
    if spec is None:
        return "absent"
    expected = {
        (1, name) for name in ("machine", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    }
    for number in range(1, spec.nodes + 1):
        expected |= {(number, name) for name in ("machine", "containerd", "kubelet", "kube-proxy")}
    alive = {(int(state["machine"].removeprefix("node-")), state["name"]) for state in running if state["pid"]}
    return "running" if expected <= alive else "degraded" if alive else "stopped"


@contextlib.contextmanager
def _locked(cluster: Cluster) -> Iterator[None]:
    with locks.locked(cluster.lock, f"another hack/cluster that works on {cluster.name}", remove=True):
        yield


def _need_root() -> None:
    if os.geteuid() != 0:
        raise DevError("a cluster has namespaces, mounts and cgroups: run this as root, with sudo or in a container")


def _name_option(cluster: Cluster) -> str:
    return "" if cluster.name == layout.DEFAULT_NAME else f" --name {cluster.name}"
