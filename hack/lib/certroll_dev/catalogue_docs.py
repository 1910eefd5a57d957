"""docs/catalogue.md: the catalogue's data as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # PyYAML: Debian's python3-yaml, or test/requirements.txt

from .ui import DevError

FOLDER = Path("pkg/catalogue/data")
_FAMILIES = {
    "kubernetes": "Kubernetes",
    "openfuyao": "Kubernetes of openFuyao",
    "envoy": "Envoy and its control planes",
    "mesh": "Service meshes",
    "web": "Web servers and ingress controllers",
    "data": "Data stores and brokers",
    "observability": "Observability",
    "libraries": "Controllers, languages and libraries",
    "certroll": "certroll itself",
}
# How long a method takes when the entry does not say: capability.c.
_DELAYS = {"Watch": "5s", "ApiWatch": "5s", "PerHandshake": "1s"}
_INTRODUCTION = """\
<!-- Made by `hack/docs catalogue` from pkg/catalogue/data/: edit those files, not this page. -->

# The catalogue

What known software does with new TLS material: {entries} entries, {rows} rows. It is data, embedded into the operator
([pkg/catalogue/data](../pkg/catalogue/data)). How it leads to a decision is in [decisions.md](decisions.md).

## How to read it

A row says what holds for what these parameters point to, in these roles. Of the rows of a parameter **the first whose
condition holds counts**; the last has none.

| column | |
| --- | --- |
| parameter | flags and variables that a pod template shows; paths that the program reads without being told; *in italics*, names in its configuration files, which a pod template does not show. "any": whatever brings the material |
| role | `serverLeaf`, `clientLeaf`: a certificate of its own; `clientCA`, `serverCA`: CAs by which it verifies clients, servers; `opaque`: other material |
| when | versions are those of the image's tag, or what a policy says (`component: nginx@1.27.4`). What hangs on a version that is not known, or on a setting that the template hides, is **the strictest of what may hold** |
| how | *by itself*: `Watch` (the file), `PerHandshake`, `Poll`, `ApiWatch` (the Secret, through the API server). *When told*: `Signal`, `HTTP`, `Command`; without [certroll-sidecar](sidecar.md) in the pod, which tells them, they restart. `Restart`: read once at start. `Unknown`: restarts, or is only reported where the policy says so |
| within | from the change of the file to the first handshake with it, at the longest; of what is told 30s, unless it says so |
| sure | `verified` in the source, `experiment`, `documented`. **`memory` counts as not known** and so restarts |

New material means new handshakes: of all programs here only client-go closes established connections when its certificate
changes, so dropping a CA ends no open session. All that is said of files holds for Secret volumes, whose kubelet swaps
`..data`; subPath mounts and variables never refresh, whatever the program does.

*Keys* are the types of keys that a program is known to take: in a leaf's role of its own leaf, in a CA's role of its
peers'. Nothing is restarted into a leaf that its software does not take (`KeyTypeNotAccepted`).

## Entries of your own

