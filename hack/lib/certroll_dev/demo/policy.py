"""The status of a CertRotationPolicy, as far as the demo and the tests read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certroll_dev.demo.api import Object


@dataclass(frozen=True)
class Consumer:
    name: str
    decision: str
    reason: str
    state: str
    blocked_reason: str  # as docs/api.md lists them; empty: nothing holds it
    blocked_by: str
    total: int
    verified: int
    inferred: int
    stale: int
    unknown: int

    @property
    def at_rest(self) -> bool:
        """Nothing is under way or held up."""
        return self.state in ("Idle", "Converged")

    @staticmethod
    def of(entry: Mapping[str, Any]) -> Consumer:
        pods = entry.get("pods", {})
        return Consumer(
            name=entry["name"],
            decision=entry.get("decision", "None"),
            reason=entry.get("reason", ""),
            state=entry.get("state", "Idle"),
            blocked_reason=entry.get("blockedReason", ""),
            blocked_by=entry.get("blockedBy", ""),
            total=pods.get("total", 0),
            verified=pods.get("verified", 0),
            inferred=pods.get("inferred", 0),
            stale=pods.get("stale", 0),
            unknown=pods.get("unknown", 0),
        )


@dataclass(frozen=True)
class Secret:
    name: str
    resource_version: str  # at which its material was read
    pending: tuple[str, ...]  # changes under way; empty: none
    problem: str  # empty: none
    trust_by: str  # how it is known who has it: FirstSight, Inferred, Verified
    leaf_by: str

    @staticmethod
    def of(entry: Mapping[str, Any]) -> Secret:
        problem = entry.get("problem") or {}
        return Secret(
            name=entry["name"],
            resource_version=entry.get("observedResourceVersion", ""),
            pending=tuple((entry.get("pending") or {}).get("changes", [])),
            problem=": ".join(filter(None, (problem.get("reason"), problem.get("message")))),
            trust_by=entry.get("trustBy", ""),
            leaf_by=entry.get("leafBy", ""),
        )


@dataclass(frozen=True)
class Condition:
    status: bool
    reason: str
    message: str


@dataclass(frozen=True)
class Rotation:
    """One that ended."""

    id: str
    secret: str
    changes: tuple[str, ...]
    started: str
    outcome: str


@dataclass(frozen=True)
class Status:
    stage: str
    observed_generation: int
    generation: int
    secrets: Mapping[str, Secret]
    consumers: Mapping[str, Consumer]
    conditions: Mapping[str, Condition]
    history: tuple[Rotation, ...]

    @staticmethod
    def of(policy: Object) -> Status:
        status = policy.get("status") or {}
        return Status(
            stage=status.get("stage", ""),
            observed_generation=status.get("observedGeneration", 0),
            generation=policy["metadata"]["generation"],
            secrets={entry["name"]: Secret.of(entry) for entry in status.get("secrets", [])},
            consumers={entry["name"]: Consumer.of(entry) for entry in status.get("consumers", [])},
            conditions={
                entry["type"]: Condition(entry["status"] == "True", entry.get("reason", ""), entry.get("message", ""))
                for entry in status.get("conditions", [])
            },
            history=tuple(
                Rotation(entry["id"], entry["secret"], tuple(entry.get("changes", [])), entry.get("started", ""), entry.get("outcome", ""))
                for entry in status.get("history", [])
            ),
        )

    def holds(self, condition: str) -> bool:
        """Whether the condition is true, and true of the policy as it is now."""
        return self.observed_generation == self.generation and condition in self.conditions and self.conditions[condition].status

    def settled(self, versions: Mapping[str, str]) -> bool:
        """Whether these Secrets, at these resourceVersions, have been dealt with to the end."""
        return all(self.is_settled(name, version) for name, version in versions.items()) and all(
            consumer.at_rest for consumer in self.consumers.values()
        )

    def is_settled(self, name: str, version: str) -> bool:
        """Whether this Secret was read at this resourceVersion and nothing remains to be done about it."""
        secret = self.secrets.get(name)
        return secret is not None and secret.resource_version == version and not secret.pending and not secret.problem
