"""Events that come twice, late, or after something else; the stream goes on."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

from ..call import Call

_POLL = 0.02


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
class Hold:
    """Until the test releases all that are held; those to come pass. What follows in the stream waits as well."""

    _released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self._released.set()

    async def frame(self, call: Call, frame: bytes) -> bool:
        while not self._released.is_set():  # the test has a thread of its own
            await asyncio.sleep(_POLL)
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
