"""An operator that no admission policy guards writes nothing, and says why; as soon as one does, it goes on."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import LEASES, RULES, Operator, account, writes_of

POLICY = ROOT / "manifests" / "base" / "admission.yaml"
TRIED = "certroll-admission-check"

Start = Callable[..., Operator]


@pytest.fixture
def start(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts an operator as a service account of that name, in the test's namespace or another one."""
    running: list[Operator] = []

    def go(name: str, own: str = namespace, rules: list[dict[str, Any]] | None = None) -> Operator:
        folder = tmp_path / own
        folder.mkdir(exist_ok=True)
        kubeconfig = account(control_plane, own, name, [*RULES, LEASES] if rules is None else rules, folder)
        operator = Operator(control_plane, own, name, kubeconfig, folder, f"--operator-namespace={own}", guarded=True)
        running.append(operator)
        operator.wait_line("serving")
        return operator

    yield go
    for each in running:
        each.end()


@pytest.fixture
def policy(control_plane: ControlPlane) -> Iterator[Callable[[], None]]:
    """Applies it, and takes it away in the end."""
    yield lambda: control_plane.kubectl("apply", "--server-side", "-f", str(POLICY)) and None
    control_plane.kubectl("delete", "--ignore-not-found", "-f", str(POLICY))


def _wait_ready(operator: Operator) -> None:
    wait_until(f"{operator.name} to be ready", lambda: operator.get("/readyz")[0] == 200, timeout=60)


def _guards(operator: Operator) -> str:
    _, page = operator.get("/metrics")
    return next(line.split()[-1] for line in page.splitlines() if line.startswith("certroll_admission_policy_guards"))


def _written(plane: ControlPlane, operator: Operator) -> list[str]:
    """But for what it tries, what it asks about itself, and Events."""
    harmless = (f"secrets/{TRIED}", "secrets/certroll-digest-key", "selfsubjectreviews/", "events/")
    return [line for line in writes_of(plane, operator.user, 0) if not any(word in line for word in harmless)]


def _secrets(plane: ControlPlane, namespace: str) -> list[str]:
    return [each["metadata"]["name"] for each in plane.get("secrets", "-n", namespace)["items"]]


def test_without_a_policy_nothing_is_written_and_with_it_the_work_begins(
    control_plane: ControlPlane, namespace: str, start: Start, policy: Callable[[], None]
) -> None:
    spec = {"secrets": [{"name": "tls"}], "consumers": [{"name": "web", "targetRef": {"kind": "Deployment", "name": "web"}}]}
    kind = {"apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy"}
    control_plane.create({**kind, "metadata": {"name": "p", "namespace": namespace}, "spec": spec})
    operator = start("certroll-operator")
    why = operator.wait_line("not started")["error"]
    assert f"no admission policy guards {operator.user}, so nothing is written" in why and "--require-admission-policy=false" in why
    status, body = operator.get("/readyz", page="/readyz")
    assert status == 503 and why in body
    assert operator.get("/healthz", page="/healthz")[0] == 200 and _guards(operator) == "0"
    of_lease = ("events", "-n", namespace, "--field-selector", "involvedObject.name=certroll-operator,reason=NotGuarded")
    wait_until("an Event", lambda: control_plane.get(*of_lease)["items"])
    # It has tried several times by now, or does.
    tries = lambda: [line for line in writes_of(control_plane, operator.user, 0) if TRIED in line]  # noqa: E731
    wait_until("three tries", lambda: len(tries()) >= 3)
    assert _written(control_plane, operator) == [] and _secrets(control_plane, namespace) == []
    assert len(operator.lines("not started")) == 1 and not operator.leads()

    policy()
    operator.wait_line("became leader", timeout=60)
    _wait_ready(operator)
    assert _guards(operator) == "1"
    wait_until("the policy to have a status", lambda: "observedGeneration" in control_plane.get("certrotationpolicy", "p", "-n", namespace)["status"])
    assert TRIED not in _secrets(control_plane, namespace)


def test_accounts_with_a_prefix_and_two_installations_are_guarded_and_another_name_is_not(
    control_plane: ControlPlane, namespace: str, start: Start, policy: Callable[[], None]
) -> None:
    policy()
    other = f"{namespace}-blue"
    control_plane.kubectl("create", "namespace", other)
    try:
        for operator in (start("certroll-operator"), start("blue-certroll-operator-2", other)):
            operator.wait_line("an admission policy guards this account", timeout=60)
            operator.wait_line("became leader")
            _wait_ready(operator)
        renamed = start("rolls")
        assert f"no admission policy guards {renamed.user}" in renamed.wait_line("not started")["error"]
        assert renamed.get("/readyz")[0] == 503 and _written(control_plane, renamed) == []
    finally:
        control_plane.kubectl("delete", "namespace", other, "--wait=false")


def test_what_cannot_be_tried_is_not_known(control_plane: ControlPlane, namespace: str, start: Start) -> None:
    """Neither a right that is missing nor somebody else's refusal is taken for the policy."""
    operator = start("certroll-operator", rules=[LEASES, {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}])
    why = operator.wait_line("not started")["error"]
    assert f"before it is known that an admission policy guards {operator.user}: " in why and "cannot create resource" in why
    assert operator.get("/readyz")[0] == 503

    name = f"none-{namespace}"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1"}
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["secrets"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    control_plane.create(
        {
            **kind, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "reason": "Forbidden"}]},
        },
        {
            **kind, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}},
        },
    )  # fmt: skip
    try:
        attempt = ("create", "secret", "generic", "any", "-n", namespace, "--dry-run=server")
        wait_until("it to be in force", lambda: "denied" in control_plane.kubectl(*attempt, check=False).stderr)
        refused = start("certroll-operator-2")
        why = refused.wait_line("not started")["error"]
        assert "before it is known" in why and name in why
        assert refused.get("/readyz")[0] == 503 and _written(control_plane, refused) == []
    finally:
        control_plane.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)


def test_it_ends_as_asked_while_it_waits(start: Start) -> None:
    operator = start("certroll-operator")
    operator.wait_line("not started")
    asked = time.monotonic()
    operator.signal(signal.SIGTERM)
    assert operator.wait() == 0 and time.monotonic() - asked < 5
    assert json.loads(operator.log.read_text().splitlines()[-1])["msg"] == "ended"
