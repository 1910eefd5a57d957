"""Events that come twice, late, or after something else; the stream goes on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ..call import Call


@dataclass(frozen=True)
class Repeat:
    """The frame, and the same once more: as after a watch that was begun anew a little before."""

    times: int = 2

    async def frame(self, call: Call, frame: bytes) -> bool:
        for _ in range(self.times):
            await call.send(frame)
        return True


@dataclass(frozen=True)
class Delay:
    """Seconds; what follows in the stream waits as well (a watch keeps its order), other watches overtake it."""

    seconds: float

    async def frame(self, call: Call, frame: bytes) -> bool:
        await asyncio.sleep(self.seconds)
        await call.send(frame)
        return True


@dataclass(frozen=True)
class Precede:
    """Something else before the frame: a bookmark with nothing in it, an event of an unknown type."""

    content: bytes

    async def frame(self, call: Call, frame: bytes) -> bool:
        await call.send(self.content)
        await call.send(frame)
        return True
