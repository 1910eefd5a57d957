"""A namespace for rotations in which the operator is killed: one consumer that is restarted (nginx), one that reloads (Envoy),
an operator for them alone (two replicas, in a namespace of its own), and the recording proxy between that operator and the
API server. It is always the replica that leads that is killed, and the other one that goes on.

Lanes do not touch each other, so several run side by side: most of a rotation is waiting for the kubelet.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certroll_dev import paths
from certroll_dev.commands import tail_of
from certroll_dev.demo import pki, pods
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import NAMESPACE, Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import is_rolled_out
from certroll_dev.operator_image import Image
from certroll_dev.ui import DevError
from operator_pods import FASTEST_ELECTION, OperatorPods
from write_points import Point, Write
from write_proxy import Trap, When, WriteProxy

POLICY = "crash"
_MANIFESTS = paths.HACK / "demo.d"
_START_DEADLINE = 300.0
_CONVERGE_DEADLINE = 180.0  # with a load of 30 on two cores, a rotation was seen to take 77
# After so long without a write the operator has said all it had to say: it writes a status at most once a second.
_QUIET = 1.3
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True)
class Consumer:
    name: str  # also of its Deployment, its pods' label app, and in the policy
    port: int
    secret: str
    manifest: str


NGINX = Consumer("nginx", 8443, "nginx-tls", "40-nginx.yaml")
ENVOY = Consumer("envoy", 10443, "envoy", "30-envoy.yaml")
CONSUMERS = (NGINX, ENVOY)


@dataclass(frozen=True)
class AtWrite:
    """Kill it when this write has arrived, or when it has been answered by the API server."""

    point: Point
    when: When

    def __str__(self) -> str:
        return f"{self.when:6} {self.point}"


@dataclass(frozen=True)
class AtMoment:
    """Kill it so many seconds after the change, unless all has converged by then."""

    seconds: float

    def __str__(self) -> str:
        return f"after {self.seconds:.2f} s"


@dataclass(frozen=True)
class EachLife:
    """Kill it, and then its successors, each at its n-th write, whatever that is."""

    lives: tuple[tuple[int, When], ...]

    def __str__(self) -> str:
        return "each at its " + ", ".join(f"{number} {when}" for number, when in self.lives)


Kill = AtWrite | AtMoment | EachLife | None


@dataclass(frozen=True)
class Seen:
    """A consumer at one moment."""

    uid: str
    generation: int
    revision: int
    replica_sets: frozenset[str]
    pods: frozenset[tuple[str, int]]
    annotations: Mapping[str, str]  # of the pod template


@dataclass
class Outcome:
    """What became of one rotation."""

    kill: Kill
    lane: int
    struck: int = 0  # kills; 0: what there was to be killed at never came
    seconds: float = 0.0  # from the start of the next operator, or from the change, until all was converged
    writes: list[Write] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def applied(self) -> Counter[str]:
        return Counter(write.kind for write in self.writes if write.applied)


class Lane:
    def __init__(self, cluster: LocalCluster, api: API, image: Image, folder: Path, number: int) -> None:
        self.number = number
        self.namespace = f"certroll-crash-{number}"
        self._own_namespace = f"certroll-crash-{number}-operator"
        self.log = folder / "operator.log"
        self.usable = True
        self._cluster = cluster
        self._api = api
        self._image = image
        self._folder = folder
        self._authorities = 0
        self._started = self._led = 0.0
        self._materials: Mapping[str, Material] = {}  # last written, by the name of the Secret
        self._leaves: Mapping[str, str] = {}  # their fingerprints
        self.proxy = WriteProxy(
            json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "-o", "json")) | {"users": [{"user": {}}]},
            folder, str(cluster.layout.machine(1).address), cluster.layout.pki / "apiserver.crt",
            streaming_lists=number != 1,  # one lane with an older API server, as far as its clients can tell
        )  # fmt: skip
        self._operator = self._new_operator()

    # --- life

    def up(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for namespace in (self.namespace, self._own_namespace):
            self._cluster.kubectl("delete", "namespace", namespace, "--ignore-not-found")  # of a run before, if any
        self._apply((_MANIFESTS / "00-namespace.yaml").read_text())
        self._change()
        for consumer in CONSUMERS:
            self._apply((_MANIFESTS / consumer.manifest).read_text())
        self.proxy.__enter__()
        for consumer in CONSUMERS:
            self._wait_rolled_out(consumer)
        self._create_policy()
        self._operator.start()
        wait_for("first sight to be recorded", self._at_rest, deadline=_START_DEADLINE, missing=self._describe)

    def down(self) -> None:
        """The operator must end well when asked to."""
        try:
            self._operator.stop()
            assert self.proxy.errors == [], self.proxy.errors
        finally:
            self.proxy.__exit__()
            for namespace in (self.namespace, self._own_namespace):
                self._cluster.kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")

    def _new_operator(self) -> OperatorPods:
        host, port = self.proxy.endpoint
        return OperatorPods(
            self._cluster, self._api, self._image, [self.namespace], self.log, self._own_namespace, FASTEST_ELECTION,
            # What a kubelet sets leads to the API server itself.
            {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)},
        )  # fmt: skip

    def _others_turn(self, trap: Trap | None = None) -> None:
        """The time runs from the kill: until the Lease of the dead one has run out, nobody acts."""
        self._started = time.monotonic()
        self.proxy.set(trap)  # only now: what the dead one had sent may still have been on its way

    def _kill_at(self, address: str) -> None:
        self._operator.kill_at(address)
        self.proxy.bury(address)

    def _alive(self) -> bool:
        self._operator.check()
        return True

    # --- one rotation

    def rotate(self, kill: Kill) -> Outcome:
        """A new CA and new leaves for both, with the operator killed on the way, to the end."""
        before = self._seen()
        outcome = self._under_kill(kill, self._change)
        return self._closed(outcome, lambda: self._judge_rotation(before, outcome.writes, rollouts=1))

    def rotate_and_change_again(self, kill: Kill, back: bool) -> Outcome:
        """As rotate; but while nobody leads, the Secrets are changed once more: to something new, or back."""
        before, materials = self._seen(), self._materials
        rolled = 0

        def meanwhile() -> None:
            nonlocal rolled
            rolled = len(_restarts(self.proxy.writes()))
            if back:
                self._write(materials)
            else:
                self._change()

        outcome = self._under_kill(kill, self._change, meanwhile)
        # What was not begun need not be taken back.
        again = rolled if back or not outcome.struck else 1
        return self._closed(outcome, lambda: self._judge_rotation(before, outcome.writes, rollouts=rolled + again))

    def see_first(self, kill: Kill) -> Outcome:
        """A policy that is new to the operator, killed on the way: nothing may be restarted for it."""
        self._api.delete("certrotationpolicies", self.namespace, POLICY)
        before = self._seen()
        outcome = self._under_kill(kill, self._create_policy)
        return self._closed(outcome, lambda: self._judge_first_sight(before, outcome.writes))

    def _under_kill(self, kill: Kill, change: Callable[[], None], meanwhile: Callable[[], None] = lambda: None) -> Outcome:
        outcome = Outcome(kill, self.number)
        traps = self._traps(kill)
        try:
            self.proxy.begin(traps[0] if traps else None)
            self._started = time.monotonic()
            change()
            if isinstance(kill, AtMoment) and self._under_way_after(kill.seconds):
                self._operator.kill_leader()
                self._others_turn()
                outcome.struck += 1
            while traps and self._caught(traps.pop(0)):
                meanwhile()
                self._others_turn(traps[0] if traps else None)
                outcome.struck += 1
            self.proxy.set(None)
            self._wait_led(outcome.struck > 0)
            self._wait("the rotation to converge", lambda: self._alive() and self._converged())
            outcome.seconds = time.monotonic() - self._started
            self._wait("the operator to come to rest", lambda: self._alive() and self._at_rest())
        except (DevError, AssertionError) as error:
            outcome.problems.append(str(error))
        outcome.writes = self.proxy.writes()
        return outcome

    def _wait_led(self, killed: bool) -> None:
        """Nobody writes between two leaders, and that is no rest: what is put back meanwhile even looks converged."""
        if killed:
            self._operator.wait_ready()
        self._led = time.monotonic()

    def _traps(self, kill: Kill) -> list[Trap]:
        if isinstance(kill, AtWrite):
            return [Trap(kill.point, kill.when, self._kill_at)]
        if isinstance(kill, EachLife):
            return [Trap(number, when, self._kill_at) for number, when in kill.lives]
        return []

    def _under_way_after(self, seconds: float) -> bool:
        """Waits for the moment, which is what is tested, or until the rotation is over."""
        while (left := self._started + seconds - time.monotonic()) > 0:
            if self._converged():
                return False
            time.sleep(min(left, 0.1))
        return True

    def _caught(self, trap: Trap) -> bool:
        """Returns when the leader is dead, or when there is nothing left to write at which it could be killed."""

        def look() -> bool:
            if trap.sprung(0.05):
                return True
            # A kill takes its time: one that is under way is waited for, however quiet it is meanwhile.
            return self._converged() and self._at_rest() and self._alive() and self.proxy.take_back(trap)

        self._wait("the kill", look, every=0.0)
        return trap.sprung()

    def _closed(self, outcome: Outcome, judge: Callable[[], list[str]]) -> Outcome:
        """Judged. When something went wrong, the evidence is kept, and the next rotation starts afresh."""
        if not outcome.problems:  # else it has not come to its end
            outcome.problems += judge()
        try:
            self._operator.assert_clean()
        except AssertionError as error:
            outcome.problems.append(str(error))
        if outcome.problems:
            self._keep_evidence(outcome)
            try:
                self._start_afresh()
            except (DevError, AssertionError) as error:
                self.usable = False
                outcome.problems.append(f"lane {self.number} is given up: {error}")
        return outcome

    def _start_afresh(self) -> None:
        self._operator.kill_all()
        self._operator.abandon()
        self.log.rename(self._next(f"{self.log.stem}-*.log"))
        self._api.delete("certrotationpolicies", self.namespace, POLICY)
        for consumer in CONSUMERS:
            self._wait_rolled_out(consumer)
        self._create_policy()
        self.proxy.set(None)
        self._operator = self._new_operator()
        self._operator.start()
        self._wait("first sight to be recorded", self._at_rest)

    def _wait(self, what: str, look: Callable[[], bool], every: float = 0.1) -> None:
        wait_for(what, look, deadline=_CONVERGE_DEADLINE, every=every, missing=self._describe)

    # --- judging

    def _judge_rotation(self, before: Mapping[str, Seen], writes: Sequence[Write], rollouts: int) -> list[str]:
        after = self._seen()
        nginx, was = after["nginx"], before["nginx"]
        stayed = {uid for uid, _ in was.pods} & {uid for uid, _ in nginx.pods}
        changes, revisions = nginx.generation - was.generation, nginx.revision - was.revision
        new_sets = nginx.replica_sets - was.replica_sets
        patched = [write.target.name for write in _restarts(writes)]
        claims = {
            f"nginx was changed {changes} times by its generation, not {rollouts}": changes == rollouts,
            f"nginx has {revisions} new revisions, not {rollouts}": revisions == rollouts,
            f"nginx has {len(new_sets)} new ReplicaSets, not {rollouts}": len(new_sets) == rollouts,
            f"{len(stayed)} pods of nginx are the same as before": len(stayed) == (0 if rollouts else 2),
            f"nginx has {len(nginx.pods)} pods": len(nginx.pods) == 2,
            f"these workloads were patched: {patched}": patched == ["nginx"] * rollouts,
            "Envoy was touched though it hot-reloads": after["envoy"] == before["envoy"],
        }
        wrong = [claim for claim, holds in claims.items() if not holds]
        return wrong + self._wrong_annotation(nginx, was, rollouts) + self._not_served()

    def _judge_first_sight(self, before: Mapping[str, Seen], writes: Sequence[Write]) -> list[str]:
        after = self._seen()
        wrong = [f"{name} was touched at first sight" for name in before if after[name] != before[name]]
        harmless = {"PATCH certrotationpolicies/status", "POST events"}
        return wrong + [f"written at first sight: {write.point}" for write in writes if write.kind not in harmless]

    def _wrong_annotation(self, nginx: Seen, was: Seen, rollouts: int) -> list[str]:
        """The memory of the restart, computed anew from what the status says was settled (design.md, "What is remembered")."""
        name = f"certroll.dev/{_hex16(NGINX.secret)}"
        settled = self._secret_status(NGINX.secret)["settled"]
        trust = sorted({ca["fingerprint"] for ca in settled.get("trust", [])})
        right = {
            "leaf": _hex16(f"{settled['leaf']},{settled['chain']}"),
            "trust": _hex16("".join(f"{fingerprint}," for fingerprint in trust)),
            "workload": _hex16(nginx.uid),
        }
        value = nginx.annotations.get(name, "")
        words = dict(word.split("=", 1) for word in value.split(",") if "=" in word and ".version=" not in word)
        restarted_ms = int(words.pop("at", 0))
        restarted = nginx.annotations[_RESTARTED_AT] != was.annotations.get(_RESTARTED_AT)
        others = {key for key in nginx.annotations if key.startswith("certroll.dev/")} - {name}
        claims = {
            f"the template's {name} is {value!r} and says nothing of the leaf, or of whom": {"leaf", "workload"} <= words.keys(),
            f"the template's {name} is {value!r} and says no time": restarted_ms > 0,
            f"the template's {name} is {value!r}, not of {right}": all(right.get(word) == words[word] for word in words),
            f"the template has annotations for other Secrets: {others}": not others,
            f"the template's restartedAt has {'' if restarted else 'not '}changed": restarted == bool(rollouts),
        }
        return [claim for claim, holds in claims.items() if not holds]

    def _not_served(self) -> list[str]:
        wrong = []
        for consumer in CONSUMERS:
            leaf = self._leaves[consumer.secret]
            for pod in self._pods(consumer):
                served = pods.served_leaf(pod.ip, consumer.port, self._server_name(consumer))
                if served != leaf:
                    wrong.append(f"{pod.name} serves {served or 'nothing'}, not {leaf}")
        return wrong

    # --- looking

    def _seen(self) -> dict[str, Seen]:
        return {consumer.name: self._seen_one(consumer) for consumer in CONSUMERS}

    def _seen_one(self, consumer: Consumer) -> Seen:
        deployment = self._api.get("deployments", self.namespace, consumer.name)
        sets = self._api.list("replicasets", self.namespace, f"app={consumer.name}")
        return Seen(
            uid=deployment["metadata"]["uid"],
            generation=deployment["metadata"]["generation"],
            revision=int(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"]),
            replica_sets=frozenset(each["metadata"]["uid"] for each in sets),
            pods=frozenset(pods.identity(self._pods(consumer))),
            annotations=deployment["spec"]["template"]["metadata"].get("annotations", {}),
        )

    def _pods(self, consumer: Consumer) -> list[pods.Pod]:
        return pods.of_app(self._api, self.namespace, consumer.name)

    def _converged(self) -> bool:
        """By the policy's status; whether that is true is judged afterwards. But a restart comes before its record: until that,
        the status may be that of the rotation before, and what is rolled out tells.

        The Secrets are known by what they hold: one that was rewritten with what was settled before is no change, and the
        resourceVersion in the status stays as it was.
        """
        policy = self._policy()
        status = Status.of(policy)
        settled = {each["name"]: each.get("settled", {}).get("leaf") for each in _secrets_of(policy)}
        return (
            status.holds("Converged")
            and all(consumer.at_rest for consumer in status.consumers.values())
            and not any(secret.pending or secret.problem for secret in status.secrets.values())
            and settled == self._leaves
            and all(is_rolled_out(self._api.get("deployments", self.namespace, consumer.name)) for consumer in CONSUMERS)
        )

    def _at_rest(self) -> bool:
        quiet = min(self.proxy.quiet_for(), (time.monotonic() - self._led) / 2)  # who leads anew has to look first
        return quiet > _QUIET and Status.of(self._policy()).holds("Converged")

    def _policy(self) -> Object:
        return self._api.get("certrotationpolicies", self.namespace, POLICY)

    def _secret_status(self, name: str) -> Mapping[str, Any]:
        return next((secret for secret in _secrets_of(self._policy()) if secret["name"] == name), {})

    def _describe(self) -> str:
        writes = "\n".join(f"{write.point}: {write.status}" for write in self.proxy.writes())
        status = json.dumps(self._policy().get("status"))
        self._operator.write_log()  # else it is that of the rotation before
        return f"the status is {status}\nwritten:\n{writes}\n{self.log} ends with:\n{tail_of(self.log)}"

    def _keep_evidence(self, outcome: Outcome) -> None:
        text = "\n".join([str(outcome.kill), *outcome.problems, self._describe()])
        self._next("failure-*.txt").write_text(text + "\n")

    def _next(self, pattern: str) -> Path:
        """A file name that is not taken yet."""
        return self._folder / pattern.replace("*", str(len(list(self._folder.glob(pattern))) + 1))

    # --- making

    def _change(self) -> None:
        """A new CA and a new leaf for each, in one write each."""
        self._authorities += 1
        authority = pki.new_authority(self._authorities)
        self._write({each.secret: authority.issue(each.name, namespace=self.namespace) for each in CONSUMERS})

    def _write(self, materials: Mapping[str, Material]) -> None:
        self._materials = materials
        self._leaves = {name: material.fingerprint() for name, material in materials.items()}
        for name, material in materials.items():
            self._api.apply("secrets", material.secret(name, self.namespace))

    def _create_policy(self) -> None:
        self._api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": POLICY, "namespace": self.namespace},
            "spec": {
                "secrets": [{"name": consumer.secret} for consumer in CONSUMERS],
                "consumers": [self._policy_consumer(consumer) for consumer in CONSUMERS],
                "restart": {"coalesce": "0s", "breaker": {"within": "0s"}},
            },
        })  # fmt: skip

    def _policy_consumer(self, consumer: Consumer) -> Object:
        return {
            "name": consumer.name,
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": consumer.name},
            "verify": {"port": consumer.port, "serverName": self._server_name(consumer)},
        }

    def _server_name(self, consumer: Consumer) -> str:
        return f"{consumer.name}.{self.namespace}.svc"

    def _apply(self, manifest: str) -> None:
        self._cluster.kubectl("apply", "-f", "-", stdin=manifest.replace(NAMESPACE, self.namespace))

    def _wait_rolled_out(self, consumer: Consumer) -> None:
        wait_for(
            f"{consumer.name} in {self.namespace}",
            lambda: is_rolled_out(self._api.get("deployments", self.namespace, consumer.name)),
            deadline=_START_DEADLINE,
        )


def _restarts(writes: Sequence[Write]) -> list[Write]:
    return [write for write in writes if write.kind == "PATCH deployments" and write.applied]


def _secrets_of(policy: Object) -> list[Object]:
    secrets: list[Object] = (policy.get("status") or {}).get("secrets", [])
    return secrets


def _hex16(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
