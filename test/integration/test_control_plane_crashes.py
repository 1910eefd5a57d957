"""The operator killed (SIGKILL) before and after each write of a rotation of service accounts' key (by turns and of many
status writes the first two, all with CERTROLL_LONG=1): one restart is ordered, and carried out once; token Secret, workload and ConfigMap follow once.

The writes are those of a recorded rotation without a kill.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from control_planes import KEY, NAME, SYSTEM, World, fake, world  # noqa: E402
from paper_pods import PaperPods  # noqa: E402
from write_points import Point  # noqa: E402
from write_proxy import Trap, When, WriteProxy  # noqa: E402

_LONG = os.environ.get("CERTROLL_LONG") == "1"
_OLD = fake("the key before")
_WHENS: tuple[When, ...] = ("before", "after")

pytestmark = pytest.mark.timeout(1500 if _LONG else 900)


@pytest.fixture
def place(control_plane: ControlPlane, api: Any, namespace: str, tmp_path: Path) -> Iterator[World]:
    with world(control_plane, api, namespace, tmp_path) as found:
        yield found


def test_each_write_of_a_rotation(place: World) -> None:
    with WriteProxy(json.loads(place.kubeconfig.read_text()), place.folder) as proxy, PaperPods(place.api, [place.apps]):
        lane = Lane(place, proxy)
        wrong = lane.rotate(None, "before")
        points = sorted({write.point for write in proxy.writes() if write.target.kind != "events"})
        labels = {point.label for point in points}
        assert {label.split("/")[0] for label in labels} == {
            "PATCH controlplanepolicies", "PATCH nodecertificatereports", "PATCH secrets", "PATCH deployments", "PATCH configmaps"
        }  # fmt: skip
        kills = [(point, when) for point in points for when in _WHENS]
        if not _LONG:  # by turns: each rotation takes half a minute
            told = [point for point in points if "status" in point.label]
            some = [point for point in points if point not in told[2:]]
            kills = [(point, _WHENS[index % 2]) for index, point in enumerate(some)]
        for point, when in kills:
            wrong += lane.rotate(point, when)
        # A status may tell two things in one; of the rest each must have been hit.
        wrong += [f"never {when} {point}" for point, when in lane.missed if "status" not in point.label]
        assert not wrong, "\n".join(["", *wrong])
        assert not proxy.errors


class Lane:
    def __init__(self, place: World, proxy: WriteProxy) -> None:
        self._place, self._proxy = place, proxy
        self._kubeconfig = proxy.kubeconfig(place.folder / "proxy.kubeconfig")
        self._reader = place.make_reader()
        self.missed: list[tuple[Point, When]] = []

    def rotate(self, point: Point | None, when: When) -> list[str]:
        """From a policy that has settled to one that has converged."""
        place, what = self._place, f"killed {when} {point}" if point else "not killed"
        with place.agents(small=True, **{"sa.pub": [_OLD, place.key], "sa.key": [_OLD]}) as agents:
            self._settle()
            generation = place.reader()[0]
            trap = Trap(point, when, lambda _: place.operator and place.operator.end()) if point else None
            self._proxy.begin(trap)
            agents.write("sa.key", [place.key])
            struck = bool(trap) and self._catch(trap)
            if point and not struck:
                self.missed.append((point, when))
            if struck:
                place.start(self._kubeconfig)
            place.wait("the rotation to be over", lambda: self._is_over(agents.order("paper-1")))
            self._proxy.set(None)
            restarts = [each.component for each in agents.restarts]
        renewed = sum(write.applied for write in self._proxy.writes() if write.target.kind == "secrets")
        print(f"{what}: {restarts}{'' if struck or not point else ' (missed)'}")
        wrong = [] if restarts == ["kube-controller-manager"] else [f"restarts: {restarts}"]
        wrong += [] if renewed == 1 else [f"the token was removed {renewed} times"]
        wrong += [] if place.reader()[0] == generation + 1 else [f"the workload was restarted {place.reader()[0] - generation} times"]
        wrong += [] if place.status().get("restarting") is None else ["a restart is still under way"]
        return [f"{what}: {problem}" for problem in wrong]

    def _is_over(self, order: Any) -> bool:
        place = self._place
        if place.condition("Converged")[0] != "True" or order or place.published() != place.key:
            return False
        return place.key_of_secret("robot-token") == place.key and place.reader()[1] == place.key

    def _settle(self) -> None:
        """As if nothing had ever been."""
        place = self._place
        place.stop()
        for delete in (("cpp", NAME), ("configmap", KEY)):
            place.plane.kubectl("-n", SYSTEM, "delete", *delete, "--ignore-not-found")
        place.plane.kubectl("-n", place.apps, "delete", "secret", "robot-token", "--ignore-not-found")
        place.make_token_secret("robot-token", _OLD)
        place.apply(workloads=[self._reader])
        self._proxy.set(None)
        place.start(self._kubeconfig)
        place.wait("the key before to be published", lambda: place.published() == _OLD)
        place.wait_converged()
        time.sleep(1.1)  # pods tell their start in whole seconds: not a wait for anything

    def _catch(self, trap: Trap) -> bool:
        wait_until("the kill, or the end", lambda: trap.sprung() or self._missed(trap), 120, pause=0.02)
        return trap.sprung()

    def _missed(self, trap: Trap) -> bool:
        return self._proxy.quiet_for() > 3 and self._is_over(None) and self._proxy.take_back(trap)
