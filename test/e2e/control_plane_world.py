"""A kubeadm-like control plane on three nodes, certroll's operator and node agents in it, and a pod to call from.

Files of the nodes are written as a person would: by the scripts of manifests/node-agent/examples, in the node's namespaces
where those have ssh. What is judged is what clients see, and certroll's own word in the ControlPlanePolicy.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sanitizers
from certroll_dev import cgroups, commands, install_overlay, layout, machines, node, node_agent_image, paths, restart_kubelet
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.waiting import wait_for
from certroll_dev.image_recipe import Image
from certroll_dev.layout import Machine
from operator_pods import OperatorPods

EXAMPLES = paths.REPOSITORY / "manifests" / "node-agent" / "examples"
NAMESPACE = "callers"
AGENTS = "certroll-nodes"
_AGENTS = ("certroll-node-agent-control-plane", "certroll-node-agent-workers")
POLICY = "control-plane"
_POLICY = f"controlplanepolicy/{POLICY}"
_PATIENCE = 240.0  # seconds, on a machine that has much else to do

_CALLER = """
apiVersion: v1
kind: Namespace
metadata: {name: callers}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: callers}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: callers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: default}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: caller, namespace: callers}
spec:
  selector: {matchLabels: {app: caller}}
  template:
    metadata: {labels: {app: caller}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: pause, image: PAUSE, imagePullPolicy: Never}]
"""

# Of each kind one whose pods are said to read their token once: they have to be restarted, and nobody else.
_ONCE = """
apiVersion: apps/v1
kind: KIND
metadata: {name: once, namespace: callers}
spec:
  selector: {matchLabels: {app: once-KIND}}
  template:
    metadata: {labels: {app: once-KIND}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: pause, image: PAUSE, imagePullPolicy: Never}]
