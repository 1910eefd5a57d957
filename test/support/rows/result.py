"""What was predicted and what was seen, as lines for people and as the data of docs/control-plane-rows.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from programs.observe import differs
from rows.predict import NOT_OBSERVABLE
from rows.run import Outcome, slack

Line = Mapping[str, Any]


def differences(outcome: Outcome) -> list[str]:
    """In which way the program is not as it was said; none: it is."""
    if outcome.error:
        return [f"{outcome.row.title}: {outcome.error}"]
    if outcome.row.unobservable:
        return []
    found = [text for text in (differs(outcome.entry, outcome.seen, slack(outcome.row)),) if text]
    passive = outcome.seen.by_itself is None
    if passive and outcome.row.restart and outcome.seen.restarted is None:
        found.append("not even a restart takes it up")
    if passive and not outcome.row.restart and outcome.entry["method"] == "Restart":
        found.append("that a restart takes it up was not tried")
    return [f"{outcome.row.title}: {text}" for text in found]


def line(outcome: Outcome) -> Line:
    """Of the table; figures in seconds."""
    row, seen = outcome.row, outcome.seen
    return {
        "row": row.seed,
        "component": row.component,
        "parameters": list(row.files),
        "via": row.via or "",
        "role": row.role,
        "note": row.note,
        "predicted": predicted(outcome.entry),
        "observed": _observed(outcome),
        "seconds": _seconds(seen.by_itself if seen.by_itself is not None else _last(outcome)),
    }


def text(outcome: Outcome) -> str:
    """The same for people."""
    cells = line(outcome)
    seconds = "" if cells["seconds"] is None else f" {cells['seconds']:g} s"
    return f"{outcome.row.title}: predicted {cells['predicted']}, observed {cells['observed']}{seconds}"


def predicted(entry: Mapping[str, Any]) -> str:
    """"Poll, 300 s", "Signal SIGUSR1", "Restart"."""
    if entry["method"] == NOT_OBSERVABLE:
        return "no such parameter"
    words = " ".join(str(word) for word in (entry["method"], entry.get("trigger")) if word)
    return f"{words}, {entry['maxDelayMs'] / 1000:g} s" if entry["maxDelayMs"] else words


def write(outcomes: Sequence[Outcome], file: Path, about: Mapping[str, Any]) -> None:
    lines = [json.dumps(line(each), ensure_ascii=False) for each in outcomes]
    file.write_text('{"about": ' + json.dumps(about) + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n]}\n")


def _observed(outcome: Outcome) -> str:
    seen = outcome.seen
    if outcome.row.unobservable:
        return f"not observable: {outcome.row.unobservable}"
    if seen.by_itself is not None:
        return "by itself"
    told = [f"after {trigger}" for trigger, seconds in seen.triggered.items() if seconds is not None]
    restarted = ["after a restart"] if seen.restarted is not None and not told else []
    return ", ".join([f"not in {outcome.watched:.0f} s", *told, *restarted])


def _last(outcome: Outcome) -> float | None:
    told = [seconds for seconds in outcome.seen.triggered.values() if seconds is not None]
    return told[0] if told else outcome.seen.restarted


def _seconds(value: float | None) -> float | None:
    return None if value is None else max(round(value, 1 if value >= 1 else 2), 0.01)
