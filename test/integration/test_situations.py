"""What a policy says in each situation, beside what is true: no summary is green where it should not be.

A real API server and controllers, the operator, a Prometheus with the manifests' rules, and pods that serve TLS. The table is
docs/situations.md; `--write-docs` writes what this run has seen into its data.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane
from operators import LEASES, OTHER_CONSUMERS, RULES, Operator, account
from prometheus import Prometheus
from rotations import direct
from situations.place import Ground, Place
from situations.seen import Seen, look
from situations.serving_pods import ServingPods
from situations.table import ALONE, ENDS_IN_PLACE_S, GROUPS, Situation

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev import situations_docs  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402

_STILL_S = 120.0  # with --write-docs: so long nothing that is said has changed
_DEADLINE_S = 480.0  # a pod that comes up with the old leaf is evicted five times, a minute and more apart
_AGAIN = "with an operator again: "
Table = dict[str, Seen]
Looks = dict[str, list[Seen]]  # what was said of each situation, one after another; the last is what the table has, or what was said last

pytestmark = pytest.mark.timeout(2400)


class Stage:
    """All situations at once, each with a policy of its own, under one operator."""

    def __init__(self, plane: ControlPlane, ground: Ground, kubeconfig: Path, folder: Path) -> None:
        self.ground = ground
        self.places: dict[str, Place] = {}
        self._plane, self._kubeconfig, self._folder = plane, kubeconfig, folder

    @contextlib.contextmanager
    def operator(self) -> Iterator[Operator]:
        namespace = self.ground.namespace
        flags = (f"--operator-namespace={namespace}", "--hosts-in-use")
        operator = Operator(self._plane, namespace, "operator", self._kubeconfig, self._folder, *flags)
        try:
            operator.wait_line("serving")
            yield operator
        finally:
            operator.end()

    def begin(self, situations: Mapping[str, Situation]) -> None:
        for name, situation in situations.items():
            place = self.places[name] = situation.place(self.ground, name)
            situation.begin(place)

    def bring_about(self, situations: Mapping[str, Situation]) -> None:
        for name, situation in situations.items():
            if situation.settles:
                self.places[name].wait_settled()
        for name, situation in situations.items():
            situation.then(self.places[name])

    def look(self, alerts: Prometheus, names: Mapping[str, Situation]) -> Table:
        api, namespace = self.ground.api, self.ground.namespace
        kinds = {self.places[name].kind for name in names}
        firing = alerts.firing()  # first: a leader that has caught up has reconciled what is read after this
        told = {(kind, each["metadata"]["name"]): each for kind in kinds for each in api.list(kind, namespace)}
        events = api.list("events", namespace)
        for name in names:
            self.places[name].look()
        return {name: look(self.places[name], told[self.places[name].kind, name], firing, events) for name in names}


def _chosen(request: pytest.FixtureRequest) -> set[str]:
    """The situations of the tests of this run (-k): no others are played."""
    params = [item.callspec.params for item in request.session.items if isinstance(item, pytest.Function) and item.module is request.module]
    return {str(each["name"]).removeprefix(_AGAIN) for each in params}


@pytest.fixture(scope="module")
def seen(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Looks:
    """All situations as they come about."""
    folder = tmp_path_factory.mktemp("situations")
    namespace = "situations"
    control_plane.kubectl("create", "namespace", namespace)
    try:
        kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES, OTHER_CONSUMERS], folder)
        known = None if request.config.getoption("--write-docs") else _known()
        with direct(control_plane) as api:
            authority, other = pki.new_authority(1), pki.new_authority(2)
            with ServingPods(control_plane, api, namespace, authority) as pods:
                stage = Stage(control_plane, Ground(control_plane, api, namespace, pods, authority, other), kubeconfig, folder)
                return _play(stage, control_plane, folder, known, _chosen(request))
    finally:
        control_plane.kubectl("delete", "namespace", namespace, "--wait=false")


def _play(stage: Stage, plane: ControlPlane, folder: Path, known: Table | None, chosen: set[str]) -> Looks:
    situations = {name: situation for group in GROUPS.values() for name, situation in group.items() if name in chosen}
    alone = {name: situation for name, situation in ALONE.items() if name in chosen}
    found: Looks = {}
    with contextlib.ExitStack() as rest:
        with stage.operator() as operator:
            stage.begin(situations | alone)
            for name, situation in alone.items():
                if situation.settles:
                    stage.places[name].wait_settled()
            stage.bring_about(situations)
            alerts = rest.enter_context(Prometheus(plane, folder, _port(operator)))
            time.sleep(ENDS_IN_PLACE_S)
            found |= _wait(lambda: stage.look(alerts, situations), known)
        for name, situation in alone.items():
            situation.then(stage.places[name])
        found |= _wait(lambda: stage.look(alerts, alone), known)
        with stage.operator() as operator:
            alerts.scrape(_port(operator))
            found |= _wait(lambda: {_AGAIN + name: each for name, each in stage.look(alerts, alone).items()}, known)
    return found


def _port(operator: Operator) -> int:
    return int(operator.lines("serving")[0]["port"])


def _wait(look_again: Callable[[], Table], known: Table | None) -> Looks:
    """Until all that is known was said of each situation once (some are told otherwise when a deadline has passed, while others take
    minutes to come about), or until what is said stays so. Not a word of it is left out when it never does."""
    looks: Looks = {}
    end, still = time.monotonic() + _DEADLINE_S, time.monotonic()
    while time.monotonic() < end:
        for name, each in look_again().items():
            said = looks.setdefault(name, [])
            if not _is_known(name, said, known) and said[-1:] != [each]:
                said.append(each)
                still = time.monotonic()
        if all(_is_known(name, said, known) for name, said in looks.items()):
            break
        if not known and time.monotonic() - still > _STILL_S:
            break
        time.sleep(1.0)
    return looks


def _is_known(name: str, said: list[Seen], known: Table | None) -> bool:
    return known is not None and said[-1:] == [known.get(name)]


def _known() -> Table:
    return {name: Seen.of(line) for name, line in situations_docs.seen(ROOT).items()}


@pytest.fixture(scope="module", autouse=True)
def written(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--write-docs"):
        table: Table = _known() | {name: said[-1] for name, said in request.getfixturevalue("seen").items()}
        about = {group: {name: each.what for name, each in situations.items()} for group, situations in GROUPS.items()}
        about |= {"No operator": {name: each.what for name, each in ALONE.items()}}
        about |= {"The operator is back": {_AGAIN + name: each.what for name, each in ALONE.items()}}
        situations_docs.write(ROOT, about, {name: each.line() for name, each in table.items()})


_ALL = [name for group in GROUPS.values() for name in group] + list(ALONE) + [_AGAIN + name for name in ALONE]


@pytest.mark.parametrize("name", _ALL)
def test_nothing_is_green_that_should_not_be(seen: Looks, name: str) -> None:
    """Whoever waits as docs/operations.md says is never wrong. The condition alone is not while an operator leads, but where the
    policy itself has it that what was not seen is inferred."""
    situation = _situation(name)
    if situation.inferred:
        return
    for each in seen[name]:
        assert each.is_true or not each.waited, each
        assert each.is_true or not each.is_green or name in ALONE or "NoLeader" in each.alerts, each


@pytest.mark.parametrize("name", _ALL)
def test_each_situation_is_told_as_the_table_has_it(seen: Looks, name: str) -> None:
    assert seen[name][-1] == _known()[name]


def _situation(name: str) -> Situation:
    return {key: each for group in [*GROUPS.values(), ALONE] for key, each in group.items()}[name.removeprefix(_AGAIN)]
