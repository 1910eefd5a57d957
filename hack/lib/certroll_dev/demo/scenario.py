"""One change of certificates, watched to its end: what certroll said of it, and what really became of pods and calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from certroll_dev.demo import pods, workloads
from certroll_dev.demo.api import API
from certroll_dev.demo.calls import CallLog, Summary, summarise
from certroll_dev.demo.pki import NAMESPACE, Material
from certroll_dev.demo.pods import Pod
from certroll_dev.demo.policy import Status
from certroll_dev.demo.table import Row, Table
from certroll_dev.demo.waiting import WaitTimeout
from certroll_dev.demo.workloads import WORKLOADS, Workload
from certroll_dev.ui import DevError

_LOOK_EVERY = 0.25
_CALL_TAKES = 0.5  # a good call is answered long before; what takes longer is waited for


# The resourceVersions of the Secrets at which the change is done; None: they are not known yet.
Expected = Callable[[], Mapping[str, str] | None]


@dataclass
class Seen:
    """A workload before or after a change."""

    pods: list[Pod]
    replica_sets: set[str]

    @staticmethod
    def now(api: API, workload: Workload) -> Seen:
        return Seen(pods.of_app(api, NAMESPACE, workload.deployment), workloads.replica_sets(api, workload))


@dataclass
class Outcome:
    """What a change came to."""

    started: float  # seconds since the epoch
    seconds: float
    before: Mapping[str, Seen]
    after: Mapping[str, Seen]
    decisions: Mapping[str, str]  # the last that was seen before the end, by consumer
    reasons: Mapping[str, str]
    served: Mapping[str, bool]  # whether each pod serves the new leaf, by consumer, as this program saw it
    calls: Sequence[Summary] = field(default_factory=list)

    def untouched(self, workload: Workload) -> bool:
        """The same pods, none of whose containers was started again."""
        name = workload.consumer
        return pods.identity(self.before[name].pods) == pods.identity(self.after[name].pods)

    def replaced(self, workload: Workload) -> bool:
        """No pod is left of those before."""
        before = {pod.uid for pod in self.before[workload.consumer].pods}
        return not any(pod.uid in before for pod in self.after[workload.consumer].pods)

    def rollouts(self, workload: Workload) -> int:
        name = workload.consumer
        return len(self.after[name].replica_sets - self.before[name].replica_sets)

    def pods_line(self, workload: Workload) -> str:
        before = {pod.uid: pod for pod in self.before[workload.consumer].pods}
        after = self.after[workload.consumer].pods
        new = [pod for pod in after if pod.uid not in before]
        again = [pod for pod in after if pod.uid in before and pod.restarts != before[pod.uid].restarts]
        if not new and not again:
            return f"{workload.consumer}: the same {len(after)} pods as before, no container restarted"
        new_sets = self.rollouts(workload)
        return f"{workload.consumer}: {len(new)} of {len(after)} pods new, {new_sets} new ReplicaSet, {len(again)} restarted in place"


class Watcher:
    """Follows one change: the policy's status as a table, until it is settled and the pods bear it out."""

    def __init__(
        self,
        api: API,
        materials: Mapping[str, Material],
        still_alive: Callable[[], None],
        beside: Callable[[float], list[Row]] = lambda seconds: [],
    ) -> None:
        """`beside`: rows of the table that are not the policy's, by the seconds since the change."""
        self._api = api
        self._leaves = {name: material.fingerprint() for name, material in materials.items()}
        self._still_alive = still_alive
        self._beside = beside
        self._started = time.time()
        self._changes: dict[str, tuple[str, ...]] = {}
        self._decisions: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._done: dict[str, float] = {}

    def follow(self, write: Callable[[], Expected], deadline: float) -> Outcome:
        """`write` makes the change."""
        before = {w.consumer: Seen.now(self._api, w) for w in WORKLOADS}
        self._started = time.time()
        expected = write()
        with Table() as table:
            while True:
                versions = expected()
                status = self._look(versions or {}, table)
                if versions and status.settled(versions):
                    break
                if time.time() - self._started > deadline:
                    raise WaitTimeout(f"not settled after {deadline:g} s: {self._unsettled(versions or {})}")
                time.sleep(_LOOK_EVERY)
            table.close(self._rows(status))
        seconds = time.time() - self._started
        return Outcome(
            started=self._started,
            seconds=seconds,
            before=before,
            after={w.consumer: Seen.now(self._api, w) for w in WORKLOADS},
            decisions=self._decisions,
            reasons=self._reasons,
            served={w.consumer: self._serves_new_leaf(w) for w in WORKLOADS},
        )

    def _look(self, versions: Mapping[str, str], table: Table) -> Status:
        self._still_alive()
        status = self._status()
        self._remember(status, versions)
        table.show(self._rows(status))
        return status

    def _rows(self, status: Status) -> list[Row]:
        return self._beside(time.time() - self._started) + [self._row(status, workload) for workload in WORKLOADS]

    def _status(self) -> Status:
        return Status.of(self._api.get("certrotationpolicies", NAMESPACE, workloads.POLICY))

    def _remember(self, status: Status, versions: Mapping[str, str]) -> None:
        """What is pending is gone from the status when it is done, but still belongs into the table."""
        for rotation in reversed(status.history):
            if _epoch(rotation.started) >= self._started - 1:
                self._changes[rotation.secret] = rotation.changes
        for secret in status.secrets.values():
            if secret.pending:
                self._changes[secret.name] = secret.pending
        for workload in WORKLOADS:
            consumer = status.consumers.get(workload.consumer)
            if consumer and consumer.decision != "None" and workload.secret in self._changes:
                self._decisions[consumer.name] = consumer.decision
                self._reasons[consumer.name] = consumer.reason
            if consumer and consumer.at_rest and status.is_settled(workload.secret, versions.get(workload.secret, "")):
                self._done.setdefault(consumer.name, time.time() - self._started)
            else:
                self._done.pop(workload.consumer, None)

    def _row(self, status: Status, workload: Workload) -> Row:
        consumer = status.consumers.get(workload.consumer)
        seconds = self._done.get(workload.consumer, time.time() - self._started)
        if consumer is None or workload.secret not in self._changes:
            return Row(workload.consumer, "", "-", "not seen yet", "-", seconds, "")
        return Row(
            consumer=workload.consumer,
            change=_in_short(self._changes[workload.secret]),
            decision=self._decisions.get(consumer.name, consumer.decision),
            state=f"{consumer.state} ({consumer.blocked_by})" if consumer.blocked_by else consumer.state,
            verified=f"{consumer.verified}/{consumer.total}",
            seconds=seconds,
            why=self._reasons.get(consumer.name, consumer.reason),
        )

    def _serves_new_leaf(self, workload: Workload) -> bool:
        found = pods.of_app(self._api, NAMESPACE, workload.deployment)
        leaves = {pods.served_leaf(pod.ip, workload.port, workload.server_name) for pod in found}
        return leaves == {self._leaves[workload.secret]}

    def _unsettled(self, versions: Mapping[str, str]) -> str:
        status = self._status()
        secrets = [name for name, version in versions.items() if not status.is_settled(name, version)]
        consumers = [f"{c.name} is {c.state}: {c.blocked_by or c.reason}" for c in status.consumers.values() if not c.at_rest]
        return "; ".join([f"Secrets {', '.join(secrets)}" if secrets else "", *consumers]).strip("; ")


