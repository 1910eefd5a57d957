"""TrustDomains against a real API server: rotations from beginning to end, by the evidence of policies, and what is refused."""

from __future__ import annotations

import base64
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import manifests  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API, path  # noqa: E402
from domains import (  # noqa: E402
    Domains,
    Material,
    Watching,
    authority,
    broken_trust,
    bulky_authority,
    certificates,
    conditions,
    dated,
    issue,
    issued,
    matches,
    material,
    message,
    mirror,
    object_status,
    serial,
    verifies,
)
from operators import RULES, account  # noqa: E402
from paper_pods import PaperPods  # noqa: E402
from ticker import Ticker  # noqa: E402

pytestmark = pytest.mark.timeout(300)


def settle_issuing(domains: Domains, *leaves: str, **spec: object) -> None:
    """A domain that issues these leaves, at rest."""
    domains.cover(*leaves)
    domains.apply(authority=authority(), leaves=[{"name": each, "source": issue()} for each in leaves], **spec)
    domains.vouch(*leaves)
    domains.wait_idle()


def settle_mirroring(domains: Domains, source: Material, **spec: object) -> None:
    """A domain that mirrors the Secret "source" into "server", at rest."""
    domains.put("source", source)
    domains.cover("server")
    domains.apply(leaves=[{"name": "server", "source": mirror("source")}], **spec)
    domains.vouch("server")
    domains.wait_idle()


# --- rotations


def test_issues_from_nothing(domains: Domains) -> None:
    settle_issuing(domains, "server", "client")
    server, client, ca = (domains.secret(name) for name in ("server", "client", "mesh-ca"))
    assert matches(server) and matches(client) and matches(ca)
    assert verifies(server["tls.crt"], client["ca.crt"]) and verifies(client["tls.crt"], server["ca.crt"])
    assert certificates(server["ca.crt"]) == certificates(ca["tls.crt"])
    found = domains.api.get("secrets", domains.namespace, "server")
    assert found["type"] == "kubernetes.io/tls"
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "certroll"
    assert found["metadata"]["annotations"]["certroll.dev/trust-domain"] == f"{domains.namespace}/mesh"
    assert "ownerReferences" not in found["metadata"]


def test_a_token_rotates_the_authority(domains: Domains) -> None:
    """Bundles first, then leaves; the old CA stays as the previous one; staging goes."""
    leaves = ["server", "client"]
    settle_issuing(domains, *leaves)
    before = {name: domains.secret(name) for name in [*leaves, "mesh-ca"]}
    with Watching(domains.api, domains.namespace) as watching:
        domains.rotate("CA", "one")
        done = domains.wait_idle()
        moments = list(watching.moments())
    assert not broken_trust(iter(moments), leaves)
    assert all(len(serials) == 2 for serials in issued(iter(moments), [*leaves, "mesh-ca"]).values())
    server, ca = domains.secret("server"), domains.secret("mesh-ca")
    assert serial(ca["tls.crt"]) != serial(before["mesh-ca"]["tls.crt"])
    assert certificates(server["ca.crt"]) == [*certificates(ca["tls.crt"]), *certificates(before["mesh-ca"]["tls.crt"])]
    assert verifies(server["tls.crt"], ca["tls.crt"])
    assert done["status"]["history"][0]["what"] == "CA" and done["status"]["history"][0]["outcome"] == "Converged"
    assert not [name for name in moments[-1].secrets if name.startswith("certroll-staging-")]


def test_a_token_renews_leaves_alone(domains: Domains) -> None:
    settle_issuing(domains, "server")
    before, ca = domains.secret("server"), domains.secret("mesh-ca")
    domains.rotate("Leaves", "one")
    done = domains.wait_idle()
    after = domains.secret("server")
    assert serial(after["tls.crt"]) != serial(before["tls.crt"]) and matches(after)
    assert domains.secret("mesh-ca") == ca and after["ca.crt"] == before["ca.crt"]
    assert done["status"]["history"][0]["what"] == "Leaves"


