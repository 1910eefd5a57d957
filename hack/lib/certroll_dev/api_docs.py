"""docs/api.md: its tables of fields are those of the CRDs' schemas, in their words.

A table of the cluster kind has only what the namespaced one does not have, or has in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # PyYAML: Debian's python3-yaml, or test/requirements.txt

from .ui import DevError

_KINDS = ("certrotationpolicies", "trustdomains", "clustertrustdomains", "controlplanepolicies", "nodecertificatereports")
_TWINS = {"clustertrustdomains": "trustdomains"}
_MARK = re.compile(r"(<!-- generated from the CRD: (\w+) (spec|status) -->\n).*?(<!-- end -->)", re.DOTALL)

Schema = dict[str, Any]


def render(page: str, root: Path) -> str:
    """The page with each marked table made anew."""
    rows = {(kind, part): _rows(schema["properties"][part]) for kind in _KINDS for schema in [_schema(root, kind)] for part in ("spec", "status")}
    if not _MARK.search(page):
        raise DevError("docs/api.md has no line '<!-- generated from the CRD: trustdomains spec -->': nothing to fill")
    return _MARK.sub(lambda m: f"{m[1]}{_table(rows, m[2], m[3])}{m[4]}", page)


def _table(rows: dict[tuple[str, str], list[str]], kind: str, part: str) -> str:
    if kind not in _KINDS:
        raise DevError(f"docs/api.md: '{kind} {part}': only {', '.join(_KINDS)} are known")
    known = rows.get((_TWINS.get(kind, ""), part), [])
    return "\n".join(["| field | type | |", "| --- | --- | --- |", *(row for row in rows[kind, part] if row not in known)]) + "\n"


def _schema(root: Path, kind: str) -> Schema:
    versions = yaml.safe_load((root / "crds" / f"certroll.dev_{kind}.yaml").read_text())["spec"]["versions"]
    return next(v["schema"]["openAPIV3Schema"] for v in versions if v["storage"])


def _rows(schema: Schema) -> list[str]:
    return [_row(*row) for row in _fields(schema, "", [])]


def _fields(schema: Schema, prefix: str, shown: list[tuple[str, Schema]]) -> Iterator[tuple[str, Schema, bool, str]]:
    """Path, schema, required, and the path of a field that has shown the same members already. Depth first."""
    for name, field in schema.get("properties", {}).items():
        path = prefix + name
        members = field.get("items", field).get("properties", {})
        twin = next((p for p, m in shown if m == members), "")
        yield path, field, name in schema.get("required", []), twin
        if members and not twin:
            shown.append((path, members))
            yield from _fields(field.get("items", field), path + ("[]." if field["type"] == "array" else "."), shown)


def _row(path: str, field: Schema, required: bool, twin: str) -> str:
    need = "<br>required" if required else ""
    like = f" Its fields are those of `{twin}`." if twin else ""
    return f"| `{path}` | {_type(field)}{need}{_default(field)} | {_words(field)}{like} |"


def _type(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    kind: str = field.get("format", field["type"])
    if field["type"] == "array":
        items = field["items"]
        kind = f"list of {items['type']}s, at most {field['maxItems']}"
    elif field["type"] == "integer" and "maximum" in field:
        kind = f"{field.get('minimum', 0)} to {field['maximum']}"
    elif field["type"] == "integer":
        kind = "integer"
    elif "additionalProperties" in field:
        kind = "map of strings"
    return kind


def _default(field: Schema) -> str:
    default = field.get("default")
    if default is None or isinstance(default, dict):
        return ""
    return f"<br>default `{str(default).lower() if isinstance(default, bool) else default}`"


def _words(field: Schema) -> str:
    """The description without its example and without the default, which has a place of its own."""
    words, _, example = field.get("description", "").strip().partition("Example:")
    words = re.sub(r"\s*Default: .*?\.(?=\s|$)", "", words) if "default" in field else words
    text = "<br>".join(p.replace("\n", " ") for p in words.strip().split("\n\n") if p)
    lines = example.strip("\n").splitlines()
    if len(lines) == 1:
        text += f" Example: `{lines[0].strip()}`"
    return text.replace("|", "\\|")
