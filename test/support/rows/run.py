"""All rows side by side: what is swapped, and when it was in use.

First everything is swapped and looked at for as long as the prediction needs: who polls each five minutes is given them.
Then what was not taken up is tried with the triggers of the catalogue and, last, with a restart of its program, which so
has had all that time in which it could have taken it up by itself.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from programs.observe import BY_ITSELF, Entry, Seen
from rows.row import Row

_READY = 90.0  # seconds until a look shows what was there before
_WINDOW = 30.0  # in which what is read once must not show
_SLACK = 15.0  # of a busy machine
_TRIGGERED = 20.0
_RESTARTED = 60.0
_AT_ONCE = 4  # rows that are taken up in no time
_QUICK, _SLOW = 0.1, 1.0  # seconds between two looks, at first and later


@dataclass(eq=False)
class Outcome:
    row: Row
    entry: Entry  # what was predicted
    seen: Seen
    watched: float = 0.0  # seconds in which it was not taken up by itself
    error: str = ""  # that it could not be seen at all


def run(outcomes: Sequence[Outcome], turns: Sequence[str] = ()) -> None:
    """Looks at each row that has not been looked at; `turns` are programs that must not run beside each other.

    In the network of this thread.
    """

    def of_turn(name: str | None) -> list[Outcome]:
        return [each for each in outcomes if _turn(each.row, turns) == name]

    def take_turns() -> None:
        for name in turns:
            mine = of_turn(name)
            for program in {id(each.row.program): each.row.program for each in mine}.values():
                assert program
                with program.running():
                    _quick(mine)
                    _slow(mine)

    run_at_once(outcomes, turns)
    with ThreadPoolExecutor(max_workers=1) as executor:  # while others wait for a poll
        others = executor.submit(take_turns)
        _slow(of_turn(None))
        others.result()


def run_at_once(outcomes: Sequence[Outcome], turns: Sequence[str] = ()) -> list[Outcome]:
    """Looks at the rows that are predicted to be taken up at once, of programs that run all the time, and returns them."""
    quick = [each for each in outcomes if _turn(each.row, turns) is None and _is_quick(each)]
    _quick([each for each in quick if each.seen.by_itself is None and not each.error])
    return quick


def _turn(row: Row, turns: Sequence[str]) -> str | None:
    return row.program.name if row.program and row.program.name in turns else None


def _quick(outcomes: Sequence[Outcome]) -> None:
    """Those that are taken up in no time, a few at a time: a busy machine would be what is measured."""
    _each([each for each in outcomes if _is_quick(each)], _by_itself, at_once=_AT_ONCE)


def _slow(outcomes: Sequence[Outcome]) -> None:
    slow = [each for each in outcomes if not _is_quick(each)]
    polls = [each for each in slow if each.entry["method"] == "Poll"]
    others = [each for each in slow if each.entry["method"] != "Poll"]
    with ThreadPoolExecutor(max_workers=max(len(polls), 1)) as executor:
        busy = {id(each.row.program) for each in others if each.row.program}
        free = [each for each in polls if id(each.row.program) not in busy]
        waiting = [executor.submit(_guarded, each, _by_itself) for each in free]
        _each(others, _by_itself, at_once=len(others))
        # A program that is cut off from its server by turns could not show what it has read once.
        waiting += [executor.submit(_guarded, each, _by_itself) for each in polls if each not in free]
        for future in waiting:
            future.result()
    passive = [each for each in outcomes if not each.row.unobservable and each.seen.by_itself is None and not each.error]
    _each(passive, _triggered, at_once=len(passive))
    began = _restart(passive)
    _each(passive, lambda each: _restarted(each, began), at_once=len(passive))


def _is_quick(outcome: Outcome) -> bool:
    return outcome.entry["method"] in BY_ITSELF - {"Poll"}


def _each(outcomes: Sequence[Outcome], step: Callable[[Outcome], None], *, at_once: int) -> None:
    with ThreadPoolExecutor(max_workers=max(at_once, 1)) as executor:
        list(executor.map(lambda each: _guarded(each, step), outcomes))


def _guarded(outcome: Outcome, step: Callable[[Outcome], None]) -> None:
    """One row that cannot be looked at leaves the others alone."""
    try:
        step(outcome)
    except Exception:
        outcome.error = traceback.format_exc(limit=4)


def _by_itself(outcome: Outcome) -> None:
    row, entry = outcome.row, outcome.entry
    if row.unobservable:
        assert _look(row, _TRIGGERED) is not None, f"{row.unobservable}: this was not seen"
        return
    assert _wait(row.works, _READY) is not None, "it cannot be seen how it was before"
    assert not row.seen(), "the new one is seen before it is there"
    row.swap()
    began = time.monotonic()
    row.refresh()
    limit = entry["maxDelayMs"] / 1000 + slack(row) if entry["method"] in BY_ITSELF else _WINDOW
    outcome.seen.by_itself = _look(row, limit)
    if outcome.seen.by_itself is not None:
        row.settle()
    else:
        outcome.watched = time.monotonic() - began
        row.settle()
        assert _wait(row.works, 2 * _SLACK + row.patience) is not None, "that it was not taken up means nothing: neither is the old one seen"


def _triggered(outcome: Outcome) -> None:
    trigger = outcome.entry.get("trigger")
    if trigger and trigger in outcome.row.triggers:
        outcome.row.triggers[trigger]()
        outcome.row.refresh()
        outcome.seen.triggered[trigger] = _look(outcome.row, _TRIGGERED)


def _restart(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Each program once, one after the other; when each began to be restarted."""
    began = {}
    for outcome in outcomes:
        name = _program(outcome.row)
        if outcome.row.restart and name not in began:
            began[name] = time.monotonic()
            outcome.row.restart()
    return began


def _restarted(outcome: Outcome, began: Mapping[str, float]) -> None:
    name = _program(outcome.row)
    if name in began:
        if outcome.row.probes:
            outcome.row.refresh()
        found = _look(outcome.row, _RESTARTED)
        outcome.seen.restarted = None if found is None else time.monotonic() - began[name]


def _program(row: Row) -> str:
    return row.program.name if row.program else row.component


def slack(row: Row) -> float:
    """Seconds that may go by beyond what was predicted."""
    return _SLACK + row.patience


def _look(row: Row, limit: float) -> float | None:
    """Seconds until it was seen: to the end of the look that saw it."""
    return _wait(row.seen, limit)


def _wait(call: Callable[[], bool], limit: float) -> float | None:
    began = time.monotonic()
    while True:
        if call():
            return time.monotonic() - began
        now = time.monotonic() - began
        if now > limit:
            return None
        time.sleep(_QUICK if now < 2 else _SLOW)
