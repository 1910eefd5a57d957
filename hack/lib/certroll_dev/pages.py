"""What holds for all pages: their links lead somewhere, and those that everybody reads stay short."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_MOST_WORDS = {"README.md": 1200, "docs/design.md": 4000}


def problems(root: Path) -> Iterator[str]:
    """Each in one line, with the page."""
    for page in [*sorted(root.glob("*.md")), *sorted(root.glob("docs/**/*.md"))]:
        text = page.read_text()
        for link in _LINK.findall(text):
            if not re.match(r"[a-z]+:", link) and not _leads_somewhere(page, link):
                yield f"{page.relative_to(root)}: the link {link} leads nowhere"
    for name, most in _MOST_WORDS.items():
        words = len((root / name).read_text().split())
        if words > most:
            yield f"{name} has {words} words; at most {most}, so that it is read"


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, heading = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not heading or target.suffix != ".md" or heading in _anchors(target.resolve())


@functools.cache
def _anchors(page: Path) -> set[str]:
    """As GitHub makes them: letters, digits, - and _ in lower case, spaces as -; the second of a name gets -1."""
    names = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(page.read_text())]
    return {name if not names[:at].count(name) else f"{name}-{names[:at].count(name)}" for at, name in enumerate(names)}
