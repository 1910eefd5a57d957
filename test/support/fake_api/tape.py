"""What passed by: every request with its answer, every frame of a watch with its time. As a file, JSON lines.

A tape holds what the API server said, keys in Secrets among it: the file is for its owner only. Tokens are left out.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from .message import Answer, Headers, Request, is_list_mark

# These differ from run to run, or from one connection to the next, and do not change what is asked for.
_NOT_THE_QUESTION = frozenset({
    "timeoutSeconds", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "watch",
})  # fmt: skip
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})


def subject(request: Request) -> str:
    """What a list or a watch is of: its path and selectors."""
    parts = urlsplit(request.path)
    query = [pair for pair in parse_qsl(parts.query) if pair[0] not in _NOT_THE_QUESTION]
    return parts.path + ("?" + urlencode(sorted(query)) if query else "")


@dataclass(eq=False)
class Frame:
    at: float
    place: int  # on the tape, over all exchanges
    content: str


@dataclass(eq=False)
class Exchange:
    at: float  # seconds since the tape began
    place: int
    method: str
    path: str
    headers: Headers
    body: str
    status: int
    answer_headers: Headers
    answer: str
    frames: list[Frame] | None = None  # of a watch

    @property
    def request(self) -> Request:
        return Request(self.method, self.path, self.headers, self.body.encode())


@dataclass
class Tape:
    exchanges: list[Exchange] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _places: int = 0

    def next_place(self) -> int:
        self._places += 1
        return self._places

    def record(self, request: Request, answer: Answer, place: int) -> Exchange:
        """`place` was taken when the request came: what follows it on the tape may be its doing, even before its answer."""
        exchange = Exchange(
            time.monotonic() - self._began, place, request.method, request.path,
            [pair for pair in request.headers if pair[0].lower() not in _SECRET_HEADERS],
            request.body.decode(), answer.status, answer.headers, answer.body.decode(),
            None if answer.frames is None else [],
        )  # fmt: skip
        self.exchanges.append(exchange)
        return exchange

    def record_frame(self, exchange: Exchange, frame: bytes) -> None:
        assert exchange.frames is not None
        exchange.frames.append(Frame(time.monotonic() - self._began, self.next_place(), frame.decode()))

    def watches_of(self, request: Request) -> Iterator[Exchange]:
        wanted = subject(request)
        return (each for each in self.exchanges if each.frames is not None and subject(each.request) == wanted)

    def first_list(self, request: Request) -> list[bytes] | None:
        """The frames of the first streaming list of this that was complete."""
        for exchange in self.watches_of(request):
            if exchange.request.is_streaming_list:
                frames = [frame.content.encode() for frame in exchange.frames or []]
                marks = [index for index, frame in enumerate(frames) if is_list_mark(frame)]
                if marks:
                    return frames[: marks[0] + 1]
        return None

    def save(self, path: Path) -> None:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            for exchange in self.exchanges:
                file.write(json.dumps(asdict(exchange)) + "\n")

    @staticmethod
    def load(path: Path) -> Tape:
        tape = Tape()
        for line in path.read_text().splitlines():
            fields = json.loads(line)
            fields["frames"] = None if fields["frames"] is None else [Frame(**frame) for frame in fields["frames"]]
            for name in ("headers", "answer_headers"):
                fields[name] = [(str(key), str(value)) for key, value in fields[name]]
            tape.exchanges.append(Exchange(**fields))
        return tape