Per policy and role, `reload` says more than any entry ([api.md](api.md)). For all policies: a ConfigMap in the operator's
namespace ([operations.md](operations.md#what-your-own-software-does)). Its documents, and the files here, have this form:

```yaml
schema: 1
components:
- name: acme/shop               # what a policy may name as component
  title: Shop                   # how sentences call it; default: the name
  note: For people.
  images: [acme/shop, "acme/shop-*"]   # below any registry or mirror; one word is an official image of Docker Hub
  library: false                # true: its versions are not those of an image
  keyTypes:                     # the first entry whose roles and versions fit
  - {{roles: [clientCA], versions: ">=2.0", types: [RSA, ECDSA-P256], confidence: documented, source: shop.example/tls}}
  uses:                         # each way in which it takes material; a use without parameters: whatever it takes
  - flags: [--tls-cert]         # flags, env: shown by a pod template; what they point to plays the roles
    env: [SHOP_TLS_CERT]
    paths: [/etc/shop/tls]      # read without being told: a file, or the folder that is mounted
    config: [tls.cert]          # in configuration files
    roles: [serverLeaf]
    rules:                      # the first that holds counts; conditions: versions, tags, settings, mentions, podMentions
    - versions: ">=2.0,<3.0"
      settings: ["--reload=true", "SHOP_RELOAD=[tT1]*"]   # one of them: flag or variable, with a pattern of its value or without
      method: Poll
      maxDelay: 30s             # default 5s for Watch and ApiWatch, 1s for PerHandshake, 30s for what is told; a Poll must say it
      confidence: verified
      source: acme/shop internal/tls.go
    - {{method: Signal, trigger: SIGHUP, confidence: documented, source: shop.example/tls}}   # HTTP, Command: trigger, too
- name: acme/etcd
  parametersOf: etcd            # the parameters of an entry above; `rules` say what this build makes of them,
  except: [--trusted-ca-file]   # but for those named here: as in that entry
  rules: [{{method: Watch, maxDelay: 1m, confidence: experiment, source: ours}}]
```

`tags` lists image tags without an order (commit hashes), `mentions` a word in an absolute path of the container,
`podMentions` a word in an argument of any container of the pod, `says` replaces the words for the method, and a use with
`handsOn: true` and a `source` instead of rules only names its files to another container.
"""

Entry = dict[str, Any]


def render(page: str, root: Path) -> str:
    """The whole page; what was there before does not matter."""
    families = {file.stem: _components(file) for file in sorted((root / FOLDER).glob("*.yaml"))}
    missing = set(families) - set(_FAMILIES)
    if missing:
        raise DevError(f"hack/docs has no heading for {', '.join(sorted(missing))}.yaml of {FOLDER}")
    known = {entry["name"]: entry for entries in families.values() for entry in entries}
    rows = sum(len(list(_rows(entry, known))) for entry in known.values())
    parts = [_INTRODUCTION.format(entries=len(known), rows=rows)]
    for stem, heading in _FAMILIES.items():
        parts.append(f"## {heading}\n")
        parts += [_component(entry, known) for entry in families.get(stem, [])]
    return "\n".join(parts)


def _components(file: Path) -> list[Entry]:
    entries: list[Entry] = yaml.safe_load(file.read_text())["components"]
    return entries


def _component(entry: Entry, known: dict[str, Entry]) -> str:
    name = entry["name"]
    lines = [f"### {name}\n"]
    facts = []
    if entry.get("title") and entry["title"] != name:
        facts.append(entry["title"])
    if entry.get("images"):
        facts.append("images " + ", ".join(f"`{image}`" for image in entry["images"]))
    elif entry.get("library"):
        facts.append("a policy names it, with the version that the program was built with")
    else:
        facts.append("only a policy can name it")
    lines.append("; ".join(facts) + ".\n")
    if entry.get("note"):
        lines.append(_escape(entry["note"].strip()) + "\n")
    lines += [_key_types(types) for types in entry.get("keyTypes", [])]
    lines += ["| parameter | role | when | how | within | sure | source |", "| --- | --- | --- | --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(cells) + " |" for cells in _rows(entry, known)]
    return "\n".join(lines) + "\n"


def _key_types(types: Entry) -> str:
    roles = ", ".join(f"`{role}`" for role in types["roles"])
    versions = f" ({_condition_of_versions(types)})" if types.get("versions") else ""
    return f"Keys as {roles}{versions}: {', '.join(types['types'])} ({types['confidence']}: {_escape(types['source'])}).\n"


# --- rows


def _parameters(use: Entry) -> list[str]:
    return [name for kind in ("flags", "env", "config", "paths") for name in use.get(kind, [])]


def _uses(entry: Entry, known: dict[str, Entry]) -> Iterator[Entry]:
    """Its own uses, then those that it takes from another entry (catalogue_load.c)."""
    own: list[Entry] = entry.get("uses", [])
    yield from own
    if "parametersOf" not in entry:
        return
    taken = {name for use in own for name in _parameters(use)}
    for use in _uses(known[entry["parametersOf"]], known):
        names = set(_parameters(use))
        if names & taken:
            continue
        kept = names & set(entry.get("except", [])) or use.get("handsOn")
        yield use if kept else {**use, "rules": entry["rules"]}


def _rows(entry: Entry, known: dict[str, Entry]) -> Iterator[list[str]]:
    for use in _uses(entry, known):
        first = [_parameter_cell(use), "<br>".join(f"`{role}`" for role in use["roles"])]
        if use.get("handsOn"):
            yield [*first, "", "names the files to another container", "", "", _escape(use["source"])]
        rules = use.get("rules", [])
        for rule in rules:
            yield [*first, *_rule(rule, otherwise=len(rules) > 1)]
            first = ["", ""]


def _parameter_cell(use: Entry) -> str:
    shown = [f"`{name}`" for kind in ("flags", "env", "paths") for name in use.get(kind, [])]
    hidden = [f"*{_escape(name)}*" for name in use.get("config", [])]
    return "<br>".join(shown + hidden) or "any"


def _condition_of_versions(item: Entry) -> str:
    """">=2.10,<18.0" as "2.10 and later, before 18.0"."""
    words = {">=": "{} and later", ">": "after {}", "<=": "up to {}", "<": "before {}"}
    parts = [re.fullmatch(r"([<>]=?)(.*)", part) for part in item["versions"].split(",")]
    return ", ".join(words[part[1]].format(part[2]) for part in parts if part)


def _conditions(rule: Entry) -> Iterator[str]:
    if "versions" in rule:
        yield _condition_of_versions(rule)
    if "tags" in rule:
        yield "tag " + ", ".join(f"`{tag}`" for tag in rule["tags"])
    if "mentions" in rule:
        yield "a path has " + ", ".join(f"`{word}`" for word in rule["mentions"])
    if "podMentions" in rule:
        yield "an argument in the pod has " + ", ".join(f"`{word}`" for word in rule["podMentions"])
    if "settings" in rule:
        yield "set: " + " or ".join(f"`{setting}`" for setting in rule["settings"])


def _rule(rule: Entry, *, otherwise: bool) -> list[str]:
    method = rule["method"]
    how = f"{method} `{rule['trigger']}`" if "trigger" in rule else method
    delay = rule.get("maxDelay", _DELAYS.get(method, ""))
    when = "<br>".join(_conditions(rule)) or ("otherwise" if otherwise else "")
    return [when, how, delay, rule["confidence"], _escape(rule["source"])]


def _escape(text: str) -> str:
    """No cell, HTML or emphasis by accident."""
    for character in "\\|*<":
        text = text.replace(character, "\\" + character)
    return text
