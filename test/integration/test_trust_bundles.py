"""spec.trust of a policy against a real API server: bundles of what its Secrets hold and of what was published before."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane, wait_until
from domains import OWNER, Domains, certificates, material
from operators import RULES, account

import manifests  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API, APIError  # noqa: E402

Object = dict[str, Any]
POLICY = "publish"
pytestmark = pytest.mark.timeout(300)


@dataclass
class Bundles:
    """A policy with targets, and what is in them."""

    domains: Domains  # for its operator and Secrets
    api: API
    namespace: str

    @property
    def owner(self) -> str:
        return f"CertRotationPolicy/{self.namespace}/{POLICY}"

    def policy(self, *targets: Object, secrets: tuple[str, ...] = ("source",), retain: int = 1, **spec: Any) -> None:
        self.api.apply("certrotationpolicies", manifests.policy(self.namespace, POLICY, {
            "secrets": [{"name": each} for each in secrets],
            "trust": {"retainPrevious": retain, "targets": list(targets)}, **spec,
        }))  # fmt: skip

    def put_target(self, kind: str, name: str, owner: str | None = None, **more: Any) -> Object:
        metadata = {"namespace": self.namespace, "name": name, "annotations": {OWNER: owner} if owner else {}}
        return self.api.apply(f"{kind.lower()}s", {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more})

    def held(self, kind: str, name: str, key: str = "ca.crt") -> list[str]:
        """Fingerprints, in order."""
        found = self.api.find(f"{kind.lower()}s", self.namespace, name) or {}
        text = (found.get("data") or {}).get(key, "")
        return list(certificates((base64.b64decode(text) if kind == "Secret" else text.encode())))

    def version(self, kind: str, name: str) -> str:
        return str(self.api.get(f"{kind.lower()}s", self.namespace, name)["metadata"]["resourceVersion"])

    def wait_held(self, kind: str, name: str, *authorities: pki.Authority, key: str = "ca.crt") -> None:
        wanted = [certificates(each.certificate)[0] for each in authorities]
        wait_until(f"{kind} {name} to hold {len(wanted)} CAs", lambda: self.held(kind, name, key) == wanted, 60)

    def events(self, reason: str) -> list[str]:
        listed = self.api.list("events", self.namespace)
        return [each["message"] for each in listed if each["reason"] == reason and each["involvedObject"]["name"] == POLICY]

    def wait_event(self, reason: str, words: str) -> None:
        wait_until(f"an Event {reason} with '{words}', beside {self.events(reason)}", lambda: any(words in each for each in self.events(reason)), 60)

    def wait_condition(self, kind: str, status: str, reason: str) -> None:
        wait_until(f"{kind}={status} by {reason}", lambda: self._condition(kind) == (status, reason), 60)

    def _condition(self, kind: str) -> tuple[str, str] | None:
        listed = self.api.get("certrotationpolicies", self.namespace, POLICY).get("status", {}).get("conditions", [])
        return next(((each["status"], each["reason"]) for each in listed if each["type"] == kind), None)


@pytest.fixture
def bundles(control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path) -> Iterator[Bundles]:
    kubeconfig = account(control_plane, namespace, "operator", RULES, tmp_path)
    with Domains(control_plane, api, namespace, kubeconfig, tmp_path / "stage") as domains:
        domains.start()
        yield Bundles(domains, api, namespace)


CONFIG: Object = {"kind": "ConfigMap", "name": "trust"}
SECRET: Object = {"kind": "Secret", "name": "trust", "key": "bundle.pem"}


def test_a_replaced_ca_is_published_before_the_old_one_and_warned_about(bundles: Bundles) -> None:
    old, new, newest = (pki.new_authority(number) for number in (1, 2, 3))
    bundles.domains.put("source", material(old.issue("web")))
    bundles.policy(CONFIG, SECRET)
    bundles.wait_held("ConfigMap", "trust", old)
    bundles.wait_held("Secret", "trust", old, key="bundle.pem")
    for kind in ("configmaps", "secrets"):
        metadata = bundles.api.get(kind, bundles.namespace, "trust")["metadata"]
        assert metadata["annotations"] == {OWNER: bundles.owner}
        assert metadata["labels"] == {"app.kubernetes.io/managed-by": "certroll"} and "ownerReferences" not in metadata
    assert not bundles.events("TrustReplaced")
    bundles.domains.put("source", material(new.issue("web")))
    bundles.wait_held("ConfigMap", "trust", new, old)
    bundles.wait_held("Secret", "trust", new, old, key="bundle.pem")
    bundles.wait_event("TrustReplaced", "Secret source: the certificate was changed together with its CA, without an overlap")
    bundles.wait_event("TrustPublished", "ConfigMap trust has 2 CAs now, 1 of them of before")
    bundles.domains.put("source", material(newest.issue("web")))
    bundles.wait_held("ConfigMap", "trust", newest, new)


def test_a_ca_that_a_leaf_still_needs_stays(bundles: Bundles) -> None:
    """ca.crt moves first, as it should: no gap, and the old CA stays beyond retainPrevious until the leaf has moved."""
    old, new = pki.new_authority(1), pki.new_authority(2)
    web = material(old.issue("web"))
    bundles.domains.put("source", web)
    bundles.policy(CONFIG, retain=0)
    bundles.wait_held("ConfigMap", "trust", old)
    bundles.domains.put("source", {**web, "ca.crt": new.certificate})
    bundles.wait_held("ConfigMap", "trust", new, old)
    bundles.domains.put("source", material(new.issue("web")))
    bundles.wait_held("ConfigMap", "trust", new)
    assert not bundles.events("TrustReplaced")


def test_a_restart_writes_nothing_twice(bundles: Bundles) -> None:
    old, new = pki.new_authority(1), pki.new_authority(2)
    bundles.domains.put("source", material(old.issue("web")))
    bundles.policy(CONFIG)
    bundles.wait_held("ConfigMap", "trust", old)
    bundles.domains.put("source", material(new.issue("web")))
    bundles.wait_held("ConfigMap", "trust", new, old)
    before = bundles.version("ConfigMap", "trust")
    bundles.domains.start()  # another process, which remembers nothing
    bundles.policy(CONFIG, {"kind": "ConfigMap", "name": "other"})
    bundles.wait_held("ConfigMap", "other", new)  # so the first was looked at
    assert bundles.version("ConfigMap", "trust") == before


def test_what_is_not_ours_is_left_alone_until_its_owner_consents(bundles: Bundles) -> None:
    ca = pki.new_authority(1)
    bundles.put_target("ConfigMap", "trust", data={"ca.crt": "theirs", "more": "kept"})
    bundles.put_target("ConfigMap", "other", "shop/mesh", data={"ca.crt": "theirs"})
    bundles.domains.put("source", material(ca.issue("web")))
    bundles.policy(CONFIG, {"kind": "ConfigMap", "name": "other"}, {"kind": "ConfigMap", "name": "free"})
    bundles.wait_held("ConfigMap", "free", ca)
    bundles.wait_event("TrustNotPublished", f"spec.trust: ConfigMap trust is not written by this policy: its owner lets it be overwritten with the annotation {OWNER}: {bundles.owner}")
    bundles.wait_event("TrustNotPublished", "ConfigMap other belongs to 'shop/mesh' by its annotation")
    bundles.wait_condition("Degraded", "True", "NotOurs")
    bundles.wait_condition("Converged", "False", "NotOurs")
    for name in ("trust", "other"):
        assert bundles.api.get("configmaps", bundles.namespace, name)["data"]["ca.crt"] == "theirs"
    # An owner's own text is no bundle: it is emptied by whoever consents.
    consent = {"metadata": {"annotations": {OWNER: bundles.owner}}, "data": {"ca.crt": None}}
    bundles.api.merge("configmaps", bundles.namespace, "trust", consent)
    bundles.wait_held("ConfigMap", "trust", ca)
    assert bundles.api.get("configmaps", bundles.namespace, "trust")["data"]["more"] == "kept"
    bundles.api.merge("configmaps", bundles.namespace, "other", consent)
    bundles.wait_held("ConfigMap", "other", ca)
    bundles.wait_condition("Degraded", "False", "AsExpected")
    bundles.wait_condition("Converged", "True", "Baseline")


def test_what_cannot_be_used_changes_nothing(bundles: Bundles) -> None:
    ca, other = pki.new_authority(1), pki.new_authority(2)
    good = material(ca.issue("web"))
    bundles.domains.put("source", good)
    bundles.policy(CONFIG)
    bundles.wait_held("ConfigMap", "trust", ca)
    before = bundles.version("ConfigMap", "trust")
    broken = {**material(other.issue("web")), "tls.key": good["tls.key"]}
    bundles.domains.put("source", broken)
    bundles.wait_event("TrustNotPublished", "Secret source cannot be used, so the bundles of spec.trust stay as they are")
    bundles.wait_condition("Converged", "False", "KeyMismatch")
    bundles.api.delete("secrets", bundles.namespace, "source")
    bundles.wait_event("TrustNotPublished", "the bundles of spec.trust stay as they are: it is not there")
    assert bundles.version("ConfigMap", "trust") == before


@pytest.mark.parametrize("spec", [{"suspend": True}, {"mode": "Plan"}], ids=["suspend", "plan"])
def test_who_may_do_nothing_publishes_nothing(bundles: Bundles, spec: Object) -> None:
    bundles.domains.put("source", material(pki.new_authority(1).issue("web")))
    bundles.policy(CONFIG, **spec)
    wait_until("the policy to be seen", lambda: bundles.api.get("certrotationpolicies", bundles.namespace, POLICY).get("status", {}).get("observedGeneration"), 60)
    assert not bundles.api.find("configmaps", bundles.namespace, "trust")


def test_a_missing_right_is_told(control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path) -> None:
    """As an install without the component trust-domains."""
    rules = [
        {"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["", "apps", "policy"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]
    kubeconfig = account(control_plane, namespace, "reader", rules, tmp_path)
    with Domains(control_plane, api, namespace, kubeconfig, tmp_path / "stage") as domains:
        domains.start()
        bundles = Bundles(domains, api, namespace)
        domains.put("source", material(pki.new_authority(1).issue("web")))
        bundles.policy(CONFIG)
        bundles.wait_event("TrustNotPublished", "manifests/components/trust-domains")
        bundles.wait_condition("Converged", "False", "Forbidden")
        with pytest.raises(APIError):
            api.get("configmaps", namespace, "trust")
