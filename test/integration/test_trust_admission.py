"""The admission policy about what trust domains write: the operator's user has every right here, and only admission stands in
its way. (Workloads and pods: test/e2e/test_install.py.)"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

POLICY = ROOT / "manifests" / "base" / "admission.yaml"
USER = "system:serviceaccount:certroll-system:certroll-operator"
OTHER_USER = "system:serviceaccount:certroll-system:somebody"
PLACE = "trust-admission"
# As kustomize's namePrefix and nameSuffix make them, and whose namespace only has the name.
RENAMED = [f"system:serviceaccount:{PLACE}:{name}" for name in ("blue-certroll-operator", "certroll-operator-2", "a.certroll-operator.b")]
NAMESAKE = "system:serviceaccount:certroll-operator:somebody"
OURS = {"certroll.dev/trust-domain": "shop/mesh"}
STAGED = {"certroll.dev/staging": "true"}

Object = dict[str, Any]

CERTIFICATE = subprocess.run(
    ["sh", "-c", "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=a -keyout /dev/null 2>/dev/null | base64 -w0"],
    capture_output=True, text=True, check=True,
).stdout  # fmt: skip


@pytest.fixture(scope="module")
def admission(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    accounts = [f"--serviceaccount={user.removeprefix('system:serviceaccount:')}" for user in (USER, OTHER_USER, *RENAMED, NAMESAKE)]
    control_plane.kubectl("apply", "--server-side", "-f", str(POLICY))
    control_plane.kubectl("create", "clusterrolebinding", "certroll-test-admission", "--clusterrole=cluster-admin", *accounts)
    forbidden = made("ConfigMap", "probe")
    wait_until("the policy to be in force", lambda: "may not do this" in attempt(control_plane, USER, "default", create(forbidden)).stderr)
    yield control_plane
    control_plane.kubectl("delete", "clusterrolebinding", "certroll-test-admission")
    control_plane.kubectl("delete", "-f", str(POLICY))


def made(kind: str, name: str, annotations: Object | None = None, labels: Object | None = None, **more: Any) -> Object:
    metadata = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def create(what: Object) -> tuple[tuple[str, ...], str]:
    return ("create", "-f", "-"), json.dumps(what)


def patch(target: str, **what: Any) -> tuple[tuple[str, ...], str]:
    return ("patch", target, "--type=merge", "-p", json.dumps(what)), ""


def delete(target: str) -> tuple[tuple[str, ...], str]:
    return ("delete", target), ""


def attempt(plane: ControlPlane, user: str, namespace: str, request: tuple[tuple[str, ...], str]) -> subprocess.CompletedProcess[str]:
    """Admission is asked, and nothing is written."""
    words, text = request
    return plane.kubectl("-n", namespace, *words, f"--as={user}", "--dry-run=server", input=text, check=False)


@pytest.fixture(scope="module")
def place(admission: ControlPlane) -> Iterator[str]:
    name = PLACE
    admission.kubectl("create", "namespace", name)
    objects = [
        made("Secret", "ours", OURS),
        made("Secret", "theirs"),
        made("Secret", "staged", OURS, STAGED),
        made("Secret", "labelled", None, STAGED),
        made("ConfigMap", "ours", OURS),
        made("ConfigMap", "theirs"),
        made("ConfigMap", "staged", OURS, STAGED),
        made("ServiceAccount", "account"),
    ]
    for each in objects:
        admission.kubectl("-n", name, "create", "-f", "-", input=json.dumps(each))
    admission.create(definition("ours.test.certroll.dev", OURS), definition("theirs.test.certroll.dev", {}))
    admission.create(*(webhooks(kind, owner) for kind in KINDS for owner in ("ours", "theirs")))
    admission.create(service("v1.ours.certroll.dev", OURS), service("v1.theirs.certroll.dev", {}))
    yield name
    admission.kubectl("delete", "crd", "ours.test.certroll.dev", "theirs.test.certroll.dev")
    admission.kubectl("delete", *(f"{kind}configuration/{owner}.certroll.dev" for kind in KINDS for owner in ("ours", "theirs")))
    admission.kubectl("delete", "apiservice", "v1.ours.certroll.dev", "v1.theirs.certroll.dev")
    admission.kubectl("delete", "namespace", name, "--wait=false")


def definition(name: str, annotations: Object) -> Object:
    plural = name.partition(".")[0]
    version = {"served": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "a", "name": "b"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "group": "test.certroll.dev",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": plural.title()},
            "versions": [{**version, "name": "v1", "storage": True}, {**version, "name": "v2", "storage": False}],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


KINDS = {"validatingwebhook": "ValidatingWebhookConfiguration", "mutatingwebhook": "MutatingWebhookConfiguration"}


def webhook(name: str, **client_config: Any) -> Object:
    """Asked about nothing."""
    return {
        "name": f"{name}.certroll.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "matchPolicy": "Equivalent",
        "failurePolicy": "Ignore", "clientConfig": {"service": {"namespace": "nowhere", "name": "a", "port": 443}, **client_config},
    }  # fmt: skip


def webhooks(kind: str, owner: str) -> Object:
    metadata = {"name": f"{owner}.certroll.dev", "annotations": OURS if owner == "ours" else {}}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": KINDS[kind], "metadata": metadata, "webhooks": [webhook("a"), webhook("b")]}


def patch_webhooks(kind: str, *each: str, owner: str = "ours") -> tuple[tuple[str, ...], str]:
    """By the JSON paths and values of RFC 6902, so that what the API server has filled in stays."""
    return ("patch", f"{kind}configuration/{owner}.certroll.dev", "--type=json", "-p", f"[{','.join(each)}]"), ""


def set_bundle(index: int) -> str:
    return json.dumps({"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": CERTIFICATE})


def service(name: str, annotations: Object) -> Object:
    """Of an API that is nowhere."""
    version, _, group = name.partition(".")
    spec = {"group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1}
    spec |= {"service": {"namespace": "nowhere", "name": "a"}}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


OWN_LABEL = {"app.kubernetes.io/managed-by": "certroll"}


def conversion(**client_config: Any) -> Object:
    return {"spec": {"conversion": {"webhook": {"clientConfig": client_config}}}}


ALLOWED = {
    "a leaf is made": create(made("Secret", "new", OURS, OWN_LABEL, type="kubernetes.io/tls", data={"tls.crt": "", "tls.key": ""})),
    "staging is made": create(made("Secret", "new", OURS, {**OWN_LABEL, **STAGED})),
    "a ConfigMap is made": create(made("ConfigMap", "new", OURS, OWN_LABEL, data={"ca.crt": "x"})),
    "a Secret is written": patch("secret/ours", data={"a": "eA=="}, metadata={"labels": OWN_LABEL, "annotations": {"certroll.dev/issued-for": "x"}}),
    "a ConfigMap is written": patch("configmap/ours", data={"a": "x"}, binaryData={"b": "eA=="}),
    "staging is deleted": delete("secret/staged"),
    **{f"bundles of a {kind}": patch_webhooks(kind, set_bundle(0), set_bundle(1)) for kind in KINDS},
    "the bundle of one webhook": patch_webhooks("validatingwebhook", set_bundle(1)),
    "a CRD's bundle": patch("crd/ours.test.certroll.dev", **conversion(caBundle=CERTIFICATE)),
    "a service's bundle": patch("apiservice/v1.ours.certroll.dev", spec={"caBundle": CERTIFICATE}),
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_is_published_is_let_through(admission: ControlPlane, place: str, what: str) -> None:
    done = attempt(admission, USER, place, ALLOWED[what])
    assert done.returncode == 0, done.stderr


WITHOUT = "of an object without its annotation certroll.dev/trust-domain"
REFUSED = {
    # what: (request, a part of the message)
    "a Secret without owner is made": (create(made("Secret", "new", None, OWN_LABEL)), f"CREATE secrets, {WITHOUT}"),
    "a ConfigMap without owner is made": (create(made("ConfigMap", "new")), f"CREATE configmaps, {WITHOUT}"),
    "a token is asked for": (
        create(made("Secret", "new", {**OURS, "kubernetes.io/service-account.name": "account"}, type="kubernetes.io/service-account-token")),
        "CREATE secrets",
    ),
    "a Secret of others": (patch("secret/theirs", data={"a": "eA=="}), f"UPDATE secrets, {WITHOUT}"),
    "a Secret is taken": (patch("secret/theirs", data={"a": "eA=="}, metadata={"annotations": OURS}), f"UPDATE secrets, {WITHOUT}"),
    "a Secret is given away": (patch("secret/ours", metadata={"annotations": {"certroll.dev/trust-domain": "other"}}), "UPDATE secrets"),
    "a ConfigMap of others": (patch("configmap/theirs", data={"a": "x"}), f"UPDATE configmaps, {WITHOUT}"),
    "a Secret is made immutable": (patch("secret/ours", immutable=True), "this changes immutable"),
    "an owner": (
        patch("secret/ours", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]}),
        "this changes metadata.ownerReferences",
    ),
    "a finalizer": (patch("configmap/ours", metadata={"finalizers": ["a.b/c"]}), "this changes metadata.finalizers"),
    "another label": (patch("secret/ours", metadata={"labels": {"app": "x"}}), "this changes metadata.labels.app"),
    "another annotation": (patch("secret/ours", metadata={"annotations": {"a": "b"}}), "this changes metadata.annotations.a"),
    "what is published is deleted": (delete("secret/ours"), "DELETE secrets"),
    "what others label is deleted": (delete("secret/labelled"), "DELETE secrets"),
    "a ConfigMap is deleted": (delete("configmap/staged"), "DELETE configmaps"),
    "webhooks of others": (patch_webhooks("mutatingwebhook", set_bundle(0), owner="theirs"), f"mutatingwebhookconfigurations, {WITHOUT}"),
    "whom a webhook asks": (
        patch_webhooks("validatingwebhook", set_bundle(0), '{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "evil"}'),
        "this changes webhooks.a.certroll.dev",
    ),
    "whether a webhook fails": (
        patch_webhooks("mutatingwebhook", '{"op": "replace", "path": "/webhooks/1/failurePolicy", "value": "Fail"}'),
        "this changes webhooks.b.certroll.dev",
    ),
    "a webhook is removed": (patch_webhooks("validatingwebhook", '{"op": "remove", "path": "/webhooks/1"}'), "this changes webhooks"),
    "webhooks are deleted": (delete("validatingwebhookconfiguration/ours.certroll.dev"), "DELETE admissionregistration.k8s.io/validatingwebhookconfigurations"),
    "a CRD of others": (patch("crd/theirs.test.certroll.dev", **conversion(caBundle=CERTIFICATE)), f"customresourcedefinitions, {WITHOUT}"),
    "whom a CRD asks": (
        patch("crd/ours.test.certroll.dev", **conversion(caBundle=CERTIFICATE, service={"name": "evil"})),
        "this changes spec.conversion.webhook.clientConfig.service",
    ),
    "a CRD's conversion": (patch("crd/ours.test.certroll.dev", spec={"conversion": {"strategy": "None", "webhook": None}}), "this changes spec.conversion.strategy"),
    "a CRD's names": (patch("crd/ours.test.certroll.dev", spec={"names": {"shortNames": ["o"]}}), "this changes spec.names"),
    "a CRD is deleted": (delete("crd/ours.test.certroll.dev"), "DELETE apiextensions.k8s.io/customresourcedefinitions"),
    "a service of others": (patch("apiservice/v1.theirs.certroll.dev", spec={"caBundle": CERTIFICATE}), f"apiservices, {WITHOUT}"),
    "whom a service asks": (patch("apiservice/v1.ours.certroll.dev", spec={"service": {"name": "evil"}}), "this changes spec.service"),
    "a service is trusted blindly": (patch("apiservice/v1.ours.certroll.dev", spec={"insecureSkipTLSVerify": True}), "this changes spec.insecureSkipTLSVerify"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_operator_is_pinned_and_nobody_else(admission: ControlPlane, place: str, what: str) -> None:
    request, message = REFUSED[what]
    done = attempt(admission, USER, place, request)
    assert done.returncode != 0
    assert "the certroll operator may" in done.stderr and message in done.stderr
    other = attempt(admission, OTHER_USER, place, request)
    assert other.returncode == 0, other.stderr


@pytest.mark.parametrize("user", RENAMED)
def test_an_account_with_a_prefix_or_a_suffix_is_pinned(admission: ControlPlane, place: str, user: str) -> None:
    done = attempt(admission, user, place, create(made("ConfigMap", "new")))
    assert done.returncode != 0 and "the certroll operator may" in done.stderr
    key = create(made("Secret", "certroll-digest-key", type="Opaque"))
    assert attempt(admission, user, place, key).returncode == 0
    assert attempt(admission, user, "default", key).returncode != 0


def test_a_namespace_of_the_operators_name_pins_nobody(admission: ControlPlane, place: str) -> None:
    done = attempt(admission, NAMESAKE, place, create(made("ConfigMap", "new")))
    assert done.returncode == 0, done.stderr
