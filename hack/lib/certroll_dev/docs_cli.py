"""hack/docs: the pages that are made from data."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from . import api_docs, catalogue_docs, crd_kinds, dashboards, declared_metrics, fuzz_docs, limits_docs, pages, picture, readmes, rights_docs, rows_docs, selection_docs, situations_docs, ui
from .paths import REPOSITORY

# From the page as it is, and the folder of the checkout, to the page as it should be.
_PAGES: dict[str, list[tuple[Path, Callable[[str, Path], str]]]] = {
    "crds": [
        (Path("crds/certroll.dev_trustdomains.yaml"), crd_kinds.namespaced),
        (Path("crds/certroll.dev_clustertrustdomains.yaml"), crd_kinds.cluster),
    ],
    "api": [(Path("docs/api.md"), api_docs.render)],
    "catalogue": [(Path("docs/catalogue.md"), catalogue_docs.render)],
    "fuzz": [(Path("docs/fuzzing.md"), fuzz_docs.render)],
    "limits": [(Path("docs/limits.md"), limits_docs.render)],
    "picture": [(Path("docs/trust-first.svg"), picture.render)],
    "rights": [(Path("docs/rights.md"), rights_docs.render)],
    "rows": [(Path("docs/control-plane-rows.md"), rows_docs.render)],
    "situations": [(Path("docs/situations.md"), situations_docs.render)],
    "tests": [(Path("docs/development.md"), selection_docs.render)],
}


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="hack/docs",
        description="Makes the pages, or parts of pages, that come from data: the CRDs of the two kinds of trust domains "
        "from their one source, docs/api.md from the CRDs' schemas, docs/catalogue.md from the catalogue, "
        "the table of docs/fuzzing.md from the fuzz targets, the table of docs/limits.md from the code, the picture of README.md, the rules in docs/rights.md "
        "from the manifests, docs/control-plane-rows.md and docs/situations.md from what tests have seen, tables of docs/development.md from test/selection.toml.",
        epilog="Links of all pages are checked as well, how long README.md and docs/design.md are, and all of docs/, and that what the pages of pkg/ name is there; "
        "that the tables of metrics are those of the code, and that alerts and dashboards read metrics that exist. Pages: " + " ".join(_PAGES),
    )
    parser.add_argument("pages", metavar="PAGE", nargs="*", choices=[*_PAGES, []], help="default: all of them")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is not current")
    options = parser.parse_args(arguments)
    stale = False
    for page in options.pages or _PAGES:
        for path, render in _PAGES[page]:
            if _is_current(path, render, write=not options.check):
                continue
            stale = True
            if options.check:
                ui.warn(f"{path} is not what its data say: run hack/docs {page}")
    broken = [problem for of in (pages, readmes, declared_metrics, dashboards) for problem in of.problems(REPOSITORY)]
    for problem in broken:
        ui.warn(problem)
    return 1 if (stale and options.check) or broken else 0


def _is_current(path: Path, render: Callable[[str, Path], str], *, write: bool) -> bool:
    file = REPOSITORY / path
    before = file.read_text() if file.exists() else ""
    after = render(before, REPOSITORY)
    if write and after != before:
        file.write_text(after)
        ui.say(f"{path}: made anew")
    return after == before
