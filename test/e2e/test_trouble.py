"""Restarts that do not go well: a new pod with old material, a rollout that fails, a policy that goes or is suspended in the
middle of it, somebody who takes the restart back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from certroll_dev.demo import pods, workloads
from certroll_dev.demo.api import Object
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import is_rolled_out
from ticker import again_and_again
from web import COPY, WEB, Web
from web import web as running_web
from world import World, steadily

_QUIET = 12.0  # seconds; longer than the coalescing time after which a restart would have come
_UNDONE = 6.0  # nothing else holds a restart then
_COALESCE = 8  # seconds: time to suspend it in, also where the API server does not answer for some
_SUSPENDED = _COALESCE + 2.0  # as long as it is suspended; longer than what it would have waited for otherwise


@pytest.fixture
def web(world: World) -> Iterator[Web]:
    with running_web(world) as found:
        yield found


def test_a_new_pod_that_serves_the_old_leaf_is_evicted(web: Web) -> None:
    """As a pod that mounted the Secret from its kubelet's cache: here it serves a copy, which is renewed later."""
    web.configure("/copy")
    web.world.restart(WEB)
    workloads.wait_rolled_out(web.world.api, WEB.deployment)
    with web.world.operator() as operator:
        web.install_policy()
        mark = web.world.audit.mark()
        revisions = web.rollouts()
        earlier = {event["metadata"]["uid"] for event in web.events("EvictedStale")}
        material, version = web.renew()

        def news() -> list[Object]:
            return [event for event in web.events("EvictedStale") if event["metadata"]["uid"] not in earlier]

        event = wait_for("a stale new pod to be evicted", news, deadline=60)[0]
        web.world.api.apply("secrets", material.secret(COPY))
        assert f'certroll_evictions_total{{namespace="{NAMESPACE}",reason="repair"}}' in operator.page("/metrics")
        evicted = event["involvedObject"]["uid"]
        assert event["type"] == "Warning"
        wait_for("that pod to go", lambda: evicted not in {pod.uid for pod in web.pods()}, deadline=60)
        web.wait_settled(version)
        assert web.serves(material)
        assert len(web.rollouts() - revisions) == 1, "evicted pods are replaced, not rolled out again"
        evictions = [write for write in web.world.audit.since(mark) if write.resource == "pods/eviction"]
        assert 1 <= len(evictions) <= 3, [str(write) for write in evictions]


def test_a_rollout_that_fails_is_told_and_taken_up_again_when_mended(web: Web) -> None:
    with web.world.operator():
        web.install_policy()
        before = pods.identity(web.pods())
        web.configure("/nowhere")  # the pods that run have read theirs; new ones do not start
        material, version = web.renew()
        wait_for("the failed rollout to be told", lambda: web.status().holds("Degraded"), deadline=90)
        status = web.status()
        assert status.consumers["web"].state == "Failed"
        assert status.conditions["Degraded"].reason == "RolloutFailed"
        wait_for("an Event of it, which comes after the record", lambda: web.events("RolloutFailed"), deadline=30)
        assert before <= pods.identity(web.pods()), "the pods that worked are gone"
        web.configure("/certs")
        web.hasten_kubelet()
        web.wait_settled(version)
        assert web.serves(material)
        assert not web.status().holds("Degraded")


def test_a_policy_deleted_in_the_middle_ends_the_work(web: Web) -> None:
    with web.world.operator() as operator:
        web.install_policy(coalesce="10s")
        mark = web.world.audit.mark()
        web.renew()
        wait_for("the change to be on record", lambda: web.status().secrets[WEB.secret].pending, deadline=30)
        web.world.api.delete("certrotationpolicies", NAMESPACE, "web")
        steadily("touched without a policy", _QUIET, lambda: _disturbances(web, mark))
        operator.check()


def test_suspended_in_the_middle_it_stands_still_and_goes_on_when_resumed(web: Web) -> None:
    """While changes are coalesced, and in the rollout, so that the verification comes to stand still as well."""
    with web.world.operator():
        web.install_policy(coalesce=f"{_COALESCE}s")
        material, version = web.renew()
        web.wait_consumer("Pending")
        mark = _suspend(web)
        assert web.wait_consumer("Pending").blocked_reason == "Suspended"
        steadily("touched though suspended", _SUSPENDED, lambda: _disturbances(web, mark))
        web.change_policy({"suspend": False})
        web.wait_settled(version)
        assert web.serves(material)
        assert web.restarts_since(mark) == 1

        revisions = web.rollouts()
        material, version = web.renew()
        web.wait_consumer("Restarting")
        mark = _suspend(web)
        wait_for("the rollout to end, which is not ours to stop", lambda: is_rolled_out(web.deployment()), deadline=60)
        web.wait_consumer("Verifying")
        steadily("touched though suspended", _SUSPENDED, lambda: _disturbances(web, mark))
        assert web.wait_consumer("Verifying").verified == 0, "looked at though suspended"
        web.change_policy({"suspend": False})
        web.wait_settled(version)
        assert web.serves(material)
        assert len(web.rollouts() - revisions) == 1


def test_who_takes_the_restart_back_is_told_of_and_not_fought(web: Web, report: list[str]) -> None:
    """As a GitOps tool does that holds the manifest to be all there is. One that applies it leaves what others manage alone."""
    with web.world.operator():
        web.install_policy()
        mark, revisions = web.world.audit.mark(), web.rollouts()
        with again_and_again(0.5, lambda: web.world.api.apply("deployments", web.manifest)):
            material, version = web.renew()
            web.wait_settled(version)
        assert web.serves(material)
        assert (web.restarts_since(mark), len(web.rollouts() - revisions)) == (1, 1)
        assert not web.events_of_deployment("RestartUndone")

        web.replace()
        wait_for("the replaced Deployment", lambda: is_rolled_out(web.deployment()), deadline=60)
        mark = web.world.audit.mark()
        with again_and_again(0.2, web.replace):
            web.renew()
            held = web.wait_consumer("Blocked")
            assert held.blocked_reason == "RestartUndone"
            wait_for("an Event of it", lambda: web.events_of_deployment("RestartUndone"), deadline=30)
            done = web.restarts_since(mark)
            assert done <= 2, "the second only for one that was undone before it was on record"
            steadily("restarted again", _UNDONE, lambda: web.restarts_since(mark) - done)
        report.append(f"{done} restarts against who undoes them five times a second")
        assert web.status().holds("Blocked")

        mark = web.world.audit.mark()
        material, version = web.renew()
        web.wait_settled(version)
        assert web.serves(material)
        assert web.restarts_since(mark) == 1, "the next change is tried once more"
        assert not web.status().holds("Blocked")


def _suspend(web: Web) -> int:
    """A mark in the audit log from when it was seen and all that had begun before was over."""
    web.change_policy({"suspend": True})
    web.world.wait_at_rest(1.0)
    return web.world.audit.mark()


def _disturbances(web: Web, mark: int) -> list[str]:
    return [str(write) for write in web.world.audit.disruptive_since(mark)]
