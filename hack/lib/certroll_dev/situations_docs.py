"""docs/situations.md: what test/integration/test_situations.py has seen, as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULT = Path("test/testdata/situations.json")
_INTRODUCTION = """\
<!-- Made by `hack/docs situations` from {result}, which test/integration/test_situations.py writes with --write-docs: edit neither by hand. -->

# What is said in which situation

{count} situations, each brought about on a real API server with its controllers, one operator, a Prometheus with the [alert rules](metrics.md#alerts)
and pods that serve TLS. *Truth* is what handshakes with the pods have shown, beside the leaf that the Secret holds. Where not said otherwise there is one Deployment whose
program reads its Secret at the start, asked by `verify`; `coalesce` and the circuit breaker are off, and the operator runs with `--hosts-in-use`. A trust domain issues the
Secret of such a Deployment, has `retire: Converged`, and its pods take clients of the CAs in their Secret alone: handshakes with a client certificate of each CA show which they trust.

*Columns* are Stage, Converged and Problem of `kubectl get crp`, or of `kubectl get td`. *Conditions* are Converged, and each other one that is not as it should be. *Wait*: whether the
command of [Waiting in a script](operations.md#waiting-in-a-script) comes to an end; of a trust domain, whether what was asked for last is done (`lastHandledToken`, `distrusted[].gone`) and Converged is True. *Alerts* are without `Certroll`, and wait for seconds here. *Events* are certroll's Warnings.
A line is what is said in the end. Until a deadline has passed, `Gated` may stand where it has `NotVerified`, and `PolicyDegraded` be missing.

"""
_HEAD = "| situation | truth | columns | conditions | wait | alerts | events |\n| --- | --- | --- | --- | --- | --- | --- |\n"
Line = dict[str, Any]


def render(_page: str, root: Path) -> str:
    data = json.loads((root / RESULT).read_text())
    groups: Mapping[str, Mapping[str, Line]] = data["groups"]
    parts = [_INTRODUCTION.format(result=RESULT, count=sum(map(len, groups.values())))]
    for title, lines in groups.items():
        parts += [f"## {title}\n\n", _HEAD, *map(_row, lines.values()), "\n"]
    return "".join(parts).rstrip("\n") + "\n"


def seen(root: Path) -> dict[str, Line]:
    """Of each situation what is said, and what is true; none before the first was written."""
    if not (root / RESULT).exists():
        return {}
    groups = json.loads((root / RESULT).read_text())["groups"]
    return {name: {key: value for key, value in line.items() if key != "what"} for lines in groups.values() for name, line in lines.items()}


def write(root: Path, about: Mapping[str, Mapping[str, str]], lines: Mapping[str, Line]) -> None:
    """`about`: by group and name, what each situation is."""
    groups = {group: {name: {"what": what} | lines[name] for name, what in members.items()} for group, members in about.items()}
    (root / RESULT).write_text(json.dumps({"groups": groups}, indent=1) + "\n")


def _row(line: Line) -> str:
    many = {key: "<br>".join(f"`{each}`" for each in line[key]) for key in ("conditions", "alerts", "events")}
    wait = "ends" if line["waited"] else "goes on"
    cells = [line["what"], line["truth"], f"`{line['columns']}`", many["conditions"], wait, many["alerts"], many["events"]]
    return "| " + " | ".join(cells) + " |\n"
