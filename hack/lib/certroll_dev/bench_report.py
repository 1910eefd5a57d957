"""Figures of hack/bench as a table, in Markdown, and as a plot, in SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import Any

Figures = dict[str, Any]
_MIB = 1024  # KiB

# What is to be reached: factors of the floor, and memory with 10,000 Secrets. Within them the simpler code is taken.
_P50, _BURST, _PEAK_MIB = 1.25, 1.4, 20.0


@dataclass(frozen=True)
class Row:
    """One line of the table. `value` is what is held to the goal."""

    name: str
    floor: str
    certroll: str
    compared: str = ""
    goal: str = ""
    value: float | None = None
    limit: float | None = None

    @property
    def verdict(self) -> str:
        if self.value is None or self.limit is None:
            return ""
        return "reached" if self.value <= self.limit else "**missed**"


def percentile(values: Iterable[float], part: float) -> float:
    """Of few values: the smallest that at least `part` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(len(ordered) * part * 1000) // 1000) - 1))]


def rows(figures: Figures) -> list[Row]:
    """Every figure of pairs and idling, with what is to be reached."""
    if not figures["pairs"]:
        return []
    return [*_latency(figures), *_burst(figures), *_memory(figures), *_rest(figures), *_waiting(figures)]


def rows_of_scale(figures: Figures) -> list[Row]:
    """What --large measured."""
    scale = figures.get("scale")
    return [*_many_secrets(figures["plan"], scale), *_many_pods(figures["plan"], scale)] if scale else []


def markdown(figures: Figures) -> str:
    """The table, and on what it was measured."""
    lines = ["| | floor | certroll | compared | to reach | |", "| --- | ---: | ---: | ---: | --- | --- |"]
    for row in rows(figures):
        lines.append(f"| {row.name} | {row.floor} | {row.certroll} | {row.compared} | {row.goal} | {row.verdict} |")
    return "\n".join([*lines, "", _setting(figures), ""])


def markdown_of_scale(figures: Figures) -> str:
    """The same of what --large measured."""
    lines = ["| | certroll | compared | to reach | |", "| --- | ---: | ---: | --- | --- |"]
    for row in rows_of_scale(figures):
        lines.append(f"| {row.name} | {row.certroll} | {row.compared} | {row.goal} | {row.verdict} |")
    return "\n".join([*lines, "", _setting_of_scale(figures), ""])


def text(figures: Figures) -> str:
    """The same for a terminal."""
    table = [("", "floor", "certroll", "compared", "to reach", "")]
    table += [(r.name, r.floor, r.certroll, r.compared, r.goal, r.verdict.strip("*")) for r in [*rows(figures), *rows_of_scale(figures)]]
    widths = [max(len(line[i]) for line in table) for i in range(6)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table)


# --- rows


def _pairs(figures: Figures, who: str, get: Callable[[Figures], float]) -> list[float]:
    return [get(pair[who]) for pair in figures["pairs"]]


def _compare(figures: Figures, name: str, get: Callable[[Figures], float], unit: str, limit: float | None = None) -> Row:
    floor, certroll = (_pairs(figures, who, get) for who in ("floor", "certroll"))
    ratio = median(b / a for a, b in zip(floor, certroll, strict=True))
    goal = f"≤ {limit:g} × the floor" if limit else ""
    shown = [f"{median(values):.3g} {unit}" for values in (floor, certroll)]
    return Row(name, *shown, f"{ratio:.2f} ×", goal, ratio if limit else None, limit)


def _latency(figures: Figures) -> Iterable[Row]:
    for part, limit in ((0.5, _P50), (0.95, None), (0.99, None)):

        def get(turn: Figures, part: float = part) -> float:
            return percentile(turn["latency"]["from_sent_ms"], part)

        yield _compare(figures, f"a Secret's change → restart patch visible, p{part * 100:g}", get, "ms", limit)
    yield _compare(
        figures, "the same from the answer to the change, p50", lambda turn: percentile(turn["latency"]["from_answered_ms"], 0.5), "ms"
    )
    costs = [pair["certroll"].get("event_to_patch") for pair in figures["pairs"]]
    means = [cost["mean_s"] * 1000 for cost in costs if cost]
    if means:
        yield Row("own cost, watch line → PATCH queued, mean", "", f"{median(means):.2f} ms", "", "≤ 1 ms", median(means), 1.0)


def _burst(figures: Figures) -> Iterable[Row]:
    count = figures["plan"]["policies"]
    yield _compare(figures, f"{count} changes at once → {count} restart patches", lambda turn: turn["burst"]["restarts_s"], "s", _BURST)
    statuses = median(_pairs(figures, "certroll", lambda turn: turn["burst"]["statuses_s"]))
    yield Row("… and all statuses written", "", f"{statuses:.3g} s")
    yield _compare(figures, "CPU of such a burst", lambda turn: turn["burst"]["cpu_s"], "s")
    yield _compare(figures, "bytes received in it", lambda turn: turn["burst"]["received"] / 1e6, "MB")


