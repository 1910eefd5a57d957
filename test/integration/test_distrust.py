"""CAs that nobody shall trust any more, with a consumer that reads its files once."""

from __future__ import annotations

import hashlib
import itertools
import ssl
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from control_plane import ROOT, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo import pki  # noqa: E402
from domains import Domains, Watching, authority, broken_trust, certificates, conditions, issue, material, message, mirror, verifies  # noqa: E402
from paper_pods import PaperPods  # noqa: E402
from ticker import again_and_again  # noqa: E402

Object = dict[str, Any]
pytestmark = pytest.mark.timeout(300)
_NEVER_NOW = {"schedule": "0 0 29 2 *", "duration": "1m"}


@pytest.fixture
def reader(domains: Domains) -> Iterator[str]:
    """A Deployment that has the Secret "server" in its environment, so it has nothing new before it is restarted."""
    references = [{"name": key.replace(".", "_"), "valueFrom": {"secretKeyRef": {"name": "server", "key": key}}} for key in ("tls.crt", "ca.crt")]
    template = {
        "metadata": {"labels": {"app": "reader"}},
        "spec": {"containers": [{"name": "c", "image": "example.com/unknown:1", "env": references}], "terminationGracePeriodSeconds": 0},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "reader"}}, "template": template}
    metadata = {"name": "reader", "namespace": domains.namespace}
    domains.api.apply("deployments", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    with PaperPods(domains.api, [domains.namespace]):
        yield "reader"


def settle(domains: Domains, restart: Object, **spec: object) -> None:
    domains.cover("server", "client", restart=restart)
    domains.apply(authority=authority(), leaves=[{"name": each, "source": issue()} for each in ("server", "client")], **spec)
    domains.vouch("server", "client")
    domains.wait_idle()
    wait_until("the reader to be a consumer", lambda: "reader" in "".join(domains.consumers()), 60)


def restarts(domains: Domains) -> int:
    """Nothing but a restart changes the Deployment's spec."""
    return int(domains.api.get("deployments", domains.namespace, "reader")["metadata"]["generation"]) - 1


def fingerprint(certificate: bytes) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.decode())).hexdigest()


def touched(domains: Domains) -> AbstractContextManager[None]:
    """Another program writes to the domain again and again: some records of what was published are refused, and lost."""
    numbers = itertools.count()
    return again_and_again(0.5, lambda: domains.annotate("touched", str(next(numbers))))


def gone(domain: Object) -> set[str]:
    return {each["fingerprint"] for each in domain["status"].get("distrusted", []) if each.get("gone")}


def test_the_default_breaker_holds_no_rotation(domains: Domains, reader: str) -> None:
    """Three rotations with three restarts each: they count as three, where nine are done."""
    settle(domains, {"coalesce": "0s"}, retire="Converged")
    for number in range(1, 4):
        domains.rotate("CA", f"token-{number}")
        domains.wait_idle(timeout=90)
    assert restarts(domains) == 9
    consumer = domains.api.get("certrotationpolicies", domains.namespace, "cover")["status"]["consumers"][0]
    assert len(consumer["restarts"]) == 3 and consumer["restartSteps"][0].endswith("/3")


def test_by_default_a_new_ca_takes_two_restarts(domains: Domains, reader: str) -> None:
    """The CA of before goes with the bundle of the next one. Until then it is trusted, and the domain says so."""
    settle(domains, {"coalesce": "0s"})
    assert conditions(domains.get())["RetirementPending"] == ("False", "NothingToRetire")
    for number in range(1, 4):
        before = domains.secret("mesh-ca")["tls.crt"]
        domains.rotate("CA", f"token-{number}")
        domains.wait_idle(timeout=90)
        assert restarts(domains) == 2 * number
        bundle = domains.secret("server")["ca.crt"]
        assert certificates(bundle) == certificates(domains.secret("mesh-ca")["tls.crt"] + before)
        rested = domains.get()
        assert conditions(rested)["RetirementPending"] == ("True", "NextRotation")
        assert fingerprint(before)[:16] in message(rested, "RetirementPending")


def test_a_ca_is_distrusted_whatever_could_hold_it(domains: Domains, reader: str) -> None:
    """Twice in a row, with the default breaker and coalescing, outside of the windows, though the domain keeps CAs for ever; the
    second time while some of its records are lost."""
    settle(domains, {"windows": [_NEVER_NOW], "breaker": {"restarts": 1}}, retire="Never")
    listed: list[str] = []
    for disturbed in (False, True):
        stolen = domains.secret("mesh-ca")["tls.crt"]
        forecast = domains.get()["status"]["forecast"]
        assert (forecast["workloads"], forecast["restarts"]) == (1, 3) and forecast["atMost"]
        listed.append(fingerprint(stolen))
        with Watching(domains.api, domains.namespace) as watching, touched(domains) if disturbed else nullcontext():
            domains.merge(distrust=listed)
            done = domains.wait("distrusted", lambda domain: gone(domain) == set(listed), timeout=90)
            moments = list(watching.moments())
        assert conditions(done)["Distrusted"] == ("True", "Inferred")
        assert not broken_trust(iter(moments), ["server", "client"])
        for name in ("server", "client"):
            secret = domains.secret(name)
            assert stolen not in secret["ca.crt"] and not verifies(secret["tls.crt"], stolen)
            assert verifies(secret["tls.crt"], domains.secret("mesh-ca")["tls.crt"])
        domains.wait_idle()
    assert restarts(domains) <= 6


def test_a_leaf_that_cannot_be_replaced_holds_it_until_the_deadline(domains: Domains) -> None:
    """Of two sources one has no leaf of another CA: it is named, and lost in the end."""
    old, new = pki.new_authority(1), pki.new_authority(2)
    for name in ("server", "client"):
        domains.put(f"{name}-issued", material(old.issue(name)))
    domains.cover("server", "client")
    domains.apply(leaves=[{"name": each, "source": mirror(f"{each}-issued")} for each in ("server", "client")])
    domains.vouch("server", "client")
    domains.wait_idle()
    domains.put("server-issued", material(new.issue("server")))
    domains.wait("the other CA is in use", lambda _: verifies(domains.secret("server")["tls.crt"], new.certificate))
    domains.wait_idle()
    domains.merge(distrust=[fingerprint(old.certificate), "0" * 64])
    held = domains.wait("held", lambda domain: conditions(domain).get("Distrusted") == ("False", "LeafNeedsCA"))
    assert f"Secret {domains.namespace}/client" in message(held, "Distrusted")
    assert conditions(held)["Degraded"] == ("True", "DistrustedCA")
    domains.merge(evidence={"stageDeadline": "1s"})
    domains.wait("gone", lambda _: all(certificates(domains.secret(name)["ca.crt"]) == certificates(new.certificate) for name in ("server", "client")))
    unknown = domains.wait("the other one is unknown", lambda domain: conditions(domain).get("Distrusted") == ("False", "UnknownCA"))
    assert "0000000000000000" in message(unknown, "Distrusted")
    domains.merge(distrust=[fingerprint(old.certificate)])
    lost = domains.wait("lost", lambda domain: conditions(domain).get("Distrusted") == ("True", "LeavesLost"))
    assert f"Secret {domains.namespace}/client" in message(lost, "Distrusted")
