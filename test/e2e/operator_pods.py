"""The operator as the tests have it: installed by the manifests, with sanitizers, two replicas of which one leads.

A killed replica is not left to its kubelet, which would start its container later and later: its pod is deleted, and the
Deployment starts another.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import sanitizers
from certroll_dev import install
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.waiting import wait_for
from certroll_dev.install import Operator, Pod
from certroll_dev.operator_image import Image
from certroll_dev.ui import DevError

REPLICAS = 2
# Where what follows a kill is tested, and not how long the others wait for a leader that is silent.
# On a machine where an API server does not answer for two seconds at times.
FAST_ELECTION = (
    "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s", "--leader-elect-retry-period=500ms",
)  # fmt: skip
# For dozens of kills, by who copes with a Lease that is lost in between.
FASTEST_ELECTION = (
    "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=300ms",
)  # fmt: skip
_LEADS_NO_MORE = 3  # exit status, cmd/operator/main.c
_TOLD_DEADLINE = 60.0
_ENDED = "ended"  # the last line of an operator that was asked to end


class OperatorPods:
    def __init__(
        self,
        cluster: LocalCluster,
        api: API,
        image: Image,
        namespaces: Sequence[str],
        log: Path,
        own_namespace: str = install.NAMESPACE,
        args: Sequence[str] = (),
        env: dict[str, str] | None = None,
        overlay: str | None = None,
        components: Sequence[str] = (),
    ) -> None:
        """`log` gets all that its pods wrote. No namespaces with an overlay."""
        self.log = log
        self._api = api
        self._namespace = own_namespace
        self._killed: set[str] = set()  # uids of pods
        self._installed = Operator(
            cluster.layout, image, overlay=overlay, namespaces=namespaces, components=components, args=args, replicas=REPLICAS,
            env=sanitizers.ENVIRONMENT | (env or {}), namespace=own_namespace, open_metrics=True,
        )  # fmt: skip

    # --- life

    def start(self) -> None:
        """Returns when both are ready."""
        if not self._installed.seen:
            self._installed.forget_logs()  # of others before
        self._installed.install()

    def wait_ready(self) -> None:
        """Until one leads."""
        self._installed.leader_pod()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind:
            self.abandon()
        else:
            self.stop()

    def stop(self) -> None:
        """It must end well: as asked, with a log of JSON lines and without a sanitizer's report."""
        self.check()
        wait_for("the operator's pods to begin", self._have_begun, deadline=_TOLD_DEADLINE)
        self._scale_to_none()
        self.write_log()
        for uid in self._installed.seen - self._killed:
            self._assert_ended_well(uid)
        self.assert_clean()

    def _have_begun(self) -> bool:
        """Whoever is taken away before it heeds signals leaves no last words: what replaces a killed replica may still be starting."""
        return all('"msg":"serving"' in self._installed.logs(pod.uid) for pod in self._installed.pods() if not pod.ending)

    def abandon(self) -> None:
        """The test has failed already: end it without a further judgement."""
        self._scale_to_none()
        self.write_log()

    def remove(self) -> None:
        self._installed.uninstall()

    def check(self) -> None:
        """Raises when a replica has ended though nobody asked it to. One that cannot renew its Lease has to end.

        Tests ask this ten times a second while they measure: by the API, and not by a kubectl each time.
        """
        pods = [Pod.of(obj) for obj in self._api.list("pods", self._namespace, install.PODS)]
        if any(pod.uid not in self._installed.seen for pod in pods):
            self._installed.pods()  # from here on their logs are kept
        for pod in pods:
            # One that was killed may be started again before it is deleted.
            meant = pod.ending or pod.uid in self._killed
            if pod.restarts and not meant and pod.exit_status != _LEADS_NO_MORE:
                self.write_log()
                raise DevError(f"{pod.name} was restarted {pod.restarts} times, it ended with {pod.exit_status}; see {self.log}")

    # --- looking

    def page(self, path: str) -> str:
        """One of the leader's own pages, such as /metrics."""
        return self._installed.page(self._installed.leader_pod(), path)

    def leader(self) -> Pod:
        return self._installed.leader_pod()

    def pods(self) -> list[Pod]:
        return self._installed.pods()

    def page_of(self, pod: Pod, path: str, port: int = 8080) -> str:
        return self._installed.page(pod, path, port)

    def lines(self, message: str) -> list[dict[str, str]]:
        """What any of its pods has logged with these words."""
        found = (json.loads(line) for line in self._installed.logs().splitlines() if line.startswith("{") and line.endswith("}"))
        return [line for line in found if message in line["msg"]]

    def write_log(self) -> None:
        self.log.write_text(self._installed.logs())

    def assert_clean(self) -> None:
        self.write_log()
        report = sanitizers.report_in(self.log)
        assert report is None, f"{self.log}: {report}"

    # --- disturbing

    def kill_leader(self) -> Pod:
        """SIGKILL: as a crash. The other one takes over when the Lease has run out."""
        pod = self._installed.leader_pod()
        self._kill(pod)
        return pod

    def delete_leader(self) -> Pod:
        """As when its node is drained: it is asked to end, and gives the Lease up."""
        pod = self._installed.leader_pod()
        self._installed.delete(pod)
        return pod

    def delete_all(self) -> None:
        """As delete_leader; others are started, and know nothing but what the API server has."""
        gone = self._installed.pods()
        for pod in gone:
            self._installed.delete(pod)
        uids = {pod.uid for pod in gone}
        wait_for("the operator's pods to end", lambda: not uids & {pod.uid for pod in self.pods()}, deadline=60)

    def roll(self) -> None:
        """`kubectl rollout restart`: both are replaced, one after the other. Returns at once."""
        self._installed.kubectl("-n", self._namespace, "rollout", "restart", f"deployment/{install.NAME}")

    def wait_all_ready(self) -> None:
        """Both, and no others."""
        self._installed.wait_ready()

    def freeze(self, pod: Pod) -> None:
        self._signal(pod, signal.SIGSTOP)

    def thaw(self, pod: Pod) -> None:
        self._signal(pod, signal.SIGCONT)

    def _signal(self, pod: Pod, number: signal.Signals) -> None:
        for process in self._installed.processes(pod):
            process.kill(number)

    def kill_at(self, address: str) -> None:
        """The replica with this pod address; on a busy machine its kubelet may tell of that seconds after its first words."""

        def look() -> Pod | None:
            return next((pod for pod in self._installed.pods() if pod.ip == address), None)

        what = f"an operator with the address {address}"
        self._kill(wait_for(what, look, deadline=_TOLD_DEADLINE, missing=lambda: str(self._installed.pods())))

    def kill_all(self) -> None:
        """All at once, and nobody takes over until the next start."""
        pods = self._installed.pods()
        self._scale(0)
        for pod in pods:
            self._kill(pod)
        self._wait_gone()

    def _kill(self, pod: Pod) -> None:
        self._killed.add(pod.uid)
        self._installed.kill_whole(pod)
        self._installed.delete(pod, grace=0)

    # --- inside

    def _scale(self, replicas: int) -> None:
        self._api.merge("deployments", self._namespace, install.NAME, {"spec": {"replicas": replicas}})

    def _scale_to_none(self) -> None:
        self._scale(0)
        self._wait_gone()

    def _wait_gone(self) -> None:
        wait_for("the operator's pods to end", lambda: not self._installed.pods(), deadline=60)

    def _assert_ended_well(self, uid: str) -> None:
        lines = self._installed.logs(uid).splitlines()
        for line in lines:
            try:
                json.loads(line)
            except ValueError as error:
                raise AssertionError(f"{self.log} has a line that is not JSON: {line!r}") from error
        last = json.loads(lines[-1])["msg"] if lines else None
        assert last == _ENDED, f"a pod did not end as it was asked to; its last words are {last!r}; see {self.log}"