def _memory(figures: Figures) -> Iterable[Row]:
    large = figures["plan"]["large"]
    whole = ", one Secret of 1 MB" if large else ""
    for key, name, limit in (
        ("peak", f"peak resident memory{whole}", _PEAK_MIB),
        ("resident", "resident after the burst", None),
        ("anonymous", "of it anonymous", None),
        ("private_dirty", "of it private and dirty", None),
    ):
        floor, certroll = (max(_pairs(figures, who, lambda turn, key=key: turn["memory"][key])) / _MIB for who in ("floor", "certroll"))
        goal = f"≤ {limit:g} MiB" if limit else ""
        yield Row(name, f"{floor:.1f} MiB", f"{certroll:.1f} MiB", "", goal, certroll if limit else None, limit)
    if "without_large" in figures:
        peak = figures["without_large"]["memory"]["peak"] / _MIB
        yield Row("peak resident memory, without it", "", f"{peak:.1f} MiB", "", f"≤ {_PEAK_MIB:g} MiB", peak, _PEAK_MIB)


def _rest(figures: Figures) -> Iterable[Row]:
    idle = figures["idle"]
    cpu = [idle[who]["cpu"] * 100 for who in ("floor", "certroll")]
    seconds = figures["plan"]["idle_s"]
    yield Row(f"CPU over {seconds:g} s of nothing, of a core", f"{cpu[0]:.4f} %", f"{cpu[1]:.4f} %")
    sync = {who: median(_pairs(figures, who, lambda turn: turn["in_sync_s"])) for who in ("floor", "certroll")}
    name = f"start → in sync with {figures['plan']['secrets']:,} Secrets"
    yield Row(name, f"{sync['floor']:.2f} s", f"{sync['certroll']:.2f} s", "", "≤ 1 s", sync["certroll"], 1.0)
    received = {who: median(_pairs(figures, who, lambda turn: turn["received_in_sync"])) / 1e6 for who in ("floor", "certroll")}
    yield Row("bytes received until then", f"{received['floor']:.1f} MB", f"{received['certroll']:.1f} MB")


def _waiting(figures: Figures) -> Iterable[Row]:
    """What --waiting measured, beside the floor that has nothing to do."""
    waiting = figures.get("waiting")
    if waiting:
        floor, cpu = figures["idle"]["floor"]["cpu"] * 100, waiting["cpu"] * 100
        name = f"CPU over {waiting['over_s']:g} s, {waiting['policies']} policies wait for a budget, of a core"
        yield Row(name, f"{floor:.4f} %", f"{cpu:.4f} %", "", "≤ 0.1 %", cpu, 0.1)


def _many_secrets(plan: Figures, scale: Figures) -> Iterable[Row]:
    before, after = scale["secrets"]["before"], scale["secrets"]["after"]
    peaks = [each["memory"]["peak"] / _MIB for each in (before, after)]
    count, more = scale["size"]["secrets"], peaks[1] - peaks[0]
    name = f"{count:,} Secrets, {plan['policies']:,} referenced: peak resident memory"
    yield Row(name, "", f"{peaks[1]:.1f} MiB", f"{more:+.1f} MiB", "≤ 1 MiB more", more, 1.0)
    yield Row(f"the same with {plan['secrets']:,} Secrets", "", f"{peaks[0]:.1f} MiB")
    yield Row(f"start → in sync with {count:,} Secrets", "", f"{after['in_sync_s']:.1f} s")


def _many_pods(plan: Figures, scale: Figures) -> Iterable[Row]:
    size, first, again = scale["size"], scale["pods"]["first"], scale["pods"]["again"]
    what = f"{size['policies']:,} policies, {size['policies'] * size['replicas']:,} pods"
    yield Row(f"{what}: first start → in sync", "", f"{first['in_sync_s']:.1f} s")
    yield Row("… and every status written, all at rest", "", f"{first['at_rest_s']:.1f} s")
    yield Row("CPU until then", "", f"{first['cpu_s']:.1f} s")
    yield Row("peak resident memory until then", "", f"{first['memory']['peak'] / _MIB:.1f} MiB")
    yield Row("a start at which nothing is new → in sync", "", f"{again['in_sync_s']:.1f} s")
    yield Row("… and at rest", "", f"{again['at_rest_s']:.1f} s")
    for key, name in (("resident", "resident memory then"), ("anonymous", "of it anonymous"), ("private_dirty", "of it private and dirty")):
        yield Row(name, "", f"{again['memory'][key] / _MIB:.1f} MiB")
    yield Row(f"CPU over {plan['idle_s']:g} s of nothing, of a core", "", f"{again['idle'] * 100:.4f} %")
    burst = again["burst"]
    yield Row(f"{size['burst']} changes at once → {size['burst']} restart patches", "", f"{burst['restarts_s']:.1f} s")
    yield Row("… and all statuses written", "", f"{burst['statuses_s']:.1f} s")
    yield Row("CPU of such a burst", "", f"{burst['cpu_s']:.1f} s")
    yield Row("peak resident memory, burst included", "", f"{burst['memory']['peak'] / _MIB:.1f} MiB")


