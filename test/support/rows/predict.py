"""What the product says of each row: `certroll-node-agent inspect`, of the nodes and of manifests of what runs beside them.

Of what no node has as a static pod or kubelet (CoreDNS's Corefile, a kubelet that joins), the catalogue's data are read as
docs/catalogue.md is made of them.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from certroll_dev import commands, machines, paths, tools
from certroll_dev.layout import Machine
from programs.observe import Entry
from rows.row import Row

_CATALOGUE = paths.REPOSITORY / "pkg/catalogue/data/kubernetes.yaml"
NOT_OBSERVABLE = "NotObservable"
# As catalogue's capability.c has them.
_DELAYS = {"Watch": 5000, "ApiWatch": 5000, "PerHandshake": 1000, "Signal": 30000}
_UNITS = {"s": 1000, "m": 60000}


class Product:
    """What `inspect` has said so far. `overrides`: a file in the catalogue's format, laid over the built-in one."""

    def __init__(self, agent: Path) -> None:
        self._agent = agent
        self._files: list[Mapping[str, Any]] = []

    def ask_node(self, machine: Machine) -> None:
        """Of its static pods and its kubelet, as on the node itself."""
        version = f"--kubelet-version={tools.version_of('kubelet')}"  # an agent has it from the Node
        self._add(json.loads(machines.run(machine, [self._agent, "inspect", "--json", version])))

    def ask_manifests(self, folder: Path) -> None:
        """Of these as if they were a node's."""
        report = json.loads(commands.run([self._agent, "inspect", "--json", f"--manifests={folder}"]))
        self._add({"files": [file for file in report["files"] if file["component"] != "kubelet"]})

    def predictions(self, rows: Iterable[Row], inside: Mapping[str, str]) -> dict[str, Entry]:
        """By the row's title. `inside`: beginnings of paths here, and what the node has in their place."""
        return {row.title: self._of(row, inside) for row in rows}

    def _add(self, report: Mapping[str, Any]) -> None:
        self._files += report["files"]

    def _of(self, row: Row, inside: Mapping[str, str]) -> Entry:
        entries = [self._entry(row, name, {str(path), _path_on_node(path, inside)}) for name, path in row.files.items()]
        assert all(entry == entries[0] for entry in entries), f"{row.title}: one change, but several predictions: {entries}"
        return entries[0]

    def _entry(self, row: Row, name: str, places: set[str]) -> Entry:
        found = [_entry_of(file) for file in self._files if _is_about(file, row, name, places)]
        if row.by_catalogue:
            found = [_by_catalogue(row, name)]
        assert found, f"{row.title}: nothing is said of {name} {places}"
        assert all(entry == found[0] for entry in found), f"{row.title}: {name}: {found}"
        return found[0]


def _is_about(file: Mapping[str, Any], row: Row, name: str, places: set[str]) -> bool:
    same = file["component"] == row.component and file["parameter"] == name and file["role"] == row.role
    return same and file.get("path") in places and (row.via is None or file.get("via") == row.via)


def _entry_of(file: Mapping[str, Any]) -> Entry:
    return {"method": file["method"], "maxDelayMs": _milliseconds(file.get("maxDelay", "0s")), "trigger": file.get("trigger"), "verified": True}


def _path_on_node(path: Path, inside: Mapping[str, str]) -> str:
    for here, there in inside.items():
        if path.is_relative_to(here):
            return str(Path(there) / path.relative_to(here))
    return str(path)


# --- the catalogue's data


def _by_catalogue(row: Row, name: str) -> Entry:
    known = {entry["name"]: entry for entry in yaml.safe_load(_CATALOGUE.read_text())["components"]}
    uses = [use for use in known[row.component]["uses"] if name in [*use.get("flags", []), *use.get("config", [])] and row.role in use["roles"]]
    if row.unobservable and not uses:
        return {"method": NOT_OBSERVABLE, "maxDelayMs": 0, "trigger": None, "verified": True}
    assert uses, f"{row.title}: the catalogue has no {name}"
    version = tools.version_of(row.component).removeprefix("v")
    rule = next(rule for rule in uses[0]["rules"] if _holds(rule, version, row.by_catalogue))
    delay = _milliseconds(rule["maxDelay"]) if "maxDelay" in rule else _DELAYS.get(rule["method"], 0)
    return {"method": rule["method"], "maxDelayMs": delay, "trigger": rule.get("trigger"), "verified": rule["confidence"] != "memory"}


def _holds(rule: Mapping[str, Any], version: str, settings: Sequence[str]) -> bool:
    """`settings` are the program's flags, as the catalogue's conditions name them."""
    bounds = re.findall(r"([<>]=?)([\d.]+)", rule.get("versions", ""))
    fits = all(_compare(_numbers(version), sign, _numbers(bound)) for sign, bound in bounds)
    wanted = rule.get("settings")
    return fits and (not wanted or any(fnmatch.fnmatchcase(given, pattern) for pattern in wanted for given in settings))


def _compare(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    return {">=": version >= bound, ">": version > bound, "<=": version <= bound, "<": version < bound}[sign]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _milliseconds(text: str) -> int:
    """Of "5m", "1m30s", "0s"."""
    return sum(int(float(number) * _UNITS[unit]) for number, unit in re.findall(r"([\d.]+)([sm])", text))
