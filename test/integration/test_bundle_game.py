"""No bundle that certroll publishes cuts off who verified with the one before (bundle_game.py).

Cases that were found once are files of test/testdata/bundle-cases; the others come from their seeds.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import bundle_game as game
from bundle_cases import Case, Cert, make
from bundle_clients import CLIENTS, Bundle, Clients, Played, Question
from control_plane import ROOT

_CASES = sorted((ROOT / "test" / "testdata" / "bundle-cases").glob("*.txt"))
_LONG = bool(os.environ.get("CERTROLL_LONG"))
_SEEDS = range(1, 1_001 if _LONG else 81)
_MODEL_SEEDS = range(3_001, 3_301 if _LONG else 3_021)
_VIEW_SEEDS = range(1, 201 if _LONG else 11)

pytestmark = pytest.mark.usefixtures("polite")


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with Clients() as running:
        yield running


@pytest.mark.parametrize("file", _CASES, ids=lambda file: file.stem)
def test_a_case_that_was_found_loses_nobody(clients: Clients, file: Path, tmp_path: Path) -> None:
    """But for what no bundle can help: of that the file says so."""
    text = file.read_text()
    outcome = game.play(clients, [Case.parse(text)])[0]
    assert outcome.bundles or outcome.refusals
    assert not outcome.failures, game.describe(outcome, file.stem, tmp_path)
    hopeless = {loss.client for loss in outcome.impossible}
    assert hopeless <= _said_to_be_hopeless(text), game.describe(outcome, file.stem, tmp_path)


class _Robber:
    """Clients who are given the case's bundles without some CAs."""

    def __init__(self, clients: Clients, *stolen: str) -> None:
        self._clients = clients
        self._stolen = stolen
        self.ask = clients.ask

    def play(self, cases: Sequence[Case]) -> list[Played]:
        return [replace(each, bundles=tuple(map(self._rob, each.bundles))) for each in self._clients.play(cases)]

    def _rob(self, bundle: Bundle) -> Bundle:
        return replace(bundle, after=tuple(name for name in bundle.after if name not in self._stolen))


@pytest.mark.parametrize(
    ("file", "stolen", "lost"),
    [("domain-a-secret-yet-to-be-made", "C0.3", "leaf8,C0.3<C1.2"), ("domain-a-leaf-that-is-never-served", "C0.3", None)],
)
def test_what_a_domain_serves_can_be_lost(clients: Clients, file: str, stolen: str, lost: str | None) -> None:
    """And nothing else: a leaf of a source that the domain never puts where pods take it from is nobody's."""
    case = Case.parse((_CASES[0].parent / f"{file}.txt").read_text())
    outcome = game.play(cast(Clients, _Robber(clients, stolen)), [case])[0]
    found = {loss.chain for loss in outcome.failures}
    assert lost in found if lost else not found


def _said_to_be_hopeless(text: str) -> set[str]:
    """The clients of a file's first line: "# impossible:" or "# impossible for gnutls:"."""
    said = re.match(r"# impossible(?: for (\w+))?:", text)
    return ({said[1]} if said[1] else set(CLIENTS)) if said else set()


@pytest.mark.timeout(4 * 3600 if _LONG else 900)
def test_random_rotations_lose_nobody(clients: Clients, tmp_path: Path) -> None:
    summary = game.run(clients, _SEEDS)
    print(summary)
    assert summary.verified > 10 * summary.cases, f"hardly anybody had a leaf to lose: {summary}"
    assert all(summary.lookers[client] > summary.cases for client in CLIENTS), f"a client has seen nothing: {summary}"
    shown = [game.describe(outcome, f"seed {seed}", tmp_path / str(seed)) for seed, outcome in list(summary.failed.items())[:3]]
    assert not summary.failed, "\n".join([str(summary), *shown])


def test_the_product_answers_as_the_clients_do(clients: Clients) -> None:
    """It decides by models of them: with each bundle that was published, and with the same one turned round."""
    played = clients.play([make(seed) for seed in _MODEL_SEEDS])
    asked = [list(_questions(each)) for each in played]
    clients.ask((each, [*questions, *map(game.of_the_model, questions)]) for each, questions in zip(played, asked, strict=True))
    answers = [(seed, each.answers, question) for seed, each, questions in zip(_MODEL_SEEDS, played, asked, strict=True) for question in questions]
    assert len(answers) > 20 * len(_MODEL_SEEDS)
    wrong = [f"seed {seed}: {question}" for seed, known, question in answers if known[question] != known[game.of_the_model(question)]]
    assert not wrong, "\n".join(wrong[:10])


def _questions(played: Played) -> Iterator[Question]:
    for bundle, client in itertools.product(played.bundles, [client for client in CLIENTS if client != "envoy"]):  # test_bundle_envoy.py
        for roots, chain in itertools.product((bundle.before, bundle.after, bundle.after[::-1]), bundle.leaves):
            yield Question(client, bundle.day, roots, chain)


def test_bundles_in_which_a_client_sees_the_same_are_one_to_it(clients: Clients) -> None:
    """The proofs of the game ask about one of them, and try one of the orders that no client can tell apart."""
    chance = random.Random(1)
    for seed, each in zip(_VIEW_SEEDS, clients.play([make(seed) for seed in _VIEW_SEEDS]), strict=True):
        certs = make(seed).certs
        seen: dict[object, list[Question]] = {}
        bundles = {bundle.after: bundle for bundle in each.bundles if len(bundle.after) > 2}.values()
        for bundle, client, _ in itertools.product(bundles, ("openssl", "envoy", "gnutls"), range(12)):
            roots = [certs[name] for name in chance.sample(bundle.after, len(bundle.after))]
            for chain in bundle.leaves:
                sent = [certs[name] for name in chain.split(",")]
                for listed in (roots, _with_another_order(roots, bundle.day)):
                    view = game.view_of(client, bundle.day, sent, listed)
                    question = Question(client, bundle.day, tuple(cert.name for cert in listed), chain)
                    seen.setdefault((client, chain, bundle.day, view), []).append(question)
                assert game.view_of(client, bundle.day, sent, roots) == view, f"seed {seed}: {question}"
        clients.ask([(each, itertools.chain.from_iterable(seen.values()))])
        for same in seen.values():
            assert len({each.answers[question] for question in same}) == 1, f"seed {seed}: {same}"


def _with_another_order(certs: Sequence[Cert], day: int) -> list[Cert]:
    """Neighbours of one subject have changed places wherever no client can tell."""
    order = list(certs)
    for subject in {cert.own.subject for cert in certs}:
        places = [i for i, cert in enumerate(order) if cert.own.subject == subject]
        for k, (here, there) in enumerate(itertools.pairwise(places)):
            before, behind = [order[i] for i in places[:k]], [order[i] for i in places[k + 2 :]]
            if game.may_change_places(order[here], order[there], before, behind, day):
                order[here], order[there] = order[there], order[here]
    return order


def test_a_seed_is_a_case(clients: Clients) -> None:
    """The same bytes each time, or no failure could be looked at again."""
    cases = [make(seed) for seed in range(20)]
    first, second = clients.play(cases), clients.play([make(seed) for seed in range(20)])
    assert first == second
