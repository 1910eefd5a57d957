"""The operator killed (SIGKILL) before and after each write of a trust domain's rotation (by turns, both with CERTROLL_LONG=1):
nothing is issued twice, nobody is cut off.

The writes are those of a recorded rotation without a kill. At each moment of each rotation every published leaf must verify against
every published bundle, and in the end each leaf and the CA have changed exactly once.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.api import API  # noqa: E402
from domains import Domains, Watching, at_rest, authority, broken_trust, certificates, issue, issued, verifies  # noqa: E402
from operators import RULES, account  # noqa: E402
from write_points import Point, Write  # noqa: E402
from write_proxy import Trap, When, WriteProxy  # noqa: E402

_LONG = os.environ.get("CERTROLL_LONG") == "1"
_LEAVES = ("server", "client")
_LANES = {"CA": 3, "Leaves": 2}  # side by side: each waits most of the time
_OWN = ("secrets", "trustdomains/status")  # what policies write is test_crash_points.py's

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Kill:
    point: Point
    when: When

    def __str__(self) -> str:
        return f"killed {self.when} {self.point}"


def test_each_write_of_a_rotation(control_plane: ControlPlane, api: API, tmp_path: Path) -> None:
    def run(what: str, number: int) -> list[str]:
        namespace = f"domain-crash-{what.lower()}-{number}"
        folder = tmp_path / namespace
        folder.mkdir()
        control_plane.kubectl("create", "namespace", namespace)
        try:
            kubeconfig = account(control_plane, namespace, "operator", RULES, folder)
            with Lane(control_plane, api, namespace, kubeconfig, folder, what) as lane:
                return lane.run(number, _LANES[what])
        finally:
            control_plane.kubectl("delete", "namespace", namespace, "--wait=false")

    lanes = [(what, number) for what, count in _LANES.items() for number in range(count)]
    with ThreadPoolExecutor(len(lanes)) as pool:
        wrong = [problem for found in pool.map(run, *zip(*lanes, strict=True)) for problem in found]
    assert not wrong, "\n".join(["", *wrong])


class Lane:
    """A domain at rest, an operator behind a proxy, and one rotation after the other."""

    def __init__(self, plane: ControlPlane, api: API, namespace: str, kubeconfig: Path, folder: Path, what: str) -> None:
        self._api = api
        self._namespace = namespace
        self._what = what
        self._tokens = itertools.count(1)
        self._proxy = WriteProxy(json.loads(kubeconfig.read_text()), folder)
        self._kubeconfig = folder / "proxy.kubeconfig"
        self._domains = Domains(plane, api, namespace, self._kubeconfig, folder / "stage")

    def __enter__(self) -> Lane:
        self._proxy.__enter__()
        self._proxy.kubeconfig(self._kubeconfig)
        return self

    def __exit__(self, *_: object) -> None:
        self._domains.stop()
        self._proxy.__exit__()

    def run(self, number: int, lanes: int) -> list[str]:
        """Of all points each lane takes its share. The first rotation is killed at nothing."""
        domains = self._domains
        domains.start()
        domains.cover(*_LEAVES)
        domains.apply(authority=authority(), leaves=[{"name": each, "source": issue()} for each in _LEAVES])
        domains.vouch(*_LEAVES)
        domains.wait_idle()
        wrong = self._rotate(None)
        points = sorted({write.point for write in self._writes()})
        whens = ("before", "after")
        kills = [Kill(point, when) for point in points for when in whens]
        if not _LONG:  # by turns
            kills = [Kill(point, whens[index % 2]) for index, point in enumerate(points)]
        missed = []
        for kill in kills[number::lanes]:
            found = self._rotate(kill)
            missed += [] if self._struck else [kill]
            print(f"{self._what} {kill}{'' if self._struck else ' (missed)'}: {found or 'as it should be'}")
            wrong += found
        # A status may tell two things in one; of the rest each must have been hit.
        return wrong + [f"never {kill}" for kill in missed if "status" not in kill.point.label]

    def _writes(self) -> list[Write]:
        return [write for write in self._proxy.writes() if write.target.kind in _OWN]

    def _rotate(self, kill: Kill | None) -> list[str]:
        domains = self._domains
        before = domains.secret("mesh-ca")
        trap = Trap(kill.point, kill.when, lambda _: domains.operator.end()) if kill else None
        with Watching(self._api, self._namespace) as watching:
            self._proxy.begin(trap)
            domains.rotate(self._what, f"token-{next(self._tokens)}")
            self._struck = bool(trap) and self._catch(trap)
            if self._struck:
                domains.start()
            domains.wait_idle(timeout=120)
            self._proxy.set(None)
            moments = list(watching.moments())
        wrong = broken_trust(iter(moments), _LEAVES)
        changed = {name: len(serials) - 1 for name, serials in issued(iter(moments), [*_LEAVES, "mesh-ca"]).items()}
        expected = {name: 1 for name in _LEAVES} | {"mesh-ca": int(self._what == "CA")}
        wrong += [] if changed == expected else [f"certificates issued: {changed}"]
        wrong += [f"left behind: {name}" for name in moments[-1].secrets if name.startswith("certroll-staging-")]
        return [f"{kill or 'not killed'}: {problem}" for problem in wrong + self._judge_end(before["tls.crt"])]

    def _judge_end(self, ca_before: bytes) -> list[str]:
        """The bundle is that of the CA as it is now, then as it was before."""
        ca = self._domains.secret("mesh-ca")["tls.crt"]
        cas = certificates(ca) + (certificates(ca_before) if self._what == "CA" else [])
        wrong = []
        for name in _LEAVES:
            leaf = self._domains.secret(name)
            bundle = certificates(leaf["ca.crt"])
            wrong += [] if bundle[: len(cas)] == cas else [f"the bundle of {name} is not [new, previous]"]
            wrong += [] if verifies(leaf["tls.crt"], ca) else [f"the leaf of {name} is not of the CA"]
        return wrong

    def _catch(self, trap: Trap) -> bool:
        wait_until("the kill, or the end", lambda: trap.sprung() or self._missed(trap), 120, pause=0.02)
        return trap.sprung()

    def _missed(self, trap: Trap) -> bool:
        return self._proxy.quiet_for() > 2 and at_rest(self._domains.get()) and self._proxy.take_back(trap)
