"""The CRD of ControlPlanePolicy as a real API server takes it: defaulted, refused with words that help, explained, printed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane
from test_crd import properties

TESTDATA = ROOT / "test" / "testdata"
# Every field; read by pkg/api, too: test/unit/test_api_control_plane.c, test_control_plane_status.c.
FULL = json.loads((TESTDATA / "control-plane-full.json").read_text())
FULL_STATUS = json.loads((TESTDATA / "control-plane-status-full.json").read_text())
CRD = "controlplanepolicies.certroll.dev"
WHERE = ["cpp", "p", "-n", "kube-system"]


def policy(spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "kube-system"}
    return {"apiVersion": "certroll.dev/v1alpha1", "kind": "ControlPlanePolicy", "metadata": metadata, "spec": spec}


def workload(name: str = "a", target: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "targetRef": {"kind": "Deployment", "namespace": "b", "name": target}, **more}


@pytest.fixture
def place(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield control_plane
    control_plane.kubectl("delete", *WHERE, "--ignore-not-found")


def test_established_without_violations(control_plane: ControlPlane) -> None:
    conditions = {each["type"]: each["status"] for each in control_plane.get("crd", CRD)["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_defaults_land(place: ControlPlane) -> None:
    place.create(policy({"consumers": [{"component": "etcd"}], "workloads": [workload()]}))
    assert place.get(*WHERE)["spec"] == {
        "mode": "Enforce",
        "suspend": False,
        "consumers": [{"component": "etcd", "restart": "Allowed"}],
        "workloads": [workload(reads=["RootCA", "Token"])],
        "tokens": "RestartKubelets",
        "tokenSecrets": "Renew",
        "restart": {"singleNode": "Block", "deadline": "5m"},
    }


def test_the_status_is_unknown_until_somebody_has_looked(place: ControlPlane) -> None:
    """As of the other kinds: without conditions kstatus, and with it Flux, takes an object for healthy."""
    place.create(policy({}))
    [ready] = place.get(*WHERE)["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "Unknown", "Pending")


def test_every_field_is_kept(place: ControlPlane) -> None:
    place.create(policy(FULL))
    assert place.get(*WHERE)["spec"] == FULL


REFUSED = {
    # what: (spec, a part of the message)
    "mode": ({"mode": "Dry"}, 'supported values: "Enforce", "Plan"'),
    "component": ({"consumers": [{"component": "api-server"}]}, 'supported values: "etcd", "kube-apiserver"'),
    "component-twice": ({"consumers": [{"component": "etcd"}, {"component": "etcd"}]}, "Duplicate value"),
    "restart": ({"consumers": [{"component": "etcd", "restart": "No"}]}, 'supported values: "Allowed", "Never"'),
    "workload-twice": ({"workloads": [workload(), workload(target="d")]}, "Duplicate value"),
    "target-twice": ({"workloads": [workload(), workload("b")]}, "two workloads have the same targetRef; list it once, with all that it reads"),
    "no-target": ({"workloads": [{"name": "a"}]}, "spec.workloads[0].targetRef: Required value"),
    "kind": ({"workloads": [{"name": "a", "targetRef": {"kind": "Job", "namespace": "b", "name": "c"}}]}, 'supported values: "Deployment"'),
    "namespace": ({"workloads": [{"name": "a", "targetRef": {"kind": "Deployment", "name": "c"}}]}, "targetRef.namespace: Required value"),
    "reads-nothing": ({"workloads": [workload(reads=[])]}, "should have at least 1 items"),
    "reads": ({"workloads": [workload(reads=["Key"])]}, 'supported values: "RootCA", "Token"'),
    "tokens": ({"tokens": "Never"}, 'supported values: "RestartKubelets", "Wait"'),
    "token-secrets": ({"tokenSecrets": "Delete"}, 'supported values: "Renew", "Leave"'),
    "single": ({"restart": {"singleNode": "Yes"}}, 'supported values: "Block", "Allow"'),
    "deadline-words": ({"restart": {"deadline": "5 min"}}, "must be a duration such as 5m, 90s or 1m30s"),
    "deadline-short": ({"restart": {"deadline": "29s"}}, "must be between 30s and 1h"),
    "deadline-long": ({"restart": {"deadline": "61m"}}, "must be between 30s and 1h"),
    "unknown": ({"secrets": []}, 'unknown field "spec.secrets"'),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_message_that_helps(control_plane: ControlPlane, what: str) -> None:
    spec, message = REFUSED[what]
    done = control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(policy(spec)), check=False)
    assert done.returncode != 0
    assert message in done.stderr


def longest(prefix: str, index: int, length: int) -> str:
    return f"{prefix * (length - 3)}{index:03}"


ACCEPTED = {
    "nothing": {},
    "deadlines": {"restart": {"deadline": "1m30s"}},
    "same-name-elsewhere": {"workloads": [workload(), {"name": "b", "targetRef": {"kind": "Deployment", "namespace": "d", "name": "c"}}]},
    # Within the budget of CEL at the most: each name as long as can be, and different only at its end.
    "most": {
        "workloads": [
            {"name": longest("w", i, 63), "targetRef": {"kind": "StatefulSet", "namespace": "n" * 63, "name": longest("t", i, 253)}}
            for i in range(100)
        ]
    },
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_accepted(control_plane: ControlPlane, what: str) -> None:
    control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(policy(ACCEPTED[what])))


def schema(control_plane: ControlPlane) -> dict[str, Any]:
    return control_plane.get("crd", CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_is_described_and_bounded(control_plane: ControlPlane, part: str) -> None:
    bad = []
    for path, each in properties(schema(control_plane)["properties"][part], part):
        bounds = {"string": ["maxLength", "enum"], "array": ["maxItems"]}.get(each["type"], [])
        if not each.get("description"):
            bad.append(f"{path} has no description")
        if bounds and not any(bound in each for bound in bounds):
            bad.append(f"{path} has no {' or '.join(bounds)}")
        if "default" in each and each["type"] != "object" and "Default: " not in each["description"]:
            bad.append(f"{path} does not tell its default")
    assert not bad


def test_the_example_is_accepted(control_plane: ControlPlane) -> None:
    """That of `kubectl explain controlplanepolicy`, word for word."""
    example = re.sub(r"(?m)^  ", "", schema(control_plane)["description"].split("Example:\n")[1])
    head = "apiVersion: certroll.dev/v1alpha1\nkind: ControlPlanePolicy\nmetadata: {name: p, namespace: kube-system}\n"
    control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=head + example)


def patch_status(control_plane: ControlPlane, status: Any) -> None:
    words = ("patch", *WHERE, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
    control_plane.kubectl(*words, input=json.dumps({"status": status}))


def without_nulls(value: Any) -> Any:
    return {k: without_nulls(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def test_a_status_as_we_write_it_is_kept_whole(place: ControlPlane) -> None:
    place.create(policy({}))
    patch_status(place, FULL_STATUS)
    assert place.get(*WHERE)["status"] == without_nulls(FULL_STATUS)


def test_nulls_in_the_patch_take_away_what_is_over(place: ControlPlane) -> None:
    gone = dict.fromkeys(("restarting", "failedNode", "failedComponent", "failedToken", "failedState", "handledRetry", "next"))
    place.create(policy({}))
    patch_status(place, FULL_STATUS)
    patch_status(place, {**FULL_STATUS, **gone})
    assert place.get(*WHERE)["status"] == without_nulls({**FULL_STATUS, **gone})


def test_a_long_status_fits(place: ControlPlane) -> None:
    status = copy.deepcopy(FULL_STATUS)
    for pki in ("cluster", "etcd", "frontProxy"):
        status[pki] |= dict.fromkeys(("trusted", "pending", "known", "issuing", "removable"), "f" * 4160)
    status["serviceAccounts"] = dict.fromkeys(status["serviceAccounts"], "f" * 4160)
    status["consumers"] = [{**status["consumers"][0], "component": longest("c", i, 63), "message": "m" * 1024} for i in range(32)]
    status["conditions"][0]["message"] = "m" * 4096
    status["next"] = "n" * 1024
    place.create(policy({}))
    patch_status(place, status)


def test_a_state_can_be_waited_for(place: ControlPlane) -> None:
    """By the sorted list of fingerprints, as docs/control-plane.md has it; not by one that was before."""
    trusted = FULL_STATUS["cluster"]["trusted"]
    place.create(policy({}))
    words = ("wait", *WHERE, f"--for=jsonpath={{.status.cluster.trusted}}={trusted}")
    patch_status(place, {**FULL_STATUS, "cluster": {**FULL_STATUS["cluster"], "trusted": trusted.split(",")[0]}})
    assert place.kubectl(*words, "--timeout=1s", check=False).returncode != 0
    patch_status(place, FULL_STATUS)
    assert "condition met" in place.kubectl(*words, "--timeout=30s").stdout


def test_printer_columns(place: ControlPlane) -> None:
    place.create(policy({}))
    patch_status(place, FULL_STATUS)
    head, row = place.kubectl("get", "cpp", "-n", "kube-system").stdout.splitlines()
    assert head.split() == ["NAME", "NODES", "CONVERGED", "RESTARTING", "NEXT", "PROBLEM", "AGE"]
    assert re.split(r"\s{2,}", row)[:6] == ["p", "5", "4", FULL_STATUS["restarting"]["what"], FULL_STATUS["next"], FULL_STATUS["problem"]]
