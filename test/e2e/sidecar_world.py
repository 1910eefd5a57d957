"""The worked examples of manifests/sidecar/examples in a namespace of their own, applied as they are, and their clients."""

from __future__ import annotations

import copy
import json
import os
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sidecar_load
import sanitizers
from certroll_dev import paths
from certroll_dev.demo import pki, pods
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.calls import Call, CallLog
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.component_images import Image
from certroll_dev.demo.pki import Authority, Material
from certroll_dev.demo.policy import Consumer, Status
from certroll_dev.demo.processes import Background
from certroll_dev.demo.waiting import wait_for
from sidecar_talk import PROTOCOLS, Answer, Protocol, ask

NAMESPACE = "sidecar"
_EXAMPLES = paths.REPOSITORY / "manifests" / "sidecar" / "examples"
_CONTAINER = "certroll-sidecar"  # the sidecar; its volumes begin so
_CLIENT = "app"  # the name of the clients, which is PostgreSQL's role
_UP = 120.0  # seconds
_TIMEOUT = 60.0  # seconds: a machine that is only slow must not look like a failed reload


@dataclass(frozen=True)
class Example:
    """Its name is that of its folder, its workload, its policy, and its pods' label app."""

    name: str
    kind: str
    port: int
    speaks: str

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"

    @property
    def protocol(self) -> Protocol:
        return PROTOCOLS[self.speaks]

    @property
    def secret(self) -> str:
        return f"{self.name}-tls"


NGINX = Example("nginx", "Deployment", 8443, "http")
PLAIN = Example("nginx-plain", "Deployment", 8443, "http")  # that of nginx, without the sidecar; it has the same Secret
EXAMPLES = (
    NGINX,
    Example("haproxy", "Deployment", 8443, "http"),
    Example("postgresql", "StatefulSet", 5432, "postgresql"),
    Example("redis", "StatefulSet", 6379, "redis"),
)


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    ip: str
    node: str
    restarts: int  # of all its containers, the sidecar's, too

    @staticmethod
    def of(obj: Object) -> Pod:
        status = obj["status"]
        containers = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
        meta, node = obj["metadata"], obj["spec"].get("nodeName", "")
        return Pod(meta["name"], meta["uid"], status.get("podIP", ""), node, sum(c["restartCount"] for c in containers))


