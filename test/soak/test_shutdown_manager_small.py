"""The shutdown manager as users have it (the release build): it needs nothing but itself, and it is small."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import ROOT
from sidecar_pod import wait_for
from shutdown_pod import Manager, Proxy, a_proxy

_PROGRAM = Path(os.environ.get("CERTROLL_BUILDS", ROOT / "build")) / "release" / "bin" / "certroll-shutdown-manager"
_RSS_ANON_KIB = 3 * 1024
_SIZE = 3 << 20
_REQUESTS = 3000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root file system with the program, and nothing else."""
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copy(_PROGRAM, folder / "program")
    return folder


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with a_proxy() as proxy:
        yield proxy


def rss_anon_kib(pid: int) -> int:
    found = re.search(r"^RssAnon:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def test_it_is_one_static_program() -> None:
    assert "statically linked" in subprocess.run(["ldd", _PROGRAM], capture_output=True, text=True).stdout
    assert "static-pie linked" in subprocess.run(["file", "-b", _PROGRAM], capture_output=True, text=True).stdout
    assert _PROGRAM.stat().st_size < _SIZE


def test_it_runs_in_an_empty_root(root: Path, proxy: Proxy) -> None:
    """All that it can: no library, no /proc, no /etc is there."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["chroot", root, "/program", *words], capture_output=True, text=True, timeout=60)

    assert re.fullmatch(r"certroll-shutdown-manager \S+\n", run("--version").stdout)
    done = run("shutdown", *proxy.flags, "--min-drain-duration", "0s", "--ready-file", "/ok")
    assert done.returncode == 0, done.stderr
    assert (root / "ok").read_text() == "Drained"
    unreachable = run("shutdown", "--admin-address", "localhost:1", "--drain-timeout", "500ms")
    assert unreachable.returncode == 1 and "refused" in unreachable.stderr
    assert run("install", "--to", "/").returncode == 1  # it finds itself by /proc


def test_its_own_memory_is_small_and_stays_so(tmp_path: Path, proxy: Proxy) -> None:
    """With pages, in the midst of a drain, and after many were asked for."""
    proxy.open = 1
    words = [*proxy.flags, "--check-interval", "100ms", "--drain-timeout", "600s"]
    with Manager(tmp_path / "hook.log", "shutdown", *words, "--log-file", "none", program=_PROGRAM) as hook:
        hook.wait_said('"open":1')
        with Manager(tmp_path / "serve.log", "serve", *words, "--address", "127.0.0.1:0", program=_PROGRAM) as serve:
            waiting = serve.ask()
            serve.wait_status(phase="Draining", openConnections=1)
            for _ in range(100):
                serve.get("/metrics")
            begin = rss_anon_kib(serve.process.pid)
            port = serve.port
            for _ in range(_REQUESTS // 3):
                for path in ("/metrics", "/status", "/healthz"):
                    assert serve.get(path)[0] == 200
                serve.ask().hang_up()
            end = rss_anon_kib(serve.process.pid)
            counts = proxy.counts
            wait_for("it was counted often", lambda: proxy.counts > counts + 20)
            own = rss_anon_kib(hook.process.pid)
            print(f"RssAnon: serve {begin} KiB, after {_REQUESTS} pages {end} KiB; shutdown {own} KiB; port {port}")
            assert max(end, own) <= _RSS_ANON_KIB
            assert end <= begin + 256
            proxy.open = 0
            assert waiting.answer()[0] == 200
        assert hook.end() == 0
