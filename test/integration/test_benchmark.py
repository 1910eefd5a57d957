"""hack/bench --quick: it runs and every figure is there. What they are is for a machine that does nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import control_plane as planes
from operators import PROGRAM

BUILD = PROGRAM.parents[1]


def test_the_benchmark_runs_and_every_figure_is_there(tmp_path: Path) -> None:
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench"], check=True, capture_output=True)
    name, lock = planes.reserve("certroll-bench-test")
    with lock:
        out = tmp_path / "bench.json"
        words = [planes.ROOT / "hack" / "bench", "--quick", "--waiting", "--name", name, "--build", BUILD, "--json", out]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    figures = json.loads(out.read_text())
    (pair,) = figures["pairs"]
    for who in ("floor", "certroll"):
        turn = pair[who]
        assert len(turn["latency"]["from_sent_ms"]) == figures["plan"]["changes"], who
        assert min(turn["latency"]["from_sent_ms"]) > 0 and turn["burst"]["restarts_s"] > 0, who
        assert turn["memory"]["peak"] >= turn["memory"]["resident"] > turn["memory"]["private_dirty"] > 0, who
        assert turn["burst"]["cpu_s"] > 0 and turn["received_in_sync"] > 0 and turn["in_sync_s"] > 0, who
        assert figures["idle"][who]["cpu"] >= 0, who
    assert pair["certroll"]["burst"]["statuses_s"] > 0
    assert pair["certroll"]["event_to_patch"]["restarts"] > 0
    assert figures["waiting"]["cpu"] >= 0
    assert "restart patch visible, p50" in done.stdout
    assert "policies wait for a budget" in done.stdout


def test_the_benchmark_of_handshakes_runs(tmp_path: Path) -> None:
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench-handshakes"], check=True, capture_output=True)
    out = tmp_path / "handshakes.json"
    words = [planes.ROOT / "hack" / "bench", "--handshakes", "--quick", "--build", BUILD, "--json", out]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (pair,) = json.loads(out.read_text())["pairs"]
    assert pair["reloading"]["reloads"] > 0 and pair["still"]["reloads"] == 0
    assert min(pair[who]["p99_us"] for who in ("still", "reloading")) > 0
    assert "a handshake, p99" in done.stdout
