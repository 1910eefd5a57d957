"""What a JUnit report says, be it ctest's or pytest's."""

from __future__ import annotations

import xml.etree.ElementTree as tree
from collections.abc import Iterator
from pathlib import Path

from .step import Counts


def read(report: Path) -> Counts:
    """Raises OSError when there is none, ParseError when it is only half there."""
    root = tree.parse(report).getroot()
    suites = [root] if root.tag == "testsuite" else list(root)

    def total(name: str) -> int:
        return sum(int(suite.get(name) or 0) for suite in suites)

    skipped = total("skipped") + total("disabled")
    failed = total("failures") + total("errors")
    return Counts(total("tests") - failed - skipped, failed, skipped)


def durations(report: Path) -> Iterator[tuple[str, float]]:
    """Of each of pytest's tests, as test/selection.toml names it, the seconds that it took with its fixtures. Nothing where
    there is no report."""
    try:
        root = tree.parse(report).getroot()
    except (OSError, tree.ParseError):
        return
    for case in root.iter("testcase"):
        folders = (case.get("classname") or "").split(".")
        yield f"{'/'.join(folders)}.py::{case.get('name')}", float(case.get("time") or 0)
