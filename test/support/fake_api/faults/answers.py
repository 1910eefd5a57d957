"""Answers to a request that are not what the API server would say, or do not come."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from typing import Literal

from ..call import Call
from ..message import Answer, refusal

FOREVER = 3600.0


@dataclass(frozen=True)
class Refuse:
    """401, 409, 410, 422, 429, 503: the API server never sees the request. `retry_after` in seconds."""

    code: int
    retry_after: int | None = None

    async def answer(self, call: Call) -> None:
        await call.reply(refusal(self.code, f"refused by the test ({self.code})", self.retry_after))


@dataclass(frozen=True)
class LoseAnswer:
    """The API server did it, and the client never learns: the answer is reset, the connection dies, or nothing comes at all."""

    how: Literal["reset", "drop", "silence"]

    async def answer(self, call: Call) -> None:
        await call.forward()
        if self.how == "silence":
            await asyncio.sleep(FOREVER)  # until the client gives up
        await (call.wire.reset() if self.how == "reset" else call.wire.drop())


@dataclass(frozen=True)
class Silent:
    """No byte of an answer for so long, in seconds; then the connection dies. The API server never sees the request."""

    seconds: float = FOREVER

    async def answer(self, call: Call) -> None:
        await asyncio.sleep(self.seconds)
        await call.wire.drop()


@dataclass(frozen=True)
class BrokenGzip:
    """An answer that says it is compressed: its checksum is wrong, or it ends in the middle."""

    how: Literal["checksum", "cut"] = "checksum"

    async def answer(self, call: Call) -> None:
        answer = await call.forward()
        if answer.frames is not None:
            await answer.frames.aclose()  # type: ignore[attr-defined]
        packed = bytearray(gzip.compress(answer.body or b'{"type":"ADDED","object":{}}\n' * 100))
        packed[-8] ^= 0xFF
        body = bytes(packed[: len(packed) // 2] if self.how == "cut" else packed)
        await call.reply(Answer(answer.status, [*answer.headers, ("content-encoding", "gzip")], body))
