"""Of docs/development.md the tables of what only `hack/test all` runs, and of what takes long in the gate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .suite import selection
from .ui import DevError

_PART = "<!-- {0}: made by `hack/docs tests` from test/selection.toml -->\n"
_END = "<!-- end -->\n"


def render(page: str, root: Path) -> str:
    chosen = selection.load(root)
    parts = {
        "only all": "| tests | what they protect | run them before you finish a change of |\n| --- | --- | --- |\n"
        + "".join(
            f"| {_names(each.tests)}{_but(each)} | {each.protects} | {', '.join(chosen.areas_of(each)) or 'shared code'} |\n"
            for each in chosen.only_all
        ),
        "slow": "| test | why it takes more than a minute |\n| --- | --- |\n"
        + "".join(f"| {_names([each.test])} | {each.why} |\n" for each in chosen.slow),
    }
    for name, text in parts.items():
        begin = _PART.format(name)
        if begin not in page:
            raise DevError(f"docs/development.md has lost its line '{begin.strip()}'")
        head, _, rest = page.partition(begin)
        page = head + begin + text + _END + rest.partition(_END)[2]
    return page


def _but(each: selection.OnlyAll) -> str:
    return f"<br>*but* {_names(each.but)}" if each.but else ""


def _names(tests: Iterable[str]) -> str:
    return "<br>".join(f"`{test}`" for test in tests)
