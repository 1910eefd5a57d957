"""Streaming lists that are not what they should be."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ..call import Call
from ..message import Answer, is_list_mark, version_of


@dataclass(frozen=True)
class NoMark:
    """The list without the bookmark that says it is complete; then the stream ends."""

    async def answer(self, call: Call) -> None:
        answer = await call.forward()
        await call.begin(answer)
        if answer.frames is None:
            await call.wire.data(answer.body)
        else:
            for frame in await initial(answer.frames):
                if not is_list_mark(frame):
                    await call.send(frame)
        await call.wire.finish()


@dataclass(frozen=True)
class ShuffledList:
    """The initial events in another order: the API promises none among them."""

    seed: int = 1

    async def answer(self, call: Call) -> None:
        answer = await call.forward()
        if answer.frames is not None:
            answer.frames = self._shuffled(answer.frames)
        await call.reply(answer)

    async def _shuffled(self, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        *objects, mark = await initial(frames)
        random.Random(self.seed).shuffle(objects)
        for frame in (*objects, mark):
            yield frame
        async for frame in frames:
            yield frame


@dataclass(frozen=True)
class PastList:
    """The first list that the tape has of this: an API server whose cache is behind what the client has seen already.

    After `seconds` the stream ends; a watch from that version on then catches up.
    """

    seconds: float = 0.0

    async def answer(self, call: Call) -> None:
        past = call.tape.first_list(call.request)
        if not past:
            raise LookupError(f"the tape has no list for {call.request}")
        await call.begin(Answer(200, [("content-type", "application/json")]))
        for frame in past:
            await call.send(frame)
        call.fault += f" of version {version_of(past[-1])}"
        await asyncio.sleep(self.seconds)
        await call.wire.finish()


async def initial(frames: AsyncIterator[bytes]) -> list[bytes]:
    """Up to the mark, with it."""
    taken = []
    async for frame in frames:
        taken.append(frame)
        if is_list_mark(frame):
            break
    return taken