def _setting_of_scale(figures: Figures) -> str:
    scale, versions = figures["scale"], figures["versions"]
    size, machine = scale["size"], scale["machine"]
    return (
        f"Measured on {scale['measured']}, once, in one cluster: the {size['policies']:,} policies came on top of the {size['secrets']:,} Secrets. "
        f"kube-apiserver {versions['kubernetes']}, etcd {versions['etcd']}, {machine['cores']} cores ({machine['cpu']}), "
        f"Linux {machine['kernel']}; load when it ended: {machine['load']}."
    )


def _setting(figures: Figures) -> str:
    plan, machine, versions = figures["plan"], figures["machine"], figures["versions"]
    return (
        f"{plan['pairs']} alternating pairs, {plan['changes']} changes one at a time in each turn; ratios are the median of the pairs' ratios, "
        f"other figures the median of the turns, memory the most of all turns. {plan['secrets']:,} TLS Secrets, {plan['policies']} Deployments "
        f"without replicas, one policy each. kube-apiserver {versions['kubernetes']}, etcd {versions['etcd']}, {machine['cores']} cores "
        f"({machine['cpu']}), Linux {machine['kernel']}; load when it began: {machine['load']}."
    )


# --- the plot

_BAR, _GAP, _LEFT, _WIDTH = 16, 5, 230, 760
_COLOURS = {"floor": "#9aa5b1", "certroll": "#2f6f9f"}


def svg(figures: Figures) -> str:
    """Bars of the floor and of certroll; a line where certroll is to stay below."""
    turns = {who: [pair[who] for pair in figures["pairs"]] for who in _COLOURS}

    def of(get: Callable[[Figures], float]) -> list[float]:
        return [median(get(turn) for turn in turns[who]) for who in _COLOURS]

    groups: list[tuple[str, str, list[float], float | None]] = []
    for part, factor in ((0.5, _P50), (0.95, None)):
        values = of(lambda turn, part=part: percentile(turn["latency"]["from_sent_ms"], part))
        groups.append((f"change → restart, p{part * 100:g}", "ms", values, values[0] * factor if factor else None))
    burst = of(lambda turn: turn["burst"]["restarts_s"])
    groups.append((f"{figures['plan']['policies']} at once", "s", burst, burst[0] * _BURST))
    groups.append(("start → in sync", "s", of(lambda turn: turn["in_sync_s"]), 1.0))
    groups.append(("peak memory", "MiB", of(lambda turn: turn["memory"]["peak"] / _MIB), _PEAK_MIB))
    groups.append(("private, dirty", "MiB", of(lambda turn: turn["memory"]["private_dirty"] / _MIB), None))
    return _draw(groups)


def _draw(groups: Sequence[tuple[str, str, list[float], float | None]]) -> str:
    step = 2 * _BAR + 3 * _GAP + 10
    height = 50 + step * len(groups)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        *_legend(),
    ]
    for number, (name, unit, values, goal) in enumerate(groups):
        parts += _group(40 + step * number, name, unit, values, goal)
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> Iterable[str]:
    for number, (who, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + 110 * number
        yield f'<rect x="{x}" y="10" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="21">{who}</text>'
    x = _LEFT + 220
    yield f'<line x1="{x + 6}" y1="8" x2="{x + 6}" y2="24" stroke="#c0392b" stroke-width="2"/><text x="{x + 18}" y="21">to stay below</text>'


def _group(top: int, name: str, unit: str, values: list[float], goal: float | None) -> Iterable[str]:
    most = max([*values, goal or 0.0]) or 1.0
    scale = (_WIDTH - _LEFT - 100) / most
    yield f'<text x="{_LEFT - 12}" y="{top + _BAR + 6}" text-anchor="end">{escape(name)}</text>'
    for number, (value, colour) in enumerate(zip(values, _COLOURS.values(), strict=True)):
        y, width = top + number * (_BAR + _GAP), value * scale
        yield f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
        yield f'<text x="{_LEFT + width + 8:.1f}" y="{y + 13}">{value:.3g} {unit}</text>'
    if goal:
        x = _LEFT + goal * scale
        yield f'<line x1="{x:.1f}" y1="{top - 3}" x2="{x:.1f}" y2="{top + 2 * _BAR + _GAP + 3}" stroke="#c0392b" stroke-width="2"/>'
