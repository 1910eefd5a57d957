"""What a JUnit report says, be it ctest's or pytest's."""

from __future__ import annotations

import xml.etree.ElementTree as tree
from collections.abc import Iterator
from pathlib import Path

from .step import Counts

_MESSAGE = 600  # characters of what a failed test says


def read(report: Path) -> Counts:
    """Raises OSError when there is none, ParseError when it is only half there."""
    root = tree.parse(report).getroot()
    suites = [root] if root.tag == "testsuite" else list(root)

    def total(name: str) -> int:
        return sum(int(suite.get(name) or 0) for suite in suites)

    skipped = total("skipped") + total("disabled")
    failed = total("failures") + total("errors")
    return Counts(total("tests") - failed - skipped, failed, skipped)


def failures(report: Path) -> Iterator[str]:
    """Each test that failed, with how its message begins. Nothing where there is no report."""
    try:
        root = tree.parse(report).getroot()
    except (OSError, tree.ParseError):
        return
    for case in root.iter("testcase"):
        for found in (*case.findall("failure"), *case.findall("error")):
            message = " ".join((found.get("message") or "").split())
            folders = (case.get("classname") or "").split(".")
            # ctest repeats the name of the test as its class.
            name = case.get("name") if folders == [case.get("name")] else f"{'/'.join(folders)}.py::{case.get('name')}"
            yield f"{name}: {message[:_MESSAGE]}" if message else f"{name}"


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
