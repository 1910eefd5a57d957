"""The live table: redrawn in place on a terminal, elsewhere one line for each thing that changed."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_LOG_WIDTH = 1000  # a log file has no edge at which lines would wrap
# The longest last: on a narrow terminal it is what gets cut.
_COLUMNS = ("CONSUMER", "DECISION", "STATE", "VERIFIED", "SECONDS", "CHANGE")


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

    def close(self, rows: Sequence[Row]) -> None:
        """Show it for the last time; where there is no terminal the whole table too, after all those lines."""
        self.show(rows)
        if not self._terminal:
            self._put("".join(f"{line}\n" for line in render(rows, _LOG_WIDTH)))

    def _redraw(self, rows: Sequence[Row]) -> None:
        width = shutil.get_terminal_size().columns
        lines = render(rows, width)
        back = f"\033[{self._height}F\033[J" if self._height else ""
        self._put(back + "".join(f"{line}\n" for line in lines))
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
    """The table as lines no wider than `width`: a line that wraps by itself would spoil the redrawing."""
    cells = [_COLUMNS] + [(r.consumer, r.decision, r.state, r.verified, f"{r.seconds:.1f}", r.change) for r in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS))]
    head, *body = ["  " + "  ".join(cell.ljust(widths[i]) for i, cell in enumerate(line)).rstrip() for line in cells]
    lines = [_cut(head, width)]
    for row, text in zip(rows, body, strict=True):
        lines.append(_cut(text, width))
        lines += _wrap(f"why: {row.why or '(no decision yet)'}", width)
    return lines


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 40), initial_indent=" " * 6, subsequent_indent=" " * 11)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def _line(row: Row, known: Row | None) -> str:
    text = f"{row.consumer}: {row.change or 'no change'}, {row.decision}, {row.state}, {row.verified} pods verified"
    new_reason = row.why and (known is None or known.why != row.why)
    return f"{text}: {row.why}" if new_reason else text
