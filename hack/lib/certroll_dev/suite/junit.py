"""What a JUnit report says, be it ctest's or pytest's."""

from __future__ import annotations

import xml.etree.ElementTree as tree
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
