"""An initial list that takes long: each connection brings 5 MB/s (toxiproxy), and no request has to wait for the list."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from control_plane import ROOT, ControlPlane, Object, wait_until
from operators import Operator
from rotations import direct

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev import tools  # noqa: E402
from toxiproxy import Toxiproxy  # noqa: E402

RATE = 5000  # kB/s of a connection
COUNT = 100  # Deployments with as much as an object may carry: 25 MB, which take 5 s
FAST = 0.25  # a bucket of the histogram; the figure itself is recorded, since this machine may be busy
RENEWALS = ("--leader-elect-retry-period=40ms", "--leader-elect-renew-deadline=5s", "--leader-elect-lease-duration=8s")  # each 100 ms


def deployment(namespace: str, number: int) -> Object:
    labels = {"app": f"big-{number}"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"big-{number}", "namespace": namespace, "annotations": {"ballast": "x" * 250_000}},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    }


@pytest.fixture
def slow(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
    """An operator behind the slow proxy, in a namespace whose Deployments take long to list."""
    for first in range(0, COUNT, 20):
        control_plane.create(*(deployment(namespace, number) for number in range(first, first + 20)))
    program = tools.ensure(["toxiproxy-server"])["toxiproxy-server"]
    server = urlsplit(control_plane.server)
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    kubeconfig = tmp_path / "kubeconfig"
    with (
        direct(control_plane),
        Toxiproxy(program, f"{server.hostname}:{server.port}", tmp_path / "toxiproxy.log") as proxy,
        proxy.toxic("bandwidth", rate=RATE),
    ):
        config["clusters"][0]["cluster"]["server"] = f"https://{proxy.address}"  # its certificate has 127.0.0.1
        kubeconfig.write_text(json.dumps(config))
        flags = (f"--operator-namespace={namespace}", *RENEWALS)
        operator = Operator(control_plane, namespace, "slow", kubeconfig, tmp_path, *flags)
        try:
            yield operator
        finally:
            operator.end()


def durations(page: str, part: str) -> float:
    """Of the renewals of the Lease, which are its only writes here."""
    return sum(float(value) for value in re.findall(rf"^rest_client_request_duration_seconds_{part} (\S+)$", page, re.M))


def test_a_request_does_not_wait_for_a_list(slow: Operator, record_property) -> None:  # type: ignore[no-untyped-def]
    began = time.monotonic()
    wait_until("the metrics to be served", lambda: slow.lines("serving"))
    verb = 'verb="(?:PATCH|PUT)"'
    wait_until("ten renewals", lambda: durations(slow.get("/metrics")[1], rf"count{{[^}}]*{verb}[^}}]*}}") >= 10)
    assert not listed(slow), "the list was too fast to show anything"
    while not listed(slow):
        assert time.monotonic() - began < 180, "the list does not end"
        time.sleep(0.1)
    page = slow.get("/metrics")[1]
    count = durations(page, rf"count{{[^}}]*{verb}[^}}]*}}")
    fast = durations(page, rf'bucket{{[^}}]*{verb}[^}}]*le="{FAST}"[^}}]*}}')
    mean = durations(page, rf"sum{{[^}}]*{verb}[^}}]*}}") / count
    record_property("mean_ms", round(mean * 1000, 2))
    record_property("requests", int(count))
    print(f"{count:.0f} requests during a list of {time.monotonic() - began:.1f} s: {mean * 1000:.1f} ms each")
    assert fast == count and mean < 0.05
    assert slow.leads()


def listed(operator: Operator) -> bool:
    return any(line.get("resource") == "deployments" for line in operator.lines("in sync"))