def test_mirrors_a_change_of_the_authority_trust_first(domains: Domains) -> None:
    """As cert-manager renews: leaf, key and CA at once, in a Secret that nobody mounts."""
    old, new = pki.new_authority(1), pki.new_authority(2)
    settle_mirroring(domains, material(old.issue("server")))
    assert domains.secret("server")["tls.crt"] == domains.secret("source")["tls.crt"]
    after = material(new.issue("server"))
    with Watching(domains.api, domains.namespace) as watching:
        domains.put("source", after)
        wait_until("the leaf is mirrored", lambda: domains.secret("server")["tls.crt"] == after["tls.crt"], 60)
        domains.wait_idle()
        moments = list(watching.moments())
    assert not broken_trust(iter(moments), ["server"])
    states = [(each.secrets["server"]["tls.crt"], len(certificates(each.secrets["server"]["ca.crt"]))) for each in moments]
    assert (after["tls.crt"], 2) in states  # the old CA was not dropped with its leaf
    assert any(leaf != after["tls.crt"] and cas == 2 for leaf, cas in states)  # and the new one was there before its leaf


def test_a_secret_taken_over_as_it_should_be_is_not_waited_for(domains: Domains) -> None:
    """The consent changes the Secret, and none of the material that the policy has on record: it does not look at it once more."""
    data = material(pki.new_authority(1).issue("server"))
    domains.put("source", data)
    domains.put("server", data)
    domains.cover("server")
    domains.vouch("server")
    domains.put("server", data, owner=f"{domains.namespace}/mesh")
    domains.apply(leaves=[{"name": "server", "source": mirror("source")}])
    domains.wait_idle(timeout=60)  # kubelets refresh it within 95 s
    assert domains.secret("server") == data


def test_a_second_change_in_the_middle_drops_no_authority_in_use(domains: Domains) -> None:
    """The second comes before anybody has the first one's trust."""
    settle_issuing(domains, "server", "client")
    with Watching(domains.api, domains.namespace) as watching:
        domains.rotate("CA", "one")
        domains.wait("handling the first", lambda domain: domain["status"].get("lastHandledToken") == "one")
        domains.rotate("CA", "two")
        domains.wait_idle()
        moments = list(watching.moments())
    assert not broken_trust(iter(moments), ["server", "client"])
    assert len(issued(iter(moments), ["mesh-ca"])["mesh-ca"]) in (2, 3)  # the first may never have become the current one


def test_what_was_put_aside_by_hand_is_put_right(domains: Domains) -> None:
    settle_issuing(domains, "server")
    before = domains.secret("server")
    domains.api.merge("secrets", domains.namespace, "server", {"data": {"ca.crt": ""}})
    wait_until("the bundle is back", lambda: domains.secret("server")["ca.crt"] == before["ca.crt"])
    assert domains.secret("server")["tls.crt"] == before["tls.crt"]


def test_the_previous_leaf_is_put_back_and_not_published_again(domains: Domains) -> None:
    """In the middle of a rotation: the policy has not said yet that the new leaf has arrived."""
    signer = pki.new_authority(1)
    before, after = material(signer.issue("server")), material(signer.issue("server"))
    settle_mirroring(domains, before)
    domains.api.delete("certrotationpolicies", domains.namespace, "cover")
    domains.put("source", after)
    wait_until("the new leaf is published", lambda: domains.secret("server")["tls.crt"] == after["tls.crt"], 60)
    domains.rotate("PreviousLeaves", "back")
    wait_until("the previous one is back", lambda: domains.secret("server")["tls.crt"] == before["tls.crt"], 60)
    assert matches(domains.secret("server"))
    domains.cover("server")
    domains.vouch("server")
    domains.wait("put back", lambda domain: conditions(domain)["Held"] == ("True", "PutBack") and conditions(domain)["Converged"][0] == "True")
    assert domains.secret("server")["tls.crt"] == before["tls.crt"]
    third = material(signer.issue("server"))
    domains.put("source", third)
    wait_until("the next leaf of the source is published", lambda: domains.secret("server")["tls.crt"] == third["tls.crt"], 60)


