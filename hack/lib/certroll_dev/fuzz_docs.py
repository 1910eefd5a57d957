"""Of docs/fuzzing.md the table of targets: what each says of itself, and what `hack/fuzz --write-docs` has measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import fuzz
from .ui import DevError

RESULT = Path("test/fuzz/coverage.json")
_BEGIN = "<!-- targets: made by `hack/docs fuzz` from test/fuzz -->\n"
_END = "<!-- end -->\n"


def render(page: str, root: Path) -> str:
    if _BEGIN not in page:
        raise DevError(f"docs/fuzzing.md has lost its line '{_BEGIN.strip()}'")
    head, _, rest = page.partition(_BEGIN)
    path = root / RESULT
    figures = json.loads(path.read_text()) if path.exists() else {}
    table = "| target | what comes in, and what must hold | of | edges | by the seeds | by a run |\n"
    table += "| --- | --- | --- | ---: | ---: | ---: |\n"
    table += "".join(_line(target, figures.get(target), root) for target in fuzz.targets(root))
    return head + _BEGIN + table + _END + rest.partition(_END)[2]


def _line(target: str, figures: dict[str, Any] | None, root: Path) -> str:
    about = fuzz.about(target, root)
    if not about:
        raise DevError(f"test/fuzz/fuzz_{target}.c does not begin with a comment that says what must hold")
    files = fuzz.files(target, root)
    of = f"`{files[0]}.c`" + (f" and {len(files) - 1} more" if len(files) > 1 else "") if files else ""
    measured = ["", "", ""]
    if figures:
        edges = figures["edges"]
        measured = [f"{edges:,}", *(f"{100 * figures[key] // edges} %" if edges else "" for key in ("by_seeds", "by_all"))]
    return f"| `{target}` | {about.replace('|', '&#124;')} | {of} | {' | '.join(measured)} |\n"
