"""The control plane as kubeadm has it: etcd, API servers, controller managers and schedulers as static pods."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import commands, controlplane, images, kubeadm, machines, node, paths, tools
from .daemons import Daemon
from .layout import Cluster, Machine, Spec
from .ui import DevError

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm", "kubectl")
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
COUNTS = (1, 3)  # two etcds bear less than one
# Until there is an API server the other two only fail, with longer and longer pauses.
FIRST, THEN = COMPONENTS[:2], COMPONENTS[2:]
_RIGHTS = paths.HACK / "manifests" / "kubeadm.yaml"


def nodes_of(cluster: Cluster, spec: Spec) -> list[Machine]:
    """The nodes that carry it."""
    return cluster.machines(spec.control_plane_nodes)


def load_images(machine: Machine, spec: Spec, programs: Mapping[str, Path], components: Sequence[str]) -> None:
    """By the names that kubeadm knows: who looks at the pods sees what there is elsewhere. A worker needs none."""
    if machine.number > spec.control_plane_nodes:
        return
    for component in components:
        name, program = image_of(component), f"/usr/local/bin/{component}"
        archive = images.cached_image(name, {program: programs[component]}, entrypoint=[program], user="0:0")
        node.ensure_image(machine, name, archive)


def image_of(component: str) -> str:
    version = f"{tools.version_of('etcd').removeprefix('v')}-0" if component == "etcd" else tools.version_of("kubeadm")
    return f"registry.k8s.io/{component}:{version}"


def write_files(cluster: Cluster, spec: Spec, programs: Mapping[str, Path]) -> None:
    """All that the kubelets need to start etcd and the API servers, and what the other two read."""

    def write(machine: Machine) -> None:
        kubeadm.write_certificates(machine, spec, programs["kubeadm"])
        kubeadm.write_manifests(machine, spec, programs["kubeadm"], FIRST)

    with ThreadPoolExecutor() as executor:
        list(executor.map(write, nodes_of(cluster, spec)))


def wait_for_api(cluster: Cluster, spec: Spec, kubectl: Path, kubelets: Sequence[Daemon], timeout: float = 240) -> None:
    """Until each API server says that it is ready, and the balancer has found one."""
    end = time.monotonic() + timeout
    servers = [machine.api_server for machine in nodes_of(cluster, spec)]
    for server in [*servers, cluster.server]:
        while not _is_ready(cluster, kubectl, server):
            _check(cluster, spec, kubelets, end, f"{server} is not ready")
            time.sleep(0.2)


def start_the_rest(cluster: Cluster, spec: Spec, programs: Mapping[str, Path]) -> None:
    """Controller managers and schedulers, and what kubeadm grants; the API must answer."""
    apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    controlplane.kubectl(cluster, programs["kubectl"], *apply, stdin=_RIGHTS.read_text())
    for machine in nodes_of(cluster, spec):
        kubeadm.write_manifests(machine, spec, programs["kubeadm"], THEN)


def label_nodes(cluster: Cluster, spec: Spec, kubectl: Path) -> None:
    """A kubelet may not do it itself."""
    for machine in nodes_of(cluster, spec):
        label = "node-role.kubernetes.io/control-plane="
        controlplane.kubectl(cluster, kubectl, "label", "--overwrite", f"node/{machine.name}", label)


def wait_for_pods(
    cluster: Cluster, spec: Spec, kubectl: Path, kubelets: Sequence[Daemon], timeout: float = 240
) -> None:
    """Until the API shows each of them as Ready."""
    end = time.monotonic() + timeout
    wanted = {f"{component}-{machine.name}" for machine in nodes_of(cluster, spec) for component in COMPONENTS}
    while missing := wanted - _ready_pods(cluster, kubectl):
        _check(cluster, spec, kubelets, end, f"not Ready: {', '.join(sorted(missing))}")
        time.sleep(0.5)


def _ready_pods(cluster: Cluster, kubectl: Path) -> set[str]:
    question = ("get", "pods", "--namespace=kube-system", "--selector=tier=control-plane", "--output=json")
    try:
        pods = json.loads(controlplane.kubectl(cluster, kubectl, *question, timeout=10))["items"]
    except DevError:
        return set()
    return {pod["metadata"]["name"] for pod in pods if _is_true(pod["status"].get("conditions", []), "Ready")}


def _is_true(conditions: Sequence[Mapping[str, str]], kind: str) -> bool:
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)


def _is_ready(cluster: Cluster, kubectl: Path, server: str) -> bool:
    question = (f"--server={server}", "get", "--raw=/readyz")
    try:
        return controlplane.kubectl(cluster, kubectl, *question, timeout=10).strip() == "ok"
    except DevError:
        return False


def _check(cluster: Cluster, spec: Spec, kubelets: Sequence[Daemon], end: float, what: str) -> None:
    """DevError when it takes too long, or cannot come to be at all."""
    for kubelet in kubelets:
        if not kubelet.running():
            raise DevError(f"a kubelet ended, see {kubelet.log}:\n{commands.tail_of(kubelet.log)}")
    if time.monotonic() > end:
        raise DevError(f"the control plane does not come up: {what}\n{_last_words(cluster, spec)}")


def _last_words(cluster: Cluster, spec: Spec) -> str:
    """What the containers said last, by their files: there may be no API to ask."""
    texts = []
    for machine in nodes_of(cluster, spec):
        for log in sorted((machine.logs / "pods").glob("kube-system_*/*/*.log")):
            texts.append(f"  {log}:\n{commands.tail_of(log, 4)}")
    return "\n".join(texts) or "  (no container has run)"
