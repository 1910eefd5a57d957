"""Argo CD and Flux deliver what certroll restarts: no drift, no fight, one rollout for each change, and they say how the rotation goes.

The real controllers over a Git repository, the real controllers of Kubernetes, and pods that serve TLS. The Secret is not in the repository.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane import ControlPlane, wait_until
from gitops.argo_cd import Application, ArgoCD
from gitops.delivery import DEGRADED, HEALTHY, PROGRESSING, Delivery, Listener
from gitops.flux import Flux, Kustomization
from gitops.git import GitServer, Repository
from operators import OTHER_CONSUMERS, RULES, Operator, account
from rotations import direct, patiently
from situations.place import Ground, Place
from situations.serving_pods import PORT, ServingPods

import manifests  # noqa: E402  (situations.place has its folder)
from certroll_dev import tools  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402

Object = dict[str, Any]
_NAMESPACE = "gitops"
# It opens in twelve hours, before any leaf here has ended.
_CLOSED = [{"schedule": f"0 {(time.gmtime().tm_hour + 12) % 24} * * *", "duration": "1m"}]
_OWN = "example.com/team"
_DEADLINE_S = 120.0

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class World:
    ground: Ground
    server: GitServer
    folder: Path


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("gitops")
    control_plane.kubectl("create", "namespace", _NAMESPACE)
    try:
        kubeconfig = account(control_plane, _NAMESPACE, "operator", [*RULES, OTHER_CONSUMERS], folder)
        with direct(control_plane) as api, GitServer(folder / "git") as server, _operator(control_plane, kubeconfig, folder):
            authority, other = pki.new_authority(1), pki.new_authority(2)
            with ServingPods(control_plane, api, _NAMESPACE, authority) as pods:
                yield World(Ground(control_plane, api, _NAMESPACE, pods, authority, other), server, folder)
    finally:
        control_plane.kubectl("delete", "namespace", _NAMESPACE, "--wait=false")


@contextlib.contextmanager
def _operator(plane: ControlPlane, kubeconfig: Path, folder: Path) -> Iterator[None]:
    operator = Operator(plane, _NAMESPACE, "operator", kubeconfig, folder, "--leader-elect=false", f"--operator-namespace={_NAMESPACE}")
    try:
        operator.wait_line("serving")
        yield
    finally:
        operator.end()


@pytest.fixture(scope="module")
def argo_cd(world: World) -> Iterator[ArgoCD]:
    with ArgoCD(world.ground.plane, world.ground.api, world.folder) as found:
        yield found


@pytest.fixture(scope="module")
def flux(world: World) -> Iterator[Flux]:
    with Flux(world.ground.plane, world.ground.api, world.folder) as found:
        yield found


_DELIVERIES: dict[str, Callable[[pytest.FixtureRequest], Delivery]] = {
    "argo-client-side": lambda request: Application(request.getfixturevalue("argo_cd")),
    "argo-server-side": lambda request: Application(request.getfixturevalue("argo_cd"), "ServerSideApply=true"),
    "flux": lambda request: Kustomization(request.getfixturevalue("flux")),
}


class Shop:
    """A Deployment that mounts a Secret, the policy that restarts it, and settings, which Argo CD applies once both are healthy."""

    def __init__(self, place: Place) -> None:
        self.place, self.name = place, place.name
        self._api, self._namespace = place.ground.api, place.ground.namespace
        place.apps.append(self.name)

    def objects(self, version: str = "1", settings: str = "1", annotations: Object | None = None, **restart: Any) -> dict[str, Object]:
        """By names of files. All but the Secret. `annotations` are those of the pod template."""
        deployment = manifests.deployment(self._namespace, self.name, self.name)
        deployment["spec"] |= {"replicas": 2, "revisionHistoryLimit": 10}
        deployment["spec"]["template"]["metadata"]["annotations"] = {_OWN: "shop"} | (annotations or {})
        deployment["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "VERSION", "value": version}]
        consumer = manifests.listed(self.name)[0] | {"verify": {"port": PORT}}
        policy = manifests.policy(self._namespace, self.name, {"secrets": [{"name": self.name}], "consumers": [consumer]})
        policy["spec"]["restart"] |= restart
        metadata = {"namespace": self._namespace, "name": self.name, "annotations": {"argocd.argoproj.io/sync-wave": "1"}}
        later = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": settings}}
        return {"deployment": deployment, "policy": policy, "settings": later}

    def rollouts(self) -> tuple[int, int]:
        """How often the Deployment was changed, which a change back would be, too; and how many ReplicaSets it has."""
        changes = int(self._deployment()["metadata"]["generation"])
        return changes, len(self._api.list("replicasets", self._namespace, f"app={self.name}"))

    def marks(self) -> Object:
        """What certroll has left in the pod template."""
        annotations: Object = self._deployment()["spec"]["template"]["metadata"]["annotations"]
        assert annotations[_OWN] == "shop"
        return {key: value for key, value in annotations.items() if key != _OWN}

    def wait_rolled(self, rollouts: int) -> None:
        wait_until(f"rollout {rollouts} of {self.name}", lambda: self.rollouts() == (rollouts, rollouts), _DEADLINE_S)

    def wait_blocked(self, reason: str) -> None:
        def reasons() -> list[str]:
            return [each.get("blockedReason", "") for each in self.place.policy()["status"].get("consumers", [])]

        try:
            wait_until(f"{self.name} to wait for {reason}", lambda: reasons() == [reason], _DEADLINE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.place.policy()['status']}") from None

    def _deployment(self) -> Object:
        return patiently(lambda: self._api.get("deployments", self._namespace, self.name))


class Delivered(Shop):
    """By a tool, from a repository."""

    def __init__(self, place: Place, repository: Repository, delivery: Delivery) -> None:
        super().__init__(place)
        self._repository, self.delivery = repository, delivery

    def begin(self) -> None:
        self.place.rotate()
        self.commit()
        self.delivery.follow(self._repository, self._revision, self.place.ground.namespace)
        self.wait_at_rest()

    def end(self) -> None:
        self.delivery.forget(self._repository)

    def commit(self, **what: Any) -> None:
        self._revision = self._repository.commit(self.objects(**what))

    def look_again(self) -> None:
        """Until the tool has compared all, and applied what there is to apply."""
        self.delivery.look_again(self.name, self._revision)

    def deliver(self, **what: Any) -> None:
        self.commit(**what)
        self.look_again()

    def wait_at_rest(self) -> None:
        """The rotation and the tool: Argo CD takes what it has just applied for drift while its cache is older, and applies it again."""
        self.place.wait_settled()
        for _ in range(2):
            self.look_again()
        self.wait_health(HEALTHY)

    def wait_health(self, health: str) -> None:
        try:
            wait_until(f"{self.name} to be {health}", lambda: self.delivery.say(self.name).health == health, _DEADLINE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.delivery.say(self.name)}") from None


@pytest.fixture(params=_DELIVERIES)
def delivery(request: pytest.FixtureRequest) -> Delivery:
    return _DELIVERIES[request.param](request)


@pytest.fixture
def shop(request: pytest.FixtureRequest, world: World, delivery: Delivery) -> Iterator[Delivered]:
    yield from _delivered(world, f"{request.node.callspec.id}-{request.function.__name__.split('_')[-1]}", delivery)


def _delivered(world: World, name: str, delivery: Delivery) -> Iterator[Delivered]:
    made = Delivered(Place(world.ground, name), world.server.repository(name), delivery)
    try:
        made.begin()
        yield made
    finally:
        made.end()


def test_a_rotation_and_a_commit_are_one_rollout_each(shop: Delivered) -> None:
    pods, written = shop.place.ground.pods, shop.delivery.changes(shop.name)
    assert shop.rollouts() == (1, 1)
    pods.hold_back(shop.name)
    with Listener(shop.delivery, shop.name) as heard:
        wait_until("a first word", lambda: heard.health)
        shop.place.rotate()
        shop.wait_rolled(2)
        wait_until("the rotation to be told", lambda: PROGRESSING in heard.health, _DEADLINE_S)
        pods.let_go(shop.name)
        shop.wait_at_rest()
        wait_until("the end to be told", lambda: heard.health[-1] == HEALTHY)
    assert not heard.drift and DEGRADED not in heard.health, str(heard)
    assert shop.delivery.changes(shop.name) == written, "it has written something, and nobody has changed the repository"
    assert shop.rollouts() == (2, 2)

    marks = shop.marks()
    shop.deliver(version="2")
    shop.wait_rolled(3)
    shop.wait_at_rest()
    assert shop.rollouts() == (3, 3)
    assert shop.marks() == marks, "the commit has undone the restart"


def test_what_waits_for_a_window_is_healthy_and_no_sync_hangs(shop: Delivered) -> None:
    shop.deliver(windows=_CLOSED)
    shop.place.rotate()
    shop.wait_blocked("Window")
    with Listener(shop.delivery, shop.name) as heard:
        shop.deliver(windows=_CLOSED, settings="2")  # which Argo CD applies once the policy is healthy
        shop.look_again()
        shop.wait_health(HEALTHY)
    assert DEGRADED not in heard.health, str(heard)
    assert shop.rollouts() == (1, 1)
    shop.deliver()
    shop.place.wait_settled()
    shop.look_again()
    shop.wait_health(HEALTHY)
    assert shop.rollouts() == (2, 2)


def test_a_stuck_rotation_is_degraded_until_it_is_mended(shop: Delivered) -> None:
    shop.place.spoil(tls_key=pki.new_key())
    shop.wait_health(DEGRADED)
    assert shop.rollouts() == (1, 1)
    shop.place.rotate()
    shop.place.wait_settled()
    shop.look_again()
    shop.wait_health(HEALTHY)
    assert shop.rollouts() == (2, 2)


def test_a_restart_time_in_the_repository_costs_a_rollout_each_time_unless_spared(shop: Delivered) -> None:
    """As `kubectl rollout restart` leaves it, in a manifest that was taken from the cluster."""
    written = {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}
    shop.deliver(**written)
    shop.wait_rolled(2)
    shop.place.wait_settled()
    shop.place.rotate()
    wait_until("the tool to write its time over that of the restart", lambda: shop.rollouts()[0] == 4, _DEADLINE_S)
    shop.place.wait_settled()
    shop.look_again()
    shop.wait_health(HEALTHY)
    before = shop.rollouts()[0]
    shop.delivery.spare(shop.name)
    shop.look_again()
    shop.place.rotate()
    shop.wait_at_rest()
    assert shop.rollouts()[0] == before + 1
    shop.deliver(version="2", **written)
    wait_until("the rollout of the commit", lambda: shop.rollouts()[0] > before + 1, _DEADLINE_S)
    shop.place.wait_settled()
    shop.look_again()
    shop.wait_health(HEALTHY)
    assert shop.rollouts()[0] == before + 2


@pytest.fixture
def replaced(world: World, argo_cd: ArgoCD) -> Iterator[Delivered]:
    yield from _delivered(world, "argo-replace", Application(argo_cd, "Replace=true"))


def test_where_objects_are_replaced_each_sync_is_one_more_rollout(replaced: Delivered) -> None:
    """So the page tells to leave it off. Nothing fights: certroll sees that all pods have what it restarted them for."""
    replaced.place.rotate()
    replaced.place.wait_settled()
    replaced.look_again()
    assert replaced.rollouts()[0] == 2
    replaced.deliver(settings="2")
    wait_until("the restart to be undone", lambda: replaced.rollouts()[0] == 3, _DEADLINE_S)
    replaced.wait_health(HEALTHY)
    replaced.place.rotate()
    replaced.place.wait_settled()
    replaced.look_again()
    replaced.wait_health(HEALTHY)
    assert replaced.rollouts()[0] == 4


@pytest.mark.parametrize("helm", ["helm", "helm-4"])
def test_an_upgrade_of_a_release_is_one_rollout_and_keeps_restarts(world: World, tmp_path: Path, helm: str) -> None:
    """Helm 3 merges, Helm 4 applies on the server's side and waits for all kinds."""
    shop, program = Shop(Place(world.ground, f"{helm}-release")), tools.ensure([helm])[helm]
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "shop", "version": "1.0.0"}))

    def run(*words: str | Path) -> None:
        world.ground.plane.run(program, *words, "--namespace", _NAMESPACE)

    def upgrade(**what: Any) -> None:
        for name, each in shop.objects(**what).items():
            (chart / "templates" / f"{name}.yaml").write_text(yaml.safe_dump(each))
        run("upgrade", "--install", "--wait", "--timeout", "90s", shop.name, chart)

    shop.place.rotate()
    upgrade(windows=_CLOSED)
    shop.place.wait_settled()
    shop.place.rotate()
    shop.wait_blocked("Window")
    upgrade(windows=_CLOSED, settings="2")  # does not wait for the window
    assert shop.rollouts() == (1, 1)
    upgrade()
    shop.place.wait_settled()
    assert shop.rollouts() == (2, 2)
    marks = shop.marks()
    upgrade()
    upgrade(version="2")
    shop.place.wait_settled()
    assert shop.rollouts() == (3, 3) and shop.marks() == marks
    run("rollback", "--wait", shop.name)
    shop.place.wait_settled()
    assert shop.rollouts()[0] == 4 and shop.marks() == marks
    run("uninstall", shop.name)
