"""The real API server behind a bad network (toxiproxy): a rotation is done, once, and what was down is found again.

A path that drops packets is another matter: there nothing ends a connection (tests of dead paths have a network namespace).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from control_plane import ROOT, ControlPlane
from operators import Operator
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import sanitizers  # noqa: E402
from certroll_dev import tools  # noqa: E402
from toxiproxy import Toxiproxy  # noqa: E402

_LATE = 150.0  # seconds: 95 of them for a kubelet
_OUTAGE = 2.0  # seconds

Network = tuple[Toxiproxy, Lane]


@pytest.fixture(scope="module")
def network(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """An operator that reaches the API server through the proxy only."""
    folder = tmp_path_factory.mktemp("toxiproxy")
    namespace = f"toxic-{time.time_ns() % 10**9}"
    control_plane.kubectl("create", "namespace", namespace)
    program = tools.ensure(["toxiproxy-server"])["toxiproxy-server"]
    server = urlsplit(control_plane.server)
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        with Toxiproxy(program, f"{server.hostname}:{server.port}", folder / "toxiproxy.log") as proxy:
            lane = Lane(api, namespace, "lane", leaves(4))
            lane.create()
            kubeconfig = _through(control_plane, proxy, folder / "kubeconfig")
            operator = Operator(
                control_plane, namespace, "operator", kubeconfig, folder, "--leader-elect=false",
                extra_environment=sanitizers.ENVIRONMENT,
            )  # fmt: skip
            try:
                lane.wait_settled()
                yield proxy, lane
                assert operator.process.poll() is None and sanitizers.report_in(operator.log) is None
            finally:
                operator.end()
    control_plane.kubectl("delete", "namespace", namespace, "--wait=false")


def _through(plane: ControlPlane, proxy: Toxiproxy, path: Path) -> Path:
    config = json.loads(plane.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json").stdout)
    config["clusters"][0]["cluster"]["server"] = f"https://{proxy.address}"  # its certificate has 127.0.0.1
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def check(lane: Lane) -> None:
    lane.rotate()  # as usual afterwards
    assert lane.complaint() is None


BAD = {
    "150 ms of latency, up to 100 more or less": ("latency", {"latency": 150, "jitter": 100}),
    "30 kB/s": ("bandwidth", {"rate": 30}),
    "packets of 20 bytes": ("slicer", {"average_size": 20, "size_variation": 10, "delay": 100}),
    "connections that close a second late": ("slow_close", {"delay": 1000}),
}


@pytest.mark.parametrize(("kind", "attributes"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("stream", ["downstream", "upstream"])
def test_a_rotation_over_a_bad_network(network: Network, stream: str, kind: str, attributes: dict[str, int]) -> None:
    proxy, lane = network
    with proxy.toxic(kind, stream, **attributes):
        lane.rotate()
    check(lane)


def test_connections_that_end_every_few_kilobytes(network: Network) -> None:
    """In the middle of whatever is on them, each watch and each write at some time."""
    proxy, lane = network
    with proxy.toxic("limit_data", bytes=60_000):
        for _ in range(2):
            lane.rotate()
    check(lane)


Outage = Callable[[Toxiproxy], AbstractContextManager[None]]

OUTAGES: dict[str, Outage] = {
    "no byte either way, connections open": lambda proxy: _both(proxy, "timeout", timeout=0),
    "no byte from the API server": lambda proxy: proxy.toxic("timeout", timeout=0),
    "no byte to the API server": lambda proxy: proxy.toxic("timeout", "upstream", timeout=0),
    "connections reset at once": lambda proxy: proxy.toxic("reset_peer", timeout=0),
    "connections reset after 300 ms": lambda proxy: proxy.toxic("reset_peer", timeout=300),
    "connections refused": lambda proxy: proxy.down(),
}


@contextmanager
def _both(proxy: Toxiproxy, kind: str, **attributes: int) -> Iterator[None]:
    with proxy.toxic(kind, "downstream", "down", **attributes), proxy.toxic(kind, "upstream", "up", **attributes):
        yield


_LONG = os.environ.get("CERTROLL_LONG") == "1"
_TWICE = ("connections reset after 300 ms", "after the change")  # as at once, and each waits for a kubelet's longest delay
_WHEN = [(each, moment) for each in OUTAGES for moment in ("at the change", "after the change") if _LONG or (each, moment) != _TWICE]


@pytest.mark.parametrize(("kind", "moment"), _WHEN, ids=["-".join(each) for each in _WHEN])
def test_a_change_during_an_outage(network: Network, kind: str, moment: str) -> None:
    """Before the operator can see the change, or right after: then its own writes are what is lost."""
    proxy, lane = network
    if moment == "after the change":
        lane.change()
    with OUTAGES[kind](proxy):
        if moment == "at the change":
            lane.change()
        time.sleep(_OUTAGE)  # the outage itself
    # A restart that was done and whose answer was lost is found once the cache shows it. By then its change may be on record
    # as younger than the restart, and pods that may have mounted the Secret before count after the kubelet's longest delay.
    lane.wait_settled(timeout=_LATE)
    lane.note()
    check(lane)