# --- a stage that cannot complete


def test_held_and_going_on_by_itself(domains: Domains) -> None:
    """A consumer that would have to be restarted, and may not be."""
    settle_issuing(domains, "server", evidence={"stageDeadline": "1s"})
    before = domains.secret("server")
    domains.api.apply("deployments", manifests.deployment(domains.namespace, "web", "server"))
    with PaperPods(domains.api, [domains.namespace]):
        domains.cover("server", restart={"method": "Never", "coalesce": "0s"})
        wait_until("the consumer is found", lambda: domains.consumers().get("deployment-web") == "Idle")
        domains.rotate("CA", "one")
        # Past a deadline of one second it may be held before the policy says what blocks it.
        held = domains.wait(
            "Held, and why",
            lambda domain: conditions(domain).get("Held", ("", ""))[0] == "True"
            and "restart.method: Never" in message(domain, "Held"),
        )
        assert held["status"]["stage"] == "Held" and held["status"]["heldStage"] == "Trusting"
        after = domains.secret("server")
        assert after["tls.crt"] == before["tls.crt"] and verifies(after["tls.crt"], after["ca.crt"])  # it still works
        domains.cover("server", restart={"method": "Rollout", "coalesce": "0s", "breaker": {"within": "0s"}})
        done = domains.wait_idle(timeout=150)
    assert conditions(done)["Held"][0] == "False"
    assert domains.secret("server")["tls.crt"] != before["tls.crt"]
    assert done["status"]["history"][0]["restarted"]


# --- what is refused


def refused(domains: Domains, reason: str, name: str = "server") -> str:
    """Why the object is not written, in words."""
    found = domains.wait(f"refused: {reason}", lambda domain: object_status(domain, name).get("problem", {}).get("reason") == reason)
    assert conditions(found)["Degraded"] == ("True", reason) and conditions(found)["Converged"] == ("False", reason)
    return str(object_status(found, name)["problem"]["message"])


@pytest.mark.parametrize("reason", ["KeyMismatch", "Expired", "NotYetValid"])
def test_a_source_that_cannot_be_served_is_refused(domains: Domains, reason: str) -> None:
    signer = pki.new_authority(1)
    good = material(signer.issue("server"))
    settle_mirroring(domains, good)
    domains.put("source", {
        "KeyMismatch": lambda: {**good, "tls.key": pki.new_key()},
        "Expired": lambda: dated(signer, -20, -10),
        "NotYetValid": lambda: dated(signer, 10, 20),
    }[reason]())  # fmt: skip
    assert "source" in refused(domains, reason)
    assert domains.secret("server") == good
    better = material(signer.issue("server"))
    domains.put("source", better)
    wait_until("it goes on by itself", lambda: domains.secret("server")["tls.crt"] == better["tls.crt"])


def test_a_bundle_that_no_object_can_hold_is_refused(domains: Domains) -> None:
    """Two sources, each of them fine by itself."""
    good = material(pki.new_authority(1).issue("server"))
    settle_mirroring(domains, good)
    data = [material(bulky_authority(number).issue(name)) for number, name in ((2, "server"), (3, "other"))]
    domains.put("source", data[0])
    domains.put("other-source", data[1])
    domains.cover("server", "other")
    domains.apply(leaves=[{"name": "server", "source": mirror("source")}, {"name": "other", "source": mirror("other-source")}])
    found = domains.wait("refused", lambda domain: conditions(domain)["Degraded"][0] == "True", timeout=90)
    assert object_status(found, "server")["problem"]["reason"] == "Invalid" and "too large" in message(found, "Degraded")
    assert verifies(domains.secret("server")["tls.crt"], domains.secret("server")["ca.crt"])


