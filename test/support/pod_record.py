"""What became of the pods of a namespace, from a watch: each event, in the order in which the API server made them.

Looking now and then would miss the moments that matter: between two looks a pod may go and its replacement become ready.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from certroll_dev.demo.api import API, Object, path
from certroll_dev.demo.waiting import wait_for

_WATCH = 20  # seconds; then the next goes on where this one ended
_CATCHES_UP = 30.0


@dataclass(frozen=True)
class Seen:
    """A pod as one event has it."""

    uid: str
    name: str
    version: str
    labels: Mapping[str, str]
    available: bool  # as the disruption controller counts: ready, and not being deleted
    gone: bool
    why: str  # it is not available; for a person

    @staticmethod
    def of(obj: Object, gone: bool = False) -> Seen:
        meta = obj["metadata"]
        going = gone or "deletionTimestamp" in meta
        [ready] = [c for c in obj.get("status", {}).get("conditions", []) if c["type"] == "Ready"] or [{"status": "False"}]
        return Seen(
            meta["uid"], meta["name"], meta["resourceVersion"], meta.get("labels", {}),
            available=ready["status"] == "True" and not going, gone=gone,
            why="deleted" if going else f"{ready.get('reason', '')}: {ready.get('message', '')}",
        )  # fmt: skip

    def has(self, labels: Mapping[str, str]) -> bool:
        return labels.items() <= self.labels.items()


@dataclass(frozen=True)
class Count:
    at: float  # seconds since the epoch at which the event was heard of
    available: int


class PodRecord:
    """Use it as a context; it can be asked during and after it."""

    def __init__(self, api: API, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._events: list[tuple[float, Seen]] = []
        self._pods: dict[str, Seen] = {}  # as the last event has each that is there
        self._version = ""
        self._first = 0  # event after those that are there at the beginning
        self._over = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="pod record", daemon=True)

    def __enter__(self) -> Self:
        listed = self._list()
        for obj in listed["items"]:
            self._take(Seen.of(obj))
        self._version = listed["metadata"]["resourceVersion"]  # not that of a pod: what was before is no event
        self._first = len(self._events)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    # --- asking

    def mark(self) -> int:
        """A place in the record: what is asked since then begins with what is there."""
        self.catch_up()
        return len(self._events)

    def lowest(self, labels: Mapping[str, str], since: int = 0) -> int:
        """Of pods with these labels, so many were available at the worst moment."""
        return min(count.available for count in self.counts(labels, since))

    def counts(self, labels: Mapping[str, str], since: int = 0) -> list[Count]:
        """How many were available, at the mark and whenever that changed."""
        return list(self._counts(labels, since))

    def story(self, labels: Mapping[str, str], since: int = 0) -> str:
        """What happened to them, for the message of a failure."""
        available: set[str] = set()
        lines: list[str] = []
        for number, (at, seen) in enumerate(list(self._events)):
            before = len(available)
            _count(available, seen, labels)
            if len(available) != before and number >= max(since, self._first):
                lines.append(f"{at:.2f} {seen.name}: {len(available)} available{'' if seen.available else f' ({seen.why})'}")
        return "\n".join(lines)

    def came(self, labels: Mapping[str, str], since: int = 0) -> set[str]:
        """UIDs of the pods that were created since."""
        since = max(since, self._first)
        events = list(self._events)
        before = {seen.uid for _, seen in events[:since]}
        return {seen.uid for _, seen in events[since:] if seen.has(labels)} - before

    def pods(self, labels: Mapping[str, str]) -> set[str]:
        """UIDs of those that are there and are to stay."""
        self.catch_up()
        return {seen.uid for seen in self._pods.values() if seen.has(labels) and seen.available}

    def catch_up(self) -> None:
        """Until all is recorded that has happened before this call."""
        listed = self._list()
        now = int(listed["metadata"]["resourceVersion"])
        wanted = {obj["metadata"]["uid"]: int(obj["metadata"]["resourceVersion"]) for obj in listed["items"]}

        def look() -> bool:
            if self._failed:
                raise self._failed
            known = {uid: int(seen.version) for uid, seen in list(self._pods.items())}
            gone = {seen.uid for _, seen in list(self._events) if seen.gone}
            return all(uid in gone or known.get(uid, 0) >= version for uid, version in wanted.items()) and all(
                uid in wanted or version > now for uid, version in known.items()
            )

        wait_for("the record of pods to catch up", look, deadline=_CATCHES_UP)

    # --- recording

    def _counts(self, labels: Mapping[str, str], since: int) -> Iterator[Count]:
        available: set[str] = set()
        events, since = list(self._events), max(since, self._first)
        for _, seen in events[:since]:
            _count(available, seen, labels)
        last = len(available)
        yield Count(events[since - 1][0] if since else time.time(), last)
        for at, seen in events[since:]:
            _count(available, seen, labels)
            if len(available) != last:
                last = len(available)
                yield Count(at, last)

    def _take(self, seen: Seen) -> None:
        self._events.append((time.time(), seen))
        self._version = seen.version
        if seen.gone:
            self._pods.pop(seen.uid, None)
        else:
            self._pods[seen.uid] = seen

    def _list(self) -> Object:
        return self._api.request("GET", path("pods", self._namespace))

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._watch()
        except Exception as error:  # told to whoever asks next: a record with a hole shows nothing
            self._failed = error

    def _watch(self) -> None:
        for kind, obj in self._api.watch("pods", self._namespace, self._version, _WATCH):
            if kind == "BOOKMARK":
                self._version = obj["metadata"]["resourceVersion"]
            elif kind == "ERROR":
                raise AssertionError(f"the watch of pods broke off: {obj}")
            else:
                self._take(Seen.of(obj, gone=kind == "DELETED"))
            if self._over.is_set():
                return


def _count(available: set[str], seen: Seen, labels: Mapping[str, str]) -> None:
    if seen.available and seen.has(labels):
        available.add(seen.uid)
    else:
        available.discard(seen.uid)
