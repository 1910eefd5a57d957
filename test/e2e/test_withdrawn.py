"""What the operator needs is taken away in the middle of a rotation: it says what is missing, and goes on when it is back.

The namespaces begin with certroll-withdrawn: there, requests may be refused (test_rights.py).
"""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from audit import Audit, Write
from certroll_dev import install
from certroll_dev.demo import workloads
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY, NGINX, WORKLOADS
from certroll_dev.operator_image import Image
from operator_pods import FAST_ELECTION, OperatorPods
from shop import POLICY, Shop
from world import World, steadily

_USER = f"system:serviceaccount:{install.NAMESPACE}:{install.NAME}"
_QUIET = 3.0  # seconds in which it is watched that nothing is done
_KUBELET = 180.0  # seconds: a kubelet takes up to 95 to refresh a volume that nobody hastens
_BACKOFF = 90.0  # seconds: the longest pause between two tries, a rollout, and a slow machine


# --- the CRD; first, since its operator is another than that of the rest


def test_the_crd_goes_in_the_middle_and_comes_back(world: World) -> None:
    """What was restarted before is remembered by the pod templates: the change is taken up again, and nothing else is."""
    world.install_policy()
    with world.operator() as operator:
        world.wait_ready()
        world.wait_settled(world.write_all(world.new_ca()))  # each template has its memory now
        world.change_policy(lambda spec: spec["restart"].update(coalesce="60s"))
        world.wait_at_rest()
        pods, before, mark = {pod.uid for pod in operator.pods()}, world.seen(), world.audit.mark()
        leaf = world.authority.issue(NGINX.deployment)
        versions = world.write(NGINX, leaf)
        wait_for("the change to be on record", lambda: world.status().secrets[NGINX.secret].pending, deadline=30)

        world.cluster.kubectl("delete", "crd", "certrotationpolicies.certroll.dev", "--timeout=60s")
        try:
            wait_for("the log to say so", lambda: _asks_for_crd(operator), deadline=90)
            steadily("touched without a policy", _QUIET, lambda: _restarts(world, mark))
        finally:
            workloads.install_crds(world.cluster)
        world.install_policy()
        world.wait_settled(versions)
        world.wait_at_rest()
        assert [write.name for write in _restarts(world, mark) if write.code < 400] == [NGINX.deployment]
        after = world.seen()
        rolled = {w.consumer for w in WORKLOADS if after[w.consumer].replica_sets != before[w.consumer].replica_sets}
        assert rolled == {NGINX.consumer}
        assert world.serves(NGINX, leaf)
        operator.wait_all_ready()
        assert {pod.uid for pod in operator.pods()} == pods
        operator.check()  # only who could not renew its Lease may have ended


def _asks_for_crd(operator: OperatorPods) -> bool:
    return any("is the CRD installed?" in line.get("error", "") for line in operator.lines("a watch is interrupted"))


def _restarts(world: World, mark: int) -> list[Write]:
    return [write for write in world.audit.since(mark) if write.resource == "deployments"]


# --- rights


class Place:
    """Two namespaces, and one operator for both."""

    def __init__(self, cluster: LocalCluster, api: API, image: Image, log: Path) -> None:
        self.shop = Shop(cluster, api, "certroll-withdrawn-shop2")
        self.neighbour = Shop(cluster, api, "certroll-withdrawn-neighbour")
        self.operator = OperatorPods(cluster, api, image, [self.shop.namespace, self.neighbour.namespace], log, args=FAST_ELECTION)
        self.audit = Audit(cluster.layout.audit_log, _USER)

    def refused_since(self, mark: int, resource: str) -> list[Write]:
        return [write for write in self.audit.since(mark) if write.resource == resource and write.code == 403]


