"""What the catalogue says about a program is what the program does, seen by handshakes with the real one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import catalogue  # noqa: E402
from catalogue import Answer  # noqa: E402
from certroll_dev import namespaces  # noqa: E402
from programs import clouds, known  # noqa: E402
from programs.material import Generations  # noqa: E402
from programs.observe import Observation, differences, observe  # noqa: E402
from programs.program import SECRET, Program  # noqa: E402

NAMES = (
    "nginx", "apache", "haproxy", "redis", "postgresql", "mariadb", "etcd", "etcd-member", "coredns", "contour", "envoy-static",
    "envoy-sds",
)


def _row(name: str, method: str, **rest: str) -> dict[str, Any]:
    """A catalogue with one entry, which says the same of all roles."""
    rule = {"method": method, "confidence": "verified", "source": "a test", **rest}
    use = {"roles": ["serverLeaf", "clientLeaf", "clientCA", "serverCA"], "rules": [rule]}
    return {"schema": 1, "components": [{"name": name, "images": [name], "uses": [use]}]}


# Deliberately wrong: what is said, of which program, and what must be found.
WRONG = {
    "a restart is called a watch": ("envoy-static", _row("envoyproxy/envoy", "Watch"), "it was not taken up by itself"),
    "a watch is called a restart": ("envoy-sds", _row("envoyproxy/envoy", "Restart"), "it was taken up by itself"),
    "another signal": ("nginx", _row("nginx", "Signal", trigger="SIGUSR1"), "not taken up after SIGUSR1"),
}


def _ask(program: Program, overrides: Path | None) -> Mapping[str, Answer]:
    """For a change of the leaf and one of the trust."""
    changes = {"leaf": catalogue.LEAF_CHANGED, "trust": catalogue.TRUST_CHANGED}
    return {name: catalogue.ask(program.pod(), SECRET, changes[name], overrides) for name in changes}


class Case:
    """A program, what is said about it, and in the end what was seen."""

    def __init__(self, program: Program, answers: Mapping[str, Answer], future: Future[Observation]) -> None:
        self.program, self.answers, self._future = program, answers, future

    @property
    def differences(self) -> list[str]:
        return differences(self.answers, self._future.result())


@pytest.fixture(scope="session")
def cases(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    """All at once: each waits most of its time. They are in the network of the control plane, where nobody else is."""
    folder = tmp_path_factory.mktemp("programs")
    control_plane.kubectl("apply", "-f", "-", input="".join(json.dumps(crd) for crd in clouds.contour_crds()))
    control_plane.wait_for_crds()
    network = Path("/run/netns") / control_plane.netns
    generations = Generations(folder)

    def run(program: Program, answers: Mapping[str, Answer], place: Path) -> Observation:
        return namespaces.in_network(network, lambda: observe(program, answers, generations, place))

    programs = _programs(control_plane)
    with ThreadPoolExecutor(max_workers=len(programs)) as executor:
        found = {}
        for name, (program, wrong) in programs.items():
            place = folder / name.replace(" ", "-")
            file = None
            if wrong:
                place.mkdir()
                file = place / "catalogue.yaml"
                file.write_text(json.dumps(wrong))
            answers = _ask(program, file)
            found[name] = Case(program, answers, executor.submit(run, program, answers, place))
        yield found


def _programs(plane: ControlPlane) -> dict[str, tuple[Program, dict[str, Any] | None]]:
    ports = iter(known.PORTS)
    make = known.makers(plane.kubeconfig.read_text())
    right = {name: (make[name](next(ports)), None) for name in NAMES}
    return right | {title: (make[name](next(ports)), wrong) for title, (name, wrong, _) in WRONG.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_program_does_what_the_catalogue_says(cases: dict[str, Case], name: str) -> None:
    found = cases[name].differences
    assert not found, "\n".join(found)


@pytest.mark.parametrize("title", WRONG)
def test_a_wrong_row_is_found(cases: dict[str, Case], title: str) -> None:
    """Each role that the wrong row is about must differ, not just some."""
    case, (_, _, expected) = cases[title], WRONG[title]
    for role in sorted(case.program.roles):
        found = [text for text in case.differences if text.startswith(f"{role}: ")]
        assert found and all(expected in text for text in found), f"{role}: {case.differences}"
