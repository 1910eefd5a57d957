"""Workloads, and what stands beside them, that cost who looks for those that use a Secret."""

from __future__ import annotations

from .tenant import Object, Tenant, Way, names

_VARIABLES, _CONTAINERS, _VOLUMES, _BUDGETS, _HOSTS, _RING = 1_000, 100, 200, 60, 3_000, 20
_KEY = {"secretKeyRef": {"name": "swollen", "key": "tls.crt"}}


class Workloads:
    def __init__(self, tenant: Tenant, good: Object) -> None:
        self._tenant, self._good = tenant, good
        self._owners: list[Object] = []

    def prepare(self) -> None:
        self._tenant.secret("swollen", self._good)
        discover = {"secrets": [{"name": "swollen"}], "discover": {"enabled": True}}
        self._tenant.policy("swollen", {**discover, "restart": {"method": "Evict", "coalesce": "0s", "breaker": {"within": "0s"}}})
        self._tenant.deployment("swollen", {}, paused=True)
        for name in ("contrary", "noted", "claiming"):
            self._tenant.deployment(name, {"volumes": [_volume("swollen", 0)]}, paused=True)
        for name in names("budget", _BUDGETS):
            self._tenant.put("poddisruptionbudgets", name, {"spec": {"maxUnavailable": 0, "selector": {}}})
        for name in names("ring", _RING):
            template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "example.com/unknown:1"}]}}
            made = self._tenant.put("replicasets", name, {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}})
            self._owners.append({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": made["metadata"]["uid"]})

    def ways(self) -> list[Way]:
        return [
            Way(self.a_template_of_many_variables, 15), Way(self.a_template_of_many_containers, 10), Way(self.annotations_of_half_a_megabyte, 5),
            Way(self.annotations_of_ours, 0.2), Way(self.owners_in_a_ring, 0.2), Way(self.pods_of_many_volumes, 5),
            Way(self.budgets_that_overlap, 0.1), Way(self.an_Ingress_of_many_hosts, 10), Way(self.many_events, 0.1),
        ]  # fmt: skip

    def _template(self, name: str, **pod: object) -> None:
        self._tenant.merge("deployments", name, {"spec": {"template": {"spec": pod}}})

    def a_template_of_many_variables(self, turn: int) -> None:
        """Thousands of references to a Secret in one container, each of which makes it a consumer of it."""
        env = [{"name": f"V{turn % 2}_{number}", "valueFrom": _KEY} for number in range(_VARIABLES)]
        self._template("swollen", containers=[{"name": "c", "image": "example.com/unknown:1", "env": env}])

    def a_template_of_many_containers(self, turn: int) -> None:
        """Each with hooks, arguments and an image that the catalogue is asked about."""
        hook = {"preStop": {"exec": {"command": ["sh", "-c", "certroll-shutdown-manager shutdown " + "'" * (turn % 2) + "x " * 500]}}}
        each = [
            {"name": f"c{at}", "image": f"docker.io/library/nginx:1.{turn}.{at}", "args": ["--flag=$(X)"] * 50, "lifecycle": hook}
            for at in range(_CONTAINERS)
        ]
        self._template("contrary", containers=each)

    def annotations_of_half_a_megabyte(self, turn: int) -> None:
        """All that stands in a template may be a reason for another look; 256 KiB of annotations are allowed in each object."""
        note = {f"example.com/{at}": "{" * 60_000 for at in range(4)} | {"example.com/turn": str(turn)}
        self._tenant.merge("deployments", "noted", {"metadata": {"annotations": note}, "spec": {"template": {"metadata": {"annotations": note}}}})

    def annotations_of_ours(self, turn: int) -> None:
        """Who writes what certroll remembers a restart by claims that it was done, or that it was not."""
        claims = [None, "", "x" * 800, "2026-11-21T06:10:21Z", "0" * 64]
        ours = {f"certroll.dev/{word}": claims[(turn + at) % len(claims)] for at, word in enumerate(("restart", "restarted-for", "trust-domain", "refresh"))}
        self._tenant.merge("deployments", "claiming", {"metadata": {"annotations": ours}, "spec": {"template": {"metadata": {"annotations": ours}}}})

    def owners_in_a_ring(self, turn: int) -> None:
        """Whoever goes from owner to owner never comes to an end."""
        at = turn % _RING
        owner = {**self._owners[(at + 1) % _RING], "controller": turn // _RING % 2 == 0}
        self._tenant.merge("replicasets", f"ring-{at}", {"metadata": {"ownerReferences": [owner]}})

    def pods_of_many_volumes(self, turn: int) -> None:
        """They claim to be of a ReplicaSet of the ring, and each volume is a Secret to be looked up."""
        name = f"voluminous-{turn % 4}"
        self._tenant.delete("pods", name)
        volumes = [_volume("swollen" if at else f"absent-{turn}", at) for at in range(_VOLUMES)]
        pod = {"containers": [{"name": "c", "image": "example.com/unknown:1"}], "volumes": volumes, "terminationGracePeriodSeconds": 0}
        self._tenant.put("pods", name, {"spec": pod}, ownerReferences=[{**self._owners[turn % _RING], "controller": True}])

    def budgets_that_overlap(self, turn: int) -> None:
        """Each of them covers all pods, and each change may allow an eviction, or forbid it."""
        self._tenant.merge("poddisruptionbudgets", f"budget-{turn % _BUDGETS}", {"spec": {"maxUnavailable": f"{turn % 101}%"}})

    def an_Ingress_of_many_hosts(self, turn: int) -> None:
        """Each entry of spec.tls may name a Secret that some policy has."""
        tls = [{"hosts": [f"h{turn % 2}-{at}.example"], "secretName": "swollen"} for at in range(_HOSTS)]
        backend = {"service": {"name": "nothing", "port": {"number": 1}}}
        self._tenant.put("ingresses", "wide", {"spec": {"defaultBackend": backend, "tls": tls}})

    def many_events(self, turn: int) -> None:
        """Events about a policy as certroll writes them, in its name."""
        about = {"apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "name": "swollen", "namespace": self._tenant.namespace}
        said = {"involvedObject": about, "reason": "Restarted", "type": "Normal", "message": "x" * 1000, "source": {"component": "certroll-operator"}}
        self._tenant.put("events", f"said-{turn % 500}", {**said, "count": turn})


def _volume(secret: str, at: int) -> Object:
    return {"name": f"v{at}", "secret": {"secretName": secret, "optional": True}}
