"""ClusterTrustDomains against a real API server: namespaces by selector and consent, and caBundles."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.api import API  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from domains import OWNER, Domains, authority, certificates, conditions, issue, object_status, verifies  # noqa: E402

_CONSENT = "certroll.dev/trust-domains"
_VALUES_MAX = 100_000  # CR_OBJECT_VALUES_MAX
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def domains(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Domains]:
    cluster = LocalCluster(control_plane.name)
    with cluster.network(), Domains(control_plane, cluster.api(), namespace, control_plane.kubeconfig, tmp_path / "stage", everywhere=True) as found:
        found.start()
        yield found
        delete(found.api, "clustertrustdomains", namespace)


@pytest.fixture
def team(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """A namespace with the label mesh=<the operator's namespace>, that has not consented."""
    name = f"{namespace}-team"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl("label", "namespace", name, f"mesh={namespace}")
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


def delete(api: API, kind: str, name: str) -> None:
    if api.find(kind, "", name):
        api.delete(kind, "", name)


def consent(plane: ControlPlane, namespace: str, names: str) -> None:
    plane.kubectl("annotate", "namespace", namespace, f"{_CONSENT}={names}", "--overwrite")


def bundle(domains: Domains, namespace: str, name: str = "trust") -> bytes:
    """What the ConfigMap publishes there; empty: nothing."""
    found = domains.api.find("configmaps", namespace, name)
    return (found or {}).get("data", {}).get("ca.crt", "").encode()


def create(domains: Domains, namespace: str, **spec: Any) -> None:
    domains.apply(
        namespace,
        authority=authority(),
        evidence={"uncovered": "Delay"},
        **spec,
    )


def test_publishes_where_a_selector_matches_and_the_namespace_consents(
    control_plane: ControlPlane, domains: Domains, namespace: str, team: str
) -> None:
    consent(control_plane, namespace, namespace)
    create(
        domains, namespace,
        leaves=[{"name": "server", "namespace": namespace, "source": issue()}],
        trustTargets=[
            {"kind": "ConfigMap", "name": "trust", "namespaceSelector": {"matchLabels": {"mesh": namespace}}},
            {"kind": "ConfigMap", "name": "named", "namespace": team},
        ],
    )  # fmt: skip
    wait_until("the leaf is published", lambda: domains.secret("server"))
    found = domains.wait(
        "refused", lambda domain: object_status(domain, "named", team).get("problem", {}).get("reason") == "NoConsent", name=namespace
    )
    assert _CONSENT in object_status(found, "named", team)["problem"]["message"]
    assert not bundle(domains, team) and not bundle(domains, team, "named")

    consent(control_plane, team, f"others, {namespace}")
    wait_until("the bundle is published", lambda: bundle(domains, team) and bundle(domains, team, "named"))
    assert verifies(domains.secret("server")["tls.crt"], bundle(domains, team))

    control_plane.kubectl("label", "namespace", namespace, f"mesh={namespace}")
    wait_until("the bundle is where the label is new", lambda: bundle(domains, namespace) == bundle(domains, team))


def test_what_one_namespace_has_more_of_than_is_read_stops_no_other(
    control_plane: ControlPlane, domains: Domains, namespace: str, team: str, tmp_path: Path
) -> None:
    for each in (namespace, team):
        consent(control_plane, each, namespace)
    create(
        domains, namespace,
        leaves=[{"name": "server", "namespace": namespace, "source": issue()}],
        trustTargets=[{"kind": "ConfigMap", "name": "trust", "namespace": each} for each in (namespace, team)],
    )  # fmt: skip
    wait_until("all is published", lambda: domains.secret("server") and bundle(domains, namespace) and bundle(domains, team))
    before = domains.secret("server")["tls.crt"]

    fill(control_plane, team, tmp_path / "patch.json")
    domains.merge(namespace, rotate={"token": "another", "what": "Leaves"})
    wait_until("another leaf is published", lambda: domains.secret("server")["tls.crt"] != before)
    found = domains.wait(
        "refused", lambda domain: object_status(domain, "trust", team).get("problem", {}).get("reason") == "CannotRead", name=namespace
    )
    assert f"ConfigMap {team}/trust" in object_status(found, "trust", team)["problem"]["message"]
    assert conditions(found)["Ready"] == ("True", "Accepted")


def fill(plane: ControlPlane, namespace: str, file: Path) -> None:
    """Gives its ConfigMap more values than are read. Beside a record of who has written each, etcd would not take so many."""
    for first in range(0, _VALUES_MAX, _VALUES_MAX // 4):
        keys = {f"{number:x}": "" for number in range(first, first + _VALUES_MAX // 4)}
        for patch in ({"data": keys}, {"metadata": {"managedFields": [{}]}}):
            file.write_text(json.dumps(patch))
            plane.kubectl("patch", "configmap", "trust", "--namespace", namespace, "--type=merge", f"--patch-file={file}")


def test_a_webhook_s_bundle_with_its_owner_s_consent(control_plane: ControlPlane, domains: Domains, namespace: str) -> None:
    consent(control_plane, namespace, "*")
    webhook = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": namespace},
        "webhooks": [{
            "name": f"{each}.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
            "clientConfig": {"service": {"namespace": namespace, "name": "webhook"}},
            "objectSelector": {"matchLabels": {"nobody": "has-this"}},
        } for each in ("first", "second")],
    }  # fmt: skip
    domains.api.request("POST", _WEBHOOKS, webhook)
    try:
        create(
            domains, namespace,
            leaves=[{"name": "webhook-tls", "namespace": namespace, "source": issue()}],
            trustTargets=[{"kind": "ValidatingWebhookConfiguration", "name": namespace}],
        )  # fmt: skip
        domains.wait("refused", lambda domain: object_status(domain, namespace).get("problem", {}).get("reason") == "NotOurs", name=namespace)
        assert not any(bundles(domains.api, namespace))
        annotated = {"metadata": {"annotations": {OWNER: namespace}}}
        domains.api.request("PATCH", f"{_WEBHOOKS}/{namespace}", annotated, "application/merge-patch+json")
        wait_until("both have the bundle", lambda: all(bundles(domains.api, namespace)), 90)
        ca = domains.secret("mesh-ca")["tls.crt"]
        assert [certificates(each) for each in bundles(domains.api, namespace)] == [certificates(ca)] * 2
    finally:
        domains.api.request("DELETE", f"{_WEBHOOKS}/{namespace}")


def bundles(api: API, name: str) -> list[bytes]:
    webhooks = api.request("GET", f"{_WEBHOOKS}/{name}")["webhooks"]
    return [base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in webhooks]
