"""Draining a real nginx: who is counted, what clients see of it, what rights that takes, and requests that survive."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from edge_clients import Address, Cut, Http1, Http2, Load, Upstream, connect, connect_through, is_open, upstream_network
from edge_hook import Hook, attempt, attempts
from edge_programs import HTTP, HTTP2, TCP, UPSTREAM_HTTP, UPSTREAM_TCP, Nginx
from sidecar_pod import wait_for

_EDGE: Address = ("127.0.0.1", HTTP)
_EDGE2: Address = ("127.0.0.1", HTTP2)
_PLAIN: Address = ("127.0.0.1", TCP)


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[None]:
    with upstream_network(UPSTREAM_HTTP, UPSTREAM_TCP):
        yield


@pytest.fixture
def folder() -> Iterator[Path]:
    """Sockets have short paths; and nginx's workers, which are nobody, go in."""
    with tempfile.TemporaryDirectory(prefix="certroll-") as short:
        os.chmod(short, 0o755)
        yield Path(short)


def wait_drains(folder: Path) -> None:
    wait_for("it drains", lambda: "gracefully shutting down" in (folder / "log").read_text())


def is_refused(address: Address) -> bool:
    try:
        connect(address).close()
    except ConnectionRefusedError:
        return True
    return False


def talk(address: Address = _PLAIN) -> socket.socket:
    return connect_through(address)


# --- who is counted, and what clients see


def test_each_connection_of_a_client_is_counted_once(folder: Path) -> None:
    """All of them in the midst of something, since nginx closes those that are idle. Of each there is one to an upstream, too."""
    with Nginx().running(folder) as nginx, ExitStack() as stack:
        clients: list[Http1 | Http2] = []
        for address in nginx.addresses():
            clients += [Http1(address), Http1(address)]
        clients += [Http2(_EDGE2), Http2(_EDGE2)]
        for client in clients:
            stack.callback(client.close)
            client.send("/?drip=1&seconds=60")
        for _ in range(3):
            stack.enter_context(talk())
        for client in clients:
            client.sock.recv(1, 2)  # MSG_PEEK: its answer has begun
        begun, counted = attempts("begin,count", *nginx.flags)
        assert begun["ok"] and counted["ok"] and counted["open"] == 11, (begun, counted)


def test_clients_are_told_with_their_answer(folder: Path) -> None:
    with Nginx().running(folder) as nginx, talk() as plain:
        idle, late, stream = Http1(_EDGE), Http1(_EDGE), Http2(_EDGE2)
        idle.get()
        late.send("/?drip=1&seconds=5")
        number = stream.send("/?drip=1&seconds=5")
        for client in (late, stream):
            client.sock.recv(1, 2)
        hook = Hook(*nginx.flags, "--min-drain-duration", "0s", "--drain-timeout", "50s")
        wait_drains(folder)
        assert idle.sock.recv(1) == b""
        with pytest.raises(Cut):
            idle.get()  # closed, so that who asks at this moment is cut: hence --drain-delay
        wait_for("it listens no more, the master after its workers", lambda: is_refused(_EDGE))
        assert late.answer().body.endswith(Upstream.END)
        with pytest.raises(Cut):
            late.get()  # although it was not told
        assert stream.answer(number).endswith(Upstream.END) and stream.goaways
        plain.sendall(b"on")
        assert plain.recv(16) == b"on"
        plain.close()
        status, log = hook.wait()
        assert status == 0, log
        assert nginx.process.wait(60) == 0


def test_who_was_accepted_by_workers_of_before_a_reload_counts(folder: Path) -> None:
    with Nginx().running(folder) as nginx, talk() as before:
        nginx.process.send_signal(signal.SIGHUP)
        wait_for("its workers are replaced", lambda: "gracefully shutting down" in (folder / "log").read_text())
        with talk():
            begun, counted = attempts("begin,count", *nginx.flags)
            assert begun["ok"] and counted["ok"] and counted["open"] == 2, (begun, counted)
            assert is_open(before)


# --- rights, and an nginx that fails


def capless(*capabilities: str) -> tuple[str, ...]:
    return ("setpriv", "--bounding-set", ",".join(f"-{name}" for name in capabilities))


_CONTAINERS_ROOT = capless("sys_ptrace", "sys_admin", "dac_read_search", "perfmon", "bpf", "checkpoint_restore")
_NOBODY = ("setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", "--bounding-set", "-all", "--no-new-privs")


@pytest.mark.parametrize("prefix", [_CONTAINERS_ROOT, _NOBODY], ids=["root", "nobody"])
def test_its_own_user_sees_enough(folder: Path, prefix: tuple[str, ...]) -> None:
    """Workers of root have changed their user: nobody but who has SYS_PTRACE may look into them."""
    os.chmod(folder, 0o777)
    with Nginx(prefix=prefix).running(folder) as nginx, talk():
        begun, counted = attempts("begin,count", *nginx.flags, prefix=prefix)
        assert begun["ok"] and counted["ok"] and counted["open"] == 1, (begun, counted)


