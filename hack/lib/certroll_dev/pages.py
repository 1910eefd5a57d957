"""What holds for all pages: their links lead somewhere, those that everybody reads stay short, and all together do not grow."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_GENERATED = re.compile(r"<!-- (?!end)[^>]*-->.*?<!-- end -->", re.DOTALL)
_MOST_WORDS = {"README.md": 1200, "docs/design.md": 3000}
_MOST_WORDS_OF_DOCS = 40_000  # written by hand; whoever writes more shortens what is there first


def problems(root: Path) -> Iterator[str]:
    """Each in one line, with the page."""
    for page in [*sorted(root.glob("*.md")), *sorted(root.glob("docs/**/*.md")), *sorted(root.glob("pkg/**/*.md")), *sorted(root.glob("charts/*/*.md"))]:
        text = page.read_text()
        for link in _LINK.findall(text):
            if not re.match(r"[a-z]+:", link) and not leads_somewhere(page, link):
                yield f"{page.relative_to(root)}: the link {link} leads nowhere"
    for name, most in _MOST_WORDS.items():
        words = len((root / name).read_text().split())
        if words > most:
            yield f"{name} has {words} words; at most {most}, so that it is read"
    words = sum(_words_by_hand(page.read_text()) for page in root.glob("docs/**/*.md"))
    if words > _MOST_WORDS_OF_DOCS:
        yield f"docs/ has {words} words that are written by hand; at most {_MOST_WORDS_OF_DOCS}: shorten what is there first"


def _words_by_hand(text: str) -> int:
    """Not what `hack/docs` makes: whole pages, and parts between two comments."""
    return 0 if text.startswith("<!-- Made by") else len(_GENERATED.sub("", text).split())


def leads_somewhere(page: Path, link: str) -> bool:
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
