"""What a cluster is called, how large it is, where its files and addresses are. Nothing here touches the machine."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from . import addresses, paths
from .addresses import Address, Family, Network
from .ui import DevError

DEFAULT_NAME = "certroll"
MAX_NODES = 16
API_PORT = 6443
CLUSTER_DOMAIN = "cluster.local"
# Of the control plane as pods: no port that an API server beside it listens at.
BALANCER_PORT = 8443


@dataclass(frozen=True)
class Spec:
    """What `up` was asked for. A control plane without a node has nodes = 0."""

    nodes: int
    sync_frequency: str | None = None  # None: the kubelet's own default
    # The first so many nodes carry the control plane as static pods. 0: it is processes of the first machine.
    control_plane_nodes: int = 0
    # Whether kubeconfigs of the control plane as pods name files; kubeadm embeds what is in them.
    kubeconfig_files: bool = False
    ip_families: tuple[str, ...] = addresses.DEFAULT  # the primary one first

    def to_json(self) -> str:
        fields = {
            "nodes": self.nodes,
            "syncFrequency": self.sync_frequency,
            "controlPlaneNodes": self.control_plane_nodes,
            "kubeconfigFiles": self.kubeconfig_files,
            "ipFamilies": self.ip_families,
        }
        return json.dumps(fields) + "\n"

    @staticmethod
    def from_json(text: str) -> Spec:
        fields = json.loads(text)
        return Spec(
            fields["nodes"],
            fields["syncFrequency"],
            fields.get("controlPlaneNodes", 0),
            fields.get("kubeconfigFiles", False),
            tuple(fields.get("ipFamilies", addresses.DEFAULT)),
        )


@dataclass(frozen=True)
class Machine:
    """One network, mount and PID namespace: the control plane's with the first node, or one of a further node."""

    cluster: Cluster
    number: int  # from 1

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def netns(self) -> str:
        # A dot, which no cluster's name has: "cr-a-2" is the namespace of a cluster called "a-2".
        return self.cluster.netns if self.number == 1 else f"{self.cluster.netns}.{self.number}"

    @property
    def netns_path(self) -> Path:
        return Path("/run/netns") / self.netns

    @property
    def address(self) -> Address:
        """Of the primary family."""
        return self.addresses[0]

    @property
    def addresses(self) -> tuple[Address, ...]:
        """One of each family."""
        return tuple(family.node(self.number) for family in self.cluster.families)

    @property
    def pod_networks(self) -> tuple[Network, ...]:
        """One of each family."""
        return tuple(family.pods_of(self.number) for family in self.cluster.families)

    @property
    def api_server(self) -> str:
        """The URL of its API server, if it has one."""
        return f"https://{addresses.with_port(self.address, API_PORT)}"

    @property
    def root(self) -> Path:
        return self.cluster.root / "machines" / self.name

    @property
    def etc(self) -> Path:
        return self.root / "etc"

    @property
    def static_pods(self) -> Path:
        return (self.kubernetes if self.cluster.has_control_plane_pods else self.etc) / "manifests"

    @property
    def kubernetes(self) -> Path:
        """With the control plane as pods: what the machine sees as /etc/kubernetes."""
        return self.root / "kubernetes"

    @property
    def kubelet(self) -> Path:
        """The kubelet's folder; with the control plane as pods the machine sees it as /var/lib/kubelet, too."""
        return self.root / "kubelet"

    @property
    def service(self) -> Path:
        """The machine sees it as /run/service: what systemd is for elsewhere."""
        return self.root / "service"

    @property
    def logs(self) -> Path:
        """The machine's /var/log, with the pods' logs below `pods`."""
        return self.cluster.logs / self.name

    @property
    def audit_log(self) -> Path:
        """Of the API server that is a pod of this node."""
        return self.logs / "kubernetes" / "audit.log"

    @property
    def cgroup(self) -> str:
        """Below it are the cgroups of the node's pods."""
        return f"{self.cluster.cgroup}/{self.name}"


@dataclass(frozen=True)
class Cluster:
    """The names and folders of one cluster."""

    name: str

    def __post_init__(self) -> None:
        # It becomes part of names of namespaces, cgroups and folders, and Kubernetes shows it.
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?", self.name):
            raise DevError(f"{self.name!r} is no name for a cluster: up to 30 of a-z, 0-9 and - (not at the ends)")

    @property
    def root(self) -> Path:
        return paths.state_dir() / self.name

    @property
    def lock(self) -> Path:
        return paths.state_dir() / f".{self.name}.lock"

    @property
    def spec_file(self) -> Path:
        return self.root / "cluster.json"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def audit_log(self) -> Path:
        """With the control plane as pods, of the first API server alone; see Machine.audit_log."""
        return self.machine(1).audit_log if self.has_control_plane_pods else self.logs / "audit.log"

    @property
    def daemons(self) -> Path:
        return self.root / "daemons"

    @property
    def bin(self) -> Path:
        """Links to the programs in use, for PATH."""
        return self.root / "bin"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def netns(self) -> str:
        return f"cr-{self.name}"

    @property
    def netns_path(self) -> Path:
        return Path("/run/netns") / self.netns

    @property
    def cgroup(self) -> str:
        return f"certroll/{self.name}"

    @property
    def server(self) -> str:
        if self.has_control_plane_pods:
            return f"https://{addresses.with_port(self.family.balancer, BALANCER_PORT)}"
        return self.machine(1).api_server

    @property
    def families(self) -> tuple[Family, ...]:
        """The IP families that its addresses are of, the primary one first."""
        spec = self.spec()
        return addresses.families(spec.ip_families if spec else addresses.DEFAULT)

    @property
    def family(self) -> Family:
        """The primary one."""
        return self.families[0]

    @property
    def has_control_plane_pods(self) -> bool:
        spec = self.spec()
        return spec is not None and spec.control_plane_nodes > 0

    def machine(self, number: int) -> Machine:
        return Machine(self, number)

    def machines(self, nodes: int) -> list[Machine]:
        """All of a cluster with so many nodes; there is always one, for the control plane."""
        return [self.machine(number) for number in range(1, max(nodes, 1) + 1)]

    def known_machines(self) -> list[Machine]:
        """Those that have left a folder, whatever an interrupted `up` made of them."""
        numbers = sorted(int(path.name.removeprefix("node-")) for path in (self.root / "machines").glob("node-*"))
        return [self.machine(number) for number in numbers]

    def spec(self) -> Spec | None:
        """What the last `up` was asked for; None when there is no cluster."""
        try:
            return Spec.from_json(self.spec_file.read_text())
        except FileNotFoundError:
            return None


def all_clusters() -> list[Cluster]:
    """Every cluster that has state on this machine."""
    base = paths.state_dir()
    return [Cluster(path.name) for path in sorted(base.iterdir()) if path.is_dir()] if base.is_dir() else []
