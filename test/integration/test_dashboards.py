"""The dashboards of the manifests: a slip in one is found (certroll_dev/dashboards.py, which `hack/docs --check` runs), each panel shows
something of the series that it is about, and a real Prometheus that scrapes a real operator answers each of its queries."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import manifests
from control_plane import ROOT, ControlPlane, wait_until
from domains import dated, mirror
from prometheus import Prometheus, program
from test_metrics import check, leading

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev import dashboards  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402

_SERIES = ROOT / "test" / "testdata" / "dashboards-series.yaml"


# --- what is wrong is found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is looked at."""
    root = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "manifests", root / "manifests")
    for name in ("pkg", "cmd", "docs", "README.md"):
        (root / name).symlink_to(ROOT / name)
    assert list(dashboards.problems(root)) == []
    return root


@contextmanager
def _changed(root: Path, file: Path, old: str, new: str) -> Iterator[None]:
    before = (root / file).read_text()
    assert old in before
    (root / file).write_text(before.replace(old, new, 1))
    try:
        yield
    finally:
        (root / file).write_text(before)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("topk(10, sum by (namespace) (certroll_pending_rotations{", "topk(10, sum by (namespace) (certroll_pending_rotation{", "there is no metric certroll_pending_rotation"),
        ("rest_client_request_duration_seconds_bucket", "rest_client_request_duration_seconds", "there is no metric rest_client_request_duration_seconds"),
        ("sum by (reason) (certroll_consumers_blocked", "sum by (cause) (certroll_consumers_blocked", "sum has no label cause"),
        ("sum by (le, verb)", "sum by (verb)", "histogram_quantile has no label le"),
        ('{{reason}}"', '{{cause}}"', "its legend has the label cause"),
        (r"state=\"Failed\"", r"state=\"Fail\"", 'no program writes state="Fail"'),
        (r'sum by (result) (certroll_restarts_total{cluster=~\"$cluster\",', "sum by (result) (certroll_restarts_total{", "certroll_restarts_total passes over the variable cluster"),
        (r',job=~\"$job\",code', ",code", "rest_client_requests_total passes over the variable job"),
        ('"id": 2,', '"id": 1,', "two panels have the id 1"),
        ("docs/operations.md#leader-election", "docs/operations.md#leaders", "its description does not end with a page"),
        ('"uid": "${datasource}"', '"uid": "prometheus"', "data source"),
        ('"renameByName": {"Value"', '"renameByName": {"Value #A"', "its table has no column Value #A"),
        ('"type": "bargauge"', '"type": "grafana-piechart-panel"', "no panel grafana-piechart-panel without a plug-in"),
        ('"x": 6,', '"x": 5,', "are in the same place"),
        ('"uid": "certroll-overview"', '"uid": "certroll-operator"', "is another dashboard's"),
        ('"tags"', "tags", "overview.json: Expecting"),
    ],
)  # fmt: skip
def test_a_slip_in_a_dashboard_is_found(tree: Path, old: str, new: str, problem: str) -> None:
    with _changed(tree, dashboards.DASHBOARDS / "overview.json", old, new):
        found = list(dashboards.problems(tree))
    assert found and all(problem in each for each in found), found


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("certroll_secret_expired_cas > 0", "certroll_secret_expired_ca > 0", "there is no metric certroll_secret_expired_ca"),
        ("$labels.secret }} ends", "$labels.name }} ends", "its text has the label name"),
        ("and on (namespace, policy) certroll_policy_condition", "and certroll_policy_condition", "'and' never matches: reason, secret, type"),
        ('type="Degraded"', 'type="Degrade"', 'no program writes type="Degrade"'),
    ],
)
def test_a_slip_in_a_rule_is_found(tree: Path, old: str, new: str, problem: str) -> None:
    with _changed(tree, dashboards.RULES, old, new):
        [found] = dashboards.problems(tree)
    assert problem in found


# --- what is shown


