"""Metrics after real work: in a form that Prometheus' own tool finds nothing wrong with, as documented, with the right values."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane import ROOT, ControlPlane, wait_until
from operators import LEASES, RULES, Operator, account, writes_of
from paper_pods import PaperPods
from prometheus import program
from rotations import Lane, direct, leaves

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev import declared_metrics  # noqa: E402

_PAGE = ROOT / "docs" / "metrics.md"
_RULES = ROOT / "manifests" / "components" / "prometheus-rules" / "rules.yaml"
_SAMPLE = re.compile(r'(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = dict[str, str]


@dataclass
class Family:
    """One metric of a page."""

    type: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)


def parse(page: str) -> dict[str, Family]:
    families: dict[str, Family] = {}
    family = Family("")
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            family = families.setdefault(name, Family(kind))
        elif not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            family.samples.append((match["name"], dict(_LABEL.findall(match["labels"] or "")), float(match["value"])))
    return families


def value(page: str, name: str, /, **labels: str) -> float:
    """The sum over all series that have these labels."""
    family = re.sub(r"_(count|sum|bucket)$", "", name)
    samples = parse(page).get(name, parse(page).get(family, Family(""))).samples
    return sum(value for each, has, value in samples if each == name and labels.items() <= has.items())


def documented() -> dict[str, tuple[str, set[str]]]:
    """Type and labels of each metric in the page's tables."""
    return {name: (metric.kind, set(metric.labels)) for name, metric in declared_metrics.documented(ROOT, "metrics").items()}


@pytest.fixture(scope="session")
def promtool() -> Path:
    return program("promtool")


