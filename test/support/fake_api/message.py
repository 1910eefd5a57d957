"""Requests and answers of the Kubernetes API, whatever carries them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from write_points import READS, Target

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Request:
    method: str
    path: str  # with its query
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    @property
    def target(self) -> Target:
        return Target.of(self.path)

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.path).query, keep_blank_values=True).items()}

    @property
    def is_watch(self) -> bool:
        return self.method == "GET" and self.query.get("watch") in ("true", "1")

    @property
    def is_streaming_list(self) -> bool:
        return self.is_watch and self.query.get("sendInitialEvents") == "true"

    @property
    def is_page(self) -> bool:
        """A list that is asked for in pages, or whole."""
        return self.method == "GET" and not self.is_watch and not self.target.name and bool(self.target.kind.strip("/"))

    @property
    def is_list(self) -> bool:
        return self.is_streaming_list or self.is_page

    @property
    def is_write(self) -> bool:
        """A Lease is renewed by the clock, whatever else happens: that is no write of a rotation."""
        return self.method not in READS and self.target.kind != "leases"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Answer:
    """`frames` is for a watch: whole lines, as they come."""

    status: int
    headers: Headers
    body: bytes = b""
    frames: AsyncIterator[bytes] | None = None


_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


def status_object(code: int, message: str) -> dict[str, Any]:
    """metav1.Status, as the API server tells of a failure."""
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": _REASONS.get(code, ""), "code": code, "message": message,
    }  # fmt: skip


def refusal(code: int, message: str, retry_after: int | None = None) -> Answer:
    headers = [("content-type", "application/json")]
    if retry_after is not None:
        headers.append(("retry-after", str(retry_after)))
    return Answer(code, headers, json.dumps(status_object(code, message)).encode())


def event(kind: str, obj: Any) -> bytes:
    """A frame of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def parsed(frame: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(frame)
    return document


_INITIAL_END = "k8s.io/initial-events-end"  # KEP-3157


def is_list_mark(frame: bytes) -> bool:
    """The bookmark that ends a streaming list."""
    if b"BOOKMARK" not in frame[:64]:
        return False
    annotations = parsed(frame)["object"].get("metadata", {}).get("annotations") or {}
    return annotations.get(_INITIAL_END) == "true"


def version_of(frame: bytes) -> str:
    return str(parsed(frame)["object"].get("metadata", {}).get("resourceVersion", ""))


def name_of(frame: bytes) -> str:
    return str(parsed(frame)["object"].get("metadata", {}).get("name", ""))
