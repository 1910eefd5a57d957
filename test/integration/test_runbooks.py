"""What docs/operations.md says to do by hand, done so: step by step, against a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane import wait_until
from domains import OWNER, Domains, Material, Watching, authority, broken_trust, certificates, conditions, issue, material, mirror, object_status, verifies

import manifests  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402

Object = dict[str, Any]
pytestmark = pytest.mark.timeout(300)


def cert_manager_writes(domains: Domains, name: str, certificate: str, data: pki.Material) -> None:
    """A Secret as cert-manager has it, with --enable-certificate-owner-ref."""
    secret = manifests.secret(domains.namespace, name, material(data))
    secret["metadata"] |= {
        "annotations": {"cert-manager.io/certificate-name": certificate, "cert-manager.io/issuer-name": "ca"},
        "labels": {"controller.cert-manager.io/fao": "true"},
        "ownerReferences": [{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "name": certificate, "uid": "0a1b2c3d"}],
    }
    domains.api.apply("secrets", secret)


def test_from_cert_manager_without_an_outage(domains: Domains) -> None:
    """Then its CA is changed, and its Certificates are renewed one after the other: leaves of both live side by side."""
    old, new = pki.new_authority(1), pki.new_authority(2)
    leaves = ["server-tls", "client-tls"]
    for name in leaves:
        cert_manager_writes(domains, name, name.removesuffix("-tls"), old.issue(name))
    domains.cover(*leaves)
    domains.vouch(*leaves)
    before = {name: domains.secret(name) for name in leaves}
    with Watching(domains.api, domains.namespace) as watching:
        for name in leaves:  # its Certificate's secretName is changed: it issues into another Secret
            cert_manager_writes(domains, f"{name}-issued", name.removesuffix("-tls"), old.issue(name))
        for name in leaves:
            metadata = {"annotations": {OWNER: f"{domains.namespace}/mesh"}, "ownerReferences": None}
            domains.api.merge("secrets", domains.namespace, name, {"metadata": metadata})
        domains.apply(leaves=[{"name": name, "source": mirror(f"{name}-issued")} for name in leaves], retire="Converged")
        domains.wait_idle()
        assert all(domains.secret(name)["tls.crt"] == domains.secret(f"{name}-issued")["tls.crt"] for name in leaves)
        assert all(domains.secret(name)["tls.crt"] != before[name]["tls.crt"] for name in leaves)
        cert_manager_writes(domains, "server-tls-issued", "server", new.issue("server"))
        domains.wait("the server's leaf of the new CA is published", lambda _: verifies(domains.secret("server-tls")["tls.crt"], new.certificate))
        domains.wait_idle()
        both = certificates(new.certificate) + certificates(old.certificate)
        assert all(sorted(certificates(domains.secret(name)["ca.crt"])) == sorted(both) for name in leaves)
        cert_manager_writes(domains, "client-tls-issued", "client", new.issue("client"))
        domains.wait("the old CA is gone", lambda _: all(certificates(domains.secret(name)["ca.crt"]) == certificates(new.certificate) for name in leaves))
        domains.wait_idle()
        assert not broken_trust(watching.moments(), leaves)


def test_distrust(domains: Domains) -> None:
    """By the field: which CA, how long, listed, waited for."""
    leaves = ["server", "client"]
    domains.cover(*leaves)
    domains.apply(authority=authority(), leaves=[{"name": each, "source": issue()} for each in leaves])
    domains.vouch(*leaves)
    status = domains.wait_idle()["status"]
    stolen = next(each["fingerprint"] for each in status["cas"] if each["part"] == "Current")
    assert status["forecast"]["atMost"]
    with Watching(domains.api, domains.namespace) as watching:
        domains.merge(distrust=[stolen])
        done = domains.wait("distrusted", lambda domain: conditions(domain).get("Distrusted") == ("True", "Gone"))
        assert not broken_trust(watching.moments(), leaves)
    assert stolen not in [each["fingerprint"] for each in done["status"]["cas"]]


def test_distrust_by_hand(domains: Domains) -> None:
    """The old CA is nowhere from the first write on, and the new one comes by itself."""
    leaves = ["server", "client"]
    domains.cover(*leaves)
    domains.apply(authority=authority(), leaves=[{"name": each, "source": issue()} for each in leaves])
    domains.vouch(*leaves)
    domains.wait_idle()
    stolen = domains.secret("mesh-ca")["tls.crt"]
    domains.merge(suspend=True)
    domains.wait("suspended", lambda domain: domain["status"]["observedGeneration"] == domain["metadata"]["generation"])
    domains.api.delete("secrets", domains.namespace, "mesh-ca")
    for name in leaves:
        domains.api.merge("secrets", domains.namespace, name, {"data": {"ca.crt": None}})
    with Watching(domains.api, domains.namespace) as watching:
        domains.merge(suspend=False)
        wait_until("a new CA", lambda: domains.secret("mesh-ca"), 60)
        domains.wait("leaves of it", lambda _: all(verifies(domains.secret(name)["tls.crt"], domains.secret("mesh-ca")["tls.crt"]) for name in leaves))
        domains.wait_idle()
        moments = list(watching.moments())
    assert all(stolen not in secret.get("ca.crt", b"") for moment in moments for secret in moment.secrets.values())
    assert object_status(domains.get(), "server")["trustEvidence"]
