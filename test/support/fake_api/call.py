"""One request on its way through the fake, and what became of it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from .message import Answer, Request
from .schedule import Schedule
from .tape import Exchange, Tape
from .wire import Wire

_numbers = itertools.count(1)


class Source(Protocol):
    """Who really answers."""

    async def answer(self, request: Request) -> Answer: ...

    async def close(self) -> None: ...


@dataclass(eq=False)
class Call:
    request: Request
    wire: Wire
    source: Source
    tape: Tape
    schedule: Schedule
    number: int = field(default_factory=lambda: next(_numbers))
    at: float = field(default_factory=time.monotonic)
    # Tests read these.
    fault: str = ""  # what struck it
    forwarded: int | None = None  # what the source answered; None: it never saw the request
    told: int | None = None  # what the client was told
    frames: int = 0
    ended: float | None = None
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        self.task = asyncio.current_task()
        try:
            if fault := self.schedule.at_request(self.request):
                self.fault = str(fault)
                await fault.answer(self)
            else:
                await self.reply(await self.forward())
        finally:
            self.ended = time.monotonic()

    async def forward(self) -> Answer:
        """Asks the source; what it answers goes onto the tape, frame by frame."""
        place = self.tape.next_place()
        answer = await self.source.answer(self.request)
        self.forwarded = answer.status
        exchange = self.tape.record(self.request, answer, place)
        if answer.frames:
            answer.frames = self._recorded(exchange, answer.frames)
        return answer

    async def _recorded(self, exchange: Exchange, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for frame in frames:
            self.tape.record_frame(exchange, frame)
            yield frame

    async def reply(self, answer: Answer) -> None:
        await self.begin(answer)
        if answer.frames is None:
            await self.wire.data(answer.body)
            await self.wire.finish()
            return
        async with aclosing(answer.frames) as frames:  # type: ignore[type-var]
            async for frame in frames:
                if not await self._pass(frame):
                    return
        await self.wire.finish()

    async def begin(self, answer: Answer) -> None:
        self.told = answer.status
        await self.wire.head(answer.status, answer.headers)

    async def _pass(self, frame: bytes) -> bool:
        fault = self.schedule.at_frame(self.request, frame)
        if not fault:
            await self.send(frame)
            return True
        self.fault = str(fault)
        return await fault.frame(self, frame)

    async def send(self, frame: bytes) -> None:
        await self.wire.data(frame)
        self.frames += 1
