"""Chains of another project's test suite: no bundle that takes their root's place cuts off who verified them (bundle_bettertls.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

import bundle_bettertls as bettertls
from bundle_clients import CLIENTS, Clients

pytestmark = [pytest.mark.usefixtures("polite"), pytest.mark.timeout(1800)]


@pytest.mark.parametrize(("suite", "every"), [("pathbuilding", 1), ("nameconstraints", 10)])
def test_nobody_who_verified_a_chain_is_cut_off(suite: str, every: int, tmp_path: Path) -> None:
    exported = bettertls.export(suite, tmp_path)
    with Clients() as clients:
        seen = bettertls.play(clients, exported, exported.chains[::every], bettertls.tomorrow())
    print(f"{suite}: {seen}")
    assert all(seen.verified[client] for client in CLIENTS)
    assert not seen.lost, "\n".join(seen.lost[:5])
    assert not seen.otherwise, "\n".join(seen.otherwise[:20])
    assert seen.unread <= seen.cases / 50
