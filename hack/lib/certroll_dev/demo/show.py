"""The demo proper, inside of a running cluster: workloads, operator, calls, three changes, and what became of them."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from certroll_dev.demo import pki, pods, workloads
from certroll_dev.demo.api import API
from certroll_dev.demo.calls import CallLog
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.component_images import Image
from certroll_dev.demo.pki import NAMESPACE, Authority
from certroll_dev.demo.policy import Status
from certroll_dev.demo.processes import Background, Load
from certroll_dev.demo.scenario import Expected, Outcome, Watcher, count_calls, wait_calls_succeed
from certroll_dev.demo.trust_domain import TrustDomain
from certroll_dev.demo.verdict import Check, all_hold, ca_checks, leaf_checks, trust_first_checks
from certroll_dev.demo.waiting import WaitTimeout, wait_for
from certroll_dev.demo.workloads import ENVOY, NGINX, WORKLOADS
from certroll_dev.install import Operator
from certroll_dev.ui import Step

_CALLED = (ENVOY, NGINX)
_CHANGE_DEADLINE = 300.0
_NAIVE = """\
  Nobody trusts the new CA yet when the new certificates appear, so calls may fail until Rate Limit has been restarted.
  Publishing the new CA first avoids that; this writer does not, so that there is something to repair."""
_TRUST_FIRST = """\
  The same issuer, and one write again; but it writes Secrets that no pod mounts, and a TrustDomain publishes from them:
  the new CA first, the certificates when every pod trusts it."""
_QUIET = 3.0  # seconds without a failed call that count as "calls succeed"


class Show:
    """Lives inside of the cluster's network."""

    def __init__(self, cluster: LocalCluster, api: API, logs: Path, rate: float) -> None:
        self._cluster = cluster
        self._api = api
        self._logs = logs
        self._rate = rate
        self._authorities: list[Authority] = []
        self._log = CallLog(logs / "calls.jsonl")
        self._processes: list[Background] = []
        self._domain = TrustDomain(cluster, api)

    def run(self, images: list[Image], operator: Operator) -> bool:
        """Whether everything was seen that should have been."""
        first, second, third = self._new_authority(), self._new_authority(), self._new_authority()
        with Step("starting Redis, Rate Limit, Envoy and nginx"):
            workloads.install(self._cluster, self._api, images, workloads.issue_all(first))
        heading("3. certroll, and calls to Envoy and nginx")
        self._install(operator)
        with self._load():
            self._start()
            heading("4. The certificates of all three are renewed by the same CA")
            renewed = self._leaves_renewed(first)
            heading("5. The CA is changed, in one naive write: new CA and new certificates at once")
            changed, naive = self._ca_changed(second)
            heading("6. The CA is changed again, trust first")
            trusted, first_trusted = self._ca_changed_trust_first(third)
        print("\n  A new CA            calls   failed")
        for what, outcome in (("at once", naive), ("trust first", first_trusted)):
            print(f"    {what:14} {sum(s.total for s in outcome.calls):8} {sum(s.failed for s in outcome.calls):8}")
        return all_hold(renewed) and all_hold(changed) and all_hold(trusted)

    def again(self, what: str) -> bool:
        """One more change, "leaves" or "ca", in a demo that was kept, where the operator still runs."""
        self._authorities = pki.load(self._logs / "pki")
        if what == "ca":
            self._new_authority()
        with self._load():
            self._wait_calls_succeed()
            heading({"leaves": "The certificates are renewed", "ca": "The CA is changed, trust first"}[what])
            authority = self._authorities[-1]
            outcome = self._with_calls(self._change_by_domain(authority))
            checks = leaf_checks(outcome) if what == "leaves" else trust_first_checks(outcome, self._envoy_trusts(authority))
            self._report(outcome, checks)
            return all_hold(checks)

    def _new_authority(self) -> Authority:
        authority = pki.new_authority(len(self._authorities) + 1)
        pki.save(authority, self._logs / "pki")
        self._authorities.append(authority)
        return authority

    def _install(self, operator: Operator) -> None:
        with Step("installing certroll by its manifests (kubectl apply -k)"):
            operator.install()
        leader = operator.leader_pod()
        others = [pod.name for pod in operator.pods() if pod.name != leader.name]
        print("\n".join([f"  {leader.name} leads", *(f"  {name} stands by" for name in others)]))

    # --- what runs beside the cluster

    @contextlib.contextmanager
    def _load(self) -> Iterator[None]:
        trust = self._logs / "callers-trust.pem"
        # The callers trust every CA from the start, so that a failed call is never their own fault.
        trust.write_bytes(b"".join(authority.certificate for authority in self._authorities))
        targets = [f"{w.consumer}={workloads.service_address(self._api, w)}/{w.server_name}" for w in _CALLED]
        (self._logs / "calls.jsonl").unlink(missing_ok=True)
        load = Load(targets, trust, self._rate, self._logs / "calls.jsonl", self._logs / "load.log")
        with self._running(load, "load"):
            yield

    @contextlib.contextmanager
    def _running(self, process: Background, name: str) -> Iterator[None]:
        """Its pid is written down, so that a later run can end what a killed one left."""
        pid_file = self._logs / f"{name}.pid"
        pid_file.write_text(process.identity())
        self._processes.append(process)
        try:
            yield
        finally:
            self._processes.remove(process)
            process.stop()
            pid_file.unlink(missing_ok=True)

    def _still_alive(self) -> None:
        for process in self._processes:
            process.check()

    # --- the steps

    def _start(self) -> None:
        with Step("waiting until the policy is Ready"):
            workloads.install_policy(self._cluster)
            wait_for("the policy to be Ready", self._policy_is_ready, deadline=60, missing=self._conditions)
        with Step(f"calling Envoy and nginx, {self._rate:g} times a second each, every call with a TLS handshake of its own"):
            self._wait_calls_succeed()

    def _leaves_renewed(self, authority: Authority) -> list[Check]:
        outcome = self._change(authority)
        checks = leaf_checks(self._with_calls(outcome))
        self._report(outcome, checks)
        return checks

    def _ca_changed(self, authority: Authority) -> tuple[list[Check], Outcome]:
        print(_NAIVE)
        outcome = self._change(authority)
        recovered = True
        try:
            self._wait_calls_succeed()
        except WaitTimeout as error:
            recovered = False
            print(f"  {error}")
        checks = ca_checks(self._with_calls(outcome), self._envoy_trusts_only(authority), recovered)
        self._report(outcome, checks)
        return checks, outcome

    def _ca_changed_trust_first(self, authority: Authority) -> tuple[list[Check], Outcome]:
        print(_TRUST_FIRST)
        with Step("handing the Secrets over to a TrustDomain"):
            self._domain.take_over([workload.secret for workload in WORKLOADS])
            wait_for("the policy to converge", self._policy_is_converged, deadline=_CHANGE_DEADLINE, missing=self._conditions)
        outcome = self._with_calls(self._change_by_domain(authority))
        checks = trust_first_checks(outcome, self._envoy_trusts(authority))
        self._report(outcome, checks)
        return checks, outcome

    def _change(self, authority: Authority) -> Outcome:
        materials = workloads.issue_all(authority)

        def write() -> Expected:
            versions = workloads.write_secrets(self._api, materials)
            return lambda: versions

        return Watcher(self._api, materials, self._still_alive).follow(write, _CHANGE_DEADLINE)

    def _change_by_domain(self, authority: Authority) -> Outcome:
        materials = workloads.issue_all(authority)
        watcher = Watcher(self._api, materials, self._still_alive, lambda seconds: [self._domain.row(seconds)])
        return watcher.follow(lambda: self._domain.issue(materials), _CHANGE_DEADLINE)

    def _with_calls(self, outcome: Outcome) -> Outcome:
        """A call counts where it began, so wait for those that began before the end."""
        until = time.time()
        wait_for("calls under way to end", lambda: self._log.answered(until), deadline=20)
        return count_calls(self._log, outcome, until)

    def _report(self, outcome: Outcome, checks: Sequence[Check]) -> None:
        print(f"\n  Settled after {outcome.seconds:.1f} s. Calls since the change (times are seconds after it):")
        for summary in outcome.calls:
            print(textwrap.indent("\n".join(summary.lines(outcome.started)), "    "))
        print("  Pods, compared with those before:")
        for workload in WORKLOADS:
            print(f"    {outcome.pods_line(workload)}")
        print("  Seen on pods and calls themselves:")
        for check in checks:
            print(f"    {check}")

    # --- looking

    def _policy_is_ready(self) -> bool:
        self._still_alive()
        return self._status().holds("Ready")

    def _policy_is_converged(self) -> bool:
        self._still_alive()
        return self._status().holds("Converged")

    def _status(self) -> Status:
        return Status.of(self._api.get("certrotationpolicies", NAMESPACE, workloads.POLICY))

    def _conditions(self) -> str:
        conditions = self._status().conditions
        if not conditions:
            return "the operator has written no status at all"
        return "; ".join(f"{name}={c.status} {c.reason}: {c.message}" for name, c in conditions.items())

    def _wait_calls_succeed(self) -> None:
        names = [workload.consumer for workload in _CALLED]
        wait_calls_succeed(self._log, names, self._still_alive, quiet=_QUIET, deadline=30)

    def _envoy_trusts(self, authority: Authority) -> bool:
        """Whether each Envoy holds this CA."""
        return all(authority.serial() in held for held in self._held_by_envoys())

    def _envoy_trusts_only(self, authority: Authority) -> bool:
        return all(held == {authority.serial()} for held in self._held_by_envoys())

    def _held_by_envoys(self) -> list[set[str]]:
        """The CAs of each Envoy, by serial number."""
        found = [pods.envoy_trusts(pod.ip) for pod in pods.of_app(self._api, NAMESPACE, ENVOY.deployment)]
        return found or [set()]


def heading(text: str) -> None:
    print(f"\n{text}", flush=True)


def shortened(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
