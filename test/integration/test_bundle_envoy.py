"""The model of Envoy by which bundles are decided answers as a real one does: of cases of the game (test_bundle_game.py)."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import bundle_envoy
from bundle_cases import Case, make
from bundle_clients import Clients, Played, Question
from bundle_envoy import Asked
from bundle_game import changed

_SEEDS = range(20_001, 20_201 if os.environ.get("CERTROLL_LONG") else 20_011)
_DAY = 3  # of the game; the clock of this machine is years before it

pytestmark = [pytest.mark.usefixtures("polite"), pytest.mark.timeout(1800)]


def test_the_product_answers_as_envoy_does(tmp_path: Path) -> None:
    """With bundles that were published, and with the same ones turned round."""
    cases = [make(seed) for seed in _SEEDS]
    with Clients() as clients:
        played = clients.play(cases)
        asked = [Asked(case, each, question) for case, each in zip(cases, played, strict=True) for question in _questions(each)]
        clients.ask((each.played, [each.question]) for each in asked)
        found = bundle_envoy.answers(asked, clients.key, tmp_path)
    wrong = [f"Envoy: {verifies}, {each.question}\n{each.case}" for each, verifies in zip(asked, found, strict=True) if each.played.answers[each.question] != verifies]
    print(f"{len(asked)} questions; Envoy verifies in {sum(found)}; the product thinks otherwise in {len(wrong)}")
    assert len(asked) > 5 * len(_SEEDS) and len(_SEEDS) < sum(found) < len(asked) - len(_SEEDS)
    assert not wrong, "\n".join(wrong[:3])


def test_a_case_s_envoy_lives_on_its_day(tmp_path: Path) -> None:
    case = Case.parse(
        "begin policy 1\n"
        "cert good C1 1 C1 1 -5 90 ca 1 1\n"
        "cert other C2 2 C2 2 -5 90 ca 1 1\n"
        "cert ended C3 3 C3 3 -5 2 ca 1 1\n"
        "cert leaf web 4 C1 1 -1 30 leaf 1 1\n"
        "cert late late 5 C3 3 -1 30 leaf 1 1\n"
        "secret s0 leaf good,other,ended\n"
        "step 0 -\n"
    )
    roots = [(("good",), "leaf"), (("other",), "leaf"), (("other", "good"), "leaf"), (("ended",), "late")]
    with Clients() as clients:
        played = clients.play([case])[0]
        asked = [Asked(case, played, Question("envoy", _DAY, trusted, chain)) for trusted, chain in roots]
        assert bundle_envoy.answers(asked, clients.key, tmp_path) == [True, False, True, False]


def _questions(played: Played) -> list[Question]:
    found = (
        Question("envoy", bundle.day, roots, chain)
        for bundle in changed(played)
        for roots, chain in itertools.product((bundle.before, bundle.after, bundle.after[::-1]), bundle.leaves)
    )
    return list(dict.fromkeys(found))
