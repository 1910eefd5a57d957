"""The operator as it is installed in a local cluster: put there, looked at, killed, changed, and taken away.

For `hack/cluster install`, the demo and the tests:

    operator = install.Operator(cluster, operator_image.cached("dev"), namespaces=["shop"], args=["--log-level=debug"])
    operator.install()
    operator.kill_leader()
    operator.uninstall()
"""

from __future__ import annotations

import dataclasses
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cgroups, controlplane, daemons, install_overlay, namespaces as linux, node, paths
from .addresses import with_port
from .daemons import Process
from .install_overlay import NAME, NAMESPACE, Setup
from .layout import Cluster
from .operator_image import Image
from .pod_logs import PodLogs
from .ui import DevError

_LABEL = "app.kubernetes.io/name=certroll"
PODS = f"{_LABEL},app.kubernetes.io/component=operator"
_BINDINGS = "clusterrolebindings,rolebindings"
_ROLLOUT = 120.0  # seconds, on a busy machine
_SANDBOX = "/pause"
# An image with sanitizers keeps freed memory for a while, and shadows all of it.
_SANITIZED_MEMORY = "1Gi"


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    ip: str
    node: str
    ready: bool
    ending: bool
    container: str  # its id; "" while there is none
    restarts: int
    exit_status: int | None  # of the container before; None: there was none

    @staticmethod
    def of(obj: Mapping[str, Any]) -> Pod:
        meta, status = obj["metadata"], obj.get("status", {})
        container = (status.get("containerStatuses") or [{}])[0]
        return Pod(
            name=meta["name"],
            uid=meta["uid"],
            ip=status.get("podIP", ""),
            node=obj["spec"].get("nodeName", ""),
            ready=any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])),
            ending="deletionTimestamp" in meta,
            container=container.get("containerID", "").rpartition("/")[2],
            restarts=container.get("restartCount", 0),
            exit_status=container.get("lastState", {}).get("terminated", {}).get("exitCode"),
        )


