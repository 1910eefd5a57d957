"""What the agents report while something is rotated: which restarts there were, and what was taken up without one."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from certroll_dev.commands import DevError
from control_plane_world import World, joined

_EVERY = 2.0  # seconds


@dataclass
class Act:
    node: str
    component: str
    phase: str
    started: float | None
    finished: float | None

    @property
    def seconds(self) -> float:
        return self.finished - self.started if self.started and self.finished else 0.0


@dataclass
class Record(threading.Thread):
    world: World
    acts: dict[str, Act] = field(default_factory=dict)  # by token
    reloads: dict[str, float] = field(default_factory=dict)  # "component parameter": seconds from a file's change to Verified

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._end = threading.Event()
        self._seen: dict[tuple[str, str], str] = {}
        self._old: set[str] = set()  # tokens of before

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self) -> Self:
        self._look()
        self._old = set(self.acts)
        self.acts.clear()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.join()
        self._look()

    def run(self) -> None:
        while not self._end.wait(_EVERY):
            self._look()

    def overlapping(self) -> list[tuple[str, str]]:
        """Restarts that were not one after the other, by all that was seen of them."""
        done = sorted((act for act in self.acts.values() if act.started and act.finished), key=lambda act: act.started or 0)
        return [
            (f"{one.component} on {one.node}", f"{two.component} on {two.node}")
            for one, two in zip(done, done[1:], strict=False)
            if (two.started or 0) < (one.finished or 0) - 1  # the times are whole seconds of two clocks
        ]

    def describe(self) -> str:
        acts = sorted(self.acts.values(), key=lambda act: act.started or 0)
        lines = [f"{_clock(act.started)} {act.component} on {act.node}: {act.phase}, {act.seconds:.0f} s" for act in acts]
        return "\n".join(lines + [f"{what}: {seconds:.0f} s" for what, seconds in sorted(self.reloads.items())])

    def _look(self) -> None:
        try:
            reports = self.world.reports()
        except DevError:
            return  # an API server is away; the next look will do
        for node, report in reports.items():
            status = report.get("status", {})
            self._note_act(node, status.get("restart") or {})
            for row in status.get("files", []):
                if row.get("evidence") == "Verified" and row.get("loaded") == "Loaded" and row.get("path"):
                    self._note_file(node, row)

    def _note_act(self, node: str, act: Mapping[str, Any]) -> None:
        token = act.get("token")
        if token and token not in self._old:
            self.acts[token] = Act(node, act["component"], act["phase"], _time(act.get("started")), _time(act.get("finished")))

    def _note_file(self, node: str, row: Mapping[str, Any]) -> None:
        what = f"{row['component']} {row['parameter']}"
        now = joined(row.get("fingerprints", []))
        if self._seen.setdefault((node, what), now) != now:
            self._seen[node, what] = now
            changed = self.world.file(node, row["path"]).stat().st_mtime
            self.reloads[what] = max(self.reloads.get(what, 0.0), time.time() - changed)


def _time(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


def _clock(when: float | None) -> str:
    return time.strftime("%H:%M:%S", time.localtime(when)) if when else "--:--:--"
