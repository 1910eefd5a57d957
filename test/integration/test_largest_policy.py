"""etcd takes the largest policy with its largest status."""

from __future__ import annotations

import json

import pytest
from control_plane import ControlPlane
from largest_policy import CONSUMERS, IN_FORCE, found, listed, status


@pytest.mark.parametrize(("spec", "in_force"), [(listed(), CONSUMERS), (found(), IN_FORCE)], ids=["listed", "found"])
def test_etcd_takes_the_largest_policy_with_its_largest_status(
    control_plane: ControlPlane, namespace: str, spec: dict[str, object], in_force: int
) -> None:
    policy = {
        "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy",
        "metadata": {"name": "largest", "namespace": namespace}, "spec": spec,
    }  # fmt: skip
    control_plane.create(policy)
    text = json.dumps({"status": status(in_force)})
    patched = control_plane.kubectl(
        "patch", "crp", "largest", "-n", namespace, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin",
        input=text, check=False,
    )  # fmt: skip
    assert patched.returncode == 0, f"{len(text)} bytes of status: {patched.stderr[:2000]}"
    assert len(control_plane.get("crp", "largest", "-n", namespace)["status"]["consumers"]) == in_force
