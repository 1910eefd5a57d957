"""Ends of a watch, at a frame: what the frame had to tell, the client does not learn by this stream."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from ..call import Call
from ..message import event, status_object

How = Literal["reset", "drop", "finish"]


async def _end(call: Call, how: How) -> None:
    await {"reset": call.wire.reset, "drop": call.wire.drop, "finish": call.wire.finish}[how]()


@dataclass(frozen=True)
class CutFrame:
    """Half of the frame, then the stream is reset, its connection dies, or it ends as if all were well."""

    how: How

    async def frame(self, call: Call, frame: bytes) -> bool:
        await call.wire.data(frame[: len(frame) // 2])
        await _end(call, self.how)
        return False


@dataclass(frozen=True)
class Close:
    """Between two frames."""

    how: How

    async def frame(self, call: Call, frame: bytes) -> bool:
        await _end(call, self.how)
        return False


@dataclass(frozen=True)
class ErrorEvent:
    """A Status in the stream; 410: the API server has forgotten that version, the client must list anew."""

    code: int = 410

    async def frame(self, call: Call, frame: bytes) -> bool:
        await call.send(event("ERROR", status_object(self.code, "too old resource version (by the test)")))
        await call.wire.finish()
        return False


@dataclass(frozen=True)
class GoAway:
    """The connection is to be left, as when an API server is drained. `processed`: this request still counts, and goes on."""

    processed: bool

    async def frame(self, call: Call, frame: bytes) -> bool:
        await call.wire.go_away(self.processed)
        if self.processed:
            await call.send(frame)
            await call.wire.finish()
        return False

    async def answer(self, call: Call) -> None:
        await call.wire.go_away(self.processed)
        if self.processed:
            await call.reply(await call.forward())


@dataclass(frozen=True)
class Stall:
    """No more bytes for so long, in seconds, on an open connection; then it dies."""

    seconds: float

    async def frame(self, call: Call, frame: bytes) -> bool:
        await asyncio.sleep(self.seconds)
        await call.wire.drop()
        return False