def _in_short(changes: Sequence[str]) -> str:
    """That a CA was replaced says already that one came and one went."""
    implied = {"TrustAdded", "TrustRemoved"} if "TrustReplaced" in changes else set()
    return "+".join(change for change in changes if change not in implied)


def count_calls(log: CallLog, outcome: Outcome, until: float) -> Outcome:
    """Together with the calls that began between the change and `until`."""
    outcome.calls = summarise(log.between(outcome.started, until))
    return outcome


def wait_calls_succeed(log: CallLog, targets: Sequence[str], still_alive: Callable[[], None], *, quiet: float, deadline: float) -> None:
    """Until no call to any target has failed for `quiet` seconds, and there were calls."""
    started = time.time()
    while True:
        still_alive()
        now = time.time()
        end = now - _CALL_TAKES
        recent = summarise(log.between(max(started, end - quiet), now))
        good = {s.target for s in recent} == set(targets) and not any(s.failed for s in recent)
        if good and end - started >= quiet and log.answered(end):
            return
        if now - started > deadline:
            raise WaitTimeout(f"calls still fail after {deadline:g} s:\n" + "\n".join(line for s in recent for line in s.lines(started)))
        time.sleep(_LOOK_EVERY)


def _epoch(timestamp: str) -> float:
    """An RFC 3339 time of the API, such as 2026-11-21T06:30:00Z."""
    try:
        return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()
    except ValueError as error:
        raise DevError(f"{timestamp!r} in the policy's status is not a time") from error
