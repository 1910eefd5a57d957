"""Draining a real Envoy: who is counted, what clients see of it, what is made of an Envoy that fails, and requests that survive."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from edge_busy import Busy
from edge_clients import PATIENCE_S, Address, Cut, Http1, Http2, Load, connect, is_open, upstream_network
from edge_envoy import HTTP, INNER, STATS, TCP, TLS, UPSTREAM_HTTP, UPSTREAM_TCP, VIA, Envoy
from edge_hook import Hook, attempt, attempts
from sidecar_pod import wait_for

_EDGE: Address = ("127.0.0.1", HTTP)
_PLAIN: Address = ("127.0.0.1", TCP)


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[None]:
    with upstream_network(UPSTREAM_HTTP, UPSTREAM_TCP):
        yield


def at(envoy: Envoy, *flags: str) -> tuple[str, ...]:
    return ("--admin-address", envoy.admin_address, *flags)


def wait_open(envoy: Envoy, expected: int, *flags: str) -> None:
    """Envoy's threads tell what they have with a delay."""

    def seen() -> bool:
        result = attempt("count", *at(envoy, *flags))
        assert result["ok"], result
        last.append(result["open"])
        return result["open"] == expected

    last: list[int] = []
    try:
        wait_for("as many are counted as there are", seen)
    except AssertionError as error:
        raise AssertionError(f"{expected} are connected, {last[-3:]} are counted") from error


# --- who is counted


@pytest.mark.parametrize("admin", ["127.0.0.1:9901", "[::1]:9901", "admin.sock"])
def test_each_connection_of_a_client_is_counted_once(tmp_path: Path, admin: str) -> None:
    with Envoy(admin=admin).running(tmp_path / "envoy.log") as envoy, ExitStack() as stack:
        wait_open(envoy, 0)
        clients: list[Http1 | Http2] = []
        for address in envoy.addresses.values():
            clients += [Http1(address), Http1(address), Http2(address)]
        clients.append(Http1(("127.0.0.1", 10183)))  # an additional address of the listener with a stat_prefix
        for client in clients:
            stack.callback(client.close)
            client.get()
        wait_open(envoy, 13)
        plain = [stack.enter_context(connect(_PLAIN)) for _ in range(5)]
        wait_open(envoy, 18)
        silent = stack.enter_context(connect(_EDGE))
        wait_open(envoy, 19)
        for flags, less in (
            (("--ignore-listener", "plain"), 5),
            (("--ignore-listener", "127.0.0.1:10082"), 5),
            (("--ignore-listener", "my.edge"), 4),
            (("--ignore-listener", "plain", "--ignore-listener", "[::1]:10081"), 8),
            (("--ignore-listener", "edge-unix"), 3),
        ):
            wait_open(envoy, 19 - less, *flags)
        arriving = stack.enter_context(connect(("127.0.0.1", TLS)))
        wait_open(envoy, 20)
        assert "listener.127.0.0.1_10085.downstream_cx_active: 0\n" in envoy.ask("/stats?filter=10085.downstream_cx_active")[1]
        for sock in (*plain, silent, arriving):
            sock.close()
        wait_open(envoy, 13)
        for client in clients:
            client.close()
        wait_open(envoy, 0)


def test_what_serves_no_clients_is_not_counted(tmp_path: Path) -> None:
    """Who collects metrics stays connected; of a request that goes through an internal listener Envoy keeps a connection for later."""
    with Envoy().running(tmp_path / "envoy.log") as envoy:
        metrics = Http1(("127.0.0.1", STATS))
        metrics.get()
        through = Http1(("127.0.0.1", VIA))
        through.get()
        wait_open(envoy, 1)
        through.close()
        wait_open(envoy, 0)
        _, text = envoy.ask("/stats?filter=downstream_cx_active")
        assert f"listener.127.0.0.1_{STATS}.downstream_cx_active: 1\n" in text
        assert f"listener.envoy_internal_{INNER}.downstream_cx_active: 1\n" in text  # or this test shows nothing
        metrics.close()


