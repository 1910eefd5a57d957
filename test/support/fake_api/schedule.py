"""Which fault strikes where: rules that a test lays out, each for so many requests or frames that fit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .message import Request

if TYPE_CHECKING:
    from .call import Call

Fits = Callable[[Request], bool]
FitsFrame = Callable[[bytes], bool]
ALWAYS = 1 << 30


class RequestFault(Protocol):
    async def answer(self, call: Call) -> None:
        """Answers the request in its own way."""


class FrameFault(Protocol):
    async def frame(self, call: Call, frame: bytes) -> bool:
        """Treats one frame of a watch; whether the stream goes on."""


@dataclass(eq=False)
class Rule:
    """`skip` of those that fit pass, then `times` are struck. With `frame` it strikes frames, else requests."""

    fits: Fits
    fault: RequestFault | FrameFault
    frame: FitsFrame | None = None
    skip: int = 0
    times: int = 1
    struck: int = 0

    def takes(self) -> bool:
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.struck >= self.times:
            return False
        self.struck += 1
        return True


class Schedule:
    """Tests add rules while the server reads them. The first rule that takes a request has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []

    def add(self, rule: Rule) -> Rule:
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def at_request(self, request: Request) -> RequestFault | None:
        return self._find(lambda rule: rule.frame is None and rule.fits(request))  # type: ignore[return-value]

    def at_frame(self, request: Request, frame: bytes) -> FrameFault | None:
        return self._find(lambda rule: rule.frame is not None and rule.fits(request) and rule.frame(frame))  # type: ignore[return-value]

    def _find(self, wanted: Callable[[Rule], bool]) -> RequestFault | FrameFault | None:
        with self._lock:
            return next((rule.fault for rule in self._rules if wanted(rule) and rule.takes()), None)


# --- what a rule is for; "" stands for all kinds


def _kind(request: Request, kind: str) -> bool:
    return not kind or request.target.kind == kind


def requests(kind: str = "") -> Fits:
    """All of them, the Lease's left out."""
    return lambda request: _kind(request, kind) and request.target.kind != "leases"


def watches(kind: str = "") -> Fits:
    return lambda request: request.is_watch and _kind(request, kind)


def lists(kind: str = "") -> Fits:
    """Streaming lists and pages."""
    return lambda request: request.is_list and _kind(request, kind)


def writes(kind: str = "", method: str = "") -> Fits:
    return lambda request: request.is_write and _kind(request, kind) and method in ("", request.method)


def frames(kind: str, name: str = "") -> FitsFrame:
    """Frames of that type of event (ADDED, MODIFIED, …; "" for any), of that object."""
    quoted = f'"name":"{name}"'.encode()
    return lambda frame: (not kind or kind.encode() in frame[:32]) and (not name or quoted in frame)
