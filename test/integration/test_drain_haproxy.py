"""Draining a real HAProxy: who is counted, what clients see of it, what is made of a HAProxy that fails, and requests that survive."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from edge_busy import Busy
from edge_clients import Address, Cut, Http1, Http2, Load, Upstream, connect, connect_through, is_open, upstream_network
from edge_hook import Hook, attempt, attempts
from edge_programs import HTTP, STATS, TCP, UPSTREAM_HTTP, UPSTREAM_TCP, HAProxy
from sidecar_pod import wait_for

_EDGE: Address = ("127.0.0.1", HTTP)
_PLAIN: Address = ("127.0.0.1", TCP)


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[None]:
    with upstream_network(UPSTREAM_HTTP, UPSTREAM_TCP):
        yield


@pytest.fixture
def folder() -> Iterator[Path]:
    """Sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="certroll-") as short:
        yield Path(short)


def wait_open(haproxy: HAProxy, expected: int) -> None:
    """As HAProxy itself says, before any drain."""
    wait_for(f"{expected} are open", lambda: sum(int(n) for name, n in haproxy.column("scur").items() if name != "stats") == expected)


def reload(haproxy: HAProxy) -> None:
    """A master that has just started loses signals."""

    def is_done() -> bool:
        if "Reloading HAProxy" in (haproxy.folder / "log").read_text():
            return True
        haproxy.process.send_signal(signal.SIGUSR2)
        time.sleep(0.2)  # rather one reload than ten
        return False

    wait_for("it reloads", is_done)


def talk() -> socket.socket:
    return connect_through(_PLAIN)


def is_told(client: Http2) -> bool:
    """With its next frame at the latest; then it is served."""
    if not client.goaways:
        assert client.get().endswith(Upstream.END)
    while not client.goaways:
        client.hear()
    return True


def clients_of(haproxy: HAProxy, stack: ExitStack) -> list[Http1 | Http2]:
    """Two HTTP/1 and one HTTP/2 at each of its addresses."""
    clients: list[Http1 | Http2] = []
    for address in haproxy.addresses():
        clients += [Http1(address), Http1(address), Http2(address)]
    for client in clients:
        stack.callback(client.close)
        client.get()
    return clients


# --- who is counted, and what clients see


def test_each_connection_of_a_client_is_counted_once(folder: Path) -> None:
    with HAProxy().running(folder) as haproxy, ExitStack() as stack:
        clients_of(haproxy, stack)
        plain = stack.enter_context(talk())
        stack.enter_context(connect(_EDGE))  # says nothing
        metrics = Http1(("127.0.0.1", STATS))
        stack.callback(metrics.close)
        metrics.send("/")
        wait_open(haproxy, 11)
        begun, counted = attempts("begin,count", *haproxy.flags)
        assert begun["ok"] and counted["ok"] and counted["open"] == 11, (begun, counted)
        assert set(haproxy.column("status").items()) == {("web", "STOP"), ("web6", "STOP"), ("plain", "STOP"), ("stats", "OPEN")}
        assert attempt("count", *haproxy.flags, "--ignore-listener", "web6")["open"] == 8
        plain.close()
        wait_for("one less", lambda: attempt("count", *haproxy.flags)["open"] == 10)


def test_clients_are_told_with_their_next_answer(folder: Path) -> None:
    with HAProxy().running(folder) as haproxy, talk() as plain:
        http1, idle, http2, silent = Http1(_EDGE), Http1(_EDGE), Http2(_EDGE), Http1(_EDGE)
        for client in (http1, idle, http2):
            client.get()
        late, stream = Http1(_EDGE), Http2(_EDGE)
        late.send("/?seconds=6")  # under way until the drain has begun, on a busy machine, too
        number = stream.send("/?seconds=6")
        wait_open(haproxy, 7)
        assert [each["ok"] for each in attempts("begin,begin", *haproxy.flags)] == [True, True]
        with pytest.raises(ConnectionRefusedError):
            connect(_EDGE)
        assert late.answer().headers["connection"] == "close"
        assert stream.answer(number).endswith(Upstream.END) and is_told(stream)
        assert http1.get().headers["connection"] == "close"
        assert is_told(http2)
        assert silent.get().headers["connection"] == "close"  # it was accepted before
        assert idle.is_open()  # nothing tells who asks for nothing
        plain.sendall(b"on")
        assert plain.recv(16) == b"on"
        for client in (http1, http2, silent, late, stream):
            client.close()
        wait_for("two are left", lambda: attempt("count", *haproxy.flags)["open"] == 2)
        assert idle.get().headers["connection"] == "close"
        idle.close()
        plain.close()
        wait_for("all have gone", lambda: attempt("count", *haproxy.flags)["open"] == 0)
        assert haproxy.process.poll() is None  # it does not end by itself


