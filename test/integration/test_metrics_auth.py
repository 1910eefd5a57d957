"""/metrics behind a token, with the API server as the judge, and where the pages are served."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane import ControlPlane, wait_until
from operators import Operator, api_server_stopped

DELEGATOR = "system:auth-delegator"
READER = "certroll-test-metrics-reader"


def bearer(token: str) -> tuple[str, str]:
    return "-H", f"Authorization: Bearer {token}"


@pytest.fixture
def operator(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
    """One as it is by default: /metrics wants a token over TLS, and the probes are elsewhere."""
    flags = ("--leader-elect=false", "--log-level=debug")
    kubeconfig = control_plane.kubeconfig
    running = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, *flags, open_metrics=False)
    try:
        running.wait_line("all caches are in sync")
        yield running
    finally:
        running.end()


@pytest.fixture
def token(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """Of a service account that may get /metrics."""
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": READER}}
    subject = {"kind": "ServiceAccount", "name": "prometheus", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
    control_plane.kubectl("create", "serviceaccount", "prometheus", "-n", namespace)
    control_plane.create(
        {**kind, "kind": "ClusterRole", "rules": [rule]},
        {**kind, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]},
    )
    right = ("auth", "can-i", "get", "/metrics", f"--as=system:serviceaccount:{namespace}:prometheus")
    wait_until("the right to be known", lambda: control_plane.kubectl(*right, check=False).returncode == 0)
    yield control_plane.kubectl("create", "token", "prometheus", "-n", namespace).stdout.strip()
    control_plane.kubectl("delete", "clusterrole,clusterrolebinding", READER)


def asked(operator: Operator, token: str) -> tuple[int, str]:
    """What the API server has decided: the page has 3 s to ask it, and is 503 else."""
    return wait_until("the API server's word", lambda: (found := operator.get("/metrics", *bearer(token)))[0] != 503 and found)


def test_metrics_are_for_those_who_may_get_them(
    control_plane: ControlPlane, namespace: str, operator: Operator, token: str
) -> None:
    status, page = asked(operator, token)
    assert status == 200 and "certroll_reconcile_duration_seconds" in page
    assert operator.get("/metrics")[0] == 401
    assert asked(operator, "not-a-token")[0] == 401
    control_plane.kubectl("create", "serviceaccount", "stranger", "-n", namespace)
    stranger = control_plane.kubectl("create", "token", "stranger", "-n", namespace).stdout.strip()
    assert asked(operator, stranger)[0] == 403


def test_metrics_are_encrypted_and_probes_are_not(control_plane: ControlPlane, operator: Operator) -> None:
    """By default, with a certificate that was made in memory: another one in each process, and of nobody's CA."""
    served = {line["pages"]: line for line in operator.lines("serving")}
    assert {pages: line["scheme"] for pages, line in served.items()} == {"/metrics": "https", "/healthz and /readyz": "http"}
    port = served["/metrics"]["port"]
    words = ("curl", "-sS", "--max-time", "20")
    plain = control_plane.run(*words, f"http://127.0.0.1:{port}/metrics", check=False)
    assert plain.returncode != 0 and plain.stdout == ""
    verified = control_plane.run(*words, f"https://127.0.0.1:{port}/metrics", check=False)
    assert verified.returncode == 60, verified.stderr  # the peer's certificate cannot be authenticated
    assert operator.lines("the metrics have a certificate that was made in memory")


def test_open_metrics_are_asked_for(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    kubeconfig = control_plane.kubeconfig
    operator = Operator(control_plane, namespace, "open", kubeconfig, tmp_path, "--leader-elect=false", open_metrics=True)
    try:
        operator.wait_line("serving")
        assert [(line["pages"], line["scheme"]) for line in operator.lines("serving")] == [("/metrics, /healthz and /readyz", "http")]
        assert operator.get("/metrics")[0] == 200
    finally:
        operator.end()


def test_probes_need_no_token_and_have_an_address_of_their_own(operator: Operator) -> None:
    assert operator.get("/healthz", page="/healthz") == (200, "ok\n")
    assert operator.get("/readyz", page="/healthz") == (200, "ok\n")
    assert operator.get("/metrics", page="/healthz")[0] == 404
    assert operator.get("/healthz", page="/metrics")[0] == 404


def test_without_api_server_nobody_gets_them_and_probes_go_on(
    control_plane: ControlPlane, operator: Operator, token: str
) -> None:
    with api_server_stopped(control_plane):
        assert operator.get("/metrics", *bearer(token))[0] == 503
        assert operator.get("/healthz", page="/healthz")[0] == 200
    wait_until("the token to be good again", lambda: operator.get("/metrics", *bearer(token))[0] == 200)


def test_an_operator_that_may_not_ask_says_so(
    control_plane: ControlPlane, namespace: str, token: str, tmp_path: Path
) -> None:
    control_plane.kubectl("create", "serviceaccount", "weak", "-n", namespace)
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    weak = control_plane.kubectl("create", "token", "weak", "-n", namespace).stdout.strip()
    config["users"][0]["user"] = {"token": weak}
    (tmp_path / "weak.kubeconfig").write_text(json.dumps(config))
    flags = ("--leader-elect=false", "--metrics-auth=token")
    operator = Operator(control_plane, namespace, "weak", tmp_path / "weak.kubeconfig", tmp_path, *flags, open_metrics=False)
    try:
        wait_until("the metrics to be served", lambda: any("/metrics" in line["pages"] for line in operator.lines("serving")))
        assert operator.get("/metrics", *bearer(token))[0] == 503
        told = operator.wait_line("who asks for this page cannot be checked")
        assert "tokenreviews" in told["error"] and "forbidden" in told["error"]
        grant = (f"--clusterrole={DELEGATOR}", f"--serviceaccount={namespace}:weak")
        control_plane.kubectl("create", "clusterrolebinding", READER + "-weak", *grant)
        wait_until("the right to be enough", lambda: operator.get("/metrics", *bearer(token))[0] == 200)
    finally:
        operator.end()
        control_plane.kubectl("delete", "clusterrolebinding", READER + "-weak", check=False)


def test_the_token_is_not_logged(operator: Operator, token: str, tmp_path: Path) -> None:
    operator.get("/metrics", *bearer(token))
    log = (tmp_path / "operator.log").read_text()
    assert token not in log and token.split(".")[2] not in log
    assert base64.b64encode(token.encode()).decode() not in log