def test_each_panel_shows_what_there_is(tmp_path: Path) -> None:
    """By promtool, with all series that panels are about."""
    rules: Any = yaml.safe_load((ROOT / dashboards.RULES).read_text())["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    times = {"$__rate_interval": "5m", "$__range": "1h"}
    shown = [
        {"expr": f"count({query.expression(times=times)}) > bool 0", "eval_time": "1h", "exp_samples": [{"labels": "{}", "value": 1}]}
        for query in dashboards.queries(ROOT)
    ]
    case = {"interval": "1m", "input_series": yaml.safe_load(_SERIES.read_text()), "promql_expr_test": shown}
    test = tmp_path / "test.yaml"
    test.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [case]}))
    check(program("promtool"), "test", "rules", test)


# Queries that may have no answer in this test, by how their names begin, and why.
_MAY_BE_EMPTY = {
    "nodes.json: ": "there is no ControlPlanePolicy, and no node agent",
    "pods.json: ": "there is no sidecar, and no shutdown manager",
    "overview.json: Replicas without an admission policy: A": "this operator does not ask for one",
    "overview.json: Restarts: requested since the leader began, and under way: B": "there is a series while a workload is restarted only",
    "overview.json: API requests that fail, a second: A": "the API server need not refuse anything",
    "trust-domains.json: Objects that are refused, by reason: A": "nothing of the domain is refused",
    "trust-domains.json: How long ": "no rotation of the domain ends within the test",
    "trust-domains.json: Leaves that end first: A": "a leaf is published when its CA has arrived, after the test",
    "operator.json: Handshakes with pods a second, by outcome: A": "no policy of the test has verify",
    "operator.json: Watches that ended early, a second: A": "no watch need end early",
}
_SHOWN_S = 180.0


@pytest.mark.timeout(900)
def test_each_panel_of_a_real_operator_shows_something(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """One policy is rotated, one holds a change back, and a trust domain has a leaf that ends soon."""
    queries = list(dashboards.queries(ROOT))
    for name in _MAY_BE_EMPTY:
        assert any(query.of.startswith(name) for query in queries), name
    with leading(control_plane, namespace, tmp_path) as scene:
        with Prometheus(control_plane, tmp_path, scene.operator.serving()["port"]) as prometheus:
            _hold_a_change(scene.lane.api, namespace)
            _publish(scene.lane.api, namespace)
            scene.lane.rotate()
            _assert_each_shows_something(prometheus, queries)


def _hold_a_change(api: API, namespace: str) -> None:
    authority = pki.new_authority(1)
    data = [{"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.trust} for made in (authority.issue("held") for _ in range(2))]
    api.apply("secrets", manifests.secret(namespace, "held", data[0]))
    api.apply("deployments", manifests.deployment(namespace, "held", "held"))
    spec = {"mode": "Plan", "secrets": [{"name": "held"}], "consumers": manifests.listed("held")}
    api.apply("certrotationpolicies", manifests.policy(namespace, "held", spec))
    wait_until("the policy to have settled", lambda: manifests.converged(api.get("certrotationpolicies", namespace, "held")), _SHOWN_S)
    api.apply("secrets", manifests.secret(namespace, "held", data[1]))


def _publish(api: API, namespace: str) -> None:
    api.apply("secrets", manifests.secret(namespace, "source", dict(dated(pki.new_authority(2), -80, 1))))
    spec = {"leaves": [{"name": "published", "source": mirror("source")}], "evidence": {"uncovered": "Delay"}}
    metadata = {"namespace": namespace, "name": "mesh"}
    api.apply("trustdomains", {"apiVersion": manifests.POLICY, "kind": "TrustDomain", "metadata": metadata, "spec": spec})


def _assert_each_shows_something(prometheus: Prometheus, queries: list[dashboards.Query]) -> None:
    """Prometheus takes all of them; those that are not listed have an answer."""
    times = {"$__rate_interval": "1m", "$__range": "5m"}
    empty = {query.of: query.expression(times=times) for query in queries}

    def all_show() -> bool:
        for name in [name for name, text in empty.items() if prometheus.query(text)]:
            del empty[name]
        return all(name.startswith(tuple(_MAY_BE_EMPTY)) for name in empty)

    try:
        wait_until("", all_show, _SHOWN_S, pause=1)
    except AssertionError:
        pytest.fail("no answer: " + "; ".join(sorted(name for name in empty if not name.startswith(tuple(_MAY_BE_EMPTY)))))
    print("no answer, as may be: " + "; ".join(sorted(empty)))
