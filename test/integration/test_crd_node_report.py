"""The CRD of NodeCertificateReport as a real API server takes it: bounded, kept whole, printed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane
from test_crd import properties
from test_crd_domains import patch_status

CRD = "nodecertificatereports.certroll.dev"
# Every field; read and written by pkg/api, too: test/unit/test_node_report.c.
FULL_STATUS = json.loads((ROOT / "test" / "testdata" / "node-report-status-full.json").read_text())


def report(spec: Any, name: str = "node-one") -> dict[str, Any]:
    return {"apiVersion": "certroll.dev/v1alpha1", "kind": "NodeCertificateReport", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def reported(control_plane: ControlPlane) -> Iterator[list[str]]:
    """A report, as kubectl names it."""
    control_plane.create(report({}))
    yield ["ncr", "node-one"]
    control_plane.kubectl("delete", "ncr", "node-one")


def test_established_without_violations(control_plane: ControlPlane) -> None:
    conditions = {each["type"]: each["status"] for each in control_plane.get("crd", CRD)["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_is_described_and_bounded(control_plane: ControlPlane, part: str) -> None:
    schema = control_plane.get("crd", CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    bad = []
    for path, each in properties(schema["properties"][part], part):
        bounds = {"string": ["maxLength", "enum"], "array": ["maxItems"]}.get(each["type"], [])
        if not each.get("description"):
            bad.append(f"{path} has no description")
        if bounds and not any(bound in each for bound in bounds):
            bad.append(f"{path} has no {' or '.join(bounds)}")
    assert not bad


REFUSED = {
    "no-token": ({"restart": {"component": "etcd"}}, "spec.restart.token: Required value"),
    "no-component": ({"restart": {"token": "t"}}, "spec.restart.component: Required value"),
    "token": ({"restart": {"token": "a b", "component": "etcd"}}, "spec.restart.token"),
    "component": ({"restart": {"token": "t", "component": "../etcd"}}, "spec.restart.component"),
    "another-field": ({"command": "reboot"}, 'unknown field "spec.command"'),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(control_plane: ControlPlane, what: str) -> None:
    spec, message = REFUSED[what]
    done = control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(report(spec)), check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_a_status_as_we_write_it_is_kept_whole(control_plane: ControlPlane, reported: list[str]) -> None:
    patch_status(control_plane, reported, FULL_STATUS)
    assert control_plane.get(*reported)["status"] == FULL_STATUS


def test_the_longest_status_that_we_write_fits(control_plane: ControlPlane, reported: list[str]) -> None:
    status = copy.deepcopy(FULL_STATUS)
    prints = [f"{i:064x}" for i in range(16)]
    texts = {"component": 128, "parameter": 128, "via": 128, "place": 128, "path": 512, "problem": 256, "why": 512}
    row = {**status["files"][0], **{key: "x" * length for key, length in texts.items()}, "fingerprints": prints, "issuers": prints, "has": prints}
    status["files"] = [row] * 256
    status["components"] = [{**status["components"][0], "healthMessage": "h" * 512, "restartRefused": "r" * 512}] * 16
    status["cas"] = [{**status["cas"][0], "subject": "s" * 128}] * 64
    status["tokens"]["keys"] = [{"key": f"{i:064x}", "tokens": 1} for i in range(64)]
    status["troubles"] = [f"{i:04}" + "t" * 508 for i in range(32)]
    patch_status(control_plane, reported, status)
    assert len(control_plane.get(*reported)["status"]["files"]) == 256


def test_printer_columns(control_plane: ControlPlane, reported: list[str]) -> None:
    patch_status(control_plane, reported, FULL_STATUS)
    head, row = control_plane.kubectl("get", *reported).stdout.splitlines()
    assert head.split() == ["NAME", "PENDING", "RESTART", "COMPONENT", "EXPIRES", "SEEN", "AGE"]
    assert row.split()[:5] == ["node-one", "1", "Proving", "etcd", FULL_STATUS["expires"]]
    assert control_plane.kubectl("get", *reported, "-o", "wide").stdout.split()[7:9] == ["AGENT", "MESSAGE"]
