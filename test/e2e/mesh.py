"""A server Envoy, a client Envoy and a client that reads its files once, each in a namespace of its own, on two nodes.

Their manifests are in mesh.d. Each call is one fresh mutual TLS handshake, none is retried, no session is resumed.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml
from certroll_dev.demo import pki, pods
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Authority, Material
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import is_rolled_out
from published_bundles import Place, PublishedBundles

MANIFESTS = Path(__file__).resolve().parent / "mesh.d"
_PAGES = 9902  # of an Envoy: what its admin port says, read-only
_UP = 120.0  # seconds
_NUDGE_EVERY = 2.0


@dataclass(frozen=True)
class Member:
    """A workload: its name is that of its namespace, Deployment, policy, leaf, and its pods' label app."""

    name: str
    is_envoy: bool = True

    @property
    def secret(self) -> str:
        return f"{self.name}-tls"


BACKEND, FRONTEND, BATCH = Member("backend"), Member("frontend"), Member("batch", is_envoy=False)
MEMBERS = (BACKEND, FRONTEND, BATCH)


@dataclass(frozen=True)
class Page:
    """What an Envoy holds, by its page /certs: serial numbers in lower-case hexadecimal."""

    leaves: frozenset[str]
    cas: frozenset[str]


@dataclass
class Mesh:
    cluster: LocalCluster
    api: API
    logs: Path
    authorities: list[Authority] = field(default_factory=list)  # the last is the present one

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(member.name for member in MEMBERS)

    # --- life

    def create_namespaces(self) -> None:
        self.apply("00-namespaces.yaml")

    def create_workloads(self) -> None:
        """They come up as soon as their Secrets are there."""
        for manifest in ("10-backend.yaml", "20-frontend.yaml", "30-batch.yaml"):
            self.apply(manifest)

    def apply(self, manifest: str, change: Callable[[Object], None] = lambda _: None) -> None:
        """With `change` made to each object in it."""
        objects = list(yaml.safe_load_all((MANIFESTS / manifest).read_text()))
        for obj in objects:
            change(obj)
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(items))

    def wait_up(self, members: Sequence[Member] = MEMBERS) -> None:
        for member in members:
            wait_for(
                f"Deployment {member.name}", lambda member=member: is_rolled_out(self.deployment(member)),
                deadline=_UP, missing=lambda member=member: self.cluster.kubectl("-n", member.name, "describe", "pods")[-3000:],
            )  # fmt: skip

    def scale(self, member: Member, replicas: int) -> None:
        self.api.merge("deployments", member.name, member.name, {"spec": {"replicas": replicas}})

    def wait_gone(self, member: Member) -> None:
        wait_for(f"the pods of {member.name} to end", lambda: not self.api.list("pods", member.name, f"app={member.name}"), deadline=60)

    # --- changing, as somebody without certroll does

    def new_ca(self) -> Authority:
        self.authorities.append(pki.new_authority(len(self.authorities) + 1))
        return self.authorities[-1]

    def leaves(self, authority: Authority) -> dict[str, Material]:
        """A new one for each member, by its name."""
        return {member.name: authority.issue(member.name, namespace=member.name) for member in MEMBERS}

    def write(self, leaves: Mapping[str, Material], trust: bytes) -> None:
        """Leaf and bundle in one write, each."""
        for member in MEMBERS:
            if leaf := leaves.get(member.name):
                secret = Material(leaf.certificate, leaf.key, trust).secret(member.secret, member.name)
                self.api.apply("secrets", secret)

    def restart(self, member: Member) -> None:
        """As `kubectl rollout restart`."""
        annotations = {"kubectl.kubernetes.io/restartedAt": datetime.now(UTC).isoformat()}
        self.api.merge("deployments", member.name, member.name, {"spec": {"template": {"metadata": {"annotations": annotations}}}})

    def nudge(self, member: Member) -> None:
        """Its kubelets refresh its volumes now, unless they have not heard of the new Secret yet."""
        for pod in self.pods(member):
            patch: Object = {"metadata": {"annotations": {"e2e.certroll.dev/nudge": str(time.time_ns())}}}
            self.api.merge("pods", member.name, pod.name, patch, "status")

    # --- looking

    def deployment(self, member: Member) -> Object:
        return self.api.get("deployments", member.name, member.name)

    def pods(self, member: Member) -> list[pods.Pod]:
        return pods.of_app(self.api, member.name, member.name)

    def nodes(self, member: Member) -> set[str]:
        return {pod["spec"]["nodeName"] for pod in self.api.list("pods", member.name, f"app={member.name}")}

    def pages(self, member: Member) -> dict[str, Page | None]:
        """Of each pod by its name; None: it does not answer."""
        return {pod.name: _page(pod.ip) for pod in self.pods(member)}

    def served_leaves(self, bundles: PublishedBundles) -> set[str]:
        """Serial numbers of the leaves that are shown now: an Envoy's by its page, of the client what was published when it was started."""
        found = set[str]()
        for member in MEMBERS:
            pages = self.pages(member).values() if member.is_envoy else ()
            found |= {leaf for page in pages if page for leaf in page.leaves}
        return found | {bundles.leaf_at(place(BATCH), at) for at in self._batch_started()}

    def trusted_cas(self, bundles: PublishedBundles) -> set[str]:
        """Serial numbers of the CAs that any pod trusts now, in the same way."""
        found = set[str]()
        for member in MEMBERS:
            pages = self.pages(member).values() if member.is_envoy else ()
            found |= {ca for page in pages if page for ca in page.cas}
        return found.union(*(bundles.cas_at(place(BATCH), at) for at in self._batch_started()))

    def _batch_started(self) -> list[float]:
        """When the containers were started that read their files once and still begin calls."""
        found: list[float] = []
        for pod in self.api.list("pods", BATCH.name, f"app={BATCH.name}"):
            states = [status["state"] for status in pod.get("status", {}).get("containerStatuses", [])]
            calls = "deletionTimestamp" not in pod["metadata"]  # one that is to end begins no further call
            # Whole seconds, cut off.
            found += [_epoch(state["running"]["startedAt"]) + 1 for state in states if calls and "running" in state]
        return found

    def wait_holds(self, member: Member, leaf: str, cas: set[str], *, nudge: bool, deadline: float = 120.0) -> None:
        """Until each pod of this Envoy holds the leaf with that serial number, and just these CAs."""
        nudged = 0.0

        def look() -> bool:
            nonlocal nudged
            found = list(self.pages(member).values())
            if found and all(page and page.leaves == {leaf} and page.cas == cas for page in found):
                return True
            if nudge and time.monotonic() - nudged > _NUDGE_EVERY:
                nudged = time.monotonic()
                self.nudge(member)
            return False

        wait_for(f"{member.name} to hold what is in its Secret", look, deadline=deadline, missing=lambda: str(self.pages(member)))

    def counters(self, member: Member, prefix: str) -> dict[str, int]:
        """Of all pods of an Envoy together, those whose name begins so, without that."""
        total: dict[str, int] = {}
        for pod in self.pods(member):
            for line in _get(pod.ip, "/stats").decode().splitlines():
                name, _, value = line.partition(": ")
                if name.startswith(prefix) and value.isdigit():
                    total[name[len(prefix) :]] = total.get(name[len(prefix) :], 0) + int(value)
        return total


def place(member: Member) -> Place:
    """Of its bundle."""
    return Place("secrets", member.name, member.secret)


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _get(ip: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(ip, _PAGES, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def _page(ip: str) -> Page | None:
    try:
        entries = json.loads(_get(ip, "/certs"))["certificates"]
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    return Page(_serials(entries, "cert_chain"), _serials(entries, "ca_cert"))


def _serials(entries: Sequence[Mapping[str, Sequence[Mapping[str, str]]]], part: str) -> frozenset[str]:
    return frozenset(found["serial_number"].lower().lstrip("0") for entry in entries for found in entry.get(part, []))
