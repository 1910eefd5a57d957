"""hack/bench --handshakes: what reloads cost the handshakes of a server on tlsreload."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

Figures = dict[str, Any]

_LIMIT = 1.1  # p99 during reloads, against p99 without


def measure(program: Path, pairs: int, seconds: int) -> Figures:
    """By turns: a turn without reloads, one with a swap, and a reload of it, each fifth of a second or so."""
    figures: Figures = {"seconds": seconds, "load": os.getloadavg()[0], "cores": os.cpu_count(), "pairs": []}
    figures["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
    for _ in range(pairs):
        still = _turn(program, "--seconds", str(seconds))
        reloading = _turn(program, "--swaps", str(seconds * 5), "--burst", "1")
        figures["pairs"].append({"still": still, "reloading": reloading})
    return figures


def text(figures: Figures) -> str:
    rows = [_row(figures, "p50", "p50_us", None), _row(figures, "p99", "p99_us", _LIMIT)]
    head = ["| | no reload | during reloads | compared | to reach | |", "| --- | ---: | ---: | ---: | --- | --- |"]
    return "\n".join([*head, *rows, "", _setting(figures)]) + "\n"


def _turn(program: Path, *words: str) -> Figures:
    with tempfile.TemporaryDirectory(prefix="certroll-bench-") as folder:
        done = subprocess.run([program, *words, folder], check=True, capture_output=True, text=True)
    seen: Figures = json.loads(done.stdout)
    if seen["failed"] or seen["mixed"]:
        raise RuntimeError(f"handshakes failed: {done.stdout}")
    return seen


def _row(figures: Figures, name: str, key: str, limit: float | None) -> str:
    still, reloading = ([pair[who][key] / 1000 for pair in figures["pairs"]] for who in ("still", "reloading"))
    ratio = median(b / a for a, b in zip(still, reloading, strict=True))
    verdict = "" if limit is None else "reached" if ratio <= limit else "**missed**"
    aim = "" if limit is None else f"≤ {limit} × without"
    return f"| a handshake, {name} | {median(still):.2f} ms | {median(reloading):.2f} ms | {ratio:.2f} × | {aim} | {verdict} |"


def _setting(figures: Figures) -> str:
    turns = [pair["reloading"] for pair in figures["pairs"]]
    per_second = median(turn["reloads"] / turn["seconds"] for turn in turns)
    rate = median(turn["handshakes"] / turn["seconds"] for turn in turns)
    return (
        f"{len(turns)} alternating pairs of some {figures['seconds']} s, medians; the ratio is the median of the pairs' ratios. "
        f"{rate:.0f} handshakes and {per_second:.1f} reloads a second, ECDSA P-256, three of four TLS 1.3. "
        f"{figures['cores']} cores, {figures['date']}; load when it began: {figures['load']:.1f}."
    )
