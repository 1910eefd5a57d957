"""The demo's workloads as the tests have them: put into a known state before each test, changed and looked at in it."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from audit import Audit
from certroll_dev.demo import pki, pods, workloads
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.calls import CallLog
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import NAMESPACE, Authority, Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.processes import Load
from certroll_dev.demo.scenario import Seen, wait_calls_succeed
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY, NGINX, RATE_LIMIT, WORKLOADS, Workload
from certroll_dev.operator_image import Image
from operator_pods import FAST_ELECTION, OperatorPods

_SETTLE = 120.0  # seconds: two rollouts of two pods each, and a slow machine
_NUDGE_EVERY = 2.0


@dataclass
class World:
    cluster: LocalCluster
    api: API
    logs: Path
    audit: Audit
    operator_image: Image
    authorities: list[Authority] = field(default_factory=list)  # the last is the present one
    running: OperatorPods | None = None
    clean: bool = False  # every workload works with what its Secret holds

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (NAMESPACE,)

    # --- a known state

    def reset(self) -> None:
        """No policy, and every workload working with certificates of the present CA."""
        if self.api.find("certrotationpolicies", NAMESPACE, workloads.POLICY):
            self.api.delete("certrotationpolicies", NAMESPACE, workloads.POLICY)
        if not self.clean:
            self._start_over()
        # Whatever a test does, it is clean again only when the operator has dealt with it, see operator().
        self.clean = False

    def _start_over(self) -> None:
        """A new CA for all, everything restarted, and nothing in the pod templates that the operator would remember by."""
        materials = self.new_ca()
        self.write_all(materials)
        for workload in (ENVOY, RATE_LIMIT):  # when these serve it, the kubelet has it for the pods that start now
            self.wait_served(workload, materials[workload.secret])
        self.nudge(NGINX)
        for workload in WORKLOADS:
            self.restart(workload)
        for workload in WORKLOADS:
            workloads.wait_rolled_out(self.api, workload.deployment)
            self._restart_until_served(workload, materials[workload.secret])

    def _restart_until_served(self, workload: Workload, material: Material) -> None:
        """A pod that starts right after a write may still get the old Secret from the kubelet's cache."""
        for _ in range(5):
            if self.serves(workload, material):
                return
            self.restart(workload)
            workloads.wait_rolled_out(self.api, workload.deployment)
        raise AssertionError(f"{workload.consumer} does not serve its certificate even after five restarts")

    def restart(self, workload: Workload) -> None:
        """As somebody else than certroll: with none of its annotations left."""
        known = self.deployment(workload)["spec"]["template"]["metadata"].get("annotations", {})
        annotations: dict[str, str | None] = {name: None for name in known if name.startswith("certroll.dev/")}
        annotations["kubectl.kubernetes.io/restartedAt"] = datetime.now(UTC).isoformat()
        patch: Object = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
        self.api.merge("deployments", NAMESPACE, workload.deployment, patch)

    def wait_served(self, workload: Workload, material: Material, deadline: float = _SETTLE) -> None:
        """Nudges the kubelet as the operator does, again and again: a nudge may be faster than the kubelet's watch."""
        nudged = 0.0

        def look() -> bool:
            nonlocal nudged
            if self.serves(workload, material):
                return True
            if time.monotonic() - nudged > _NUDGE_EVERY:
                nudged = time.monotonic()
                self.nudge(workload)
            return False

        wait_for(f"{workload.consumer} to serve its new certificate", look, deadline=deadline)

    def nudge(self, workload: Workload) -> None:
        for pod in self.pods(workload):
            patch: Object = {"metadata": {"annotations": {"e2e.certroll.dev/nudge": str(time.time_ns())}}}
            self.api.merge("pods", NAMESPACE, pod.name, patch, "status")

    # --- changing

    @property
    def authority(self) -> Authority:
        return self.authorities[-1]

    def new_ca(self) -> dict[str, Material]:
        """The next generation of the CA, which is the present one from now on, and a leaf of it for each Secret."""
        self.authorities.append(pki.new_authority(len(self.authorities) + 1))
        return workloads.issue_all(self.authority)

    def write(self, workload: Workload, material: Material) -> dict[str, str]:
        """Returns the Secret's resourceVersion by its name."""
        return workloads.write_secrets(self.api, {workload.secret: material})

    def write_all(self, materials: Mapping[str, Material]) -> dict[str, str]:
        return workloads.write_secrets(self.api, materials)

    # --- looking

    def pods(self, workload: Workload) -> list[pods.Pod]:
        return pods.of_app(self.api, NAMESPACE, workload.deployment)

    def seen(self) -> dict[str, Seen]:
        return {workload.consumer: Seen.now(self.api, workload) for workload in WORKLOADS}

    def serves(self, workload: Workload, material: Material) -> bool:
        """Whether each pod serves this leaf."""
        found = self.pods(workload)
        leaves = {pods.served_leaf(pod.ip, workload.port, workload.server_name) for pod in found}
        return bool(found) and leaves == {material.fingerprint()}

    def status(self) -> Status:
        return Status.of(self.policy())

    def policy(self) -> Object:
        return self.api.get("certrotationpolicies", NAMESPACE, workloads.POLICY)

    def events_of(self, obj: Object) -> list[Object]:
        """The Events about this very object, not about an earlier one of the same name."""
        uid = obj["metadata"]["uid"]
        return [event for event in self.api.list("events", NAMESPACE) if event["involvedObject"].get("uid") == uid]

    def deployment(self, workload: Workload) -> Object:
        return self.api.get("deployments", NAMESPACE, workload.deployment)

    # --- the operator and calls

    def install_policy(self, change: Callable[[Object], None] | None = None) -> None:
        """The demo's, or what `change` makes of its spec. Without a breaker: the tests together restart more often than it allows."""

        def without_breaker(spec: Object) -> None:
            spec["restart"]["breaker"] = {"within": "0s"}
            if change:
                change(spec)

        workloads.install_policy(self.cluster)
        self.change_policy(without_breaker)

    def change_policy(self, change: Callable[[Object], None]) -> None:
        spec: Object = self.policy()["spec"]
        change(spec)
        self.api.merge("certrotationpolicies", NAMESPACE, workloads.POLICY, {"spec": spec})

    def wait_ready(self, deadline: float = 60.0) -> None:
        wait_for("the policy to be Ready", lambda: self.status().holds("Ready"), deadline=deadline, missing=self.describe)

    def wait_settled(
        self, versions: Mapping[str, str], deadline: float = _SETTLE, seen: Callable[[Status], None] = lambda _: None
    ) -> Status:
        """Until nothing remains to be done about these Secrets; `seen` gets every status on the way there."""

        def look() -> Status | None:
            if self.running:
                self.running.check()
            status = self.status()
            seen(status)
            return status if status.settled(versions) else None

        return wait_for("the rotation to be settled", look, deadline=deadline, every=0.1, missing=self.describe)

    def wait_at_rest(self, seconds: float = 3.0, deadline: float = 60.0) -> None:
        """Until the operator has written nothing for so long: all that was to be done has been done and told."""
        mark, since = self.audit.mark(), time.monotonic()

        def look() -> bool:
            nonlocal mark, since
            if any(write.resource != "leases" for write in self.audit.since(mark)):
                mark, since = self.audit.mark(), time.monotonic()
            return time.monotonic() - since > seconds

        wait_for("the operator to come to rest", look, deadline=deadline, missing=self.describe)

    def describe(self) -> str:
        return json.dumps(self.policy().get("status"), indent=1)

    @contextmanager
    def operator(self, *args: str) -> Iterator[OperatorPods]:
        """It must end well: as asked to, no sanitizer report, and a log of JSON lines."""
        log = self.logs / "operator.log"
        operator = self.running = OperatorPods(
            self.cluster, self.api, self.operator_image, [NAMESPACE], log, args=args or FAST_ELECTION
        )
        with operator:
            try:
                yield operator
            finally:
                self.running = None
        self.clean = self._all_settled()

    def _all_settled(self) -> bool:
        """Whether the operator, before it ended, had dealt with all that is in the Secrets now."""
        secrets = [self.api.get("secrets", NAMESPACE, workload.secret) for workload in WORKLOADS]
        return self.status().settled({secret["metadata"]["name"]: secret["metadata"]["resourceVersion"] for secret in secrets})

    @contextmanager
    def calls(self, rate: float = 20.0) -> Iterator[Calls]:
        """Calls to Envoy and nginx that run throughout; their client trusts every CA there has been so far."""
        trust = self.logs / "callers-trust.pem"
        trust.write_bytes(b"".join(authority.certificate for authority in self.authorities))
        called = (ENVOY, NGINX)
        targets = [f"{w.consumer}={workloads.service_address(self.api, w)}/{w.server_name}" for w in called]
        load = Load(targets, trust, rate, self.logs / "calls.jsonl", self.logs / "load.log")
        try:
            calls = Calls(CallLog(self.logs / "calls.jsonl"), load, [w.consumer for w in called])
            calls.wait_succeed()
            yield calls
        finally:
            load.stop()


