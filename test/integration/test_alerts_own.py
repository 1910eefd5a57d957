"""Alerts on trust domains and on certroll itself, by a real Prometheus that scrapes a real operator: each fires in its state, alone, and
ends when the state is mended. That they wait is for promtool (test_metrics.py)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import manifests
from control_plane import ROOT, ControlPlane, wait_until
from domains import dated, material, mirror
from operators import LEASES, RULES, Operator, account
from paper_pods import PaperPods
from prometheus import Prometheus
from rotations import direct
from test_catalogue_overrides import document, put

sys.path[:0] = [str(ROOT / "hack" / "lib"), str(ROOT / "test" / "support")]

from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402
from programs.volumes import AtomicVolume  # noqa: E402

_DEADLINE = 600.0  # beside all else that `hack/test all` runs
_NAME = "web"

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def api(control_plane: ControlPlane, namespace: str) -> Iterator[API]:
    with direct(control_plane) as api, PaperPods(api, [namespace], address="10.99.0.1"):  # where nothing answers
        yield api


@contextmanager
def _watched(plane: ControlPlane, namespace: str, folder: Path, kubeconfig: Path, *flags: str) -> Iterator[Prometheus]:
    operator = Operator(
        plane, namespace, "operator", kubeconfig, folder, f"--operator-namespace={namespace}", *flags, open_metrics=not flags,
    )  # fmt: skip
    try:
        operator.wait_line("became leader", _DEADLINE)
        serving = operator.serving()
        with Prometheus(plane, folder, serving["port"], serving["scheme"]) as alerts:
            yield alerts
    finally:
        operator.end()


def _issued(authority: pki.Authority) -> dict[str, bytes]:
    return dict(material(authority.issue(_NAME)))


def _without(*resources: str) -> list[dict[str, Any]]:
    """The operator's rights but for these; without `status` nothing of certroll.dev may be written."""
    core = ["secrets", "configmaps", "pods", "events"]
    apps = ["deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"]
    return [
        {"apiGroups": [""], "resources": [each for each in core if each not in resources], "verbs": ["*"]},
        {"apiGroups": ["apps"], "resources": [each for each in apps if each not in resources], "verbs": ["*"]},
        {"apiGroups": ["policy"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["get", "list", "watch"] if "status" in resources else ["*"]},
        LEASES,
    ]


def _grant(plane: ControlPlane, namespace: str, rules: list[dict[str, Any]]) -> None:
    plane.kubectl("patch", "role", "operator", "-n", namespace, "--type=merge", "-p", json.dumps({"rules": rules}))


def test_what_the_operator_cannot_do_and_what_it_waits_for(control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path) -> None:
    authority = pki.new_authority(1)
    kubeconfig = account(control_plane, namespace, "operator", _without("deployments"), tmp_path)
    with _watched(control_plane, namespace, tmp_path, kubeconfig) as alerts:
        alerts.wait_exactly({("CacheUnhealthy", "")})
        _grant(control_plane, namespace, [*RULES, LEASES])
        alerts.wait_exactly(set())

        api.apply("secrets", manifests.secret(namespace, _NAME, _issued(authority)))
        api.apply("deployments", manifests.deployment(namespace, _NAME, _NAME))
        spec = {"secrets": [{"name": _NAME}], "consumers": manifests.listed(_NAME)}
        api.apply("certrotationpolicies", manifests.policy(namespace, _NAME, spec | {"mode": "Plan"}))
        wait_until("the policy to have settled", lambda: _is_settled(api, namespace), _DEADLINE)
        alerts.wait_exactly(set())
        api.apply("secrets", manifests.secret(namespace, _NAME, _issued(authority)))
        alerts.wait_exactly({("RotationPending", "")})
        api.merge("certrotationpolicies", namespace, _NAME, {"spec": {"mode": "Enforce"}})
        alerts.wait_exactly(set())

        # The alert is about ten minutes, and so lasts as long after it is mended: what ends it is for promtool.
        _grant(control_plane, namespace, _without("status"))
        api.apply("secrets", manifests.secret(namespace, _NAME, _issued(authority)))
        wait_until("reconciles that fail", lambda: ("ReconcileErrors", "") in alerts.firing(), _DEADLINE)


def _is_settled(api: API, namespace: str) -> bool:
    return manifests.converged(api.get("certrotationpolicies", namespace, _NAME))


def test_a_trust_domain_that_ends_or_is_not_in_force(control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path) -> None:
    authority = pki.new_authority(1)
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)

    def put(data: dict[str, bytes]) -> None:
        api.apply("secrets", manifests.secret(namespace, "source", data))

    def publish(**spec: Any) -> None:
        domain = {"leaves": [{"name": _NAME, "source": mirror("source")}], "evidence": {"uncovered": "Delay"}} | spec
        api.apply("trustdomains", {
            "apiVersion": manifests.POLICY, "kind": "TrustDomain", "metadata": {"namespace": namespace, "name": "mesh"}, "spec": domain})  # fmt: skip

    with _watched(control_plane, namespace, tmp_path, kubeconfig) as alerts:
        put(dict(dated(authority, -80, 1)))
        publish()
        alerts.wait_exactly({("TrustDomainExpires", "mesh")})
        put(_issued(authority))
        alerts.wait_exactly(set())

        _grant(control_plane, namespace, _without("configmaps"))
        publish(trustTargets=[{"kind": "ConfigMap", "name": "trust"}])
        wait_until("it not to be in force", lambda: ("TrustDomainNotReady", "mesh") in alerts.firing(), _DEADLINE)
        _grant(control_plane, namespace, [*RULES, LEASES])
        alerts.wait_exactly(set())


