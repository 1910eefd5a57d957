"""hack/docs: the pages that are made from data."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from . import api_docs, catalogue_docs, ui
from .paths import REPOSITORY

# From the page as it is, and the folder of the checkout, to the page as it should be.
_PAGES: dict[str, tuple[Path, Callable[[str, Path], str]]] = {
    "api": (Path("docs/api.md"), api_docs.render),
    "catalogue": (Path("docs/catalogue.md"), catalogue_docs.render),
}


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="hack/docs",
        description="Makes the pages, or parts of pages, that come from data: docs/api.md from the CRD's schema, "
        "docs/catalogue.md from the catalogue.",
        epilog="Pages: " + " ".join(_PAGES),
    )
    parser.add_argument("pages", metavar="PAGE", nargs="*", choices=[*_PAGES, []], help="default: all of them")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is not current")
    options = parser.parse_args(arguments)
    stale = [page for page in options.pages or _PAGES if not _is_current(page, write=not options.check)]
    if not options.check:
        return 0
    for page in stale:
        ui.warn(f"{_PAGES[page][0]} is not what its data say: run hack/docs {page}")
    return 1 if stale else 0


def _is_current(page: str, *, write: bool) -> bool:
    path, render = _PAGES[page]
    file = REPOSITORY / path
    before = file.read_text() if file.exists() else ""
    after = render(before, REPOSITORY)
    if write and after != before:
        file.write_text(after)
        ui.say(f"{path}: made anew")
    return after == before
