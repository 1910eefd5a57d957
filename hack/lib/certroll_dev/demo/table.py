"""The live table: redrawn in place on a terminal, elsewhere one line for each thing that changed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_COLUMNS = ("CONSUMER", "CHANGE", "DECISION", "STATE", "VERIFIED", "SECONDS")


@dataclass(frozen=True)
class Row:
    consumer: str
    change: str
    decision: str
    state: str
    verified: str  # "2/2"
    seconds: float
    why: str

    def what(self) -> tuple[str, ...]:
        """All but the time: a new line is worth printing only when one of these is new."""
        return (self.change, self.decision, self.state, self.verified, self.why)


class Table:
    """As a context manager, so that the cursor is given back whatever happens."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._height = 0
        self._last: dict[str, Row] = {}

    def __enter__(self) -> Table:
        self._put("\033[?25l" if self._terminal else "")
        return self

    def __exit__(self, *_: object) -> None:
        self._put("\033[?25h" if self._terminal else "")

    def show(self, rows: Sequence[Row]) -> None:
        if self._terminal:
            self._redraw(rows)
        else:
            self._print_changes(rows)

    def _redraw(self, rows: Sequence[Row]) -> None:
        width = shutil.get_terminal_size().columns
        lines = render(rows, width)
        self._put((f"\033[{self._height}F" if self._height else "") + "".join(f"\033[K{line}\n" for line in lines))
        self._height = len(lines)

    def _print_changes(self, rows: Sequence[Row]) -> None:
        for row in rows:
            known = self._last.get(row.consumer)
            if known is None or known.what() != row.what():
                self._put(f"  +{row.seconds:5.1f} s  {_line(row, known)}\n")
                self._last[row.consumer] = row

    def _put(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def render(rows: Sequence[Row], width: int) -> list[str]:
    """The table as lines no wider than `width`: a line that wraps would spoil the redrawing."""
    cells = [_COLUMNS] + [(r.consumer, r.change, r.decision, r.state, r.verified, f"{r.seconds:.1f}") for r in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS))]
    lines = ["  " + "  ".join(cell.ljust(widths[i]) for i, cell in enumerate(line)) for line in cells]
    for row in reversed(range(len(rows))):
        lines.insert(row + 2, f"      why: {rows[row].why or '(no decision yet)'}")
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines]


def _line(row: Row, known: Row | None) -> str:
    text = f"{row.consumer}: {row.change or 'no change'}, {row.decision}, {row.state}, {row.verified} pods verified"
    new_reason = row.why and (known is None or known.why != row.why)
    return f"{text}: {row.why}" if new_reason else text