def test_its_own_certificate(control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path) -> None:
    authority = pki.new_authority(1)
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)
    folder = tmp_path / "tls"
    files = AtomicVolume(folder, group=os.getgid())
    good = _issued(authority)
    files.write(good)
    flags = (f"--metrics-tls-cert-file={folder}/tls.crt", f"--metrics-tls-private-key-file={folder}/tls.key", "--metrics-auth=none")
    with _watched(control_plane, namespace, tmp_path, kubeconfig, *flags) as alerts:
        alerts.wait_exactly(set())
        files.write(good | {"tls.key": pki.new_key()})
        alerts.wait_exactly({("OwnCertificateRefused", "")})
        files.write(dict(dated(authority, -80, 1)))
        alerts.wait_exactly({("OwnCertificateExpiresSoon", "")})
        files.write(_issued(authority))
        alerts.wait_exactly(set())


def test_entries_of_the_catalogue_that_are_refused(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)
    with _watched(control_plane, namespace, tmp_path, kubeconfig) as alerts:
        put(control_plane, namespace, ours=document("Watch"))
        alerts.wait_exactly(set())
        put(control_plane, namespace, ours=document("Sometimes"))
        alerts.wait_exactly({("CatalogueRefused", "")})
        put(control_plane, namespace, ours=document("Watch"))
        alerts.wait_exactly(set())


_SECRETS, _POLICIES = 64, 320  # a series for each pair is more than a metric keeps


def test_more_series_than_a_metric_keeps(control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path) -> None:
    """The alert is about a quarter of an hour, and lasts as long: what ends it is for promtool."""
    data = _issued(pki.new_authority(1))
    names = [f"many-{i}" for i in range(_SECRETS)]
    for name in names:
        api.apply("secrets", manifests.secret(namespace, name, data))
    api.apply("deployments", manifests.deployment(namespace, _NAME, names[0]))
    spec = {"mode": "Plan", "secrets": [{"name": name} for name in names], "consumers": manifests.listed(_NAME)}
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)
    with _watched(control_plane, namespace, tmp_path, kubeconfig) as alerts:
        for i in range(_POLICIES // 2):
            api.apply("certrotationpolicies", manifests.policy(namespace, f"policy-{i}", spec))
        wait_until("policies to be looked at", lambda: all("stage" in each.get("status", {}) for each in api.list("certrotationpolicies", namespace)), _DEADLINE)
        assert ("SeriesDropped", "") not in alerts.firing()
        for i in range(_POLICIES // 2, _POLICIES):
            api.apply("certrotationpolicies", manifests.policy(namespace, f"policy-{i}", spec))
        wait_until("series to be dropped", lambda: ("SeriesDropped", "") in alerts.firing(), _DEADLINE)
