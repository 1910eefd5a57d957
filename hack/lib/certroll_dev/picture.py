"""The picture of README.md: what is published when a CA is replaced, and what is proved before each step."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

_WIDTH, _LEFT, _RIGHT = 1000, 130, 990
_STEP = (_RIGHT - _LEFT) // 4
_ROW, _TOP = 34, 64
_OLD, _NEW, _INK, _PALE = "#8a97a8", "#2a6fbb", "#1d2733", "#f3f6f9"
_FONT = "font-family='Helvetica, Arial, sans-serif'"


@dataclass(frozen=True)
class _Bar:
    """From one step to another; steps are counted from the left edge."""

    row: str
    text: str
    start: float
    end: float
    is_new: bool


_STEPS = ("before", "1  trust", "2  leaves", "3  retirement")
_ROWS = ("trusted CAs", "", "served leaves")
_BARS = (
    _Bar("trusted CAs", "old CA", 0, 3.5, False),
    _Bar("", "new CA", 1, 4, True),
    _Bar("served leaves", "of the old CA", 0, 2.45, False),
    _Bar("served leaves", "of the new CA", 2.55, 4, True),
)
_PROOFS = (
    (2, "every pod is seen", "to trust the new CA"),
    (3, "every pod is seen", "to serve the new leaf"),
    (4, "every pod is seen", "to have let go"),
)


def render(_: str, __: Path) -> str:
    """The SVG, whatever it was before."""
    height = _TOP + _ROW * len(_ROWS) + 84
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' viewBox='0 0 {_WIDTH} {height}' role='img'>",
        "<title>A CA is replaced: trust first, then leaves, then retirement; each step waits for proof</title>",
        f"<rect width='{_WIDTH}' height='{height}' fill='white'/>",
        *(_column(number, name) for number, name in enumerate(_STEPS)),
        *(_text(_LEFT - 12, _row(name) + 19, name, "end") for name in _ROWS if name),
        *(_bar(bar) for bar in _BARS),
        *(line for proof in _PROOFS for line in _proof(*proof)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(step: float) -> float:
    return _LEFT + step * _STEP


def _row(name: str) -> int:
    return _TOP + _ROWS.index(name) * _ROW


def _column(number: int, name: str) -> str:
    bottom = _ROW * len(_ROWS) + 20
    fill = _PALE if number % 2 else "white"
    box = f"<rect x='{_x(number):g}' y='{_TOP - 40}' width='{_STEP}' height='{bottom + 24}' fill='{fill}'/>"
    return box + _text(_x(number) + _STEP / 2, _TOP - 20, name, "middle", bold=number > 0)


def _bar(bar: _Bar) -> str:
    x, y = _x(bar.start), _row(bar.row) + 3
    width = _x(bar.end) - x
    color = _NEW if bar.is_new else _OLD
    return f"<rect x='{x:g}' y='{y}' width='{width:g}' height='26' rx='4' fill='{color}'/>" + _text(x + 10, y + 18, bar.text, "start", fill="white")


def _proof(step: int, first: str, second: str) -> list[str]:
    """An arrow down to what must be seen before the step on its right begins."""
    x, top = min(_x(step), _RIGHT - 8), _TOP - 40
    bottom = _TOP + _ROW * len(_ROWS) + 16
    anchor = "end" if step == len(_STEPS) else "middle"
    return [
        f"<line x1='{x:g}' y1='{top}' x2='{x:g}' y2='{bottom}' stroke='{_INK}' stroke-width='1.5' stroke-dasharray='4 3'/>",
        f"<path d='M{x - 5:g} {bottom} l5 8 l5 -8 z' fill='{_INK}'/>",
        _text(x, bottom + 26, first, anchor),
        _text(x, bottom + 43, second, anchor),
    ]


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False, fill: str = _INK) -> str:
    weight = " font-weight='bold'" if bold else ""
    return f"<text x='{x:g}' y='{y:g}' {_FONT} font-size='14'{weight} fill='{fill}' text-anchor='{anchor}'>{escape(text)}</text>"
