"""The counter of failed calls, on which what the other tests say about outages rests. Needs no cluster."""

from __future__ import annotations

import json
from pathlib import Path

from certroll_dev.demo.calls import CallLog, summarise
from mesh_handshakes import Client


def _log(path: Path, *records: dict[str, object]) -> CallLog:
    path.write_text("".join(json.dumps({"target": "envoy", "ok": True, **record}) + "\n" for record in records))
    return CallLog(path)


def test_failures_apart_are_two_windows(tmp_path: Path) -> None:
    failed = {"ok": False, "reason": "HTTP 500"}
    log = _log(
        tmp_path / "calls",
        {"t": 10.0, "n": 0}, {"t": 10.5, "n": 1, **failed}, {"t": 11.2, "n": 2, **failed}, {"t": 12.0, "n": 3},
        {"t": 15.0, "n": 4, "ok": False, "reason": "Connection refused"},
    )
    (summary,) = summarise(log.between(0.0))
    assert (summary.total, summary.failed) == (5, 3)
    assert [(window.first, window.last, window.failed) for window in summary.windows] == [(10.5, 11.2, 2), (15.0, 15.0, 1)]
    assert "15" not in summary.lines(since=10.0)[1] and "+5.0 s" in summary.lines(since=10.0)[2]


def test_a_call_counts_where_it_began(tmp_path: Path) -> None:
    log = _log(tmp_path / "calls", {"t": 1.0, "n": 0}, {"t": 2.0, "n": 1}, {"t": 3.0, "n": 2})
    assert [call.number for call in log.between(2.0, 3.0)] == [1]


def test_a_call_that_hangs_is_waited_for(tmp_path: Path) -> None:
    """Its record comes only when it ends: without it, a stretch of time looks better than it was."""
    path = tmp_path / "calls"
    log = _log(path, {"t": 1.0, "n": 0}, {"t": 3.0, "n": 2})
    assert log.answered(before=1.0)
    assert not log.answered(before=3.0), "the call with number 1 is still under way"
    with path.open("a") as file:
        file.write(json.dumps({"t": 2.0, "n": 1, "target": "envoy", "ok": False, "reason": "no answer within 3 s"}) + "\n")
    assert log.answered(before=3.0)
    assert not log.answered(before=4.0), "nothing is known yet of calls from then on"


def test_a_line_that_is_half_written_is_read_later(tmp_path: Path) -> None:
    path = tmp_path / "calls"
    line = json.dumps({"t": 1.0, "n": 0, "target": "envoy", "ok": True}) + "\n"
    path.write_text(line[:20])
    log = CallLog(path)
    assert log.read() == []
    path.write_text(line)
    assert [call.number for call in log.read()] == [0]


def _client(*numbers: int, ended: int | None = None) -> Client:
    """Call n of its log began at second n."""
    lines = [json.dumps({"t": float(n), "target": "batch", "n": n, "ok": True}) for n in numbers]
    lines += [json.dumps({"ended": ended})] if ended is not None else []
    return Client.of("\n".join(["mtls-client: something that is no record", *lines, '{"t": 9.0, "tar']))


def test_a_client_that_lives_is_waited_for() -> None:
    assert _client(0, 1, 2, 3).is_complete(2.5, lives=True)
    assert not _client(0, 2, 3).is_complete(2.5, lives=True), "the call with number 1 is still under way"
    assert not _client(0, 1, 2).is_complete(2.5, lives=True), "nothing is known yet of calls from then on"


def test_no_call_of_a_client_that_has_ended_is_lost() -> None:
    assert _client(0, 1, 2, ended=3).is_complete(9.0, lives=False)
    assert not _client(0, 2, ended=3).is_complete(9.0, lives=False)
    assert not _client(0, 1, 2).is_complete(1.5, lives=False), "it was killed, and how many calls it made is not known"
