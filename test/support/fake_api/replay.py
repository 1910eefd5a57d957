"""A tape instead of an API server: the same lists, events and answers, in an order that what was written allows.

What followed a write on the tape comes only after that write was made again. So a client may be faster or slower than the
recorded one, and may ask anew after a fault, from any version that it has seen; but what it writes must be on the tape.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from .message import Answer, Request, is_list_mark, refusal, version_of
from .tape import Exchange, Frame, Tape, subject

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_EVENT_NAME = re.compile(r"\.[0-9a-f]{16}\b")  # of core/v1 Events, by the habit of client-go


class Replay:
    """`errors`: what the client did that the tape does not have. There should be none."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._played: set[int] = set()  # places of writes
        self._wrote = asyncio.Condition()
        self.errors: list[str] = []

    async def answer(self, request: Request) -> Answer:
        if request.is_watch:
            return self._watch(request)
        if request.is_write:
            return await self._write(request)
        return self._read(request)

    async def close(self) -> None:
        pass

    # --- writes

    async def _write(self, request: Request) -> Answer:
        wanted = _fingerprint(request)
        same = [each for each in self._tape.exchanges if each.request.is_write and _fingerprint(each.request) == wanted]
        fresh = [each for each in same if each.place not in self._played]
        if not same:
            return self._missing(request)
        if not fresh:  # made twice: the second fails its precondition
            return refusal(409, f"{request} was made before")
        async with self._wrote:
            self._played.add(fresh[0].place)
            self._wrote.notify_all()
        return _whole(fresh[0])

    def _missing(self, request: Request) -> Answer:
        self.errors.append(f"not on the tape: {request} {request.body[:2000].decode()}")
        return refusal(500, "not on the tape")

    # --- reads

    def _read(self, request: Request) -> Answer:
        """As it was after the writes so far."""
        wanted = subject(request)
        same = [
            each for each in self._tape.exchanges
            if each.frames is None and each.method == request.method and subject(each.request) == wanted
        ]  # fmt: skip
        if not same:
            return self._missing(request)
        past = [each for each in same if self._may_come(each.place)]
        return _whole((past or same)[-1 if past else 0])

    # --- watches

    def _watch(self, request: Request) -> Answer:
        recorded = list(self._tape.watches_of(request))
        if not recorded:
            refused = [each for each in self._tape.exchanges if subject(each.request) == subject(request) and each.status >= 400]
            return _whole(refused[0]) if refused else self._missing(request)
        head = recorded[0]
        return Answer(head.status, head.answer_headers, frames=self._frames(request))

    async def _frames(self, request: Request) -> AsyncIterator[bytes]:
        since = int(request.query.get("resourceVersion") or 0)
        if request.is_streaming_list:
            for frame in self._tape.first_list(request) or []:
                yield frame
                since = int(version_of(frame) or 0)
        for later in self._events(request):
            if int(version_of(later.content.encode()) or 0) <= since:
                continue
            async with self._wrote:
                while not self._may_come(later.place):
                    await self._wrote.wait()
            yield later.content.encode()
        await asyncio.Event().wait()  # nothing more happens, and the stream stays open

    def _events(self, request: Request) -> list[Frame]:
        """Of all connections, each event once: those after the list, by version."""
        events: dict[str, Frame] = {}
        for exchange in self._tape.watches_of(request):
            frames = exchange.frames or []
            marks = [index for index, frame in enumerate(frames) if is_list_mark(frame.content.encode())]
            if exchange.request.is_streaming_list and not marks:
                continue
            for frame in frames[marks[0] + 1 if marks else 0 :]:
                if '"ERROR"' not in frame.content[:32] and (version := version_of(frame.content.encode())):
                    events.setdefault(version, frame)
        return sorted(events.values(), key=lambda frame: int(version_of(frame.content.encode())))

    def _may_come(self, place: int) -> bool:
        return all(each.place in self._played for each in self._tape.exchanges if each.place < place and _is_cause(each.request))


def _is_cause(request: Request) -> bool:
    """Nothing follows from an Event."""
    return request.is_write and request.target.kind != "events"


def _fingerprint(request: Request) -> tuple[str, str, str]:
    """Times differ from run to run, and names made of them."""
    body = _TIME.sub("<time>", request.body.decode())
    return request.method, subject(request), _EVENT_NAME.sub(".<name>", body) if request.target.kind == "events" else body


def _whole(exchange: Exchange) -> Answer:
    return Answer(exchange.status, exchange.answer_headers, exchange.answer.encode())