def check(promtool: Path, *words: str | Path, input: str | None = None) -> None:
    done = subprocess.run([promtool, *words], input=input, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if input is not None:
        assert done.stdout + done.stderr == ""


@dataclass
class Scene:
    plane: ControlPlane
    operator: Operator
    lane: Lane

    def page(self) -> str:
        status, page = self.operator.get("/metrics")
        assert status == 200
        return page

    def wait(self, what: str, name: str, wanted: float, /, **labels: str) -> None:
        wait_until(what, lambda: value(self.page(), name, **labels) == wanted)


@contextmanager
def leading(plane: ControlPlane, namespace: str, folder: Path) -> Iterator[Scene]:
    """An operator that leads, its one policy settled."""
    kubeconfig = account(plane, namespace, "operator", [*RULES, LEASES], folder)
    with direct(plane) as api, PaperPods(api, [namespace]):
        lane = Lane(api, namespace, "lane", leaves(3))
        lane.create()
        operator = Operator(plane, namespace, "operator", kubeconfig, folder, "--operator-namespace", namespace)
        try:
            lane.wait_settled()
            yield Scene(plane, operator, lane)
        finally:
            operator.end()


@pytest.fixture
def scene(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    with leading(control_plane, namespace, tmp_path) as found:
        yield found


def test_a_page_after_one_rotation(scene: Scene, namespace: str, promtool: Path) -> None:
    before = scene.page()
    assert value(before, "certroll_restarts_total") == 0
    assert value(before, "certroll_change_to_restart_seconds_count") == 0
    began = time.time()
    scene.lane.rotate()
    took = time.time() - began
    scene.wait("the rotation to be told", "certroll_rotation_duration_seconds_count", 1, outcome="Converged")
    page = scene.page()

    _assert_the_rotation_is_told(page, namespace, took)
    assert 1 <= value(page, "certroll_watch_to_write_seconds_count", resource="deployments") <= value(page, "certroll_restarts_total")
    seconds = value(page, "certroll_secret_not_after_timestamp_seconds", namespace=namespace, policy="lane", secret="lane")
    assert time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) == scene.lane.secret_status()["notAfter"]
    _assert_the_operator_is_told(page, began)
    _assert_writes_are_counted(scene)

    check(promtool, "check", "metrics", input=page)
    _assert_documented(page)
    _assert_nothing_secret(page, scene.lane)

    scene.plane.kubectl("delete", "certrotationpolicy", "lane", "-n", namespace)
    wait_until("what belongs to the policy to be gone", lambda: _gauges_of(scene.page(), namespace) == [])


def _assert_the_rotation_is_told(page: str, namespace: str, took: float) -> None:
    own = {"namespace": namespace}
    # The Deployment's controller may write first, on a slow machine more than once.
    assert value(page, "certroll_restarts_total") == 1 + value(page, "certroll_restarts_total", **own, kind="Deployment", result="conflict")
    assert value(page, "certroll_restarts_total", **own, kind="Deployment", result="success") == 1
    assert value(page, "certroll_change_to_restart_seconds_count") == 1
    restarted, rotated = (value(page, f"certroll_{name}_seconds_sum") for name in ("change_to_restart", "rotation_duration"))
    assert 0 <= restarted <= rotated <= took + 1
    assert value(page, "certroll_pending_rotations", **own) == 0
    assert value(page, "certroll_consumers", **own, policy="lane") == 1
    assert value(page, "certroll_consumers", **own, policy="lane", state="Converged") == 1
    assert value(page, "certroll_consumers_blocked") == 0
    assert value(page, "certroll_pods_by_evidence", **own, evidence="Inferred") == 1


def _assert_the_operator_is_told(page: str, began: float) -> None:
    assert value(page, "leader_election_master_status", name="certroll-operator") == 1
    for resource in ("certrotationpolicies", "deployments"):
        assert value(page, "certroll_informer_objects", resource=resource) == 1
        assert value(page, "certroll_informer_healthy", resource=resource) == 1
        assert value(page, "certroll_watch_lists_total", resource=resource) == 1
    assert value(page, "workqueue_work_duration_seconds_count") == value(page, "certroll_reconciles_total")
    assert began - 600 < value(page, "process_start_time_seconds") <= began


def _assert_writes_are_counted(scene: Scene) -> None:
    """What the API server had, while the Lease goes on being renewed."""

    def counted() -> float:
        page = scene.page()
        return sum(value(page, "rest_client_requests_total", method=method) for method in ("POST", "PATCH", "PUT", "DELETE"))

    low = counted()
    had = len(writes_of(scene.plane, scene.operator.user, 0))
    assert low - 1 <= had <= counted() + 1  # one may be on its way


def _assert_documented(page: str) -> None:
    """But for what is there with TLS only (test_metrics_tls.py), for the control plane (test_control_plane_policy.py), or where an
    admission policy is asked for (test_admission_check.py)."""
    others = ("certroll_tls_", "certroll_control_plane_", "certroll_admission_policy_")
    shown, told = parse(page), {name: rest for name, rest in documented().items() if not name.startswith(others)}
    assert sorted(shown) == sorted(told)
    for name, family in shown.items():
        kind, labels = told[name]
        assert family.type == kind, name
        for _, has, _ in family.samples:
            assert has.keys() - {"le"} == labels, (name, has)


def _assert_nothing_secret(page: str, lane: Lane) -> None:
    for data in lane.leaves:
        assert not [text for text in data.values() if text[:40] in page]
    values = {text for family in parse(page).values() for _, labels, _ in family.samples for text in labels.values()}
    assert [text for text in values if not re.fullmatch(r"[\w.:<>+-]{0,64}", text)] == []


def _gauges_of(page: str, namespace: str) -> list[str]:
    gauges = (family for family in parse(page).values() if family.type == "gauge")
    return [name for family in gauges for name, labels, _ in family.samples if labels.get("namespace") == namespace]


def test_rules_are_sound_and_each_alert_has_its_cases(promtool: Path, tmp_path: Path) -> None:
    groups: dict[str, Any] = yaml.safe_load(_RULES.read_text())["spec"]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(groups))
    check(promtool, "check", "rules", file)
    cases = (ROOT / "test" / "testdata" / "prometheus-rules-test.yaml").read_text()
    test = tmp_path / "test.yaml"
    test.write_text(cases)
    check(promtool, "test", "rules", test)
    # That their metrics are there is for certroll_dev/dashboards.py.
    rules = [rule for group in groups["groups"] for rule in group["rules"]]
    alerts = {rule["alert"] for rule in rules if "alert" in rule}
    rows = [row for case in yaml.safe_load(cases)["tests"] for row in case.get("alert_rule_test", [])]
    assert alerts == {row["alertname"] for row in rows if row["exp_alerts"]} == {row["alertname"] for row in rows if not row["exp_alerts"]}
    assert alerts == set(re.findall(r"^\| `(Certroll\w+)` \|", _PAGE.read_text(), re.MULTILINE))
    tested = {each["expr"] for case in yaml.safe_load(cases)["tests"] for each in case.get("promql_expr_test", [])}
    assert {rule["record"] for rule in rules if "record" in rule} <= tested
