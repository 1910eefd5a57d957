"""What a user did, from the API server's audit log: which has every request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@dataclass(frozen=True)
class Write:
    at: datetime
    verb: str
    resource: str  # with its subresource: pods/status
    namespace: str
    name: str
    code: int
    pod: str = ""  # whose service account token it came with

    def __str__(self) -> str:
        return f"{self.at:%H:%M:%S.%f} {self.verb} {self.resource} {self.namespace}/{self.name}: {self.code}"


class Audit:
    """One user's writes. `mark` remembers a place in the log, `since` reads from there."""

    def __init__(self, log: Path, user: str) -> None:
        self._log = log
        self._user = user

    def mark(self) -> int:
        return self._log.stat().st_size

    def since(self, mark: int) -> list[Write]:
        return list(self._writes(mark))

    def disruptive_since(self, mark: int) -> list[Write]:
        """All but what tells people something: status of the policy, Events, and the operator's Lease; and who it is, which it asks."""
        harmless = {"certrotationpolicies/status", "events", "leases", "selfsubjectreviews"}
        return [write for write in self._writes(mark) if write.resource not in harmless]

    def _writes(self, mark: int) -> Iterator[Write]:
        with self._log.open("rb") as file:
            file.seek(mark)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # still being written
                event = json.loads(line)
                ours = event["user"].get("username") == self._user and event["verb"] in _WRITES
                if ours and event["stage"] == "ResponseComplete" and "dryRun=" not in event["requestURI"]:
                    yield _write(event)


def _write(event: dict[str, object]) -> Write:
    target = event.get("objectRef") or {}
    status = event.get("responseStatus") or {}
    assert isinstance(target, dict) and isinstance(status, dict)
    resource = target.get("resource", "?")
    return Write(
        at=datetime.fromisoformat(str(event["requestReceivedTimestamp"]).replace("Z", "+00:00")),
        verb=str(event["verb"]),
        resource=f"{resource}/{target['subresource']}" if "subresource" in target else resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=status.get("code", 0),
        pod=_pod(event),
    )


def _pod(event: dict[str, object]) -> str:
    user = event["user"]
    assert isinstance(user, dict)
    names = user.get("extra", {}).get("authentication.kubernetes.io/pod-name", [""])
    return str(names[0])
