"""Which tests of a folder a run has: those of the gate only (--gate), and of these a part (--shard)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [*_not_of_gate(config, items), *_of_other_shards(config, items)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def name_of(item: pytest.Item) -> str:
    """As test/selection.toml has it."""
    return item.path.relative_to(_TEST).as_posix() + "::" + item.nodeid.partition("::")[2]


def _not_of_gate(config: pytest.Config, items: list[pytest.Item]) -> Iterator[pytest.Item]:
    if config.getoption("--gate"):
        chosen = selection.load()
        yield from (item for item in items if not chosen.is_in_gate(name_of(item)))


def _of_other_shards(config: pytest.Config, items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """What looks at all the others (test_rights.py) is in none."""
    shard: Shard | None = config.getoption("--shard")
    if shard:
        mine = shard.modules({item.path.stem for item in items} - {"test_rights"})
        yield from (item for item in items if item.path.stem not in mine)