@dataclass
class World:
    cluster: LocalCluster
    api: API
    logs: Path
    authorities: list[Authority] = field(default_factory=list)  # the last is the present one
    _materials: dict[str, Material] = field(default_factory=dict)  # by the example's name

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (NAMESPACE,)

    # --- life

    def create(self, scratch: Path, images: Sequence[Image], sanitized: bool) -> None:
        """All examples, each with a leaf of a first CA."""
        self.cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")  # of a run before, if any
        self.cluster.kubectl("create", "namespace", NAMESPACE)
        self.new_ca()
        self.renew(self.authorities[-1].certificate)
        overlay = _overlay(scratch, images, sanitized)
        text = self.cluster.kubectl("kustomize", str(overlay))
        self.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        self.wait_up()

    def wait_up(self) -> None:
        def why() -> str:
            words = ("-n", NAMESPACE)
            return self.cluster.kubectl(*words, "get", "pods", "-o", "wide") + self.cluster.kubectl(*words, "describe", "pods")[-3000:]

        for example in EXAMPLES:
            wait_for(f"{example.kind} {example.name}", lambda e=example: self._is_up(e), deadline=_UP, missing=why)

    def _is_up(self, example: Example) -> bool:
        obj = self.workload(example)
        status, wanted = obj.get("status", {}), obj["spec"]["replicas"]
        seen: bool = status.get("observedGeneration", 0) >= obj["metadata"]["generation"]
        return seen and [status.get(count, 0) for count in ("updatedReplicas", "replicas", "availableReplicas")] == [wanted] * 3

    # --- changing

    def new_ca(self) -> Authority:
        self.authorities.append(pki.new_authority(len(self.authorities) + 1))
        return self.authorities[-1]

    def renew(self, trust: bytes) -> dict[str, Change]:
        """A new leaf of the present CA for each, and these CAs, in one write each."""
        return {e.name: self._write(e, self.authorities[-1].issue(e.name, namespace=NAMESPACE), trust) for e in EXAMPLES}

    def set_trust(self, trust: bytes) -> dict[str, Change]:
        """The leaves stay."""
        return {e.name: self._write(e, self._materials[e.name], trust) for e in EXAMPLES}

    def _write(self, example: Example, leaf: Material, trust: bytes) -> Change:
        material = self._materials[example.name] = Material(leaf.certificate, leaf.key, trust)
        at = time.time()
        written = self.api.apply("secrets", material.secret(example.secret, NAMESPACE))
        return Change(at, written["metadata"]["resourceVersion"], material.fingerprint())

    # --- looking

    def workload(self, example: Example) -> Object:
        return self.api.get(example.plural, NAMESPACE, example.name)

    def pods(self, example: Example) -> list[Pod]:
        found = self.api.list("pods", NAMESPACE, f"app={example.name}")
        return sorted((Pod.of(obj) for obj in found if "deletionTimestamp" not in obj["metadata"]), key=lambda pod: pod.name)

    def identity(self) -> dict[str, list[Pod]]:
        """Equal to that of before when no pod was replaced and no container restarted."""
        return {example.name: self.pods(example) for example in EXAMPLES}

    def status(self, example: Example) -> Status:
        return Status.of(self.api.get("certrotationpolicies", NAMESPACE, example.name))

    def consumer(self, example: Example) -> Consumer:
        return self.status(example).consumers[example.name]

    def describe(self) -> str:
        policies = {e.name: self.api.get("certrotationpolicies", NAMESPACE, e.name) for e in EXAMPLES}
        return "\n".join(f"{name}: {json.dumps(policy.get('status'), indent=1)}" for name, policy in policies.items())

    def wait_ready(self) -> None:
        for example in EXAMPLES:
            wait_for(
                f"policy {example.name} to be Ready", lambda e=example: self.status(e).holds("Ready") and bool(self.status(e).secrets),
                deadline=60, missing=self.describe,
            )  # fmt: skip

    def wait_settled(self, changes: Mapping[str, Change], deadline: float, check: Callable[[], None]) -> dict[str, float]:
        """Until their policies have nothing left to do about them. Returns the seconds that it took, by the example's name."""
        took: dict[str, float] = {}

        def look() -> bool:
            check()
            for example in EXAMPLES:
                if example.name in changes and example.name not in took:
                    change = changes[example.name]
                    if self.status(example).settled({example.secret: change.version}):
                        took[example.name] = time.time() - change.at
            return len(took) == len(changes)

        wait_for("the policies to be settled", look, deadline=deadline, every=0.1, missing=self.describe)
        return took

    def ask_all(self, context: ssl.SSLContext) -> Iterator[tuple[Example, Pod, Answer]]:
        for example in EXAMPLES:
            for pod in self.pods(example):
                yield example, pod, ask(pod.ip, example.port, example.protocol, context)

    def served(self, example: Example) -> set[str | None]:
        """Leaves, by handshakes with its pods."""
        return {pods.served_leaf(pod.ip, example.port, example.name) for pod in self.pods(example)}

    # --- the same without the sidecar

    @contextmanager
    def plain(self) -> Iterator[Example]:
        """nginx without it, and a policy that touches nothing yet."""
        self.api.apply("deployments", _without_sidecar(self.workload(NGINX)))
        self.api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": PLAIN.name, "namespace": NAMESPACE},
            "spec": {
                "mode": "Plan",
                "secrets": [{"name": NGINX.secret}],
                "consumers": [{"name": PLAIN.name, "targetRef": {"kind": PLAIN.kind, "name": PLAIN.name}, "verify": {"port": PLAIN.port}}],
                "restart": {"coalesce": "0s"},
            },
        })  # fmt: skip
        wait_for(PLAIN.name, lambda: self._is_up(PLAIN), deadline=_UP)
        wait_for("its policy to be Ready", lambda: self.status(PLAIN).holds("Ready") and self.status(PLAIN).secrets, deadline=60)
        try:
            yield PLAIN
        finally:
            self.api.delete("certrotationpolicies", NAMESPACE, PLAIN.name)
            self.api.delete("deployments", NAMESPACE, PLAIN.name)

    def enforce(self, example: Example) -> None:
        self.api.merge("certrotationpolicies", NAMESPACE, example.name, {"spec": {"mode": "Enforce"}})

    def nudge(self, example: Example) -> None:
        """Its kubelets refresh its volumes now."""
        for pod in self.pods(example):
            patch: Object = {"metadata": {"annotations": {"e2e.certroll.dev/nudge": str(time.time_ns())}}}
            self.api.merge("pods", NAMESPACE, pod.name, patch, "status")

    # --- clients

    def client(self, authority: Authority) -> Path:
        """A file with certificate and key of a client of that CA."""
        leaf = authority.issue(_CLIENT, namespace=NAMESPACE)
        path = self.logs / f"client-{authority.generation}.pem"
        path.write_bytes(leaf.certificate + leaf.key)
        return path

    def context(self, client: Path, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """For ask: as a client that takes any server; only this version of TLS, if one is given."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(client)
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    @contextmanager
    def calls(self, rate: float) -> Iterator[Calls]:
        """To each pod, `rate` a second to the pods of an example together. They run throughout."""
        found = Calls(self, rate)
        try:
            found.wait_succeed()
            yield found
        finally:
            found.stop()


@dataclass(frozen=True)
class Change:
    """Of a Secret."""

    at: float  # seconds since the epoch, just before it was written
    version: str  # the resourceVersion
    leaf: str  # SHA-256 of the certificate


def _without_sidecar(nginx: Object) -> Object:
    """One pod of it, as a Deployment of its own."""
    template = copy.deepcopy(nginx["spec"]["template"])
    template["metadata"] = {"labels": {"app": PLAIN.name}}
    spec = template["spec"]
    del spec["initContainers"]
    spec["volumes"] = [volume for volume in spec["volumes"] if not volume["name"].startswith(_CONTAINER)]
    return {
        "apiVersion": "apps/v1",
        "kind": PLAIN.kind,
        "metadata": {"name": PLAIN.name, "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": PLAIN.name}}, "template": template},
    }


class Calls:
    """Each is a TCP connection, a TLS handshake with both certificates, and a request. What a client trusts is all CAs."""

    def __init__(self, world: World, rate: float) -> None:
        self._world = world
        self._trust, self._own = world.logs / "callers-trust.pem", world.logs / "caller.pem"
        self.become(world.authorities[-1])
        self._pods = {f"{e.name}/{pod.name}": e for e in EXAMPLES for pod in world.pods(e)}
        self._loads: list[Background] = []
        self._logs: list[CallLog] = []
        for example in EXAMPLES:
            self._start(example, rate)

    def _start(self, example: Example, rate: float) -> None:
        """One process each: none waits for the handshakes of the others."""
        called = self._world.pods(example)
        out = self._world.logs / f"calls-{example.name}.jsonl"
        out.unlink(missing_ok=True)
        command: list[str | Path] = [sys.executable, sidecar_load.__file__, "--ca", self._trust, "--client", self._own, "--out", out]
        command += ["--rate", str(rate / len(called)), "--timeout", str(_TIMEOUT)]
        for pod in called:
            command += ["--target", f"{example.name}/{pod.name}={pod.ip}:{example.port}/{example.name}.{NAMESPACE}.svc/{example.speaks}"]
        env = {"PYTHONPATH": str(paths.HACK / "lib")}
        self._loads.append(Background(f"the load on {example.name}", command, self._world.logs / f"load-{example.name}.log", env))
        self._logs.append(CallLog(out))

    def stop(self) -> None:
        for load in self._loads:
            load.stop()

    def check(self) -> None:
        for load in self._loads:
            load.check()

    def become(self, authority: Authority) -> None:
        """Clients have certificates of this CA from now on."""
        self._replace(self._trust, b"".join(each.certificate for each in self._world.authorities))
        self._replace(self._own, self._world.client(authority).read_bytes())

    def _replace(self, path: Path, content: bytes) -> None:
        half = path.with_suffix(".half")
        half.write_bytes(content)
        os.replace(half, path)

    # --- looking

    def since(self, start: float) -> list[Call]:
        """Those that began since. Those under way are waited for."""
        now = time.time()

        def answered() -> bool:
            self.check()
            return all([log.answered(now) for log in self._logs])

        wait_for("calls under way to end", answered, deadline=_TIMEOUT + 10)
        return sorted((call for log in self._logs for call in log.between(start, now)), key=lambda call: call.at)

    def wait_succeed(self, quiet: float = 2.0, deadline: float = 60.0) -> None:
        """Until all pods are called, and none of the calls has failed for so long."""
        seen: list[Call] = []

        def look() -> bool:
            seen[:] = self.since(time.time() - quiet)
            return all(call.ok for call in seen) and {call.target for call in seen} == set(self._pods)

        wait_for("calls to succeed", look, deadline=deadline, every=0.5, missing=lambda: str({f"{c.target}: {c.reason}" for c in seen}))

    def wait_served(self, changes: Mapping[str, Change], deadline: float) -> dict[str, float]:
        """Until every pod serves its new leaf. Returns the seconds until the last call that was served another one had begun,
        and the first one after it, by the example's name."""
        start = min(change.at for change in changes.values())

        def look() -> dict[str, float] | None:
            calls = self.since(start)
            took = {target: _served_after(calls, target, changes[e.name]) for target, e in self._pods.items()}
            if None in took.values():
                return None
            return {name: max(s for t, s in took.items() if s is not None and self._pods[t].name == name) for name in changes}

        return wait_for("every pod to serve its new leaf", look, deadline=deadline, missing=self._world.describe)


def _served_after(calls: Sequence[Call], target: str, change: Change) -> float | None:
    """When the first call began after which no other leaf was served. None: not yet."""
    first: float | None = None
    for call in calls:
        if call.target == target and call.leaf:
            first = None if call.leaf != change.leaf else first or call.at
    return None if first is None else max(0.0, first - change.at)


# --- how they are applied


def _overlay(folder: Path, images: Sequence[Image], sanitized: bool) -> Path:
    """The examples with this machine's images in a namespace, as a platform team would; nothing in it goes around them."""
    relative = os.path.relpath(_EXAMPLES, folder.resolve())  # kustomize refuses absolute paths
    patches = [_for_sanitizers(kind) for kind in ("Deployment", "StatefulSet")] if sanitized else []
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [f"{relative}/{example.name}" for example in EXAMPLES],
        "images": [dict(zip(("name", "newTag"), image.reference.rsplit(":", 1), strict=True)) for image in images],
        "patches": patches,
    }
    (folder / "kustomization.yaml").write_text(json.dumps(content, indent=1))
    return folder


def _for_sanitizers(kind: str) -> Object:
    """They keep freed memory for a while, and shadow all of it."""
    sidecar: dict[str, Any] = {
        "name": _CONTAINER,
        "env": [{"name": name, "value": value} for name, value in sanitizers.ENVIRONMENT.items()],
        "resources": {"limits": {"memory": "1Gi"}},
    }
    spec = {"template": {"spec": {"initContainers": [sidecar]}}}
    patch = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "any"}, "spec": spec}
    return {"target": {"kind": kind}, "patch": json.dumps(patch)}
