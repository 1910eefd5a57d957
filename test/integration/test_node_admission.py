"""The admission policy about node agents, asked as an agent asks: with the token that its pod on a node has, by patches of its
own. What it keeps from another node is its report, and the turn that it has; nothing that an agent claims changes that."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from paper_node import ACCOUNT, LEASE, MANIFESTS, NAMESPACE, WORKER, node_agents, node_token  # noqa: E402

Object = dict[str, Any]
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE[3]}/leases"
TURN = f"{LEASES}/{LEASE[1]}"
REPORTS = "/apis/certroll.dev/v1alpha1/nodecertificatereports"
LONG = 3600  # seconds: not over within this test
SHORT = 5
MERGE, JSON, APPLY = "application/merge-patch+json", "application/json", "application/apply-patch+yaml"
NOT_ENDED = "may take it over when it has run out, and not end it"


@dataclass
class Node:
    """An agent of it."""

    plane: ControlPlane
    name: str
    token: str

    def ask(self, method: str, path: str, body: Object, content: str = MERGE) -> Object:
        """As the agent does; kubectl would read first."""
        words = ["-A", "certroll-node-agent/0.1.0", "-H", f"Authorization: Bearer {self.token}", "-H", f"Content-Type: {content}"]
        done = self.plane.run("curl", "-sSk", "-X", method, *words, "-d", json.dumps(body), f"{self.plane.server}{path}")
        answer: Object = json.loads(done.stdout)
        return answer

    def refusal(self, method: str, path: str, body: Object, content: str = MERGE) -> str:
        """Nothing is written. "" when it would be let through."""
        sign = "&" if "?" in path else "?"
        answer = self.ask(method, f"{path}{sign}dryRun=All", body, content)
        return str(answer["message"]) if answer["kind"] == "Status" else ""

    def spec(self, holder: str | None = None, seconds: int = LONG) -> Object:
        """Of the Lease while it has the turn."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        own = f"{self.name}_certroll-node-agent"
        return {
            "holderIdentity": own if holder is None else holder, "leaseDurationSeconds": seconds, "acquireTime": moment,
            "renewTime": moment, "leaseTransitions": 1,
        }  # fmt: skip

    def take(self, seconds: int = LONG) -> None:
        """Also: renew."""
        answer = self.ask("PATCH", TURN, {"spec": self.spec(seconds=seconds)})
        assert answer["kind"] == "Lease", answer

    def give_up(self) -> None:
        answer = self.ask("PATCH", TURN, {"spec": self.spec("", 1)})
        assert answer["kind"] == "Lease", answer


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    with node_agents(control_plane):
        yield control_plane


@pytest.fixture(scope="module")
def nodes(installed: ControlPlane) -> Iterator[tuple[Node, Node]]:
    names = [f"admission-{number}-{time.time_ns() % 10**6}" for number in (1, 2)]
    for name in names:
        installed.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    one, two = (Node(installed, name, node_token(installed, name)) for name in names)
    wait_until("the policy to be in force", lambda: "own node only" in two.refusal("POST", REPORTS, report(one.name), JSON))
    yield one, two
    installed.kubectl("delete", "node", *names, "--wait=false")
    installed.kubectl("delete", "ncr", *names, "--ignore-not-found")
    installed.kubectl("delete", *LEASE, "--ignore-not-found")


@pytest.fixture
def one(nodes: tuple[Node, Node]) -> Node:
    """It has the turn, for long."""
    found = nodes[0]
    found.plane.kubectl("delete", *LEASE, "--ignore-not-found")
    answer = found.ask("POST", LEASES, {**lease(LEASE[1]), "spec": found.spec()}, JSON)
    assert answer["kind"] == "Lease", answer
    return found


@pytest.fixture
def two(nodes: tuple[Node, Node]) -> Node:
    return nodes[1]


def lease(name: str) -> Object:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}


def report(name: str) -> Object:
    return {"apiVersion": "certroll.dev/v1alpha1", "kind": "NodeCertificateReport", "metadata": {"name": name}, "spec": {}}


# --- the turn


