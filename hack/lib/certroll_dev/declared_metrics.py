"""Which metrics the programs have, with their labels: as the C code registers them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .ui import DevError

_CALL = re.compile(r"\bcr_metrics_(counter|gauge|histogram)\(")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LABELS = re.compile(r'CR_LABELS\((.*)\)', re.DOTALL)
# The registry itself writes this one.
_OF_THE_REGISTRY = re.compile(r'dropped_name\[\] = "(\w+)"')
_REGISTRY = "pkg/metrics/"
_SERIES = ("_bucket", "_sum", "_count")
# Pages with tables of metrics; each metric is in one of them.
_PAGES = ("metrics", "node-agent", "sidecar", "shutdown-manager")
_ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \|([\w, ]*)\|", re.MULTILINE)


@dataclass(frozen=True)
class Metric:
    kind: str  # counter, gauge or histogram
    labels: frozenset[str]


@functools.cache
def declared(root: Path) -> Mapping[str, Metric]:
    """By name; the name of a histogram is that of no series."""
    found: dict[str, Metric] = {}
    for file in sorted(file for top in ("pkg", "cmd") for file in (root / top).glob("**/*.c")):
        text = file.read_text()
        if _REGISTRY in file.as_posix():
            found |= {name: Metric("counter", frozenset()) for name in _OF_THE_REGISTRY.findall(text)}
        for call in _CALL.finditer(text):
            arguments = list(_arguments(text, call.end()))
            name = _TEXT.fullmatch(arguments[1]) if len(arguments) > 3 else None
            if name:
                found[name[1]] = Metric(call[1], _labels(arguments[3], text, file))
            elif _REGISTRY not in file.as_posix():
                raise DevError(f"{file.relative_to(root)}: a metric whose name is not written in the call")
    return found


def labels_of_series(root: Path, name: str) -> frozenset[str] | None:
    """Of the series of that name; None: no metric has such series."""
    metrics = declared(root)
    if name in metrics and metrics[name].kind != "histogram":
        return metrics[name].labels
    for end in _SERIES:
        of = metrics.get(name.removesuffix(end)) if name.endswith(end) else None
        if of and of.kind == "histogram":
            return of.labels | ({"le"} if end == "_bucket" else frozenset())
    return None


def problems(root: Path) -> Iterator[str]:
    """Where the tables of docs/ say something else of the metrics than the code."""
    metrics, seen = declared(root), set()
    for page in _PAGES:
        for name, metric in documented(root, page).items():
            seen.add(name)
            if metric != metrics.get(name):
                yield f"docs/{page}.md: {name} is not what the code registers: {metrics.get(name)}"
    for name in sorted(metrics.keys() - seen):
        yield f"docs/ has no row for the metric {name}"


def documented(root: Path, page: str) -> dict[str, Metric]:
    """By the tables of docs/<page>.md."""
    rows = _ROW.findall((root / "docs" / f"{page}.md").read_text())
    return {name: Metric(kind, frozenset(labels.replace(",", " ").split())) for name, kind, labels in rows}


def _arguments(text: str, at: int) -> Iterator[str]:
    """Of the call whose parenthesis opens before that place."""
    depth, begin = 0, at
    while True:
        string = _TEXT.match(text, at)
        if string:
            at = string.end()
            continue
        if depth == 0 and text[at] in ",)":
            yield text[begin:at].strip()
            begin = at + 1
            if text[at] == ")":
                return
        depth += (text[at] in "({") - (text[at] in ")}")
        at += 1


def _labels(argument: str, text: str, file: Path) -> frozenset[str]:
    if argument == "NULL":
        return frozenset()
    written = _LABELS.fullmatch(argument)
    table = written or re.search(rf"\bconst {re.escape(argument)}\[\] = {{([^}}]*)}};", text)
    if not table:
        raise DevError(f"{file}: the labels {argument} are not found")
    return frozenset(_TEXT.findall(table[1]))
