"""The cluster of the benchmark: a real control plane, a namespace full of Secrets, and a service account as installed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from . import cluster as clusters, commands, controlplane, daemons, files, paths, tools
from .layout import Cluster
from .ui import DevError, Step

NAMESPACE = "bench"
_SYSTEM = "certroll-system"
_ACCOUNT = "certroll-operator"
_CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
_LARGE = 1_000_000  # bytes
_FILLED = 3600.0  # seconds, for 100,000 objects on a busy machine
# Of what is installed, nothing that would run.
_NOT_APPLIED = re.compile(r"^kind: (Deployment|PodDisruptionBudget|Service)$", re.MULTILINE)


@dataclass(frozen=True)
class World:
    """A cluster that is up, and the programs that are run against it."""

    cluster: Cluster
    bin: Path  # bench-fill, bench-floor, bench-driver
    namespace: str = NAMESPACE

    @property
    def folder(self) -> Path:
        return self.cluster.root / "bench"

    @property
    def token(self) -> Path:
        return self.folder / "token"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def ca(self) -> Path:
        return self.cluster.pki / "ca.crt"

    def inside(self, argv: list[str | Path]) -> list[str]:
        """The command in the cluster's network; it has the pid that nsenter has."""
        return ["nsenter", f"--net={self.cluster.netns_path}", "--", *map(str, argv)]

    def as_account(self) -> dict[str, str]:
        """The environment of what is measured: the operator's own service account."""
        return {**self._environment(), "BENCH_TOKEN": str(self.token)}

    def as_administrator(self) -> dict[str, str]:
        """The environment of what measures: exempt from the API server's fairness, so that it is never what waits."""
        pki = self.cluster.pki
        return {**self._environment(), "BENCH_CERT": str(pki / "admin.crt"), "BENCH_KEY": str(pki / "admin.key")}

    def _environment(self) -> dict[str, str]:
        return {**daemons.environment({}), "BENCH_SERVER": self.cluster.server, "BENCH_CA": str(self.ca)}

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return controlplane.kubectl(self.cluster, self.cluster.bin / "kubectl", *words, stdin=stdin, timeout=600)

    def make_namespace(self) -> None:
        """With the account that pods have unless told, which a controller would make."""
        self.kubectl("create", "namespace", self.namespace)
        self.kubectl("create", "serviceaccount", "default", "-n", self.namespace)

    def fill(self, kind: str, first: int, count: int, *words: str) -> None:
        """Create objects first … first + count - 1; those that exist stay."""
        argv = [self.bin / "bench-fill", self.namespace, kind, str(first), str(count), *words]
        commands.run(self.inside(argv), env=self.as_administrator(), timeout=_FILLED)


def up(name: str, programs: Path) -> World:
    """A control plane with the CRD and the account; what is there already stays."""
    clusters.up(Cluster(name), clusters.Wish(nodes=0))
    world = World(Cluster(name), programs)
    with Step("the CRD, the service account and its rights"):
        _apply(world)
        _write_credentials(world)
        _end_controllers(world.cluster)
    return world


def fill(world: World, secrets: int, policies: int, large: bool) -> None:
    """`policies` of the Secrets have a Deployment without replicas and a policy each; the second Secret is large if so wanted."""
    with Step(f"{secrets} TLS Secrets"):
        world.make_namespace()
        if large:
            world.fill("secrets", 1, 1, str(_LARGE))
        world.fill("secrets", 0, secrets)
    with Step(f"{policies} Deployments and policies"):
        world.fill("deployments", 0, policies)
        world.fill("policies", 0, policies)


def shrink_large(world: World) -> None:
    """The large Secret becomes one like the others."""
    patch = json.dumps({"data": {"padding": None}})
    world.kubectl("-n", NAMESPACE, "patch", "secret", "s-00001", "--type=merge", "-p", patch)


def _end_controllers(cluster: Cluster) -> None:
    """Nobody but the program under test writes, and nobody else answers what it writes."""
    running = clusters.status(cluster)["daemons"]
    pids = [daemon["pid"] for daemon in running if daemon["name"] in _CONTROLLERS and daemon["pid"]]
    daemons.end_all(process for pid in pids if (process := daemons.Process.of(pid)))


def _apply(world: World) -> None:
    world.kubectl("apply", "--server-side", "-k", str(paths.CRDS))
    controlplane.wait_for_crds(world.cluster, *paths.crd_names())
    overlay = paths.REPOSITORY / "manifests" / "overlays" / "cluster-wide"
    documents = world.kubectl("kustomize", str(overlay)).split("\n---\n")
    wanted = [text for text in documents if not _NOT_APPLIED.search(text)]
    world.kubectl("apply", "--server-side", "-f", "-", stdin="\n---\n".join(wanted))


def _write_credentials(world: World) -> None:
    world.folder.mkdir(parents=True, exist_ok=True)
    token = world.kubectl("create", "token", _ACCOUNT, "-n", _SYSTEM, "--duration=12h").strip()
    if not token:
        raise DevError(f"the API server gave no token for {_SYSTEM}/{_ACCOUNT}")
    files.put(world.token, token + "\n", mode=0o600)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": world.cluster.server, "certificate-authority": str(world.ca)}}],
        "users": [{"name": "bench", "user": {"tokenFile": str(world.token)}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    files.put(world.kubeconfig, json.dumps(config, indent=1) + "\n", mode=0o600)


def versions() -> dict[str, str]:
    return {"kubernetes": tools.version_of("kube-apiserver"), "etcd": tools.version_of("etcd")}
