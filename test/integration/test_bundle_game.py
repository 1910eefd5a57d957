"""No bundle that certroll publishes cuts off who verified with the one before (bundle_game.py).

Cases that were found once are files of test/testdata/bundle-cases; the others come from their seeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import bundle_game as game
from bundle_cases import Case, make
from bundle_clients import CLIENTS, Clients
from control_plane import ROOT

_CASES = sorted((ROOT / "test" / "testdata" / "bundle-cases").glob("*.txt"))
_LONG = bool(os.environ.get("CERTROLL_LONG"))
# Which of several CAs of one name GnuTLS takes is not known well enough (docs/pki.md): it is counted.
_AS_FAR_AS_KNOWN = {"gnutls"}
_SEEDS = range(1, 3_001 if _LONG else 301)


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
    impossible = [loss for loss in outcome.impossible if loss.client not in _AS_FAR_AS_KNOWN]
    assert not impossible or text.startswith("# impossible:"), game.describe(outcome, file.stem, tmp_path)


@pytest.mark.timeout(4 * 3600 if _LONG else 300)
def test_random_rotations_lose_nobody(clients: Clients, tmp_path: Path) -> None:
    summary = game.run(clients, _SEEDS)
    print(summary)
    assert summary.verified > 10 * summary.cases, f"hardly anybody had a leaf to lose: {summary}"
    assert all(summary.lookers[client] > summary.cases for client in CLIENTS), f"a client has seen nothing: {summary}"
    lost = {seed: outcome for seed, outcome in summary.failed.items() if any(loss.client not in _AS_FAR_AS_KNOWN for loss in outcome.failures)}
    shown = [game.describe(outcome, f"seed {seed}", tmp_path / str(seed)) for seed, outcome in list(lost.items())[:3]]
    assert not lost, "\n".join([str(summary), *shown])


def test_a_seed_is_a_case(clients: Clients) -> None:
    """The same bytes each time, or no failure could be looked at again."""
    cases = [make(seed) for seed in range(20)]
    first, second = clients.play(cases), clients.play([make(seed) for seed in range(20)])
    assert first == second