"""
_KINDS = ("Deployment", "StatefulSet", "DaemonSet")

# Its service account must be there already: else the controller manager takes it for a leftover, and deletes it.
_TOKEN = """
apiVersion: v1
kind: Secret
metadata: {name: kept-token, namespace: callers, annotations: {kubernetes.io/service-account.name: default}}
type: kubernetes.io/service-account-token
"""

# CoreDNS reads the CA of its service account once (client-go before 0.36).
_SPEC: Mapping[str, Any] = {
    "workloads": [
        {"name": "coredns", "targetRef": {"kind": "Deployment", "namespace": "kube-system", "name": "coredns"}, "reads": ["RootCA"]},
        *(
            {"name": f"once-{kind.lower()}", "targetRef": {"kind": kind, "namespace": NAMESPACE, "name": "once"}, "reads": ["Token"]}
            for kind in _KINDS
        ),
    ]
}


class Plane(LocalCluster):
    """Its kubectl is an administrator's with a kubeconfig of kubeadm's, which follows the CA as the scripts write it."""

    def __init__(self, name: str, folder: Path, nodes: int) -> None:
        super().__init__(name)
        self.nodes = nodes
        self.folder = folder
        self.kubeconfig = folder / "admin.conf"

    def begin(self) -> None:
        """Up, with API servers that are away for as short as docs/control-plane.md recommends."""
        self.up("--control-plane-nodes", str(self.nodes))
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.machine(1).kubernetes / "admin.conf", self.kubeconfig)
        self._write_on_node()
        for machine in self.machines:
            self.edit(machine, "kube-apiserver", _shorten_shutdown)
        wait_for("the API servers with their new flag", self._are_short, deadline=_PATIENCE, every=1.0)

    @property
    def machines(self) -> list[Machine]:
        return [self.machine(number) for number in range(1, self.nodes + 1)]

    def machine(self, number: int) -> Machine:
        return self.layout.machine(number)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return commands.run([self.layout.bin / "kubectl", *arguments], stdin=stdin, env=self.environment(), timeout=_PATIENCE)

    def json(self, *words: str) -> Any:
        return json.loads(self.kubectl(*words, "--output=json"))

    def environment(self) -> dict[str, str]:
        """For kubectl and the scripts, from within network()."""
        path = f"{self.layout.bin}:{os.environ['PATH']}"
        return os.environ | {"PATH": path, "KUBECONFIG": str(self.kubeconfig), "ON_NODE": str(self.folder / "on-node")}

    # --- the nodes' own

    def on_node(self, machine: Machine, script: str, *words: str) -> str:
        return machines.run(machine, ["sh", "-euc", script, "sh", *words])

    def edit(self, machine: Machine, component: str, change: Callable[[str], str]) -> None:
        """Of its manifest, as a person does: the kubelet makes a new pod of it by itself."""
        path = machine.static_pods / f"{component}.yaml"
        put(path, change(path.read_text()))

    def process(self, machine: Machine, program: str) -> tuple[int, int] | None:
        """Pid and start of the one process of that name, in the node's own numbers; None: there is none, or several."""
        script = 'for pid in $(pidof "$1" || true); do echo "$pid $(sed "s/.*) //" /proc/$pid/stat | cut -d" " -f20)"; done'
        found = [line.split() for line in self.on_node(machine, script, program).splitlines()]
        return (int(found[0][0]), int(found[0][1])) if len(found) == 1 and len(found[0]) == 2 else None

    def processes(self) -> dict[tuple[str, str], tuple[int, int] | None]:
        programs = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
        return {(machine.name, program): self.process(machine, program) for machine in self.machines for program in programs}

    def volume(self, machine: Machine, pod: Mapping[str, Any]) -> Path:
        """Where the pod's token and CA are, as this process sees them."""
        pid = machines.pid_of(machine)
        below = Path(f"/proc/{pid}/root/var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~projected")
        found = sorted(below.glob("kube-api-access-*"))
        assert len(found) == 1, f"{pod['metadata']['name']}: {below} has {found}"
        return found[0]

    def _write_on_node(self) -> None:
        """The program that the scripts call in the place of ssh."""
        lines = ["#!/bin/sh", "set -eu", "case $1 in"]
        for machine in self.machines:
            lines.append(f"{machine.name}) pid=$(cat {self.folder}/{machine.name}.pid) ;;")
        lines += ["esac", "shift", 'exec nsenter "--target=$pid" --net --uts --mount --pid -- sh -euc "$1" sh "$@"']
        # sh -c takes its script first: what follows are the arguments.
        lines[-1] = 'script=$1; shift; exec nsenter "--target=$pid" --net --uts --mount --pid -- sh -euc "$script" sh "$@"'
        program = self.folder / "on-node"
        program.write_text("\n".join(lines) + "\n")
        program.chmod(0o755)
        self.note_pids()

    def note_pids(self) -> None:
        """Again when a machine was killed and is back."""
        for machine in self.machines:
            (self.folder / f"{machine.name}.pid").write_text(str(machines.pid_of(machine)))

    def _are_short(self) -> bool:
        script = 'tr "\\0" " " < /proc/$(pidof -s kube-apiserver)/cmdline; curl -ksf --max-time 3 https://127.0.0.1:6443/readyz'
        for machine in self.machines:
            try:
                if _SHORT not in self.on_node(machine, script):
                    return False
            except commands.DevError:
                return False
        return True


@dataclass
class Word:
    """certroll's, at a moment."""

    status: Mapping[str, Any]

    def text(self, place: str) -> str:
        found: Any = self.status
        for name in place.split("."):
            found = (found or {}).get(name)
        return found or ""

    def condition(self, kind: str) -> Mapping[str, Any]:
        return next((each for each in self.status.get("conditions", []) if each["type"] == kind), {})

    def holds(self, kind: str) -> bool:
        return self.condition(kind).get("status") == "True"

    def says(self, kind: str) -> str:
        return str(self.condition(kind).get("message", ""))