def test_who_has_the_turn_keeps_it_and_ends_it(one: Node, two: Node) -> None:
    one.take()
    one.give_up()
    two.take()
    assert NOT_ENDED in one.refusal("PATCH", TURN, {"spec": one.spec()})
    two.give_up()
    one.take()


def test_a_turn_is_not_ended_by_another_node(one: Node, two: Node) -> None:
    assert NOT_ENDED in two.refusal("PATCH", TURN, {"spec": two.spec("")})
    assert NOT_ENDED in two.refusal("PATCH", TURN, {"spec": two.spec()})
    assert NOT_ENDED in two.refusal("PATCH", TURN, {"spec": {"holderIdentity": two.spec()["holderIdentity"]}})
    assert NOT_ENDED in two.refusal("PATCH", TURN, {"spec": None})
    whole = {**lease(LEASE[1]), "spec": {"holderIdentity": two.spec()["holderIdentity"]}}
    assert NOT_ENDED in two.refusal("PATCH", f"{TURN}?fieldManager=other&force=true", whole, APPLY)
    for body in ({"spec": {"leaseDurationSeconds": 1}}, {"spec": {"renewTime": None}}, {"metadata": {"annotations": {"a": "b"}}}):
        assert "may take the turn for its own node only" in two.refusal("PATCH", TURN, body)
    assert "cannot delete" in two.refusal("DELETE", TURN, {}, JSON)


def entry(manager: str, **other: Any) -> Object:
    """Of managedFields, as if the one who has the turn had been there in years."""
    fields = {"f:spec": {"f:holderIdentity": {}, "f:renewTime": {}}}
    return {
        "manager": manager, "operation": "Update", "apiVersion": "coordination.k8s.io/v1", "time": "2046-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": fields, **other,
    }  # fmt: skip


FORGED = {
    "one of another": [entry("other")],
    "its own": [entry("certroll-node-agent")],
    "of an apply": [entry("other", operation="Apply")],
    "of a subresource": [entry("other", subresource="status")],
    "of another version": [entry("other", apiVersion="coordination.k8s.io/v1beta1")],
    "as many as there may be": [entry(f"other-{number}") for number in range(9)],
    "so many that the oldest are put together": [entry(f"other-{number}") for number in range(12)],
    "the heap of these": [entry("ancient-changes"), *(entry(f"other-{number}") for number in range(10))],
    "none": [{}],
}


@pytest.mark.parametrize("what", FORGED)
def test_no_time_that_an_agent_makes_up_ends_a_turn(one: Node, two: Node, what: str) -> None:
    metadata = {"managedFields": FORGED[what]}
    assert two.refusal("PATCH", TURN, {"metadata": metadata, "spec": {**two.spec(), "renewTime": "2046-01-01T00:00:00.000000Z"}})
    assert two.refusal("PATCH", TURN, {"metadata": metadata, "spec": {"holderIdentity": two.spec()["holderIdentity"]}})
    assert NOT_ENDED in two.refusal("PATCH", TURN, {"metadata": metadata, "spec": {"holderIdentity": ""}})


def test_a_turn_that_has_run_out_is_taken_over(one: Node, two: Node) -> None:
    """From its last renewal on, and by the API server's clock, which has whole seconds."""
    one.take(SHORT)
    for _ in range(2):
        began = time.monotonic()
        one.take(SHORT)
        early = two.refusal("PATCH", TURN, {"spec": two.spec()})
        assert NOT_ENDED in early or time.monotonic() - began > SHORT - 1
        wait_until("the turn to have run out", lambda: two.refusal("PATCH", TURN, {"spec": two.spec()}) == "", timeout=60)
        assert time.monotonic() - began > SHORT - 1
    assert NOT_ENDED in two.refusal("PATCH", TURN, {"spec": two.spec("")})
    two.take()
    assert NOT_ENDED in one.refusal("PATCH", TURN, {"spec": one.spec()})


