"""What an answer goes out by. A fault breaks it here: the stream, or the connection with all that is on it."""

from __future__ import annotations

from typing import Protocol

from .message import Headers


class Gone(Exception):
    """The client has ended this request, or its connection."""


class Wire(Protocol):
    """The answer to one request. After reset, drop or finish nothing may follow. Each raises Gone when nobody listens."""

    async def head(self, status: int, headers: Headers) -> None: ...

    async def data(self, content: bytes) -> None: ...

    async def finish(self) -> None: ...

    async def reset(self) -> None:
        """End this answer before it is complete: RST_STREAM, or with HTTP/1.1 the connection."""

    async def drop(self) -> None:
        """Reset the connection (RST), with all other streams that are on it."""

    async def go_away(self, processed: bool) -> None:
        """Tell the client to take another connection; `processed` says whether this request counts as begun.

        What counts goes on, what does not ends here. With HTTP/1.1 the connection ends.
        """
