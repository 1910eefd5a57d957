"""Starting a cluster's programs, in the order of need: all that `up` does once there are machines and a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from . import balancer, control_plane_pods, controlplane, daemons, dns, node
from .layout import Cluster, Machine, Spec
from .ui import Step


def start(cluster: Cluster, spec: Spec, programs: Mapping[str, Path], inside: Mapping[int, int]) -> None:
    """Whatever does not run; returns when it can be used. `inside` is process 1 of each machine, by its number."""
    if spec.control_plane_nodes:
        _start_with_pods(cluster, spec, programs, inside)
    elif spec.nodes:
        _start_with_nodes(cluster, spec, programs, inside)
    else:
        _start_control_plane(cluster, programs, inside[1])


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


def _start_with_pods(cluster: Cluster, spec: Spec, programs: Mapping[str, Path], inside: Mapping[int, int]) -> None:
    nodes, kubectl = cluster.machines(spec.nodes), programs["kubectl"]
    runtimes = [(machine, node.start_containerd(machine, inside[machine.number])) for machine in nodes]
    balancer.start(cluster, control_plane_pods.nodes_of(cluster, spec), inside[1])
    with ThreadPoolExecutor() as executor:
        images = [executor.submit(_load_first_images, runtime, spec, programs) for runtime in runtimes]
        with Step("what kubeadm writes"):
            control_plane_pods.write_files(cluster, spec, programs)
        with Step("containerd and images"):
            _wait_for(images)
        # The other images go in while the API servers start.
        images = [executor.submit(_load_other_images, machine, spec, programs) for machine in nodes]
        with Step("kubelets, etcd and API servers"):
            kubelets = {each: node.start_kubelet(each, spec, programs, inside[each.number]) for each in nodes}
            control_plane_pods.wait_for_api(cluster, spec, kubectl, list(kubelets.values()))
            _wait_for(images)
    with Step("controller managers, schedulers and kube-proxy") as step:
        control_plane_pods.start_the_rest(cluster, spec, programs)
        dns.apply(cluster, kubectl)
        for machine in nodes:
            node.start_proxy(machine, programs, inside[machine.number])
        step.note("waiting for Ready")
        for machine, kubelet in kubelets.items():
            node.wait_for_ready(machine, kubelet, kubectl)
        control_plane_pods.label_nodes(cluster, spec, kubectl)
        control_plane_pods.wait_for_pods(cluster, spec, kubectl, list(kubelets.values()))
    with Step("CoreDNS"):
        dns.wait(cluster, kubectl)


def _load_first_images(runtime: tuple[Machine, daemons.Daemon], spec: Spec, programs: Mapping[str, Path]) -> None:
    machine, containerd = runtime
    node.wait_for_containerd(machine, containerd)
    node.load_pause(machine, programs["pause"])
    control_plane_pods.load_images(machine, spec, programs, control_plane_pods.FIRST)


def _load_other_images(machine: Machine, spec: Spec, programs: Mapping[str, Path]) -> None:
    control_plane_pods.load_images(machine, spec, programs, control_plane_pods.THEN)
    dns.load([machine], programs["coredns"])


def _wait_for(futures: Sequence[Future[None]]) -> None:
    for future in futures:
        future.result()


def _load_images(runtimes: list[tuple[Machine, daemons.Daemon]], programs: Mapping[str, Path]) -> None:
    for machine, containerd in runtimes:
        node.wait_for_containerd(machine, containerd)
        node.load_pause(machine, programs["pause"])
    dns.load([machine for machine, _ in runtimes], programs["coredns"])