def test_who_asks_all_the_time_is_told_in_time(folder: Path) -> None:
    """Unlike with SIGUSR1, at which connections that are idle just then are closed."""
    with HAProxy().running(folder) as haproxy:
        busy = Busy(_EDGE, 40)
        wait_for("all are served", lambda: busy.served > 400)
        assert attempt("begin", *haproxy.flags)["ok"]
        wait_for("all know", busy.all_told)
        busy.stop()
        assert not busy.cut and busy.told == 40
        wait_for("all have gone", lambda: attempt("count", *haproxy.flags)["open"] == 0)


def test_idle_connections_end_with_their_time_out(folder: Path) -> None:
    with HAProxy(keep_alive="1s").running(folder) as haproxy:
        http1, http2 = Http1(_EDGE), Http2(_EDGE)
        http1.get()
        http2.get()
        hook = Hook(*haproxy.flags, "--min-drain-duration", "0s", "--drain-timeout", "50s")
        with contextlib.suppress(Cut):
            while not http2.goaways:
                http2.hear()
        assert http2.goaways
        http2.close()  # newer ones leave that to the client
        status, log = hook.wait()
        assert status == 0 and hook.seconds < 30, log
        http1.close()


# --- a HAProxy that fails


def refused(result: dict[str, Any], words: str) -> bool:
    return not result["ok"] and not result["ended"] and words in result["words"]


def test_what_it_does_not_allow_is_told(folder: Path) -> None:
    with HAProxy(level="operator").running(folder) as haproxy:
        result = attempt("begin", *haproxy.flags)
        assert refused(result, 'needs "level admin"') and result["kind"] == "Forbidden", result
        assert "STOP" not in haproxy.column("status").values()


def test_the_masters_socket_is_not_the_one(folder: Path) -> None:
    master = str(folder / "master.sock")
    flags = ("--proxy", "haproxy", "--admin-address", master)
    with HAProxy(options=("-W", "-S", master)).running(folder):
        wait_for("the master answers", lambda: refused(attempt("count", *flags), "master process"))
        for operation in ("begin", "count"):
            result = attempt(operation, *flags)
            assert refused(result, "master process") and result["ms"] < 1500, result


def test_one_that_hangs_has_its_time(folder: Path) -> None:
    with HAProxy().running(folder) as haproxy:
        haproxy.process.send_signal(signal.SIGSTOP)
        try:
            for operation in ("begin", "count"):
                result = attempt(operation, *haproxy.flags, "--attempt-timeout", "700ms")
                assert refused(result, "the time is over") and 700 <= result["ms"] < 5000, result
        finally:
            haproxy.process.send_signal(signal.SIGCONT)
        assert attempt("begin", *haproxy.flags)["ok"]


def test_a_reload_in_mid_drain_is_not_drained(folder: Path) -> None:
    """The old process still has the client; the new one, which answers, has none."""
    with HAProxy(options=("-W",)).running(folder) as haproxy, talk() as plain:
        wait_open(haproxy, 1)
        hook = Hook(*haproxy.flags, "--min-drain-duration", "0s", "--drain-timeout", "15s")
        wait_for("it drains", lambda: haproxy.column("status")["plain"] == "STOP")
        reload(haproxy)
        status, log = hook.wait()
        assert status == 1 and hook.seconds >= 15 and "open again" in log, log
        assert is_open(plain)