@pytest.fixture(scope="module")
def place(
    request: pytest.FixtureRequest, cluster: LocalCluster, api: API, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    workloads.install_crds(cluster)
    made = Place(cluster, api, image, tmp_path_factory.mktemp("withdrawn") / "operator.log")
    failed_before = request.session.testsfailed
    for shop in (made.shop, made.neighbour):
        shop.up()
    made.operator.start()
    for shop in (made.shop, made.neighbour):
        shop.install_policy()
    yield made
    if request.session.testsfailed == failed_before:
        made.operator.stop()
    else:
        made.operator.abandon()
    for shop in (made.shop, made.neighbour):
        shop.down()


def test_without_the_right_to_restart_it_says_so_and_waits(place: Place) -> None:
    shop, before = place.shop, place.shop.rollouts(NGINX)
    with shop.without_right("deployments", "patch"):
        mark = place.audit.mark()
        versions = shop.change()
        shop.wait("nginx to be blocked", lambda status: status.consumers[NGINX.consumer].state == "Blocked", deadline=60)
        shop.wait("Envoy to converge all the same", lambda status: status.consumers[ENVOY.consumer].at_rest, deadline=60)
        described = shop.kubectl("describe", "crp", POLICY)
        assert 'cannot patch resource "deployments"' in described and "Reason:                Gated" in described, described
        wait_for("an Event of it, which comes after the record", lambda: _refusals(shop), deadline=30)
        tries = place.refused_since(mark, "deployments")
        assert 1 <= len(tries) <= 4, "\n".join(map(str, tries))
    shop.wait_settled(versions, deadline=_BACKOFF)
    _assert_rolled_once(shop, before)


def _refusals(shop: Shop) -> list[Object]:
    return [event for event in shop.events("RestartFailed") if 'cannot patch resource "deployments"' in event["message"]]


def test_without_the_right_to_hasten_a_kubelet_it_waits_for_it(place: Place) -> None:
    shop, before = place.shop, place.shop.rollouts(NGINX)
    with shop.without_right("pods/status", "patch"):
        mark = place.audit.mark()
        versions = shop.change()
        wait_for("a refused nudge", lambda: place.refused_since(mark, "pods/status"), deadline=30)
        wait_for("the log to say so", lambda: _names(place, "nudge failed", 'cannot patch resource "pods/status"'), deadline=30)
    shop.wait_settled(versions, deadline=_KUBELET)
    _assert_rolled_once(shop, before)


@pytest.mark.parametrize(("coalesce", "restarts"), [("0s", 1), ("1s", 0)], ids=["but-for-a-restart-that-is-due-at-once", "nothing"])
def test_what_cannot_be_put_on_record_is_not_done(place: Place, coalesce: str, restarts: int) -> None:
    """A restart is one write together with its memory; but since when it waits to be coalesced, nothing tells but the record."""
    place.shop.install_policy(coalesce)
    shop, before = place.shop, place.shop.rollouts(NGINX)
    with shop.without_right("certrotationpolicies/status", "patch"):
        mark = place.audit.mark()
        versions = shop.change()
        wait_for("a refused record", lambda: place.refused_since(mark, "certrotationpolicies/status"), deadline=30)
        words = 'cannot patch resource "certrotationpolicies/status"'
        wait_for("the log to say so", lambda: _names(place, "a reconcile failed", words), deadline=30)
        steadily("done without a record", _QUIET, lambda: [w for w in _acts(place, mark) if w.resource != "deployments"])
        assert len(_acts(place, mark)) == restarts, "\n".join(map(str, _acts(place, mark)))
    shop.wait_settled(versions, deadline=_BACKOFF)
    _assert_rolled_once(shop, before)


def test_without_the_right_to_see_secrets_one_namespace_waits_and_others_do_not(place: Place) -> None:
    """An open watch stays open; so the operator's pods are replaced, and know only what they may read."""
    shop, before = place.shop, place.shop.rollouts(NGINX)
    with shop.without_right("secrets", "get", "list", "watch"):
        place.operator.delete_all()
        mark = place.audit.mark()
        shop.wait("the policy to say what cannot be seen", lambda s: s.conditions["Ready"].reason == "CannotWatch", deadline=60)
        versions = shop.change()
        missing = f"grant get, list and watch on secrets in namespace {shop.namespace}"
        assert missing in shop.kubectl("describe", "crp", POLICY)
        assert not shop.status().holds("Converged")
        wait_for("each replica to name it", lambda: all(missing in page for page in _unready(place)) and _unready(place), deadline=30)
        assert _names(place, "a watch is interrupted", missing)

        elsewhere = place.neighbour.change()
        place.neighbour.wait_settled(elsewhere, deadline=_BACKOFF)
        acts = [write for write in place.audit.disruptive_since(mark) if write.namespace == shop.namespace]
        assert not acts, "done by what it cannot see: " + ", ".join(map(str, acts))
    shop.wait_settled(versions, deadline=_BACKOFF)
    _assert_rolled_once(shop, before)
    assert shop.status().holds("Ready")
    place.operator.wait_all_ready()


def _acts(place: Place, mark: int) -> list[Write]:
    return [write for write in place.audit.disruptive_since(mark) if write.namespace == place.shop.namespace]


def _assert_rolled_once(shop: Shop, before: int) -> None:
    assert shop.rollouts(NGINX) == before + 1
    assert shop.rollouts(ENVOY) == 1, "Envoy was restarted though it hot-reloads"
    for workload in (ENVOY, NGINX):
        assert shop.serves_its_leaf(workload), f"{workload.consumer} does not serve its new leaf"


def _names(place: Place, message: str, missing: str) -> bool:
    return any(missing in line.get("error", "") for line in place.operator.lines(message))


def _unready(place: Place) -> list[str]:
    """What /readyz of those says that are not ready."""
    found = []
    for pod in place.operator.pods():
        try:
            place.operator.page_of(pod, "/readyz", port=8081)
        except urllib.error.HTTPError as error:
            found.append(error.read().decode())
        except OSError:
            found.append("")  # not up yet
    return found


# --- a namespace


def test_a_namespace_that_goes_takes_its_rotation_with_it(place: Place, cluster: LocalCluster) -> None:
    gone, shop = place.neighbour, place.shop
    gone.install_policy(coalesce="60s")
    gone.change()
    gone.wait("the change to be on record", lambda status: all(s.pending for s in status.secrets.values()), deadline=30)
    already = len(_warnings(place, gone.namespace))
    gone.kubectl("delete", "namespace", gone.namespace, "--wait=false")
    before, versions = shop.rollouts(NGINX), shop.change()
    wait_for("the namespace to go", lambda: not _exists(cluster, gone.namespace), deadline=180)
    shop.wait_settled(versions, deadline=_BACKOFF)
    _assert_rolled_once(shop, before)
    warnings = _warnings(place, gone.namespace)[already:]
    assert len(warnings) <= 10, "\n".join(map(str, warnings))
    place.operator.check()
    page = place.operator.page("/metrics")
    kept = [line for line in page.splitlines() if gone.namespace in line and not line.startswith(_COUNTERS)]
    assert not kept, kept
    assert 'certroll_informer_objects{resource="certrotationpolicies"} 1' in page

    # Those that start now may see nothing of it, and work for the others.
    place.operator.delete_all()
    before, versions = shop.rollouts(NGINX), shop.change()
    shop.wait_settled(versions, deadline=_BACKOFF)
    _assert_rolled_once(shop, before)


_COUNTERS = ("certroll_restarts_total", "certroll_nudges_total", "certroll_probes_total", "certroll_evictions_total")


def _warnings(place: Place, namespace: str) -> list[dict[str, str]]:
    lines = place.operator.lines("")
    return [line for line in lines if line["level"] in ("warn", "error") and namespace in "".join(map(str, line.values()))]


def _exists(cluster: LocalCluster, namespace: str) -> bool:
    return bool(cluster.kubectl("get", "namespace", namespace, "--ignore-not-found", "-o", "name"))
