"""certroll-shutdown-manager itself: what its hook makes of a proxy that fails, its pages, its signals, and how it is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pytest
from control_plane import ROOT
from sidecar_pod import PATIENCE_S, wait_for
from shutdown_pod import PROGRAM, Answer, Manager, Proxy, a_proxy, drip, raw, silence, text
from test_metrics import check, parse, promtool

import sanitizers  # isort: skip

__all__ = ["promtool"]  # a fixture

_QUICK = ["--min-drain-duration", "200ms", "--check-interval", "100ms"]
_ANY = ["--address", "127.0.0.1:0"]
_LATE_S = 5.0  # what a busy machine may take beyond a time-out


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with a_proxy() as proxy:
        yield proxy


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "manager.log"


def hook(log: Path, proxy: Proxy, *flags: str) -> Manager:
    return Manager(log, "shutdown", *proxy.flags, *_QUICK, "--log-file", "none", *flags)


def sidecar(log: Path, proxy: Proxy, *flags: str) -> Manager:
    return Manager(log, "serve", *proxy.flags, *_QUICK, *_ANY, *flags)


# --- a proxy that fails


FAULTS: dict[str, Answer] = {
    "silent": silence,
    "slow": drip,
    "hangs up": raw(b""),
    "no HTTP": raw(b"hello\r\n\r\n"),
    "503": text("no", "503 Service Unavailable"),
    "404": text("0", "404 Not Found"),
    "redirect": raw(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
    "half an answer": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0"),
    "half a head": raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "half a chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n0"),
    "without end": raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"0" * (8 << 20)),
}
NO_NUMBER = {"nothing": "", "a word": "none", "negative": "-1", "not a number": "NaN", "a page": "<html>0</html>", "JSON": '{"open":'}


def _run_all(stack: ExitStack, tmp_path: Path, words: dict[str, list[str]]) -> dict[str, Manager]:
    return {name: stack.enter_context(Manager(tmp_path / f"{name}.log", *line)) for name, line in words.items()}


def _assert_never_drained(name: str, manager: Manager, timeout: float) -> None:
    """In its own time: on a busy machine it is some seconds until all of them have begun."""
    assert manager.end() == 1, (name, manager.log())
    last = manager.lines()[-1]
    assert last["result"] == "TimedOut" and last["open"] is None and last["level"] == "warn", (name, last)
    assert timeout <= last["seconds"] < timeout + _LATE_S, (name, last)
    assert '"Drained"' not in manager.log(), name
    assert "trying again" in manager.log() and last["error"], name


def test_a_proxy_that_cannot_be_told_or_counted_is_never_drained(tmp_path: Path) -> None:
    """Whatever it answers, and however long that takes: all it costs is the time-out."""
    flags = [*_QUICK, "--drain-timeout", "1500ms", "--attempt-timeout", "300ms", "--log-file", "none"]
    words: dict[str, list[str]] = {"refused": ["shutdown", "--admin-address", "127.0.0.1:1", *flags]}
    words["no socket"] = ["shutdown", "--admin-address", "/nonexistent/admin.sock", *flags]
    with ExitStack() as stack:
        for name, fault in FAULTS.items():
            proxy = stack.enter_context(a_proxy())
            proxy.on_begin = proxy.on_count = fault
            words[f"envoy {name}"] = ["shutdown", "--admin-address", f"127.0.0.1:{proxy.port}", *flags]
            words[f"begin {name}"] = ["shutdown", *proxy.flags, *flags]
        for name, fault in {**FAULTS, **{name: text(body) for name, body in NO_NUMBER.items()}}.items():
            proxy = stack.enter_context(a_proxy())
            proxy.on_count = fault
            words[f"count {name}"] = ["shutdown", *proxy.flags, *flags]
        for name, manager in _run_all(stack, tmp_path, words).items():
            _assert_never_drained(name, manager, 1.5)


def test_a_number_of_before_does_not_stand_for_one_that_is_missing(log: Path, proxy: Proxy) -> None:
    """It had none connected when it was asked first, and then it answered no more."""
    with hook(log, proxy, "--drain-timeout", "3s", "--min-drain-duration", "1s") as manager:
        wait_for("it is counted", lambda: proxy.counts)
        proxy.on_count = text("busy", "503 Service Unavailable")
        assert manager.end() == 1
        assert manager.lines()[-1]["open"] is None


def test_a_proxy_that_comes_back_is_drained(log: Path, proxy: Proxy) -> None:
    proxy.on_begin = proxy.on_count = text("", "503 Service Unavailable")
    with hook(log, proxy, "--drain-timeout", "60s") as manager:
        wait_for("it was tried twice", lambda: proxy.begins >= 2)
        proxy.on_begin = None
        wait_for("it is counted", lambda: proxy.counts)
        assert manager.process.poll() is None
        proxy.on_count = None
        assert manager.end() == 0


# --- the hook


def test_a_hook_waits_until_clients_have_gone(log: Path, proxy: Proxy) -> None:
    proxy.open = 3
    with hook(log, proxy, "--drain-timeout", "60s", "--min-open-connections", "1") as manager:
        manager.wait_said('"open":3')
        proxy.open = 2
        manager.wait_said('"open":2')
        assert manager.process.poll() is None and proxy.begins == 1
        proxy.open = 1
        assert manager.end() == 0
        assert manager.lines()[-1]["result"] == "Drained"


def test_a_client_that_stays_is_waited_for_until_the_time_is_over(log: Path, proxy: Proxy) -> None:
    proxy.open = 1
    began = time.monotonic()
    with hook(log, proxy, "--drain-timeout", "2s") as manager:
        assert manager.end() == 1
        assert time.monotonic() - began >= 2
        last = manager.lines()[-1]
        assert last["result"] == "TimedOut" and last["open"] == 1


def test_wrong_flags_end_no_hook_and_are_told(log: Path, proxy: Proxy) -> None:
    proxy.open = 1
    with hook(log, proxy, "--drain-timout=1s", "--min-open-connections", "few", "--drain-timeout", "60s") as manager:
        manager.wait_said('"open":1')
        assert "unknown flag '--drain-timout': is it --drain-timeout" in manager.log()
        proxy.open = 0
        assert manager.end() == 2


def test_flags_that_do_not_say_which_proxy_cost_the_time_out_and_not_the_clients(log: Path, proxy: Proxy) -> None:
    began = time.monotonic()
    with Manager(log, "shutdown", "--proxy", "generic", "--drain-timeout", "1500ms", "--log-file", "none") as manager:
        assert manager.end() == 1
        assert time.monotonic() - began >= 1.5
        assert "--proxy generic needs --count-url" in manager.log()


def test_one_signal_ends_no_hook_a_second_does(log: Path, proxy: Proxy) -> None:
    proxy.open = 1
    for signals, status in ((1, 0), (2, 1)):
        with hook(log, proxy, "--drain-timeout", "60s") as manager:
            manager.wait_said('"open":1')
            manager.terminate()
            manager.wait_said("a second signal ends it")
            assert manager.process.poll() is None
            if signals == 2:
                manager.terminate()
            proxy.open = 2 - signals
            if signals == 1:
                proxy.open = 0
            assert manager.end() == status
        proxy.open = 1


def test_what_a_hook_says_also_stands_in_the_containers_log(log: Path, proxy: Proxy, tmp_path: Path) -> None:
    """For which this file stands: a kubelet keeps what a hook says on standard error for itself."""
    container = tmp_path / "container.log"
    container.write_text("from the proxy\n")
    with hook(log, proxy, "--log-file", str(container)) as manager:
        assert manager.end() == 0
        assert container.read_text() == "from the proxy\n" + manager.log()


def test_the_log_of_the_container_is_that_of_its_first_process(proxy: Proxy, tmp_path: Path) -> None:
    """As a kubelet runs it: a process beside that one, whose standard error is a pipe to the container runtime."""
    own = tmp_path / "hook.log"
    flags = " ".join([*proxy.flags, *_QUICK])
    script = f"{PROGRAM} shutdown {flags} 2>{own}; exit $?"
    words = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", f"sh -c '{script}'; status=$?; echo from the proxy >&2; exit $status"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, **sanitizers.ENVIRONMENT})
    assert done.returncode == 0, done.stderr + own.read_text()
    assert done.stderr == own.read_text() + "from the proxy\n"
    assert '"result":"Drained"' in done.stderr


@contextmanager
def _a_full_pipe(path: Path) -> Iterator[int]:
    """Its end for writing: whoever writes there without asking waits for ever."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    try:
        os.set_blocking(writer, False)
        for size in (4096, 1):
            with suppress(BlockingIOError):
                while True:
                    os.write(writer, b"x" * size)
        os.set_blocking(writer, True)
        yield writer
    finally:
        os.close(writer)
        os.close(reader)
        path.unlink()  # else it is read as a log, if the test fails


