"""A policy, a Secret and a Deployment on a control plane, and an operator that is killed at a write and followed by another.

Without a node a rotation takes a second or two, so there is time for each of its writes, in several kinds of change.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import manifests
import sanitizers
from certroll_dev.demo.api import API
from control_plane import ControlPlane, wait_until
from manifests import Object
from operators import Operator
from write_points import Point, Write
from write_proxy import Trap, When, WriteProxy

NAME = "crash"
OTHER = "other"  # the younger of two policies
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
# A status is written at most once a second, and what may wait waits for at most 5 s.
_QUIET = 2.0
_DEADLINE = 120.0
Data = Mapping[str, bytes]


@dataclass(frozen=True)
class Kill:
    point: Point
    when: When

    def __str__(self) -> str:
        return f"{self.when} {self.point}"


@dataclass
class Outcome:
    kill: Kill | None
    struck: bool = False
    restarts_before: int = 0  # the kill
    restarts: int = 0
    state: Object = field(default_factory=dict)  # in the end, without what is of this run only
    writes: Sequence[Write] = ()

    def counts(self) -> Counter[str]:
        return Counter(write.kind for write in self.writes if write.applied)


class Stage:
    """Use it as a context, within the network of the API server."""

    def __init__(
        self, plane: ControlPlane, api: API, namespace: str, kubeconfig: Path, folder: Path, *, opaque: bool, policies: Sequence[str]
    ) -> None:
        self._plane = plane
        self._api = api
        self._namespace = namespace
        self._folder = folder
        self._opaque = opaque
        self._policies = policies
        self._numbers = itertools.count(1)
        folder.mkdir()
        self._proxy = WriteProxy(json.loads(kubeconfig.read_text()), folder)
        self._operator: Operator | None = None
        self._in_sync = 0.0

    def __enter__(self) -> Stage:
        self._proxy.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._operator:
            self._operator.end()
        self._proxy.__exit__()

    def begin(self, data: Data) -> None:
        self.put(data)
        deployed = manifests.deployment(self._namespace, NAME, env=NAME) if self._opaque else manifests.deployment(self._namespace, NAME, NAME)
        self._api.apply("deployments", deployed)
        self.create_policies()
        self._start()
        self._wait_at_rest("first sight")

    def put(self, data: Data) -> None:
        kind = "Opaque" if self._opaque else "kubernetes.io/tls"
        self.data = data
        self._version = self._api.apply("secrets", manifests.secret(self._namespace, NAME, data, type=kind))["metadata"]["resourceVersion"]

    def create_policies(self) -> None:
        """The first is the older one: of two that are made in one second the name decides."""
        for name in self._policies:
            self._api.apply("certrotationpolicies", manifests.policy(self._namespace, name, {
                "secrets": [{"name": NAME}], "consumers": manifests.listed(NAME),
            }))  # fmt: skip

    def renew_policies(self) -> None:
        """So that the first is the older one again."""
        for name in self._policies:
            if any(each["metadata"]["name"] == name for each in self._get_policies()):
                self.delete_policy(name)
        self.create_policies()
        self._wait_at_rest("the policies were made anew")

    def delete_policy(self, name: str) -> None:
        self._api.delete("certrotationpolicies", self._namespace, name)

    # --- one rotation

    def rotate(self, change: Callable[[], None], kill: Kill | None, meanwhile: Callable[[], None] = lambda: None) -> Outcome:
        """`meanwhile` is done while no operator runs."""
        outcome = Outcome(kill)
        generation = self._generation()
        trap = Trap(kill.point, kill.when, lambda _: self._operator.end()) if kill else None
        self._proxy.begin(trap)
        change()
        if trap and self._caught(trap):
            outcome.struck = True
            outcome.restarts_before = self._generation() - generation
            meanwhile()
            self._start()
        self._proxy.set(None)
        self._wait_at_rest(str(kill))
        outcome.restarts = self._generation() - generation
        outcome.state = self._state()
        outcome.writes = self._proxy.writes()
        return outcome

    def _caught(self, trap: Trap) -> bool:
        wait_until("the kill, or the end", lambda: trap.sprung() or self._missed(trap), _DEADLINE, pause=0.02)
        return trap.sprung()

    def _missed(self, trap: Trap) -> bool:
        """A kill takes its time: one that is under way is waited for, however quiet it is meanwhile."""
        return self._at_rest() and self._proxy.take_back(trap)

    def _start(self) -> None:
        if self._operator:
            report = sanitizers.report_in(self._operator.log)
            assert not report, report
        kubeconfig = self._proxy.kubeconfig(self._folder / "kubeconfig")
        flags = ("--leader-elect=false", f"--operator-namespace={self._namespace}")
        self._operator = Operator(
            self._plane, self._namespace, f"operator-{next(self._numbers)}", kubeconfig, self._folder, *flags,
            extra_environment=sanitizers.ENVIRONMENT,
        )  # fmt: skip
        # What there is may look settled until it has looked at it, too: with what was put back, all is as before the change.
        self._operator.wait_line("all caches are in sync", timeout=_DEADLINE)
        wait_until("the first look at each policy", self._has_looked, _DEADLINE)
        self._in_sync = time.monotonic()

    def _wait_at_rest(self, what: str) -> None:
        try:
            wait_until("", self._at_rest, _DEADLINE)
        except AssertionError:
            raise AssertionError(f"not at rest after {what}: {json.dumps(self._get_policies())}; {self._operator.log}") from None

    # --- looking

    def _has_looked(self) -> bool:
        assert self._operator
        page = self._operator.get("/metrics")[1]
        counted = sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith("certroll_reconciles_total{"))
        return counted >= len(self._get_policies())

    def _at_rest(self) -> bool:
        """What the Secret holds now is settled, and nobody has written anything for a while."""
        assert self._operator and (self._operator.process.poll() in (None, -9)), self._operator.log.read_text()[-2000:]
        quiet = min(self._proxy.quiet_for(), time.monotonic() - self._in_sync)
        return quiet > _QUIET and all(map(self._is_settled, self._get_policies()))

    def _is_settled(self, policy: Object) -> bool:
        memory = manifests.settled(policy).get(NAME, {})
        if self._opaque:
            found = policy.get("status", {}).get("secrets", [{}])[0]
            right = "opaque" in memory and int(found.get("observedResourceVersion", "0")) >= int(self._version)
        else:
            right = memory.get("leaf") == manifests.fingerprint(self.data["tls.crt"])
        return right and manifests.converged(policy)

    def _get_policies(self) -> list[Object]:
        return self._api.list("certrotationpolicies", self._namespace)

    def _deployment(self) -> Object:
        return self._api.get("deployments", self._namespace, NAME)

    def _generation(self) -> int:
        return int(self._deployment()["metadata"]["generation"])

    def _state(self) -> Object:
        """What must not depend on how it was come to: no times, ids, versions and digests, which each run has its own of."""
        template = self._deployment()["spec"]["template"]
        annotations = template["metadata"].get("annotations", {})
        words = sorted(word.split("=")[0] for key, value in annotations.items() if key != _RESTARTED_AT for word in value.split(","))
        return {"annotations": words, "policies": {policy["metadata"]["name"]: _said(policy["status"]) for policy in self._get_policies()}}


def _said(status: Mapping[str, Any]) -> Object:
    history = status.get("history") or [{}]
    return {
        "conditions": sorted((each["type"], each["status"], each["reason"]) for each in status["conditions"]),
        "consumers": [{key: each.get(key) for key in ("name", "decision", "state", "pods", "blockedReason", "blockedBy")} for each in status["consumers"]],
        "secrets": [{"name": each["name"], "kept": sorted(each)} for each in status["secrets"]],
        "last": {key: history[0].get(key) for key in ("outcome", "secret", "changes")},
    }
