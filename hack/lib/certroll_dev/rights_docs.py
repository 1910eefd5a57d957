"""Of docs/rights.md the tables of what each Role of the manifests allows: the rules are the manifests', the reasons the page's.

A rule that is new gets a row without a reason, which is then to be written; a rule that is gone takes its row with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .ui import DevError

_BEGIN = "<!-- rights: the rules are made by `hack/docs rights` from manifests/, the reasons are written here -->\n"
_END = "<!-- end -->\n"
_ROW = re.compile(r"^\| (?P<may>[^|]+) \| (?P<on>[^|]+) \| (?P<why>[^|]*)\|$")
_KINDS = ("Role", "ClusterRole")

Rule = Mapping[str, Any]


@dataclass(frozen=True)
class Role:
    """The rules of one object, or those that one component adds to another's object."""

    title: str
    rules: Sequence[Rule]


def render(page: str, root: Path) -> str:
    if _BEGIN not in page:
        raise DevError(f"docs/rights.md has lost its line '{_BEGIN.strip()}'")
    head, _, rest = page.partition(_BEGIN)
    before, _, tail = rest.partition(_END)
    found = list(roles(root / "manifests"))
    reasons = _Reasons(before, {role.title for role in found})
    parts = [_table(role, reasons) for role in found]
    return head + _BEGIN + "\n".join(parts) + _END + tail


class _Reasons:
    """Those that the page has, by heading and rule. What stood below a heading that is gone is kept for where it has moved to."""

    def __init__(self, tables: str, titles: Set[str]) -> None:
        self._titles = titles
        self._here: dict[tuple[str, str, str], str] = {}
        self._moved: dict[tuple[str, str], str] = {}
        title = ""
        for line in tables.splitlines():
            if line.startswith("### "):
                title = line.removeprefix("### ")
            elif match := _ROW.match(line):
                self._take(title, match["may"], match["on"], match["why"].strip())

    def _take(self, title: str, may: str, on: str, why: str) -> None:
        if may.startswith(("may", "---")):
            return
        if not why:
            raise DevError(f"docs/rights.md gives no reason for what {title} has: {may} {on}")
        self._here[title, may, on] = why
        if title not in self._titles:
            self._moved[may, on] = why

    def of(self, title: str, may: str, on: str) -> str:
        return self._here.get((title, may, on)) or self._moved.get((may, on), "")


def _table(role: Role, reasons: _Reasons) -> str:
    rows = []
    for rule in role.rules:
        may, on = ", ".join(rule["verbs"]), _objects(rule)
        why = reasons.of(role.title, may, on)
        rows.append(f"| {may} | {on} | {why + ' ' if why else ''}|\n")
    return f"### {role.title}\n\n| may | on | why |\n| --- | --- | --- |\n" + "".join(rows)


def _objects(rule: Rule) -> str:
    """`deployments`, `statefulsets` of apps, named `a`."""
    things = [*rule.get("resources", []), *rule.get("nonResourceURLs", [])]
    groups = [group for group in rule.get("apiGroups", []) if group]
    names = rule.get("resourceNames", [])
    text = ", ".join(f"`{thing}`" for thing in things)
    text += f" of {', '.join(groups)}" if groups else ""
    return text + (f", named {', '.join(f'`{name}`' for name in names)}" if names else "")


def roles(manifests: Path) -> Iterator[Role]:
    """In the order of their files."""
    for path in sorted(manifests.rglob("*.yaml")):
        name = path.relative_to(manifests.parent)
        for obj in yaml.safe_load_all(path.read_text()):
            if not isinstance(obj, dict):
                continue
            if obj.get("kind") in _KINDS:
                yield Role(f"`{name}`: {obj['kind']} {obj['metadata']['name']}", obj.get("rules") or [])
            elif obj.get("kind") in ("Kustomization", "Component"):
                yield from _added(f"`{name.parent}`", obj)


def _added(folder: str, kustomization: Mapping[str, Any]) -> Iterator[Role]:
    """What patches add to the rules of Roles; what they take away or narrow needs no reason."""
    for patch in kustomization.get("patches") or []:
        kind = str(patch.get("target", {}).get("kind", ""))
        if not any(re.fullmatch(kind, one) for one in _KINDS):
            continue
        rules = [op["value"] for op in yaml.safe_load(patch["patch"]) if op["op"] == "add" and op["path"] == "/rules/-"]
        if rules:
            yield Role(f"{folder} adds to {_kind_in_words(kind)} {patch['target']['name']}", rules)


def _kind_in_words(kind: str) -> str:
    return " or ".join(one for one in _KINDS if re.fullmatch(kind, one))
