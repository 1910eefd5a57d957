"""Each row of the seed's Table 1 on real programs: what certroll predicts of a parameter is what is seen from outside.

The table is docs/control-plane-rows.md; `--write-docs` writes what this run has seen into its data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from certroll_dev import rows_docs, tools
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.paths import REPOSITORY
from programs.observe import BY_ITSELF, Seen
from rows import nodes, of_api, of_managers, of_others, result
from rows.nodes import Nodes
from rows.planes import TURNS, Planes
from rows.predict import Product
from rows.row import Row
from rows.run import Outcome, run, run_at_once

# All of it is seen by one fixture, five minutes of which are the poll of client-go.
pytestmark = pytest.mark.timeout(1500)
_ROWS = range(1, 23)


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """One node with the control plane, and a worker."""
    found = LocalCluster(f"{request.config.getoption('--cluster-name')}-rows")
    keep = request.config.getoption("--keep-cluster")
    if not keep:
        found.down()  # of a run that was killed
    try:
        if not found.exists():  # of one that was kept the kubelets have lost their server, which was a tap
            found.up("--control-plane-nodes", "1", "--nodes", "2", "--kubeconfig-files")
        yield found
    finally:
        if not keep:
            found.down()


@pytest.fixture(scope="module")
def agent(request: pytest.FixtureRequest) -> Path:
    operator: Path = request.config.getoption("--operator")
    program = operator.absolute().with_name("certroll-node-agent")
    assert program.exists(), f"{program} is not there: run hack/build --preset dev"
    return program


@pytest.fixture(scope="module")
def predicted(plane: LocalCluster, agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Outcome]]:
    """All rows, in the table's order, of programs that run; nothing of them has been looked at."""
    place = tmp_path_factory.mktemp("rows")
    with plane.network():
        planes = Planes(plane.layout, place / "planes")
        with planes.running():
            own = Nodes(planes)
            own.ready()
            rows = [*of_api.rows(planes), *of_managers.rows(planes), *of_others.rows(planes), *nodes.rows(own)]
            rows.sort(key=lambda row: row.seed)
            predictions = _predictions(agent, planes, own, rows, place)
            yield [Outcome(row, predictions[row.title], Seen()) for row in rows]


@pytest.fixture(scope="module")
def outcomes(predicted: list[Outcome]) -> list[Outcome]:
    """What has been seen of them."""
    run(predicted, TURNS)
    return predicted


def _predictions(agent: Path, planes: Planes, own: Nodes, rows: Sequence[Row], place: Path) -> Mapping[str, Any]:
    manifests = place / "manifests"
    manifests.mkdir()
    for program in planes.programs.values():
        program.write_manifest(manifests)
    own.write_manifests(manifests)
    product = Product(agent)
    product.ask_manifests(manifests)
    product.ask_node(own.first)
    product.ask_node(own.second)
    return product.predictions(rows, own.inside_out())


@pytest.fixture(scope="module", autouse=True)
def written(request: pytest.FixtureRequest) -> None:
    """With --write-docs what was seen becomes the data of the page, when it is as predicted."""
    if not request.config.getoption("--write-docs"):
        return
    outcomes: list[Outcome] = request.getfixturevalue("outcomes")
    if not any(map(result.differences, outcomes)):
        about = {name: tools.version_of(program).removeprefix("v") for name, program in _PROGRAMS.items()}
        about["machine"] = f"{os.cpu_count()} cores, load {os.getloadavg()[1]:.0f}"
        result.write(outcomes, REPOSITORY / rows_docs.RESULT, about)


_PROGRAMS = {"kubernetes": "kubelet", "etcd": "etcd", "coredns": "coredns"}


def test_what_is_taken_up_at_once_is_as_predicted(predicted: list[Outcome]) -> None:
    """The part of the rows that the gate has time for; the others are polled for, or take a restart."""
    at_once = run_at_once(predicted, TURNS)
    assert at_once
    assert not [text for each in at_once for text in result.differences(each)]


@pytest.mark.parametrize("number", _ROWS)
def test_a_row_is_as_predicted(outcomes: list[Outcome], number: int, report: list[str]) -> None:
    mine = [each for each in outcomes if each.row.seed == number]
    assert mine, "no such row was tried"
    report.extend(result.text(each) for each in mine)
    found = [text for each in mine for text in result.differences(each)]
    assert not found, "\n".join(found)


def test_a_wrong_prediction_is_found(outcomes: list[Outcome]) -> None:
    """Of each row that can be seen: what is taken up is called a restart, and what is not is called a watch."""
    for outcome in outcomes:
        if outcome.row.unobservable:
            continue
        hot = outcome.entry["method"] in BY_ITSELF
        wrong = {**outcome.entry, "method": "Restart" if hot else "Watch", "maxDelayMs": 0 if hot else 5000}
        found = result.differences(Outcome(outcome.row, wrong, outcome.seen, outcome.watched, outcome.error))
        assert any(("taken up by itself in" if hot else "not taken up by itself") in text for text in found), outcome.row.title


def test_the_page_has_the_predictions_of_now(predicted: list[Outcome]) -> None:
    """Line by line: hack/docs --check holds the page to its data. While this passes and Kubernetes is unchanged, what was
    recorded still confirms the predictions."""
    table = {_key(line): line["predicted"] for line in rows_docs.lines(REPOSITORY)}
    assert table == {_key(line): line["predicted"] for line in map(result.line, predicted)}, "run it with --write-docs, then hack/docs rows"


def _key(line: Mapping[str, Any]) -> tuple[object, ...]:
    return (line["row"], line["component"], *line["parameters"], line["via"], line["role"], line["note"])
