"""Names for the writes of a controller that stay the same from run to run, though times and generated names do not.

A write is named by what it does to which object. Pods and ReplicaSets stand for their workload, an Event for its reason
and what it is about, and a write of a policy's status for what it puts on record: that is what tells apart the one that
must precede an act from those that only report.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

READS = frozenset({"GET", "HEAD", "OPTIONS"})

# Kubernetes generates these suffixes without vowels and without what looks alike (k8s.io/apimachinery, util/rand).
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]"
_POD_OF_DEPLOYMENT = re.compile(rf"^(?P<workload>.+)-{_SUFFIX}{{4,10}}-{_SUFFIX}{{5}}$")
_PATH = re.compile(
    r"^/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?P<rest>/.*)?)?$"
)


@dataclass(frozen=True, order=True)
class Point:
    """The n-th write of one name since recording began."""

    label: str
    ordinal: int

    def __str__(self) -> str:
        return f"{self.label} #{self.ordinal}"


@dataclass(frozen=True)
class Target:
    """What a request path of the API addresses; `kind` is resource and subresource, as RBAC writes them."""

    kind: str
    namespace: str
    name: str

    @staticmethod
    def of(path: str) -> Target:
        plain = urlsplit(path).path
        found = _PATH.match(plain)
        if not found:
            return Target(plain, "", "")
        resource, name, rest = found["resource"], found["name"] or "", found["rest"] or ""
        return Target(resource + rest, found["namespace"] or "", name)


@dataclass(eq=False)
class Write:
    """One write as it passed by. `status` is the API server's answer; None: it was not forwarded, or not answered."""

    point: Point
    target: Target
    method: str
    at: float = field(default_factory=time.monotonic)
    status: int | None = None

    @property
    def kind(self) -> str:
        return f"{self.method} {self.target.kind}"

    @property
    def applied(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Namer:
    """Gives each write its point. It remembers what was pending in a policy, so it must be told of every write once."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._pending: dict[Target, frozenset[str]] = {}

    def restart(self) -> None:
        """Count from one again; what is pending stays as it is."""
        self._counts.clear()

    def name(self, method: str, path: str, body: bytes) -> tuple[Point, Target]:
        target = Target.of(path)
        label = self._label(method, target, _parsed(body))
        self._counts[label] += 1
        return Point(label, self._counts[label]), target

    def answered(self, write: Write, body: bytes) -> None:
        """The write of a status that was not applied has changed nothing."""
        if write.applied and write.target.kind == "certrotationpolicies/status":
            pending = _pending(_parsed(body))
            if pending is not None:
                self._pending[write.target] = pending

    def _label(self, method: str, target: Target, body: Mapping[str, Any]) -> str:
        resource, _, subresource = target.kind.partition("/")
        if resource == "events":
            return f"{method} events {_event(body)}"
        name = workload_of(target.name) if resource == "pods" else target.name
        label = f"{method} " + "/".join(filter(None, (resource, name, subresource)))
        if target.kind == "certrotationpolicies/status":
            label += f" ({self._what_it_records(target, body)})"
        return label

    def _what_it_records(self, target: Target, body: Mapping[str, Any]) -> str:
        before, after = self._pending.get(target, frozenset()), _pending(body)
        if after is None:
            return "reports"
        begun, ended = sorted(after - before), sorted(before - after)
        parts = [f"{verb} {'+'.join(names)}" for verb, names in (("records", begun), ("settles", ended)) if names]
        return ", ".join(parts) or "reports"


def workload_of(pod: str) -> str:
    found = _POD_OF_DEPLOYMENT.match(pod)
    return found["workload"] if found else pod


def _event(body: Mapping[str, Any]) -> str:
    """Of core/v1 or events.k8s.io/v1."""
    about = body.get("involvedObject") or body.get("regarding") or {}
    name = str(about.get("name", "?"))
    name = workload_of(name) if about.get("kind") == "Pod" else name
    return f"{body.get('reason', '?')} {about.get('kind', '?')}/{name}"


def _pending(body: Mapping[str, Any]) -> frozenset[str] | None:
    """The Secrets with a pending change; None when the write says nothing of Secrets."""
    secrets = (body.get("status") or {}).get("secrets")
    if secrets is None:
        return None
    return frozenset(secret["name"] for secret in secrets if secret.get("pending"))


def _parsed(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(body) if body else {}
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