def test_what_is_somebody_else_s_is_left_alone_until_they_consent(domains: Domains) -> None:
    foreign = material(pki.new_authority(7).issue("server"))
    domains.put("server", foreign)
    domains.cover("server")
    domains.apply(authority=authority(), leaves=[{"name": "server", "source": issue()}])
    words = refused(domains, "NotOurs")
    assert "certroll.dev/trust-domain" in words
    assert domains.secret("server") == foreign
    domains.put("server", foreign, owner=f"{domains.namespace}/mesh")
    domains.vouch("server")
    domains.wait("published", lambda _: domains.secret("server")["tls.crt"] != foreign["tls.crt"], timeout=150)


def test_of_two_domains_on_one_object_the_annotation_decides(domains: Domains) -> None:
    settle_issuing(domains, "server")
    before = domains.secret("server")
    domains.apply("other", authority=authority(caSecretName="other-ca"), leaves=[{"name": "server", "source": issue()}])
    found = domains.wait(
        "refused", lambda domain: object_status(domain, "server").get("problem", {}).get("reason") == "OtherDomain", name="other"
    )
    assert f"{domains.namespace}/mesh" in object_status(found, "server")["problem"]["message"]
    assert domains.secret("server") == before


def test_a_key_that_a_peer_does_not_take_is_not_published(domains: Domains) -> None:
    """Envoy verifies no Ed25519, whoever presents it."""
    envoy = manifests.deployment(domains.namespace, "envoy", "client")
    envoy["spec"]["template"]["spec"]["containers"][0]["image"] = "envoyproxy/envoy:v1.40.0"
    domains.api.apply("deployments", envoy)
    settle_issuing(domains, "server", "client")
    before = domains.secret("server")
    leaves = [{"name": "server", "source": issue(privateKey={"algorithm": "Ed25519"})}, {"name": "client", "source": issue()}]
    domains.apply(authority=authority(), leaves=leaves)
    words = refused(domains, "KeyNotAccepted")
    assert "Deployment envoy" in words and "Ed25519" in words
    assert domains.secret("server") == before
    domains.apply(authority=authority(), leaves=[{"name": each, "source": issue()} for each in ("server", "client")])
    wait_until("it is refused no more", lambda: conditions(domains.get())["Degraded"][0] == "False")


_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@contextmanager
def emptied_bundles(api: API, namespace: str) -> Iterator[None]:
    """Whatever is written to a ConfigMap "trust" there, its bundle is emptied on the way."""
    names = {"mutatingadmissionpolicies": "MutatingAdmissionPolicy", "mutatingadmissionpolicybindings": "MutatingAdmissionPolicyBinding"}
    specs = {
        "mutatingadmissionpolicies": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]
            },
            "matchConditions": [{"name": "trust", "expression": f"request.namespace == '{namespace}' && object.metadata.name == 'trust'"}],
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": '[JSONPatch{op: "replace", path: "/data/ca.crt", value: ""}]'}}
            ],
        },
        "mutatingadmissionpolicybindings": {"policyName": namespace},
    }
    for plural, kind in names.items():
        made = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": namespace}, "spec": specs[plural]}
        api.request("POST", f"{_ADMISSION}/{plural}", made)
    try:
        yield
    finally:
        for plural in names:
            api.request("DELETE", f"{_ADMISSION}/{plural}/{namespace}")


