"""Which tests of a folder a run has: those of the gate only (--gate), and of these a part (--shard)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

_TEST = Path(__file__).resolve().parent
sys.path[:0] = [str(_TEST), str(_TEST.parent / "hack" / "lib")]

from certroll_dev.suite import selection  # noqa: E402
from shards import Shard  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("certroll")
    group.addoption("--gate", action="store_true", help="without the tests that only `hack/test all` runs (test/selection.toml)")
    group.addoption("--shard", type=Shard.parse, metavar="I/N", help="only the modules of part I of N; without test_rights.py")
    group.addoption("--write-docs", action="store_true", help="write what was seen into the data of docs (test_control_plane_rows.py, test_situations.py)")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = _of_shard(config, _of_gate(config, items))
    if len(mine) < len(items):
        kept = set(mine)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = mine


@pytest.fixture(scope="module")
def polite() -> Iterator[None]:
    """For what computes for minutes in `hack/test all`, beside tests that wait for servers."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if os.environ.get("CERTROLL_LONG"):
        os.setpriority(os.PRIO_PROCESS, 0, max(before, 5))
    yield
    with contextlib.suppress(PermissionError):  # only root may
        os.setpriority(os.PRIO_PROCESS, 0, before)


def name_of(item: pytest.Item) -> str:
    """As test/selection.toml has it."""
    return item.path.relative_to(_TEST).as_posix() + "::" + item.nodeid.partition("::")[2]


def _of_gate(config: pytest.Config, items: Sequence[pytest.Item]) -> Sequence[pytest.Item]:
    if not config.getoption("--gate"):
        return items
    chosen = selection.load()
    return [item for item in items if chosen.is_in_gate(name_of(item))]


def _of_shard(config: pytest.Config, items: Sequence[pytest.Item]) -> Sequence[pytest.Item]:
    """test_rights.py judges all other tests and belongs to no shard."""
    shard: Shard | None = config.getoption("--shard")
    if not shard:
        return items
    modules = shard.modules({item.path.stem for item in items} - {"test_rights"}, everything=not config.getoption("--gate"))
    return [item for item in items if item.path.stem in modules]