def test_an_interface_that_shows_less_counts_more(tmp_path: Path) -> None:
    """Only what Contour's and Envoy Gateway's managers ask for is allowed: listeners for metrics cannot be told from others."""
    with Envoy(allow_paths=("/ready", "/stats", "/healthcheck/fail")).running(tmp_path / "envoy.log") as envoy:
        metrics = Http1(("127.0.0.1", STATS))
        metrics.get()
        assert envoy.ask("/listeners")[0] == 403
        wait_open(envoy, 1)
        wait_open(envoy, 0, "--ignore-listener", f"127.0.0.1:{STATS}")
        assert attempt("begin", *at(envoy))["ok"]
        refused = attempt("begin", *at(envoy, "--drain-listeners"))
        assert not refused["ok"] and "answers /drain_listeners?graceful&skip_exit with 403" in refused["words"]
        metrics.close()


# --- what clients see


def test_clients_are_told_with_their_next_answer(tmp_path: Path) -> None:
    with Envoy().running(tmp_path / "envoy.log") as envoy:
        http1, idle1, http2, idle2 = Http1(_EDGE), Http1(_EDGE), Http2(_EDGE), Http2(_EDGE)
        for client in (http1, idle1, http2, idle2):
            client.get()
        assert envoy.ask("/ready") == (200, "LIVE\n")
        assert [each["ok"] for each in attempts("begin,begin", *at(envoy))] == [True, True]
        assert envoy.ask("/ready")[0] == 503  # a load balancer's health check
        assert http1.get().headers["connection"] == "close"
        assert http2.get() and http2.goaways == [Http2.LAST_STREAM]  # and then, when no request can be on its way any more:
        wait_until_ended(http2)
        assert http2.goaways[1:] == [3]  # the number of its last request
        late = Http1(_EDGE)  # who comes now is served
        assert late.get().headers["connection"] == "close"
        for client in (http1, late):
            client.close()
        wait_open(envoy, 2)
        assert idle1.is_open() and not idle2.goaways and not idle2.ended  # nothing tells who asks for nothing
        assert idle1.get().headers["connection"] == "close"
        idle1.close()
        assert idle2.get() and idle2.goaways
        idle2.close()
        wait_open(envoy, 0)


def wait_until_ended(client: Http2) -> None:
    with pytest.raises(Cut):
        while True:
            client.hear()
    assert client.ended


def test_idle_connections_end_with_envoys_idle_timeout(tmp_path: Path) -> None:
    hcm = {"common_http_protocol_options": {"idle_timeout": "1s"}, "drain_timeout": "0.5s", "delayed_close_timeout": "0.5s"}
    with Envoy(hcm=hcm).running(tmp_path / "envoy.log") as envoy:
        clients: list[Http1 | Http2] = []
        for kind in (Http1, Http2):  # each asks at once, within the idle time-out
            clients.append(kind(_EDGE))
            clients[-1].get()
        assert attempt("begin", *at(envoy))["ok"]
        wait_open(envoy, 0)
        for client in clients:
            client.close()


def test_draining_listeners_leaves_it_ready(tmp_path: Path) -> None:
    """For who must not fail health checks, as long as it is a load balancer's only one."""
    with Envoy(options=("--drain-strategy", "immediate", "--drain-time-s", "1")).running(tmp_path / "envoy.log") as envoy:
        http1 = Http1(_EDGE)
        http1.get()
        assert [each["ok"] for each in attempts("begin,begin", *at(envoy, "--drain-listeners"))] == [True, True]
        assert envoy.ask("/ready") == (200, "LIVE\n")
        assert http1.get().headers["connection"] == "close"
        end = time.monotonic() + 3  # more than its drain time, after which listeners would be closed without skip_exit
        while time.monotonic() < end:
            late = Http1(_EDGE)
            assert late.get().headers["connection"] == "close"
            late.close()


# --- an Envoy that fails