class Operator:
    """One installation. Needs root, from inside or outside of the cluster's network."""

    def __init__(
        self,
        cluster: Cluster,
        image: Image,
        *,
        overlay: str | None = None,
        namespaces: Sequence[str] = (),
        components: Sequence[str] = (),
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        replicas: int | None = None,
        namespace: str = NAMESPACE,
        open_metrics: bool = False,
    ) -> None:
        """Either an overlay of manifests/overlays, or the namespaces to watch. `args` come after the manifest's own.

        `namespace` is the operator's own: several, each with one of its own, live side by side. `open_metrics`: /metrics is
        there by plain HTTP, for whoever asks (`page`).
        """
        self._cluster = cluster
        self.namespace = namespace
        self._archive = image.archive
        self._logs = PodLogs(cluster, namespace, NAME)
        self._killed: set[str] = set()  # containers that the API server may still call ready
        self.seen: set[str] = set()  # uids of all pods that were ever looked at
        self._setup = Setup(
            image=image.reference,
            overlay=overlay,
            namespaces=tuple(namespaces),
            components=tuple(components),
            args=tuple(args),
            env=dict(env or {}),
            replicas=replicas,
            memory=_SANITIZED_MEMORY if image.sanitized else None,
            revision=image.archive.stem,  # of an image from the cache, a digest of its content
            open_metrics=open_metrics,
        )

    @property
    def overlay(self) -> Path:
        """The kustomization that is applied."""
        return _overlay(self._cluster, self.namespace)

    # --- installing

    def install(self) -> None:
        """Or change what is installed into this. Returns when all its pods are ready, and no others are left."""
        for machine in self._cluster.known_machines():
            node.ensure_image(machine, self._setup.image, self._archive)
        install_overlay.write(self.overlay, self._setup)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=self._manifests())
        controlplane.wait_for_crds(self._cluster, *paths.crd_names())
        self.wait_ready()
        self._withdraw_other_rights()

    def uninstall(self) -> None:
        """As docs/operations.md says it: policies stay, and so does the namespace with what users put there.

        The pods first, though, while they still have the right to give up the Lease: no request of theirs is refused.
        """
        self.kubectl("-n", self.namespace, "delete", "deployment", NAME, "--ignore-not-found")
        self._wait("the operator's pods to end", lambda: not self.pods())
        self.kubectl("delete", "--ignore-not-found", "-l", _LABEL, "-f", "-", stdin=self._manifests())

    def set_args(self, *args: str) -> None:
        """Replace what was given as `args`; all pods are replaced, one after the other."""
        self._setup = dataclasses.replace(self._setup, args=args)
        self.install()

    def scale(self, replicas: int) -> None:
        self._setup = dataclasses.replace(self._setup, replicas=replicas)
        self.install()

    def wait_ready(self) -> None:
        """Until every replica is ready and has the present template."""
        self._wait("the operator to be ready", self._is_ready)

    # --- looking

    def pods(self) -> list[Pod]:
        """Those that are ending, too."""
        found = [Pod.of(obj) for obj in self._get("pods", "-n", self.namespace, "-l", PODS)]
        self._logs.keep()
        self.seen |= {pod.uid for pod in found}
        return found

    def leader_pod(self, deadline: float = 60.0) -> Pod:
        """The pod that holds the Lease, waited for; without leader election the only one."""
        found = self._wait("a leader", lambda: list(self._leaders()), deadline)
        return found[0]

    def page(self, pod: Pod, path: str, port: int = 8080) -> str:
        """One of its own pages by plain HTTP: /metrics with `open_metrics`; OSError when it does not answer."""

        def fetch() -> str:
            with urllib.request.urlopen(f"http://{with_port(pod.ip, port)}{path}", timeout=5) as response:
                text: str = response.read().decode()
                return text

        return linux.in_network(self._cluster.netns_path, fetch)

    def logs(self, uid: str | None = None) -> str:
        """All lines that the pod, or all pods there ever were, wrote in any of their containers."""
        return self._logs.text(uid)

    def forget_logs(self) -> None:
        """Of all pods that there were."""
        self._logs.forget()

    # --- disturbing

    def kill_leader(self) -> Pod:
        """SIGKILL, as a crash. Its kubelet starts another container in the same pod: at once the first time, then later
        and later (10 s, 20 s, …); `delete(pod)` makes the Deployment start another pod instead."""
        pod = self.leader_pod()
        self.kill(pod)
        return pod

    def kill(self, pod: Pod) -> None:
        """SIGKILL. What replaces the container is waited for by wait_ready."""
        self._killed.add(pod.container)
        for process in self.processes(pod):
            process.kill()

    def kill_whole(self, pod: Pod) -> None:
        """SIGKILL for all that runs in the pod, also in a container that its kubelet has not told of yet; to be deleted then."""
        self._killed.add(pod.container)
        for pid in cgroups.pids_of_pod(self._cluster.cgroup, pod.uid):
            process = Process.of(pid)
            if process and daemons.command_line(pid)[:1] != [_SANDBOX]:
                process.kill()

    def processes(self, pod: Pod) -> list[Process]:
        """As the host numbers them; to be paused (SIGSTOP) and the like."""
        if not pod.container:
            raise DevError(f"pod {pod.name} has no container yet")
        found = [Process.of(pid) for pid in cgroups.pids_of_container(self._cluster.cgroup, pod.container)]
        return [process for process in found if process]

    def delete(self, pod: Pod, *, grace: int | None = None) -> None:
        """grace 0: at once, without SIGTERM, as when a node is lost."""
        words = () if grace is None else (f"--grace-period={grace}", *(("--force",) if grace == 0 else ()))
        self._logs.keep()
        self.kubectl("-n", self.namespace, "delete", "pod", pod.name, "--wait=false", "--ignore-not-found", *words)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return _kubectl(self._cluster, *words, stdin=stdin)

    # --- inside

    def _manifests(self) -> str:
        """Nothing but the namespace is named after it; kustomize's own way to move it would move the watched ones' Roles, too."""
        return self.kubectl("kustomize", str(self.overlay)).replace(NAMESPACE, self.namespace)

    def _is_ready(self) -> bool:
        deployment = self._deployment()
        wanted, status = deployment["spec"]["replicas"], deployment.get("status", {})
        observed = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        pods = self.pods()
        rolled_out = observed and status.get("updatedReplicas", 0) == wanted == len(pods)
        return rolled_out and all(pod.ready and not pod.ending and pod.container not in self._killed for pod in pods)

    def _deployment(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("-n", self.namespace, "get", "deployment", NAME, "-o", "json"))
        return found

    def _leaders(self) -> Iterator[Pod]:
        pods = [pod for pod in self.pods() if not pod.ending]
        container = self._deployment()["spec"]["template"]["spec"]["containers"][0]
        if "--leader-elect=false" in container["args"]:
            yield from pods
            return
        lease = json.loads(self.kubectl("-n", self.namespace, "get", "lease", NAME, "--ignore-not-found", "-o", "json") or "{}")
        holder = lease.get("spec", {}).get("holderIdentity") or ""
        yield from (pod for pod in pods if holder == pod.name or holder.startswith(f"{pod.name}_"))

    def _withdraw_other_rights(self) -> None:
        """What an earlier setup granted to this operator, and this one does not: `kubectl apply` leaves it."""
        wanted = {obj["metadata"]["uid"] for obj in json.loads(self.kubectl("get", "-f", "-", "-o", "json", stdin=self._manifests()))["items"]}
        for obj in self._get(_BINDINGS, "-A", "-l", _LABEL):
            meta = obj["metadata"]
            ours = any(subject.get("namespace") == self.namespace for subject in obj["subjects"])
            if ours and meta["uid"] not in wanted:
                kinds = f"{obj['kind']},{obj['roleRef']['kind']}".lower()
                self.kubectl("-n", meta.get("namespace", ""), "delete", kinds, meta["name"], "--ignore-not-found")

    def _get(self, *words: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *words, "-o", "json"))["items"]
        return found

    def _wait(self, what: str, look: Any, deadline: float = _ROLLOUT) -> Any:
        end = time.monotonic() + deadline
        while not (found := look()):
            if time.monotonic() > end:
                raise DevError(f"waited {deadline:g} s for {what}:\n{self._why()}")
            time.sleep(0.3)
        return found

    def _why(self) -> str:
        words = ("-n", self.namespace, "get", "events", "--sort-by=.lastTimestamp")
        return "\n".join([self.kubectl("-n", self.namespace, "get", "pods", "-o", "wide"), self.kubectl(*words), self.logs()[-3000:]])


def uninstall(cluster: Cluster) -> None:
    """Whatever was installed last."""
    overlay = _overlay(cluster, NAMESPACE)
    if not overlay.exists():
        raise DevError(f"nothing was installed in cluster {cluster.name} by hack/cluster install")
    _kubectl(cluster, "delete", "--ignore-not-found", "-l", _LABEL, "-k", str(overlay))


def _overlay(cluster: Cluster, namespace: str) -> Path:
    return cluster.root / "install" / namespace


def _kubectl(cluster: Cluster, *words: str, stdin: str | None = None) -> str:
    return controlplane.kubectl(cluster, cluster.bin / "kubectl", *words, stdin=stdin, timeout=_ROLLOUT)
