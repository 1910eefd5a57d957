"""nginx as workloads of several kinds and strategies, each under a PodDisruptionBudget: none of them reloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from certroll_dev.demo import component_images, pki, programs
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.calls import CallLog
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Authority
from certroll_dev.demo.policy import Status
from certroll_dev.demo.processes import Load
from certroll_dev.demo.scenario import wait_calls_succeed
from certroll_dev.demo.waiting import wait_for

PORT = 8443
_UP = 300.0  # seconds, for tens of pods on a small machine
_CONF = f"""
worker_processes 1; pid /tmp/nginx.pid; error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server {{
    listen {PORT} ssl; ssl_certificate /certs/tls.crt; ssl_certificate_key /certs/tls.key;
    location / {{ return 200 "ok\\n"; }}
  }}
}}
"""


@dataclass(frozen=True)
class Web:
    """One workload. Its pods have the labels app (its name) and budget."""

    name: str
    kind: str
    replicas: int
    spec: Object  # beside replicas, selector and template
    budget: str  # the one that covers it
    secret: str = "web-tls"
    is_called: bool = False  # it has a Service of its name

    @property
    def labels(self) -> dict[str, str]:
        return {"app": self.name}

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"

    def manifest(self, namespace: str, image: str) -> Object:
        template: Object = {"metadata": {"labels": {"app": self.name, "budget": self.budget}}, "spec": _pod(image, self.secret)}
        spec: Object = {"selector": {"matchLabels": self.labels}, "template": template, **self.spec}
        if self.kind != "DaemonSet":
            spec["replicas"] = self.replicas
        if self.kind == "StatefulSet":
            spec["serviceName"] = self.name
        return {"apiVersion": "apps/v1", "kind": self.kind, "metadata": {"name": self.name, "namespace": namespace}, "spec": spec}

    def service(self, namespace: str) -> Object:
        spec = {"selector": self.labels, "ports": [{"port": PORT}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": self.name, "namespace": namespace}, "spec": spec}

    def consumer(self) -> Object:
        return {"name": self.name, "targetRef": {"kind": self.kind, "name": self.name}, "verify": {"port": PORT}}


def _pod(image: str, secret: str) -> Object:
    """Ready when it answers, and then it stays so: whoever goes was taken away, and did not falter on a busy machine."""
    probe = {"httpGet": {"path": "/", "port": PORT, "scheme": "HTTPS"}, "periodSeconds": 1, "failureThreshold": 60, "timeoutSeconds": 10}
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "containers": [{
            "name": "nginx", "image": image, "imagePullPolicy": "Never", "readinessProbe": probe,
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/nginx", "readOnly": True},
                {"name": "certs", "mountPath": "/certs", "readOnly": True},
            ],
        }],
        "volumes": [{"name": "config", "configMap": {"name": "web"}}, {"name": "certs", "secret": {"secretName": secret}}],
    }  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """It selects by the label budget, which is its name, or that of another that it stands beside."""

    name: str
    demand: Object  # {"minAvailable": 3}
    least: int  # available pods that it demands
    beside: str = ""

    @property
    def labels(self) -> dict[str, str]:
        return {"budget": self.beside or self.name}

    def manifest(self, namespace: str) -> Object:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": {**self.demand, "selector": {"matchLabels": self.labels}},
        }


@dataclass
class Webs:
    """They, their Secrets and policies, in a namespace of their own."""

    cluster: LocalCluster
    api: API
    namespace: str
    webs: Sequence[Web]
    budgets: Sequence[Budget]
    authority: Authority = field(default_factory=lambda: pki.new_authority(1))

    # --- life

    @contextmanager
    def running(self) -> Iterator[Webs]:
        self.cluster.kubectl("create", "namespace", self.namespace)
        try:
            self._create()
            yield self
        finally:
            self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")

    def _create(self) -> None:
        image = component_images.nginx(programs.debian()).reference
        for secret in {web.secret for web in self.webs}:
            self.renew(secret)
        self.api.apply("configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "web", "namespace": self.namespace}, "data": {"nginx.conf": _CONF},
        })  # fmt: skip
        for budget in self.budgets:
            self.api.apply("poddisruptionbudgets", budget.manifest(self.namespace))
        for web in self.webs:
            self.api.apply(web.plural, web.manifest(self.namespace, image))
            if web.is_called:
                self.api.apply("services", web.service(self.namespace))
        self.wait_up()

    def wait_up(self) -> None:
        """All pods are ready, and the budgets know it."""
        wait_for("all pods to be ready", lambda: not self._missing(), deadline=_UP, missing=lambda: ", ".join(self._missing()))

    def _missing(self) -> list[str]:
        found: list[str] = [web.name for web in self.webs if self._available(web) != web.replicas]
        for budget in self.budgets:
            if budget.beside:
                continue  # of two on one pod the disruption controller counts for one only
            status = self.api.get("poddisruptionbudgets", self.namespace, budget.name).get("status", {})
            if status.get("currentHealthy", 0) < status.get("expectedPods", 1):
                found.append(f"budget {budget.name}")
        return found

    def _available(self, web: Web) -> int:
        """As its controller says, when it has done what its template asks for."""
        obj = self.workload(web)
        status = obj.get("status", {})
        if status.get("observedGeneration", 0) < obj["metadata"]["generation"]:
            return -1
        words = ("updatedNumberScheduled", "numberAvailable") if web.kind == "DaemonSet" else ("updatedReplicas", "availableReplicas")
        return min(int(status.get(word, 0)) for word in words)

    # --- changing

    def renew(self, secret: str = "web-tls") -> dict[str, str]:
        """A new leaf. Returns the Secret's resourceVersion by its name."""
        leaf = self.authority.issue("web", namespace=self.namespace)
        written = self.api.apply("secrets", leaf.secret(secret, self.namespace))
        return {secret: written["metadata"]["resourceVersion"]}

    def roll(self, names: Sequence[str]) -> None:
        """As `kubectl rollout restart`, all at once."""
        annotations = {"kubectl.kubernetes.io/restartedAt": datetime.now(UTC).isoformat()}
        for web in self.webs:
            if web.name in names:
                patch: Object = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
                self.api.merge(web.plural, self.namespace, web.name, patch)

    @contextmanager
    def calls(self, logs: Path, rate: float) -> Iterator[CallLog]:
        """Calls to each that has a Service, which run throughout."""
        trust = logs / "trust.pem"
        trust.write_bytes(self.authority.certificate)
        targets = [f"{web.name}={self._address(web)}/web.{self.namespace}.svc" for web in self.webs if web.is_called]
        load = Load(targets, trust, rate, logs / "calls.jsonl", logs / "load.log")
        try:
            log = CallLog(logs / "calls.jsonl")
            wait_calls_succeed(log, [web.name for web in self.webs if web.is_called], load.check, quiet=1.0, deadline=60)
            yield log
        finally:
            load.stop()

    def _address(self, web: Web) -> str:
        return f"{self.api.get('services', self.namespace, web.name)['spec']['clusterIP']}:{PORT}"

    def set_budget(self, name: str, demand: Object) -> None:
        self.api.merge("poddisruptionbudgets", self.namespace, name, {"spec": demand})

    @contextmanager
    def policy(self, webs: Sequence[Web], name: str = "web", **restart: object) -> Iterator[None]:
        """It has seen what is there."""
        self.set_policy(webs, name, **restart)
        try:
            self.wait("the policy to be Ready", lambda status: status.holds("Ready") and bool(status.secrets), 60, name)
            yield
        finally:
            self.api.delete("certrotationpolicies", self.namespace, name)

    def set_policy(self, webs: Sequence[Web], name: str = "web", **restart: object) -> None:
        [secret] = {web.secret for web in webs}
        self.api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "secrets": [{"name": secret}],
                "consumers": [web.consumer() for web in webs],
                "restart": {"coalesce": "0s", "breaker": {"within": "0s"}, "maxConcurrent": len(webs), **restart},
            },
        })  # fmt: skip

    # --- looking

    def workload(self, web: Web) -> Object:
        return self.api.get(web.plural, self.namespace, web.name)

    def status(self, policy: str = "web") -> Status:
        return Status.of(self.api.get("certrotationpolicies", self.namespace, policy))

    def wait(self, what: str, look: Callable[[Status], bool], deadline: float, policy: str = "web") -> Status:
        def see() -> Status | None:
            status = self.status(policy)
            return status if look(status) else None

        return wait_for(what, see, deadline=deadline, missing=lambda: self.describe(policy))

    def wait_settled(self, versions: Mapping[str, str], deadline: float, policy: str = "web") -> Status:
        return self.wait("the rotation to be settled", lambda status: status.settled(versions), deadline, policy)

    def events_of(self, name: str) -> list[Object]:
        """About the object of that name, of whatever kind."""
        return [event for event in self.api.list("events", self.namespace) if event["involvedObject"]["name"] == name]

    def describe(self, policy: str = "web") -> str:
        return json.dumps(self.api.get("certrotationpolicies", self.namespace, policy).get("status"), indent=1)
