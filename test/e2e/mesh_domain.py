"""The trust domain of a mesh: rotated, watched, and what became of each rotation."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from certroll_dev.demo import pki
from certroll_dev.demo.api import Object
from certroll_dev.demo.waiting import wait_for
from mesh import MEMBERS, Member, Mesh
from published_bundles import PublishedBundles, Verdict

NAME = "mesh"
_STAGES = ("trusting", "switching", "retiring")
_DEADLINE = 600.0  # seconds; a rotation takes 20 s on two cores that have nothing else to do, and 200 s on two that are overloaded


@dataclass(frozen=True)
class Rotation:
    """One that has ended, by status.history."""

    what: str
    outcome: str
    restarted: bool
    started: float  # seconds since the epoch
    finished: float
    stages: dict[str, float]  # seconds, of those that it went through

    @staticmethod
    def of(entry: dict[str, Any]) -> Rotation:
        stages = {stage: _seconds(entry[stage]) for stage in _STAGES if entry.get(stage)}
        return Rotation(
            entry["what"], entry["outcome"], entry.get("restarted", False), _epoch(entry["started"]), _epoch(entry["finished"]), stages
        )

    @property
    def seconds(self) -> float:
        return self.finished - self.started

    def __str__(self) -> str:
        parts = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in self.stages.items())
        return f"{self.what} {self.outcome} after {self.seconds:.1f} s ({parts})"


@dataclass(frozen=True)
class Status:
    stage: str
    held_stage: str
    token: str  # the last one that was handled
    is_rotating: bool
    cas: dict[str, str]  # Next, Current or Previous by the subject
    conditions: dict[str, tuple[bool, str]]  # with the message
    converged: str  # "3/3"
    history: tuple[Rotation, ...]

    @staticmethod
    def of(domain: Object) -> Status:
        status = domain.get("status") or {}
        observed = status.get("observedGeneration") == domain["metadata"]["generation"]
        return Status(
            stage=status.get("stage", ""),
            held_stage=status.get("heldStage") or "",
            token=status.get("lastHandledToken") or "",
            is_rotating=bool(status.get("rotation")),
            cas={ca["subject"]: ca["part"] for ca in status.get("cas", [])},
            conditions={
                entry["type"]: (observed and entry["status"] == "True", entry.get("message", "")) for entry in status.get("conditions", [])
            },
            converged=status.get("converged", ""),
            history=tuple(Rotation.of(entry) for entry in status.get("history") or []),
        )

    def holds(self, condition: str) -> bool:
        return self.conditions.get(condition, (False, ""))[0]

    @property
    def is_at_rest(self) -> bool:
        """Everything that is published has arrived, and nothing is left to be done."""
        return self.stage == "Idle" and not self.is_rotating and self.holds("Converged")


@dataclass
class Domain:
    mesh: Mesh
    check: Callable[[], None]  # raises when the operator has ended though nobody asked it to
    bundles: PublishedBundles | None = None  # what has been published since the test began
    verdict: Verdict | None = None  # the last one of these
    _tokens: int = 0

    # --- changing

    def rotate(self, what: str) -> str:
        """Asks for it; returns the token."""
        self._tokens += 1
        token = f"{what.lower()}-{self._tokens}-{int(time.time())}"
        self.patch({"rotate": {"token": token, "what": what}})
        return token

    def patch(self, spec: Object) -> None:
        self.mesh.api.merge("clustertrustdomains", "", NAME, {"spec": spec})

    def patch_policy(self, member: Member, spec: Object) -> None:
        self.mesh.api.merge("certrotationpolicies", member.name, member.name, {"spec": spec})

    # --- looking

    def status(self) -> Status:
        return Status.of(self.mesh.api.get("clustertrustdomains", "", NAME))

    def wait(self, what: str, look: Callable[[Status], bool], deadline: float) -> Status:
        def see() -> Status | None:
            self.check()
            status = self.status()
            return status if look(status) else None

        return wait_for(what, see, deadline=deadline, every=0.1, missing=self.describe)

    def wait_stage(self, stage: str, deadline: float = _DEADLINE) -> Status:
        return self.wait(f"stage {stage}", lambda status: status.stage == stage, deadline)

    def wait_rotated(self, token: str, deadline: float = _DEADLINE) -> Rotation:
        """Until that is done and nothing else is under way."""
        return self.wait(f"rotation {token}", lambda status: status.token == token and status.is_at_rest, deadline).history[0]

    def published(self, member: Member) -> tuple[str, set[str]]:
        """Serial numbers of the leaf and of the CAs in its Secret."""
        data = self.mesh.api.get("secrets", member.name, member.secret)["data"]
        return pki.serial(base64.b64decode(data["tls.crt"])), _serials(base64.b64decode(data["ca.crt"]))

    def current_ca(self) -> list[tuple[str, str]]:
        """Serial number and fingerprint (SHA-256 of the DER) of the CA in use, by the domain's status and by what is published."""
        words = ["get", "clustertrustdomain", NAME, "-o", "jsonpath={range .status.cas[*]}{.fingerprint} {.part}{'\\n'}{end}"]
        listed = dict(line.split() for line in self.mesh.cluster.kubectl(*words).splitlines())
        data = self.mesh.api.get("secrets", MEMBERS[0].name, MEMBERS[0].secret)["data"]
        blocks = pki.certificates(base64.b64decode(data["ca.crt"]))
        prints = {hashlib.sha256(ssl.PEM_cert_to_DER_cert(block.decode())).hexdigest(): pki.serial(block) for block in blocks}
        return [(serial, fingerprint) for fingerprint, serial in prints.items() if listed.get(fingerprint) == "Current"]

    def leaves(self) -> dict[str, str]:
        """Serial number of each member's published leaf."""
        return {member.name: self.published(member)[0] for member in MEMBERS}

    def assert_held_by_all(self) -> None:
        """Each Envoy holds what its Secret has, as it says itself."""
        for member in MEMBERS:
            leaf, cas = self.published(member)
            for pod, page in (self.mesh.pages(member) if member.is_envoy else {}).items():
                assert page and (page.leaves, page.cas) == ({leaf}, cas), f"{pod} holds {page}, and not {leaf} and {cas}"

    def assert_nobody_cut_off(self) -> None:
        """Whoever verified a leaf in use with a bundle that was published verified it with the next one."""
        assert self.bundles
        self.verdict = self.bundles.check()
        assert self.verdict.changes and self.verdict.verified, f"there was nothing to lose: {self.verdict}"

    def describe(self) -> str:
        statuses = {"domain": self.mesh.api.get("clustertrustdomains", "", NAME).get("status")}
        for member in MEMBERS:
            statuses[member.name] = self.mesh.api.get("certrotationpolicies", member.name, member.name).get("status")
        return json.dumps(statuses, indent=1)


def _serials(bundle: bytes) -> set[str]:
    return {pki.serial(block) for block in pki.certificates(bundle)}


def _epoch(time: str) -> float:
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def _seconds(duration: str) -> float:
    """Of a duration as GEP-2257 has it: 1m2s500ms."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)(ms|h|m|s)", duration))
