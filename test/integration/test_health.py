"""What tools that wait for health make of our objects: the real kstatus, and Argo CD's Lua by the interpreter that it has."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from certroll_dev import tools

from control_plane import ROOT, ControlPlane

_LUA = ROOT / "manifests" / "argocd" / "health.lua"

Object = dict[str, Any]


@pytest.fixture(scope="module")
def health() -> Path:
    return tools.ensure(["health"])["health"]


@dataclass(frozen=True)
class Verdict:
    kstatus: str
    argo: str
    message: str  # Argo CD's


def judge(health: Path, item: Object) -> Verdict:
    done = subprocess.run([health, _LUA], input=json.dumps(item), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return Verdict(found["kstatus"], found["argo"], found["argoMessage"])


def _object(*conditions: str, seen: int = 1, kind: str = "CertRotationPolicy", **spec: Any) -> Object:
    """Conditions such as "Ready=True"; the message of each is its type."""
    listed = [
        {"type": name, "status": status, "reason": "Why", "message": name, "lastTransitionTime": "2026-11-28T00:00:00Z"}
        for name, status in (each.split("=") for each in conditions)
    ]
    return {
        "apiVersion": "certroll.dev/v1alpha1", "kind": kind, "metadata": {"name": "p", "namespace": "n", "generation": 1},
        "spec": spec, "status": {"observedGeneration": seen, "conditions": listed},
    }  # fmt: skip


_DONE = ("Ready=True", "Converged=True", "Reconciling=False", "Stalled=False")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(_object(*_DONE), Verdict("Current", "Healthy", "Converged"), id="done"),
        pytest.param(_object(*_DONE, seen=0), Verdict("InProgress", "Progressing", "certroll has not looked at it yet"), id="edited"),
        pytest.param(
            _object("Ready=True", "Converged=False", "Reconciling=True", "Stalled=False"),
            Verdict("InProgress", "Progressing", "Reconciling"), id="under-way",
        ),
        pytest.param(
            _object("Ready=True", "Converged=False", "Reconciling=False", "Stalled=True"), Verdict("Failed", "Degraded", "Stalled"), id="stuck"
        ),
        pytest.param(
            _object("Ready=True", "Converged=False", "Reconciling=False", "Stalled=False"), Verdict("Current", "Healthy", "Converged"),
            id="waits-as-arranged",
        ),
        pytest.param(
            _object("Ready=False", "Converged=False", "Reconciling=False", "Stalled=False"), Verdict("InProgress", "Progressing", "Ready"),
            id="not-in-force",
        ),
        pytest.param(
            _object("Ready=True", "Converged=False", "Degraded=True", "Rotating=True", kind="ControlPlanePolicy", mode="Enforce"),
            Verdict("Current", "Degraded", "Degraded"), id="control-plane-failed",
        ),
        pytest.param(
            _object("Ready=True", "Converged=False", "Degraded=False", "Rotating=True", kind="ControlPlanePolicy", mode="Enforce"),
            Verdict("Current", "Progressing", "Converged"), id="control-plane-rotating",
        ),
        pytest.param(_object(*_DONE, suspend=True), Verdict("Current", "Healthy", "spec.suspend is true"), id="suspended"),
    ],
)  # fmt: skip
def test_conditions_are_read_as_meant(health: Path, item: Object, expected: Verdict) -> None:
    assert judge(health, item) == expected


@pytest.mark.parametrize(
    ("resource", "kind", "spec"),
    [
        ("certrotationpolicy", "CertRotationPolicy", {"secrets": [{"name": "web-tls"}]}),
        ("trustdomain", "TrustDomain", {"leaves": [{"name": "web", "source": {"type": "Mirror", "mirror": {"secretName": "issued"}}}]}),
        ("controlplanepolicy", "ControlPlanePolicy", {}),
    ],
)
def test_what_nobody_has_looked_at_is_not_healthy(
    health: Path, control_plane: ControlPlane, namespace: str, resource: str, kind: str, spec: Object
) -> None:
    """No operator runs: a real API server gives the object the status that stands for that."""
    metadata = {"namespace": namespace, "name": "unseen"}
    control_plane.create({"apiVersion": "certroll.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
    found = judge(health, control_plane.get(resource, "unseen", "-n", namespace))
    assert (found.kstatus, found.argo) == ("InProgress", "Progressing")