def test_what_would_have_the_turn_ended_later_is_refused(one: Node) -> None:
    """Garbage collection deletes what has an owner that is not there."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}
    for metadata in ({"ownerReferences": [owner]}, {"finalizers": ["example.org/a"]}):
        assert "neither an owner nor a finalizer" in one.refusal("PATCH", TURN, {"metadata": metadata, "spec": one.spec()})
    for forged in ("none", "so many that the oldest are put together"):
        metadata = {"managedFields": FORGED[forged]}
        assert "must have managedFields" in one.refusal("PATCH", TURN, {"metadata": metadata})


def test_what_a_person_has_changed_is_in_nobody_s_way(one: Node, two: Node) -> None:
    one.plane.kubectl("label", *LEASE, "example.org/a=b")
    one.take()
    assert NOT_ENDED in two.refusal("PATCH", TURN, {"spec": two.spec()})
    one.plane.kubectl("patch", *LEASE, "--type=merge", "-p", '{"spec":{"holderIdentity":""}}')
    two.take()
    two.give_up()


def test_an_agent_of_a_worker_takes_no_turn(one: Node) -> None:
    worker = Node(one.plane, one.name, node_token(one.plane, one.name, WORKER))
    assert "cannot patch resource" in worker.refusal("PATCH", TURN, {"spec": worker.spec("")})
    assert "cannot create resource" in worker.refusal("POST", LEASES, {**lease("another"), "spec": worker.spec()}, JSON)


# --- reports


@pytest.mark.parametrize("account", [ACCOUNT, WORKER])
def test_a_report_is_written_by_the_agent_of_its_node(nodes: tuple[Node, Node], account: str) -> None:
    plane = nodes[0].plane
    own, other = (Node(plane, each.name, node_token(plane, each.name, account)) for each in nodes)
    plane.kubectl("delete", "ncr", own.name, "--ignore-not-found")
    assert "own node only" in other.refusal("POST", REPORTS, report(own.name), JSON)
    assert own.ask("POST", REPORTS, report(own.name), JSON)["kind"] == "NodeCertificateReport"
    status = {"status": {"agent": "x"}}
    assert "own node only" in other.refusal("PATCH", f"{REPORTS}/{own.name}/status", status)
    assert own.ask("PATCH", f"{REPORTS}/{own.name}/status", status)["status"]["agent"] == "x"


# --- tokens that say nothing of a node


def as_nobody(plane: ControlPlane, name: str) -> Node:
    return Node(plane, name, node_token(plane, None))


def test_a_token_of_no_node_writes_nothing(one: Node) -> None:
    nobody = as_nobody(one.plane, one.name)
    words = "a node agent's token must be bound to a node"
    assert words in nobody.refusal("PATCH", TURN, {"spec": nobody.spec()})
    assert words in nobody.refusal("POST", REPORTS, report(one.name), JSON)


def test_its_component_lets_it(one: Node) -> None:
    plane, nobody = one.plane, as_nobody(one.plane, one.name)
    binding = "validatingadmissionpolicybinding/certroll-node-agent"
    patches = (MANIFESTS / "without-node-claim" / "kustomization.yaml").read_text()
    assert "value: [Warn, Audit]" in patches
    plane.kubectl("patch", binding, "--type=merge", "-p", '{"spec":{"validationActions":["Warn","Audit"]}}')
    try:
        wait_until("it to be let through", lambda: nobody.refusal("PATCH", TURN, {"spec": nobody.spec()}) == "")
        words = ["-H", f"Authorization: Bearer {nobody.token}", "-H", f"Content-Type: {MERGE}", "-d", json.dumps({"spec": nobody.spec()})]
        done = plane.run("curl", "-sSki", "-X", "PATCH", *words, f"{plane.server}{TURN}?dryRun=All")
        assert "must be bound to a node" in done.stdout.partition("\r\n\r\n")[0]
    finally:
        plane.kubectl("patch", binding, "--type=merge", "-p", '{"spec":{"validationActions":["Deny"]}}')
    wait_until("it to be refused again", lambda: nobody.refusal("PATCH", TURN, {"spec": nobody.spec()}))


def test_the_names_are_those_of_the_manifests(installed: ControlPlane) -> None:
    """The policy goes by the account's name: one without it would be held to nothing."""
    accounts = {item["metadata"]["name"] for item in installed.get("serviceaccounts", "-n", NAMESPACE)["items"]} - {"default"}
    assert accounts == {ACCOUNT, WORKER} and all("certroll-node-agent" in name for name in accounts)