def test_what_does_not_stay_as_it_was_written_is_written_ever_more_seldom(domains: Domains) -> None:
    """Somebody between the operator and the object undoes each write at once, as mutating webhooks can."""
    operator = domains.operator
    assert operator

    def writes() -> int:
        return sum(line["object"] == f"ConfigMap {domains.namespace}/trust" for line in operator.lines("published"))

    with emptied_bundles(domains.api, domains.namespace):
        probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trust"}, "data": {"ca.crt": "x"}}
        dry = f"/api/v1/namespaces/{domains.namespace}/configmaps?dryRun=All"
        wait_until("the API server to know the policy", lambda: not domains.api.request("POST", dry, probe)["data"]["ca.crt"])
        domains.apply(authority=authority(), trustTargets=[{"kind": "ConfigMap", "name": "trust"}])
        wait_until("it is tried", lambda: writes() > 0)
        time.sleep(10)
        assert writes() < 60
        assert operator.lines("what is published does not stay as it was written")
    published = lambda: domains.api.get("configmaps", domains.namespace, "trust")["data"]["ca.crt"]  # noqa: E731
    wait_until("it stays", published, 60)
    assert published().encode() == domains.secret("mesh-ca")["tls.crt"]


@pytest.mark.parametrize(("manager", "named"), [("gitops", "gitops"), ("certroll", "a program under the name of certroll")])
def test_a_second_writer_is_named_and_the_domain_stops(domains: Domains, manager: str, named: str) -> None:
    """As a GitOps tool and an issuer that put a Secret back whenever it is not theirs."""
    ca = pki.new_authority(1)
    settle_mirroring(domains, material(ca.issue("server")))
    theirs = material(ca.issue("server"))
    target = path("secrets", domains.namespace, "server") + f"?fieldManager={manager}"
    patch = {"data": {key: base64.b64encode(value).decode() for key, value in theirs.items()}}
    written: list[float] = []
    over = threading.Event()

    def put_back() -> None:
        while not over.wait(0.1):  # so within the second of certroll's own write, and times in managedFields are whole seconds
            if domains.secret("server")["tls.crt"] != theirs["tls.crt"]:
                domains.api.request("PATCH", target, patch, "application/merge-patch+json")
                written.append(time.time())

    writer = threading.Thread(target=put_back)
    writer.start()
    try:
        found = domains.wait("it is named", lambda domain: conditions(domain)["Degraded"] == ("True", "OtherWriter"))
        assert conditions(found)["Converged"] == ("False", "OtherWriter")
        assert f"'{named}' overwrites what is published in Secret {domains.namespace}/server" in message(found, "Degraded")
        time.sleep(12)
        assert len(written) == 2, "it was overwritten more than once"
        assert object_status(domains.get(), "server")["overwritten"]["times"] == 2
    finally:
        over.set()
        writer.join()
    # An edit of the domain is the way on.
    domains.merge(retainPrevious=2)
    wait_until("ours is back", lambda: domains.secret("server")["tls.crt"] == domains.secret("source")["tls.crt"])
    domains.wait("mended", lambda domain: conditions(domain)["Degraded"][0] == "False")
    assert "overwritten" not in object_status(domains.get(), "server")


class Renewing(Ticker):
    """As cert-manager with a Certificate whose secretName was put back: it renews into the Secret that the domain writes. `insists`: and issues
    anew whenever that does not hold what it issued last. Use it as a context."""

    def __init__(self, domains: Domains, ca: pki.Authority, insists: bool) -> None:
        super().__init__("renewing", 0.2)
        self._domains, self._ca, self._insists = domains, ca, insists
        self.issued: list[bytes] = []
        self._issuing = threading.Lock()

    def tick(self) -> bool:
        if self._insists and self.issued and not self.holds():
            self.renew()
        return True

    def renew(self) -> None:
        with self._issuing:
            made = material(self._ca.issue("server"))
            patch = {"data": {key: base64.b64encode(value).decode() for key, value in made.items()}}
            target = path("secrets", self._domains.namespace, "server") + "?fieldManager=cert-manager-certificates-issuing"
            self._domains.api.request("PATCH", target, patch, "application/merge-patch+json")
            self.issued.append(made["tls.crt"])

    def holds(self) -> bool:
        with self._issuing:
            return bool(self.issued) and self._domains.secret("server")["tls.crt"] == self.issued[-1]