def test_who_sees_no_ports_waits_for_the_end(folder: Path) -> None:
    prefix = capless("sys_ptrace", "net_admin")
    with Nginx().running(folder) as nginx, talk() as plain:
        flags = [*nginx.flags, "--min-drain-duration", "0s", "--min-open-connections", "9", "--drain-timeout", "50s"]
        hook = Hook(*flags, prefix=prefix)
        wait_drains(folder)
        threading.Timer(2.0, plain.close).start()
        status, log = hook.wait()
        assert status == 0 and 1.5 < hook.seconds < 40 and "SYS_PTRACE" in log, log


def test_another_user_is_told_why(folder: Path) -> None:
    prefix = ("setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups")
    with Nginx().running(folder) as nginx:
        result = attempt("begin", *nginx.flags, prefix=prefix)
        assert not result["ok"] and result["kind"] == "Forbidden" and "runAsUser" in result["words"], result
        assert nginx.process.poll() is None


def test_nobody_there_is_an_error(folder: Path) -> None:
    begun, counted = attempts("begin,count", "--proxy", "nginx", "--pid-file", str(folder / "nginx.pid"))
    assert not begun["ok"] and not counted["ok"] and not counted["ended"], (begun, counted)


def test_workers_that_lose_their_master_are_waited_for(folder: Path) -> None:
    with Nginx().running(folder) as nginx, talk() as plain:
        hook = Hook(*nginx.flags, "--min-drain-duration", "0s", "--drain-timeout", "50s")
        wait_drains(folder)
        nginx.process.kill()
        nginx.process.wait()
        threading.Timer(3.0, plain.close).start()
        status, log = hook.wait()
        assert status == 0 and hook.seconds > 2.9, log


# --- the hook of a container that is stopped


@pytest.mark.parametrize("hooked", [True, False], ids=["hook", "no-hook"])
def test_no_request_is_cut(folder: Path, hooked: bool) -> None:
    """With the hook; without it some are, or the test would show nothing."""
    each, load = 10, Load(_EDGE, _PLAIN, _EDGE2)
    with Nginx().running(folder) as nginx:
        load.begin(seconds=6, each=each)
        load.keep_coming()
        if hooked:
            hook = Hook(*nginx.flags, "--drain-delay", "3s", "--min-drain-duration", "1s", "--drain-timeout", "50s")
            threading.Timer(1.0, load.stop_coming).start()  # as endpoints of a Service follow, within the delay
            status, log = hook.wait()
            assert status == 0, log
        else:
            nginx.process.terminate()
        nginx.process.wait(60)
        load.stop_coming()
        load.wait()
    print(f"{len(load.done)} whole, {len(load.cut)} cut")
    if hooked:
        assert not load.cut and len(load.done) > 4 * each, load.cut
        assert 5 < hook.seconds < 50
    else:
        assert len(load.cut) >= 3 * each


def test_a_connection_that_never_ends_is_ended_at_the_time_out(folder: Path) -> None:
    with Nginx().running(folder) as nginx, talk() as plain:
        hook = Hook(*nginx.flags, "--min-drain-duration", "1s", "--drain-timeout", "4s")
        status, log = hook.wait()
        assert status == 1 and 4 <= hook.seconds < 30
        assert is_open(plain)
        assert "TimedOut" in log.splitlines()[-1], log


def test_nginx_has_a_time_out_of_its_own(folder: Path) -> None:
    with Nginx(main="worker_shutdown_timeout 2s;").running(folder) as nginx, talk() as plain:
        hook = Hook(*nginx.flags, "--min-drain-duration", "0s", "--drain-timeout", "50s")
        status, log = hook.wait()
        assert status == 0 and 1.9 < hook.seconds < 40, log
        assert plain.recv(16) == b""


def test_the_hook_ends_with_the_first_process_of_its_container(folder: Path) -> None:
    """And that is when nginx has ended: the kubelet reports a failed hook, and nobody was cut."""
    prefix = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    with Nginx(prefix=prefix).running(folder) as nginx, talk() as plain:
        (master,) = Path(f"/proc/{nginx.process.pid}/task/{nginx.process.pid}/children").read_text().split()
        assert (folder / "nginx.pid").read_text().strip() == "1"
        hook = Hook(*nginx.flags, "--min-drain-duration", "0s", "--drain-timeout", "50s", prefix=("nsenter", "--target", master, "--pid", "--mount"))
        wait_drains(folder)
        assert is_open(plain)
        plain.sendall(b"end")
        assert plain.recv(16) == b"end"
        plain.close()
        status, log = hook.wait()
        assert status in (-signal.SIGKILL, 128 + signal.SIGKILL) and "FailedPreStopHook" in log, (status, log)
        assert nginx.process.wait(60) == 0