def test_an_envoy_that_is_gone_has_not_drained(tmp_path: Path) -> None:
    for admin in ("127.0.0.1:9901", "admin.sock"):
        with Envoy(admin=admin).running(tmp_path / "envoy.log") as envoy:
            wait_open(envoy, 0)
            assert envoy.process
            envoy.process.kill()
            envoy.process.wait()
            for operation in ("begin", "count"):
                result = attempt(operation, *at(envoy))
                assert not result["ok"] and not result["ended"] and "cannot connect" in result["words"], result


def test_an_envoy_that_hangs_has_its_time(tmp_path: Path) -> None:
    with Envoy().running(tmp_path / "envoy.log") as envoy:
        wait_open(envoy, 0)
        assert envoy.process
        envoy.process.send_signal(signal.SIGSTOP)
        for operation in ("begin", "count"):
            result = attempt(operation, *at(envoy, "--attempt-timeout", "700ms"))
            assert not result["ok"] and "the time is over" in result["words"] and 700 <= result["ms"] < 5000, result
        envoy.process.send_signal(signal.SIGCONT)
        wait_open(envoy, 0)


# --- the program, as the hook of a container that is stopped


def stop(envoy: Envoy) -> None:
    assert envoy.process
    envoy.process.terminate()
    assert envoy.process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize("drain", ["--drain-listeners=false", "--drain-listeners", None])
def test_no_request_is_cut(tmp_path: Path, drain: str | None) -> None:
    """With the hook; without it some are, or the test would show nothing."""
    each, load = 10, Load(_EDGE, _PLAIN)
    with Envoy(options=("--drain-strategy", "immediate")).running(tmp_path / "envoy.log") as envoy:
        load.begin(seconds=6, each=each)
        asked = time.monotonic()
        load.keep_coming()
        busy = Busy(_EDGE, each)
        wait_for("all are served", lambda: busy.served > 10 * each)
        if drain:
            hook = Hook(*at(envoy, drain, "--min-drain-duration", "2s", "--drain-timeout", "50s"))
            threading.Timer(1.0, load.stop_coming).start()  # as endpoints of a Service follow, within the least duration
            status, log = hook.wait()
            waited = time.monotonic() - asked
            assert status == 0, log
        stop(envoy)
        load.stop_coming()
        load.wait()
        if not drain:
            wait_for("who asks all the time is cut", lambda: len(busy.cut) == each)
        busy.stop()
    print(f"{len(load.done)} whole, {len(load.cut)} cut; of {each} that ask all the time {busy.told} told, {len(busy.cut)} cut")
    if drain:
        assert not load.cut and len(load.done) > 4 * each
        assert not busy.cut and busy.told == each
        assert waited > 5 and hook.seconds < 50
    else:
        assert len(load.cut) >= 3 * each and len(busy.cut) == each


def test_a_connection_that_never_ends_is_ended_at_the_time_out(tmp_path: Path) -> None:
    with Envoy().running(tmp_path / "envoy.log") as envoy, connect(_PLAIN) as plain:
        wait_open(envoy, 1)
        hook = Hook(*at(envoy, "--min-drain-duration", "1s", "--drain-timeout", "4s"))
        status, log = hook.wait()
        assert status == 1 and 4 <= hook.seconds < 30
        assert is_open(plain)
        end = json.loads(log.splitlines()[-1])
        assert end["result"] == "TimedOut" and end["open"] == 1, log


def test_an_envoy_that_dies_in_mid_drain_has_not_drained(tmp_path: Path) -> None:
    with Envoy().running(tmp_path / "envoy.log") as envoy, connect(_PLAIN):
        wait_open(envoy, 1)
        hook = Hook(*at(envoy, "--min-drain-duration", "1s", "--drain-timeout", "5s"))
        wait_for("it drains", lambda: envoy.ask("/ready")[0] == 503)
        assert envoy.process
        envoy.process.kill()
        status, log = hook.wait()
        assert status == 1 and 4.9 <= hook.seconds < 30 and "cannot connect" in log