def test_a_log_that_takes_nothing_holds_up_no_drain(log: Path, proxy: Proxy, tmp_path: Path) -> None:
    with _a_full_pipe(tmp_path / "pipe"), hook(log, proxy, "--log-file", str(tmp_path / "pipe")) as manager:
        assert manager.end() == 0


def test_a_signal_that_nobody_reads_of_holds_up_no_drain(log: Path, proxy: Proxy, tmp_path: Path) -> None:
    """What the handler says is said while the drain stands still."""
    proxy.open = 1
    words = ["shutdown", *proxy.flags, *_QUICK, "--log-file", "none", "--drain-timeout", "60s"]
    with _a_full_pipe(tmp_path / "pipe") as full, Manager(log, *words, stderr=full) as manager:
        wait_for("it is counted", lambda: proxy.counts)
        manager.terminate()
        wait_for("it was taken", lambda: not _pending(manager.process.pid) >> (signal.SIGTERM - 1) & 1)
        proxy.open = 0
        assert manager.end() == 0


def _pending(pid: int) -> int:
    """Signals that it has not taken yet."""
    found = re.search(r"^ShdPnd:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1], 16)


def test_a_reader_of_the_log_that_has_gone_ends_no_hook(log: Path, proxy: Proxy) -> None:
    """Its first line is what is wrong with its flags."""
    proxy.open = 1
    reader, writer = os.pipe()
    os.close(reader)
    words = ["shutdown", "--nonsense", *proxy.flags, *_QUICK, "--log-file", "none", "--drain-timeout", "60s"]
    try:
        with Manager(log, *words, stderr=writer) as manager:
            wait_for("it is counted", lambda: proxy.counts)
            proxy.open = 0
            assert manager.end() == 2
    finally:
        os.close(writer)


def test_a_hook_without_standard_files_writes_its_log_into_no_other_file(log: Path, proxy: Proxy) -> None:
    """What is opened first gets their numbers."""
    proxy.open = 1
    words = ["-c", 'exec "$@" <&- >&- 2>&-', "sh", PROGRAM, "shutdown", *proxy.flags, *_QUICK, "--drain-timeout", "60s", *_ANY]
    with Manager(log, *words, program="sh") as manager:
        wait_for("it is counted", lambda: proxy.counts)
        assert [os.readlink(f"/proc/{manager.process.pid}/fd/{fd}") for fd in range(3)] == ["/dev/null"] * 3
        proxy.open = 0
        assert manager.end() == 0


def test_a_hook_may_serve_pages_and_does_not_need_to(log: Path, proxy: Proxy) -> None:
    proxy.open = 1
    with hook(log, proxy, "--drain-timeout", "60s", *_ANY) as first:
        first.wait_status(phase="Draining", openConnections=1)
        with hook(log.with_name("second.log"), proxy, "--drain-timeout", "60s", "--address", f"127.0.0.1:{first.port}") as second:
            second.wait_said('"open":1')
            assert "no pages" in second.log() and "in use" in second.log()
            proxy.open = 0
            assert second.end() == 0
        assert first.end() == 0


def test_who_asks_a_hooks_page_has_his_answer_before_the_hook_ends(log: Path, proxy: Proxy) -> None:
    """As another container of the pod may, which waits with the proxy."""
    proxy.open = 1
    with hook(log, proxy, "--drain-timeout", "60s", *_ANY) as manager:
        manager.wait_status(phase="Draining", openConnections=1)
        waiting = manager.ask()
        assert manager.get("/healthz")[0] == 200  # it has come
        proxy.open = 0
        code, body = waiting.answer()
        assert code == 200 and json.loads(body)["result"] == "Drained"
        assert manager.end() == 0


# --- the sidecar's pages


def test_pages_of_a_sidecar_that_nobody_has_asked(log: Path, proxy: Proxy) -> None:
    with sidecar(log, proxy) as manager:
        assert manager.get("/healthz") == (200, "ok\n")
        status = manager.status()
        assert status["phase"] == "Idle" and status["result"] == "" and status["openConnections"] is None
        assert manager.get("/shutdown", "HEAD")[0] == 405
        assert manager.get("/shutdown", "POST")[0] == 405
        assert manager.get("/shutdown/ready")[0] == 404  # no file was named
        assert manager.get("/nothing")[0] == 404
        assert manager.status()["phase"] == "Idle" and proxy.begins == 0


def test_all_who_ask_wait_for_one_drain_and_the_next_begins_another(log: Path, proxy: Proxy) -> None:
    proxy.open = 2
    with sidecar(log, proxy, "--drain-timeout", "60s") as manager:
        first = manager.ask()
        manager.wait_status(phase="Draining", openConnections=2)
        second = manager.ask()
        assert manager.get("/healthz")[0] == 200
        assert not first.is_over() and not second.is_over()
        proxy.open = 0
        answers = [first.answer(), second.answer()]
        assert [code for code, _ in answers] == [200, 200] and proxy.begins == 1
        for _, body in answers:
            assert json.loads(body).items() >= {"result": "Drained", "openConnections": 0, "errors": 0, "lastError": ""}.items()
        assert manager.status()["phase"] == "Ended"
        # The proxy may have been restarted since.
        assert json.loads(manager.ask().answer()[1])["result"] == "Drained"
        assert proxy.begins == 2
        assert manager.metric('certroll_shutdown_drains_total{result="drained"}') == 2


def test_a_time_out_is_an_answer_like_any_other(log: Path, proxy: Proxy) -> None:
    """A hook that fails would keep the proxy no longer, and the result is in the body, the log and the metrics."""
    proxy.open = 1
    with sidecar(log, proxy, "--drain-timeout", "1s") as manager:
        code, body = manager.ask().answer()
        assert code == 200 and json.loads(body).items() >= {"result": "TimedOut", "openConnections": 1}.items()
        assert manager.metric('certroll_shutdown_drains_total{result="timed_out"}') == 1
        assert manager.metric("certroll_shutdown_open_connections") == 1
        assert "TimedOut" in manager.log()


def test_who_hangs_up_ends_no_drain(log: Path, proxy: Proxy) -> None:
    proxy.open = 1
    with sidecar(log, proxy, "--drain-timeout", "60s") as manager:
        kubelet = manager.ask()
        manager.wait_status(phase="Draining", openConnections=1)
        kubelet.hang_up()
        proxy.open = 2
        manager.wait_status(phase="Draining", openConnections=2)
        proxy.open = 0
        manager.wait_status(phase="Ended", result="Drained")
        assert proxy.begins == 1


def test_metrics_before_meanwhile_and_afterwards(log: Path, proxy: Proxy, promtool: Path) -> None:
    proxy.open = 4
    with sidecar(log, proxy, "--drain-timeout", "60s") as manager:
        before = manager.get("/metrics")[1]
        check(promtool, "check", "metrics", input=before)
        assert 'certroll_shutdown_drain_phase{phase="idle"} 1\n' in before
        assert "certroll_shutdown_open_connections NaN\n" in before
        waiting = manager.ask()
        manager.wait_status(phase="Draining", openConnections=4)
        wait_for("it is shown", lambda: manager.metric("certroll_shutdown_open_connections") == 4)
        assert manager.metric('certroll_shutdown_drain_phase{phase="draining"}') == 1
        proxy.on_count = text("", "503 Service Unavailable")
        wait_for("errors are shown", lambda: manager.metric("certroll_shutdown_admin_errors_total") >= 2)
        assert "certroll_shutdown_open_connections NaN\n" in manager.get("/metrics")[1]
        proxy.on_count, proxy.open = None, 0
        assert waiting.answer()[0] == 200
        after = manager.get("/metrics")[1]
        check(promtool, "check", "metrics", input=after)
        assert manager.metric('certroll_shutdown_drain_phase{phase="ended"}') == 1
        assert manager.metric("certroll_shutdown_drain_duration_seconds") > 0
        _assert_documented(after)


def _assert_documented(page: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (counter|gauge) \|([\w, ]*)\|", (ROOT / "docs" / "shutdown-manager.md").read_text(), re.MULTILINE)
    told = {name: (kind, set(labels.replace(",", " ").split())) for name, kind, labels in rows}
    shown = {name: family for name, family in parse(page).items() if name.startswith("certroll_shutdown_")}
    assert shown.keys() == told.keys()
    for name, family in shown.items():
        kind, labels = told[name]
        assert family.type == kind and all(has.keys() == labels for _, has, _ in family.samples), name


# --- SIGTERM of the sidecar


def _seconds_to_end(manager: Manager) -> float:
    """By its own clock, from the signal on: how long a process takes to end is also the machine's affair."""
    at = {line["msg"]: datetime.fromisoformat(line["ts"]) for line in manager.lines()}
    return (at["no more pages"] - at["signal received"]).total_seconds()


def test_a_sidecar_ends_when_the_drain_is_over_and_its_answer_out(log: Path, proxy: Proxy) -> None:
    proxy.open = 1
    with sidecar(log, proxy, "--drain-timeout", "60s") as manager:
        waiting = manager.ask()
        manager.wait_status(phase="Draining", openConnections=1)
        manager.terminate()
        proxy.open = 2
        manager.wait_status(phase="Draining", openConnections=2)  # it goes on, and so do its pages
        proxy.open = 0
        code, body = waiting.answer()
        assert code == 200 and json.loads(body)["result"] == "Drained"
        assert manager.end() == 0


def test_a_drain_may_still_begin_in_the_moment_after_the_signal(log: Path, proxy: Proxy) -> None:
    """Both containers of a pod are told at the same time."""
    with sidecar(log, proxy, "--drain-timeout", "60s") as manager:
        proxy.open = 1
        port = manager.port
        manager.terminate()
        manager.wait_said("SIGTERM")
        assert port and manager.process.poll() is None
        waiting = manager.ask()
        manager.wait_status(phase="Draining", openConnections=1)
        proxy.open = 0
        assert json.loads(waiting.answer()[1])["result"] == "Drained"
        assert manager.end() == 0


def test_a_sidecar_that_nobody_needs_ends_after_a_moment_or_at_once_when_it_has_served(log: Path, proxy: Proxy) -> None:
    for asked in (False, True):
        with sidecar(log, proxy) as manager:
            assert manager.port
            if asked:
                assert manager.ask().answer()[0] == 200
            manager.terminate()
            assert manager.end() == 0
            took = _seconds_to_end(manager)
            assert took < 2.9 if asked else took >= 2.9


def test_a_second_signal_ends_a_sidecar_at_once(log: Path, proxy: Proxy) -> None:
    proxy.open = 1
    with sidecar(log, proxy, "--drain-timeout", "60s") as manager:
        waiting = manager.ask()
        manager.wait_status(phase="Draining", openConnections=1)
        manager.terminate()
        manager.wait_said("SIGTERM")
        manager.terminate()
        assert manager.end() == 0
        assert waiting.answer()[0] in (0, 503)
        assert '"result":"Cancelled"' in manager.log()


# --- the ready file: Contour's and Envoy Gateway's way


def _as(name: str, folder: Path) -> Path:
    """The program by another's name."""
    link = folder / name
    link.symlink_to(PROGRAM)
    return link


def test_contours_sidecar_waits_for_what_its_hook_writes(log: Path, proxy: Proxy, tmp_path: Path) -> None:
    contour, ready = _as("contour", tmp_path), tmp_path / "ok"
    ready.write_text("of an earlier life\n")
    proxy.open = 1
    words = ["envoy", "shutdown-manager", "--ready-file", str(ready), *_ANY]
    with Manager(log, *words, program=contour) as manager:
        kubelet = manager.ask()
        manager.wait_said("somebody waits for the ready file")
        assert not ready.exists()
        words = ["envoy", "shutdown", *proxy.flags, "--check-interval", "100ms", "--ready-file", str(ready), "--log-file", "none"]
        with Manager(log.with_name("hook.log"), *words, program=contour) as hook:
            hook.wait_said('"open":1')
            assert not kubelet.is_over() and not ready.exists()
            proxy.open = 0
            assert hook.end() == 0
        assert kubelet.answer() == (200, "OK\n")
        assert ready.read_text() == "Drained"
        assert list(tmp_path.glob("ok.*")) == []
        assert manager.get("/shutdown") == (200, "OK\n")  # who asks late
        manager.terminate()
        assert manager.end() == 0
        assert _seconds_to_end(manager) < 2.9


def test_a_sidecar_is_there_until_who_waits_for_the_file_has_its_answer(log: Path, tmp_path: Path) -> None:
    contour, ready = _as("contour", tmp_path), tmp_path / "ok"
    with Manager(log, "envoy", "shutdown-manager", "--ready-file", str(ready), *_ANY, program=contour) as manager:
        kubelet = manager.ask()
        manager.wait_said("somebody waits for the ready file")
        manager.terminate()
        manager.wait_said("SIGTERM")
        assert manager.get("/healthz")[0] == 200 and not kubelet.is_over()
        ready.touch()
        assert kubelet.answer() == (200, "OK\n")
        assert manager.end() == 0


def test_envoy_gateways_page_has_a_time_out(log: Path, tmp_path: Path) -> None:
    gateway, ready = _as("envoy-gateway", tmp_path), tmp_path / "ready"
    words = ["envoy", "shutdown-manager", "--ready-timeout=1s", "--ready-file", str(ready), *_ANY]
    with Manager(log, *words, program=gateway) as manager:
        assert manager.get("/shutdown/ready")[0] == 500
        ready.touch()
        assert manager.get("/shutdown/ready") == (200, "OK\n")


def test_a_hook_takes_an_old_ready_file_away_first_and_writes_it_also_when_the_time_is_over(log: Path, proxy: Proxy, tmp_path: Path) -> None:
    ready = tmp_path / "ok"
    ready.touch()
    proxy.open = 1
    with hook(log, proxy, "--drain-timeout", "2s", "--ready-file", str(ready)) as manager:
        manager.wait_said('"open":1')
        assert not ready.exists()
        assert manager.end() == 1
        assert ready.read_text() == "TimedOut"


def test_a_ready_file_that_cannot_be_written_is_told(log: Path, proxy: Proxy) -> None:
    with hook(log, proxy, "--ready-file", "/nonexistent/ok") as manager:
        assert manager.end() == 1
        last = manager.lines()[-1]
        assert last["level"] == "error" and "/nonexistent/ok" in last["error"]


def test_a_stale_file_that_stays_does_not_count(log: Path, tmp_path: Path) -> None:
    """A folder cannot be removed as a file is; what is put in its place counts."""
    ready = tmp_path / "ok"
    ready.mkdir()
    words = ["envoy", "shutdown-manager", "--ready-file", str(ready), *_ANY]
    with Manager(log, *words, program=_as("contour", tmp_path)) as manager:
        kubelet = manager.ask()
        manager.wait_said("somebody waits for the ready file")
        assert "not taken for a new one" in manager.log()
        assert manager.get("/healthz")[0] == 200 and not kubelet.is_over()
        ready.rename(tmp_path / "old")
        ready.touch()
        assert kubelet.answer() == (200, "OK\n")


# --- what is wrong with a command line, and installing


def _run(*words: str | Path, user: int = 0) -> subprocess.CompletedProcess[str]:
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    environment = {**os.environ, **sanitizers.ENVIRONMENT}
    return subprocess.run([*as_user, *words], capture_output=True, text=True, timeout=PATIENCE_S, env=environment)


def test_what_is_wrong_with_a_command_line_is_said() -> None:
    for words, says in (
        (["serve", "--drain-timeout", "soon"], "--drain-timeout: 'soon' is not a duration such as 10s, 5m or 1h30m"),
        (["serve", "--drain-timeout", "30s", "--termination-grace-period", "30"], "must be less than terminationGracePeriodSeconds 30s"),
        (["install", "--to", "/tmp", "--", "--proxy", "envy"], "behind --: --proxy: 'envy' is no proxy that can be drained"),
        (["shut"], "unknown command 'shut'"),
    ):
        done = _run(PROGRAM, *words)
        assert done.returncode == 2 and says in done.stderr, done.stderr
        assert done.stderr.startswith("certroll-shutdown-manager: ") and done.stderr.count("\n") == 1
    assert _run(PROGRAM, "serve", "--address", "127.0.0.1:1:1").returncode == 1
    assert _run(PROGRAM, "--help").stdout.startswith("certroll-shutdown-manager lets the connections of a proxy end")


def test_install_puts_a_whole_copy_into_the_folder_also_over_one_that_runs(log: Path, proxy: Proxy) -> None:
    """By any user, and again and again. Outside of tmp_path, where other users have no way to."""
    folder = Path("/tmp") / f"certroll-install-{os.getpid()}"
    folder.mkdir()
    try:
        shutil.copy(PROGRAM, folder / "source")
        for path in (folder, folder / "source"):
            os.chown(path, 65534, 65534)
        done = _run(folder / "source", "install", "--to", folder, "--", "--drain-timeout", "20s", user=65534)
        assert done.returncode == 0, done.stderr
        copy = folder / "certroll-shutdown-manager"
        assert json.loads(done.stderr)["file"] == str(copy)
        assert copy.read_bytes() == PROGRAM.read_bytes()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o755 and copy.stat().st_uid == 65534
        words = ["shutdown", *proxy.flags, *_QUICK, "--log-file", "none", "--drain-timeout", "60s"]
        proxy.open = 1
        with Manager(log, *words, program=copy) as running:
            running.wait_said('"open":1')
            before = copy.stat().st_ino
            assert _run(PROGRAM, "install", "--to", folder).returncode == 0
            assert copy.stat().st_ino != before
            proxy.open = 0
            assert running.end() == 0
        assert sorted(path.name for path in folder.iterdir()) == ["certroll-shutdown-manager", "source"]
    finally:
        shutil.rmtree(folder)


def test_install_that_cannot_write_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    missing = _run(PROGRAM, "install", "--to", tmp_path / "missing")
    assert missing.returncode == 1 and "missing/certroll-shutdown-manager" in missing.stderr
    wrong = _run(PROGRAM, "install", "--to", tmp_path, "--", "--drain-timout", "5s")
    assert wrong.returncode == 2 and "is it --drain-timeout" in wrong.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_hook_that_is_killed_leaves_no_half_ready_file(log: Path, proxy: Proxy, tmp_path: Path) -> None:
    proxy.open = 1
    with hook(log, proxy, "--drain-timeout", "60s", "--ready-file", str(tmp_path / "ok")) as manager:
        manager.wait_said('"open":1')
        manager.process.send_signal(signal.SIGKILL)
        manager.process.wait()
    assert list(tmp_path.glob("ok*")) == []