@dataclass
class Calls:
    log: CallLog
    load: Load
    targets: list[str]

    def wait_succeed(self, quiet: float = 2.0, deadline: float = 60.0) -> None:
        wait_calls_succeed(self.log, self.targets, self.load.check, quiet=quiet, deadline=deadline)

    def failed_since(self, start: float) -> list[str]:
        """'envoy: HTTP 500' for each call that failed, of those that began since; those under way are waited for."""
        now = time.time()
        wait_for("calls under way to end", lambda: self.log.answered(now), deadline=20)
        return [f"{call.target}: {call.reason}" for call in self.log.between(start) if not call.ok]


def assert_rolled_once(world: World, before: Mapping[str, Seen]) -> None:
    """By a changed CA: Rate Limit and nginx, and not Envoy."""
    after = world.seen()
    assert pods.identity(after["envoy"].pods) == pods.identity(before["envoy"].pods), "Envoy was restarted though it hot-reloads"
    assert after["envoy"].replica_sets == before["envoy"].replica_sets
    for workload in (RATE_LIMIT, NGINX):
        name = workload.consumer
        new = after[name].replica_sets - before[name].replica_sets
        assert len(new) == 1, f"{name} has {len(new)} new ReplicaSets, not one"
        old_uids = {pod.uid for pod in before[name].pods}
        assert not any(pod.uid in old_uids for pod in after[name].pods), f"a pod of {name} was not replaced"


def median(seconds: list[float]) -> str:
    """For the report: the median, and all of them."""
    return f"median {statistics.median(seconds):.2f} s of {', '.join(f'{value:.2f}' for value in seconds)}"


def steadily(what: str, seconds: float, look: Callable[[], object]) -> None:
    """Asserts that `look` stays empty for so long. The time is what is tested here, not a guess at how long to wait."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        assert not found, f"{what}: {found}"
        time.sleep(0.5)


def openssl(*arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], input=stdin, capture_output=True, check=True).stdout
