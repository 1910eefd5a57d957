"""What must hold for the dashboards, alerts and recording rules of manifests/: each panel and rule reads metrics and labels that the
programs have, and says what to do.

Prometheus answers a query for a metric that does not exist with nothing, so a panel with a slip looks like a quiet cluster.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from . import declared_metrics, pages, promql

DASHBOARDS = Path("manifests/components/grafana-dashboards")
RULES = Path("manifests/components/prometheus-rules/rules.yaml")
# What a scrape adds to each series; `cluster` comes from the Prometheus, where several share one.
_OF_THE_TARGET = frozenset({"cluster", "instance", "job", "namespace", "pod"})
# Other programs have these as well, so a panel must say whose it means.
_OF_MANY = ("process_", "rest_client_", "workqueue_", "leader_election_")
_PANELS = {"bargauge", "row", "stat", "state-timeline", "table", "timeseries"}  # what Grafana has without a plug-in
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH = 24
_PAGE = re.compile(r"What to do: (docs/[\w/-]+\.md(?:#[\w-]+)?)$")
_WORDS = re.compile(r"[\w-]+(?:\|[\w-]+)*")
_LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)", re.DOTALL)
_TIMES = {"$__rate_interval": "1m", "$__range": "1h"}
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Query:
    """Of a panel, or of a rule."""

    of: str  # for messages: file and panel
    text: str

    def expression(self, any_value: str = ".*", times: Mapping[str, str] | None = None) -> str:
        """As Prometheus gets it, with each variable replaced."""
        text = self.text
        for name, value in (times or _TIMES).items():
            text = text.replace(name, value)
        return re.sub(r"\$[a-z]+", lambda found: any_value, text)


def files(root: Path) -> list[Path]:
    return sorted((root / DASHBOARDS).glob("*.json"))


def queries(root: Path) -> Iterator[Query]:
    """Of all panels."""
    for file in files(root):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", []):
                yield Query(f"{file.name}: {panel['title']}: {target['refId']}", target["expr"])


def rules(root: Path) -> list[dict[str, Any]]:
    groups: Sequence[Object] = yaml.safe_load((root / RULES).read_text())["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def problems(root: Path) -> Iterator[str]:
    """Each in one line, with its file."""
    yield from _problems_of_rules(root)
    seen: set[str] = set()
    for file in files(root):
        try:
            dashboard: Object = json.loads(file.read_text())
        except json.JSONDecodeError as error:
            yield f"{file.name}: {error}"
            continue
        if dashboard["uid"] in seen or not re.fullmatch(r"certroll-[a-z-]{1,31}", dashboard["uid"]):
            yield f"{file.name}: uid {dashboard['uid']} is another dashboard's, or does not begin with certroll-"
        seen.add(dashboard["uid"])
        yield from (f"{file.name}: {problem}" for problem in _problems_of(root, dashboard))
    listed = yaml.safe_load((root / DASHBOARDS / "kustomization.yaml").read_text())["configMapGenerator"]
    if sorted(name for each in listed for name in each["files"]) != [file.name for file in files(root)]:
        yield f"{DASHBOARDS}/kustomization.yaml does not list each dashboard once"


# --- rules


def _problems_of_rules(root: Path) -> Iterator[str]:
    for rule in rules(root):
        name = rule.get("alert") or rule["record"]
        try:
            reading = promql.read(rule["expr"], lambda metric: labels_of(root, metric))
        except promql.Problem as problem:
            yield f"{RULES.name}: {name}: {problem}"
            continue
        yield from (f"{RULES.name}: {name}: {problem}" for problem in _unknown_values(root, reading))
        used = {label for text in rule.get("annotations", {}).values() for label in re.findall(r"\$labels\.(\w+)", text)}
        for label in sorted(used - (reading.labels or frozenset())):
            yield f"{RULES.name}: {name}: its text has the label {label}, which its expression has not"


def labels_of(root: Path, metric: str) -> promql.Labels | None:
    """Of a scraped or recorded series; None: there is none of that name."""
    scraped = _labels_of_scraped(root, metric)
    return scraped if scraped is not None else _recorded(root).get(metric)


def _labels_of_scraped(root: Path, metric: str) -> promql.Labels | None:
    own = declared_metrics.labels_of_series(root, metric)
    return None if own is None else own | _OF_THE_TARGET


@functools.cache
def _recorded(root: Path) -> Mapping[str, promql.Labels]:
    recorded = {}
    for rule in rules(root):
        if "record" in rule:
            try:
                recorded[rule["record"]] = promql.read(rule["expr"], lambda metric: _labels_of_scraped(root, metric)).labels or frozenset()
            except promql.Problem:
                recorded[rule["record"]] = frozenset()  # which _problems_of_rules reports
    return recorded


# --- dashboards


def _problems_of(root: Path, dashboard: Object) -> Iterator[str]:
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    if not {"datasource", "cluster"} <= variables:
        yield "the variables datasource and cluster are not both there"
    for each in dashboard["templating"]["list"]:
        if each["type"] == "query":
            yield from (f"variable {each['name']}: {problem}" for problem in _problems_of_variable(root, each))
    ids = [panel["id"] for panel in dashboard["panels"]]
    yield from (f"two panels have the id {number}" for number in sorted({number for number in ids if ids.count(number) > 1}))
    yield from _overlaps(dashboard["panels"])
    for panel in dashboard["panels"]:
        yield from (f"{panel['title'] or panel['id']}: {problem}" for problem in _problems_of_panel(root, panel, variables))


def _problems_of_variable(root: Path, variable: Object) -> Iterator[str]:
    found = _LABEL_VALUES.fullmatch(variable["query"]["query"])
    if not found or variable["datasource"] != _SOURCE:
        yield "it is no label_values(...) of the data source"
        return
    try:
        reading = promql.read(found[1], lambda metric: labels_of(root, metric))
    except promql.Problem as problem:
        yield str(problem)
        return
    if found[2] not in (reading.labels or ()):
        yield f"its metric has no label {found[2]}"


def _problems_of_panel(root: Path, panel: Object, variables: set[str]) -> Iterator[str]:
    if panel["type"] not in _PANELS:
        yield f"Grafana has no panel {panel['type']} without a plug-in"
    if not panel["title"]:
        yield "it has no title"
    if panel["type"] == "row":
        return
    page = _PAGE.search(panel.get("description", ""))
    if not page or not pages.leads_somewhere(root / "README.md", page[1]):
        yield "its description does not end with a page that is there"
    if panel["datasource"] != _SOURCE or any(target["datasource"] != _SOURCE for target in panel["targets"]):
        yield "its data source is not the variable"
    results: list[promql.Labels] = []
    for target in panel["targets"]:
        try:
            reading = promql.read(target["expr"], lambda metric: labels_of(root, metric))
        except promql.Problem as problem:
            yield f"{target['refId']}: {problem}"
            continue
        labels = reading.labels or frozenset()
        results.append(labels)
        yield from (f"{target['refId']}: {problem}" for problem in _unknown_values(root, reading))
        yield from (f"{target['refId']}: {problem}" for problem in _forgotten_variables(root, reading, variables))
        for label in re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")):
            if label not in labels:
                yield f"{target['refId']}: its legend has the label {label}, which its result has not"
    yield from _unknown_columns(panel, results)


def _forgotten_variables(root: Path, reading: promql.Reading, variables: set[str]) -> Iterator[str]:
    """A panel that passes over a variable shows what the reader has not chosen."""
    for selector in reading.selectors:
        own = declared_metrics.labels_of_series(root, selector.metric)
        wanted = variables & (own if own is not None else labels_of(root, selector.metric) or frozenset())
        given = {matcher.label for matcher in selector.matchers if (matcher.operator, matcher.value) == ("=~", f"${matcher.label}")}
        if "job" in given:  # the operator itself, in whichever namespaces its policies are
            wanted = set()
        elif selector.metric.startswith(_OF_MANY) and not any(matcher.label == "name" for matcher in selector.matchers):
            wanted |= {"job"}
        yield from (f"{selector.metric} passes over the variable {name}" for name in sorted((wanted | {"cluster"}) - given))


def _unknown_values(root: Path, reading: promql.Reading) -> Iterator[str]:
    """Words that a label is compared with, and that no program writes."""
    for selector in reading.selectors:
        for matcher in selector.matchers:
            if _WORDS.fullmatch(matcher.value):
                yield from (
                    f"no program writes {matcher.label}=\"{word}\"" for word in matcher.value.split("|") if word not in _strings(root)
                )


@functools.cache
def _strings(root: Path) -> frozenset[str]:
    """All literals of the code."""
    code = (file for top in ("pkg", "cmd") for file in (root / top).glob("**/*.[ch]"))
    return frozenset(text for file in code for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', file.read_text()))


def _unknown_columns(panel: Object, results: Sequence[promql.Labels]) -> Iterator[str]:
    if panel["type"] != "table" or len(results) != len(panel["targets"]):
        return
    values = {"Value"} if len(results) == 1 else {f"Value #{target['refId']}" for target in panel["targets"]}
    columns = {"Time"} | values | {label for labels in results for label in labels}
    for step in panel.get("transformations", []):
        named = {name for how in ("excludeByName", "indexByName", "renameByName") for name in step["options"].get(how, {})}
        yield from (f"its table has no column {name}" for name in sorted(named - columns))
    shown = {name for step in panel["transformations"] for name in step["options"].get("renameByName", {}).values()} | columns
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"]["options"] not in shown:
            yield f"its table has no column {override['matcher']['options']}"


def _overlaps(panels: Sequence[Object]) -> Iterator[str]:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
        place = panel["gridPos"]
        if place["x"] + place["w"] > _WIDTH:
            yield f"{panel['title']}: it reaches beyond the {_WIDTH} columns"
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        other = next((taken[cell] for cell in cells if cell in taken), "")
        if other:
            yield f"{panel['title']} and {other} are in the same place"
        taken |= dict.fromkeys(cells, panel["title"])