@dataclass
class World:
    plane: Plane
    logs: Path
    operator: OperatorPods = field(init=False)
    namespaces: tuple[str, ...] = (install_overlay.NAMESPACE, AGENTS, "kube-system")  # whose logs are kept of a test that failed
    told: list[str] = field(default_factory=list)  # what the scripts have said

    @property
    def cluster(self) -> Plane:
        return self.plane

    @property
    def api(self) -> API:
        return self.plane.api()

    def create_callers(self) -> None:
        once = "---".join(_ONCE.replace("KIND", kind) for kind in _KINDS)
        self.plane.kubectl("apply", "-f", "-", stdin=f"{_CALLER}---{once}".replace("PAUSE", node.PAUSE_IMAGE))
        self.plane.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/caller", "--timeout=120s")
        self.plane.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=_TOKEN)

    def create_policy(self, **spec: Any) -> None:
        policy = {
            "apiVersion": "certroll.dev/v1alpha1", "kind": "ControlPlanePolicy",
            "metadata": {"name": POLICY, "namespace": "kube-system"}, "spec": {**_SPEC, **spec},
        }  # fmt: skip
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(policy))

    # --- certroll, by its manifests

    def install(self, operator: Image, agent: Image) -> None:
        """Both with sanitizers; two operators of which one leads, and an agent on each node that may restart the kubelet, too."""
        self.operator = OperatorPods(
            self.plane, self.plane.api(), operator, [], self.logs / "operator.log",
            overlay="cluster-wide", components=["control-plane"],
        )  # fmt: skip
        self.operator.start()
        for machine in self.plane.machines:
            node.ensure_image(machine, agent.reference, agent.archive)
        folder = _agent_overlay(self.plane.folder / "node-agent", agent)
        self.plane.kubectl("apply", "--server-side", "-k", str(folder))
        for agents in _AGENTS:
            self.plane.kubectl("-n", AGENTS, "rollout", "status", f"daemonset/{agents}", "--timeout=180s")

    def kill(self, victim: str, machine: Machine) -> None:
        """SIGKILL: the agent of that node, or the operator that leads. Its kubelet starts another container, later each time, so
        that the pod is deleted as well."""
        if victim == "operator":
            self.operator.kill_leader()
            return
        pod = self.agent_pod(machine)
        for pid in cgroups.pids_of_container(self.plane.layout.cgroup, pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]):
            os.kill(pid, signal.SIGKILL)
        self.plane.kubectl("-n", AGENTS, "delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force", "--wait=false")

    def agent_pod(self, machine: Machine) -> Mapping[str, Any]:
        words = ("-n", AGENTS, "get", "pods", f"--field-selector=spec.nodeName={machine.name}")
        found = [pod for pod in self.plane.json(*words)["items"] if "deletionTimestamp" not in pod["metadata"]]
        assert len(found) == 1, f"{machine.name} has {len(found)} agents"
        pod: Mapping[str, Any] = found[0]
        return pod

    # --- looking

    def word(self) -> Word:
        return Word(self.plane.json("-n", "kube-system", "get", _POLICY).get("status", {}))

    def reports(self) -> dict[str, Any]:
        return {item["metadata"]["name"]: item for item in self.plane.json("get", "nodecertificatereports")["items"]}

    def act(self, name: str) -> Mapping[str, Any]:
        """What the node's agent says that it does, or did last."""
        report = self.plane.json("get", "nodecertificatereport", name)
        found: Mapping[str, Any] = report.get("status", {}).get("restart") or {}
        return found

    def file(self, name: str, path: str) -> Path:
        """A file of that node, as this process has it."""
        machine = next(machine for machine in self.plane.machines if machine.name == name)
        for there, here in (("/etc/kubernetes", machine.kubernetes), ("/var/lib/kubelet", machine.kubelet)):
            if path.startswith(f"{there}/"):
                return here / path.removeprefix(f"{there}/")
        raise AssertionError(f"{path} of {name} is in no folder of the node's own")

    def wait(self, what: str, holds: Callable[[Word], bool], deadline: float = _PATIENCE) -> Word:
        """An API server may just be away; that is no answer."""

        def look() -> Word | None:
            try:
                word = self.word()
            except commands.DevError:
                return None
            return word if holds(word) else None

        return wait_for(what, look, deadline=deadline, every=0.5, missing=self.describe)

    def wait_converged(self, deadline: float = _PATIENCE) -> Word:
        return self.wait("certroll to say Converged", lambda word: word.holds("Converged"), deadline)

    def describe(self) -> str:
        try:
            acts = {name: report.get("status", {}).get("restart") for name, report in self.reports().items()}
            return json.dumps({"status": self.word().status, "acts": acts}, indent=1)
        except commands.DevError as error:
            return str(error)

    def pods(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self.plane.json("-n", NAMESPACE, "get", "pods", "-l", "app=caller")["items"]
        return found

    def readers_once(self) -> dict[str, set[str]]:
        """UIDs of the pods, by kind, that read their token once."""
        found = self.plane.json("-n", NAMESPACE, "get", "pods")["items"]
        return {
            kind: {pod["metadata"]["uid"] for pod in found if pod["metadata"]["labels"]["app"] == f"once-{kind}"} for kind in _KINDS
        }

    def volumes(self) -> list[Path]:
        by_name = {machine.name: machine for machine in self.plane.machines}
        return [self.plane.volume(by_name[pod["spec"]["nodeName"]], pod) for pod in self.pods()]

    def ways(self) -> tuple[tuple[str, int], list[tuple[str, str, int]]]:
        """For control_plane_clients.calling."""
        servers = [(machine.name, str(machine.address), layout.API_PORT) for machine in self.plane.machines]
        return (str(self.plane.layout.family.balancer), layout.BALANCER_PORT), servers

    # --- the scripts

    def script(self, name: str, folder: Path, heard: Callable[[str], None] = lambda _: None, minutes: int = 20) -> None:
        """Runs it to its end; `heard` gets each line as it comes."""
        environment = self.plane.environment() | {"WAIT_MINUTES": str(minutes)}
        process = subprocess.Popen(
            [EXAMPLES / name, folder], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines = []
        with process:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                self.told.append(f"{time.strftime('%H:%M:%S')} {line.rstrip()}")
                heard(line.rstrip())
        (self.logs / f"{name}.log").write_text("\n".join(self.told) + "\n")
        assert process.returncode == 0, "\n".join(lines[-30:]) + "\n" + self.describe()


def _agent_overlay(folder: Path, image: Image) -> Path:
    """What somebody writes whose nodes have no systemd, and whose image has sanitizers.

    restart-kubelet starts the kubelet itself, with the rights of whoever calls it: where systemd would, with its own, the
    capabilities of the component kubelet-restart are enough. Here a kubelet with these few would not live.
    """
    repository, _, tag = image.reference.rpartition(":")
    container = "/spec/template/spec/containers/0"
    command = f"nsenter --target=1 --mount --uts --net --pid -- {restart_kubelet.COMMAND}"
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": f"{container}/args/-", "value": f"--kubelet-restart-command={command}"},
        {"op": "add", "path": f"{container}/args/-", "value": "--log-level=debug"},
        {"op": "replace", "path": f"{container}/securityContext", "value": {"privileged": True}},
        {"op": "add", "path": f"{container}/resources/limits/memory", "value": "1Gi"},
        *({"op": "add", "path": f"{container}/env/-", "value": {"name": key, "value": value}} for key, value in sanitizers.ENVIRONMENT.items()),
    ]  # fmt: skip
    base = os.path.relpath(install_overlay.MANIFESTS / "node-agent", folder.resolve())
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [base], "components": [f"{base}/kubelet-restart"],
        "images": [{"name": node_agent_image.REPOSITORY, "newName": repository, "newTag": tag}],
        "patches": [{"target": {"kind": "DaemonSet"}, "patch": json.dumps(patch)}],
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kustomization.yaml").write_text(json.dumps(document))
    return folder


_SHORT = "--shutdown-watch-termination-grace-period=3s"


def _shorten_shutdown(manifest: str) -> str:
    return manifest if _SHORT in manifest else manifest.replace("    - kube-apiserver\n", f"    - kube-apiserver\n    - {_SHORT}\n", 1)


def put(path: Path, text: str) -> None:
    """In one step. What is half written has a name that a kubelet leaves out."""
    half = path.parent / f".{path.name}.new"
    half.touch(mode=0o600)
    half.write_text(text)
    os.replace(half, path)


def fingerprints(pem: Path) -> list[str]:
    """Of each certificate, in the order of the file."""
    blocks = pem.read_text().split("-----BEGIN CERTIFICATE-----")[1:]
    return [hashlib.sha256(base64.b64decode(block.split("-----END")[0])).hexdigest() for block in blocks]


def key_print(public: Path) -> str:
    """Of the one key of a file, as certroll names it and, in another alphabet, a token's "kid" does (pkg/serviceaccount keyIDFromPublicKey)."""
    block = public.read_text().split("-----BEGIN PUBLIC KEY-----")[1]
    return hashlib.sha256(base64.b64decode(block.split("-----END")[0])).hexdigest()


def key_of(token: str) -> str:
    """The key that signed a token, as certroll names it."""
    kid = json.loads(_base64url(token.split(".")[0]))["kid"]
    return _base64url(kid).hex()


def _base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def joined(names: Sequence[str]) -> str:
    return ",".join(sorted(set(names)))