@pytest.mark.parametrize("insists", [False, True], ids=["at each renewal", "and whenever it is not its own"])
def test_a_writer_at_each_renewal_is_named_and_costs_one_issuance_at_most(domains: Domains, insists: bool) -> None:
    """The issuer's limits are what such a war would spend. It ends with the second write, which who insists has issued for; from then on each
    renewal is one."""
    ca = pki.new_authority(1)
    settle_mirroring(domains, material(ca.issue("server")))
    with Watching(domains.api, domains.namespace) as watching, Renewing(domains, ca, insists) as other:
        other.renew()
        if not insists:  # it is content with what is put back, until it renews again
            wait_until("it is put back", lambda: domains.secret("server")["tls.crt"] == domains.secret("source")["tls.crt"])
            other.renew()
        found = domains.wait("it is named", lambda domain: conditions(domain)["Degraded"] == ("True", "OtherWriter"))
        assert "'cert-manager-certificates-issuing' overwrites" in message(found, "Degraded")
        assert conditions(found)["Converged"] == ("False", "OtherWriter")
        assert len(other.issued) == 2
        for number in (3, 4):
            other.renew()
            domains.wait("it is seen", lambda domain, times=number: object_status(domain, "server")["overwritten"]["times"] == times)
            assert other.holds() and len(other.issued) == number
        moments = list(watching.moments())
    assert not broken_trust(iter(moments), ["server"])
    assert len(issued(iter(moments), ["server"])["server"]) == 1 + len(other.issued)


def test_a_domain_of_many_large_keys_lets_others_have_its_worker(domains: Domains) -> None:
    """One worker for all of a namespace, and minutes of work for one of its domains."""
    settle_issuing(domains, "server")
    before = serial(domains.secret("server")["tls.crt"])
    large = [f"large-{number}" for number in range(40)]
    key = {"algorithm": "RSA", "size": 4096}
    domains.apply("greedy", authority=authority(caSecretName="greedy-ca"), leaves=[{"name": each, "source": issue(privateKey=key)} for each in large])
    wait_until("it issues", lambda: domains.secret(large[0]))
    domains.rotate("Leaves", "one")
    domains.wait("a new leaf", lambda _: serial(domains.secret("server")["tls.crt"]) != before)
    assert not domains.secret(large[-1])


def test_without_the_component_nothing_is_green_and_it_is_named(
    control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path
) -> None:
    """An installation without the component trust-domains: it reads, and may write nothing but its status."""
    rules = [
        {"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["", "apps", "policy"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]
    kubeconfig = account(control_plane, namespace, "reader", rules, tmp_path)
    good = material(pki.new_authority(1).issue("server"))
    with Domains(control_plane, api, namespace, kubeconfig, tmp_path / "stage") as domains:
        domains.put("server", good, owner=f"{namespace}/mesh")
        domains.put("source", material(pki.new_authority(2).issue("server")))
        domains.cover("server")
        domains.start()
        domains.apply(leaves=[{"name": "server", "source": mirror("source")}])
        words = refused(domains, "Forbidden")
        assert "Secret" in words and "manifests/components/trust-domains" in words
        assert domains.secret("server") == good


def test_without_the_right_to_domains_policies_work_as_before(
    control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path
) -> None:
    """As an installation that was made before there were domains."""
    rules = [{"apiGroups": ["certroll.dev"], "resources": ["certrotationpolicies", "certrotationpolicies/status"], "verbs": ["*"]}, *RULES[1:]]
    kubeconfig = account(control_plane, namespace, "operator", rules, tmp_path)
    with Domains(control_plane, api, namespace, kubeconfig, tmp_path / "stage") as domains:
        domains.put("server", material(pki.new_authority(1).issue("server")))
        domains.cover("server")
        domains.start()
        domains.vouch("server")
        assert domains.operator
        assert domains.operator.get("/readyz", page="/readyz")[0] == 200
        told = [line for line in domains.operator.lines("a watch is interrupted") if line["resource"] == "trustdomains"]
        assert len(told) == 1 and "grant" in told[0]["error"]
