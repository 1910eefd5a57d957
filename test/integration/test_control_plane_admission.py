"""The admission policy about what is written for the control plane: the operator's user has every right here, and only admission
stands in its way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from control_plane import ControlPlane
from test_trust_admission import OTHER_USER, USER, admission, attempt, create, delete, made, patch  # noqa: F401

Request = tuple[tuple[str, ...], str]
KEY = "certroll-service-account-key"
TOKEN = {"kubernetes.io/service-account.name": "robot"}
RESTART = {"token": "aa", "component": "etcd"}


@pytest.fixture(scope="module")
def place(admission: ControlPlane) -> Iterator[str]:  # noqa: F811
    name = "control-plane-admission"
    admission.kubectl("create", "namespace", name)
    report = {"apiVersion": "certroll.dev/v1alpha1", "kind": "NodeCertificateReport", "metadata": {"name": "node-x"}, "spec": {}}
    admission.create(report)
    secrets = [
        made("ServiceAccount", "robot"),
        made("Secret", "token", TOKEN, type="kubernetes.io/service-account-token", stringData={"token": "t", "extra": "e"}),
        made("Secret", "other", stringData={"token": "t"}),
        made("ConfigMap", KEY, data={"key": "a"}),
    ]
    for each in secrets:
        each["metadata"]["namespace"] = name
        admission.create(each)
    yield name
    admission.kubectl("delete", "ncr", "node-x")
    admission.kubectl("delete", "namespace", name, "--wait=false")


REPORT = "ncr/node-x"
ALLOWED: dict[str, tuple[str | None, Request]] = {
    "order": (None, patch(REPORT, spec={"restart": RESTART})),
    "no-order": (None, patch(REPORT, spec={"restart": None})),
    "token": (None, patch("secret/token", data={"token": None})),
    "key": ("kube-system", create(made("ConfigMap", KEY, data={"key": "aa"}))),
}
REFUSED: dict[str, tuple[str | None, Request, str]] = {
    "report-made": (None, create({"apiVersion": "certroll.dev/v1alpha1", "kind": "NodeCertificateReport", "metadata": {"name": "y"}, "spec": {}}), "may not do this: CREATE certroll.dev/nodecertificatereports"),
    "report-deleted": (None, delete(REPORT), "may not do this: DELETE certroll.dev/nodecertificatereports"),
    "report-labelled": (None, patch(REPORT, metadata={"labels": {"a": "b"}}), "but this changes metadata.labels"),
    "token-set": (None, patch("secret/token", data={"token": "eA=="}), "may remove data.token of a token Secret and nothing else"),
    "token-other": (None, patch("secret/token", data={"extra": None}), "but this changes data.extra"),
    "token-whole": (None, patch("secret/token", data=None), "but this changes"),
    "token-annotated": (None, patch("secret/token", data={"token": None}, metadata={"annotations": {"a": "b"}}), "but this changes metadata.annotations"),
    "token-deleted": (None, delete("secret/token"), "may not do this: DELETE secrets"),
    "other-secret": (None, patch("secret/other", data={"token": None}), "may not do this: UPDATE secrets"),
    "key-elsewhere": (None, patch(f"configmap/{KEY}", data={"key": "b"}), "may not do this: UPDATE configmaps"),
    "key-more": ("kube-system", create(made("ConfigMap", KEY, data={"key": "a", "more": "b"})), "but this changes data.more"),
    "other-configmap": ("kube-system", create(made("ConfigMap", "coredns-x", data={"key": "a"})), "may not do this: CREATE configmaps"),
    "status": (None, (("patch", REPORT, "--subresource=status", "--type=merge", "-p", '{"status":{"agent":"x"}}'), ""), "may not do this: UPDATE certroll.dev/nodecertificatereports/status"),
}  # fmt: skip


def ask(plane: ControlPlane, user: str, place: str, namespace: str | None, request: Request) -> Any:
    return attempt(plane, user, namespace or place, request)


@pytest.mark.parametrize("what", ALLOWED)
def test_allowed(admission: ControlPlane, place: str, what: str) -> None:  # noqa: F811
    namespace, request = ALLOWED[what]
    done = ask(admission, USER, place, namespace, request)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", REFUSED)
def test_refused(admission: ControlPlane, place: str, what: str) -> None:  # noqa: F811
    namespace, request, message = REFUSED[what]
    done = ask(admission, USER, place, namespace, request)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("what", [*ALLOWED, "report-labelled", "token-annotated", "other-secret"])
def test_others_may(admission: ControlPlane, place: str, what: str) -> None:  # noqa: F811
    namespace, request = (ALLOWED | {key: value[:2] for key, value in REFUSED.items()})[what]
    assert ask(admission, OTHER_USER, place, namespace, request).returncode == 0