def test_clients_of_before_a_reload_are_waited_for(folder: Path) -> None:
    """Their process answers at no socket any more."""
    with HAProxy(options=("-W",)).running(folder) as haproxy, talk() as plain:
        wait_open(haproxy, 1)
        reload(haproxy)
        wait_open(haproxy, 0)  # of the new one
        begun, counted = attempts("begin,count", *haproxy.flags)
        assert begun["ok"] and refused(counted, "still has clients"), (begun, counted)
        assert is_open(plain)
        plain.close()
        wait_for("all have gone", lambda: (last := attempt("count", *haproxy.flags))["ok"] and last["open"] == 0)


# --- the hook of a container that is stopped


@pytest.mark.parametrize("options", [(), ("-W",)], ids=["alone", "master-worker"])
@pytest.mark.parametrize("hooked", [True, False], ids=["hook", "no-hook"])
def test_no_request_is_cut(folder: Path, options: tuple[str, ...], hooked: bool) -> None:
    """With the hook; without it some are, or the test would show nothing."""
    each, load = 10, Load(_EDGE, _PLAIN)
    with HAProxy(options=options).running(folder) as haproxy:
        load.begin(seconds=6, each=each)
        load.keep_coming()
        if hooked:
            hook = Hook(*haproxy.flags, "--drain-delay", "3s", "--min-drain-duration", "1s", "--drain-timeout", "50s")
            threading.Timer(1.0, load.stop_coming).start()  # as endpoints of a Service follow, within the delay
            status, log = hook.wait()
            assert status == 0, log
        haproxy.process.terminate()
        haproxy.process.wait(60)
        load.stop_coming()
        load.wait()
    print(f"{len(load.done)} whole, {len(load.cut)} cut")
    if hooked:
        assert not load.cut and len(load.done) > 4 * each, load.cut
        assert 5 < hook.seconds < 50
    else:
        assert len(load.cut) >= 3 * each


def test_a_connection_that_never_ends_is_ended_at_the_time_out(folder: Path) -> None:
    with HAProxy().running(folder) as haproxy, talk() as plain:
        wait_open(haproxy, 1)
        hook = Hook(*haproxy.flags, "--min-drain-duration", "1s", "--drain-timeout", "4s")
        status, log = hook.wait()
        assert status == 1 and 4 <= hook.seconds < 30
        assert is_open(plain)
        assert "TimedOut" in log.splitlines()[-1], log


def test_its_end_is_the_end_of_the_drain(folder: Path) -> None:
    """Nobody waits for the time-out, in which nothing can change any more."""
    with HAProxy().running(folder) as haproxy, talk():
        wait_open(haproxy, 1)
        hook = Hook(*haproxy.flags, "--min-drain-duration", "1s", "--drain-timeout", "50s")
        wait_for("it drains", lambda: haproxy.column("status")["plain"] == "STOP")
        hook.wait_line("the proxy is draining")  # it has its answer
        haproxy.process.kill()
        haproxy.process.wait()
        status, log = hook.wait()
        assert status == 0 and hook.seconds < 40, log


def test_another_that_holds_its_place_is_no_end(folder: Path) -> None:
    """Its socket is gone, it is not."""
    with HAProxy().running(folder) as haproxy, talk():
        wait_open(haproxy, 1)
        hook = Hook(*haproxy.flags, "--min-drain-duration", "1s", "--drain-timeout", "6s")
        wait_for("it drains", lambda: haproxy.column("status")["plain"] == "STOP")
        os.unlink(folder / "admin.sock")
        status, log = hook.wait()
        assert status == 1 and hook.seconds >= 6 and "cannot connect" in log, log


def test_it_is_told_where_nobody_is(folder: Path) -> None:
    for operation in ("begin", "count"):
        assert refused(attempt(operation, "--proxy", "haproxy", "--admin-address", str(folder / "no.sock")), "cannot connect")


def test_another_user_is_told_why(folder: Path) -> None:
    """In a folder that all may enter."""
    folder.chmod(0o755)
    prefix = ("setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups")
    if subprocess.run([*prefix, "test", "-x", os.environ.get("CERTROLL_BUILD", "build/dev")]).returncode:
        pytest.skip("the build is not for that user to see")
    with HAProxy().running(folder) as haproxy:
        result = attempt("begin", *haproxy.flags, prefix=prefix)
        assert refused(result, "user or group that may write to it"), result
