"""What a test asks of a tool that delivers a repository to a cluster, whichever it is."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from certroll_dev.ui import DevError
from ticker import Ticker

from .git import Repository

HEALTHY, PROGRESSING, DEGRADED = "Healthy", "Progressing", "Degraded"
_EVERY_S = 0.2


class Delivery(Protocol):
    def follow(self, repository: Repository, revision: str, namespace: str) -> None:
        """From now on. Objects are repaired, pruned, and waited for."""

    def spare(self, name: str) -> None:
        """What certroll writes into Deployments is left as it is, whatever the repository holds there: as manifests/argocd/README.md says."""

    def forget(self, repository: Repository) -> None:
        """With all that was made of it."""

    def look_again(self, name: str, revision: str) -> None:
        """At everything, until it has done so and has applied what there was to apply."""

    def say(self, name: str) -> Said:
        """Of a repository as a whole."""

    def changes(self, name: str) -> Collection[str]:
        """What it has written into the cluster so far, by its own record."""


@dataclass(frozen=True)
class Said:
    """`health` is one of the three; `drift` is empty while repository and cluster are the same."""

    health: str
    drift: str = ""
    words: str = field(default="", compare=False)


class Listener(Ticker):
    """Everything that is said of a repository meanwhile. Use it as a context."""

    def __init__(self, delivery: Delivery, name: str) -> None:
        super().__init__("listener", _EVERY_S)
        self._delivery, self._name = delivery, name
        self._lock = threading.Lock()
        self._said: list[Said] = []

    def tick(self) -> bool:
        try:
            said = self._delivery.say(self._name)
        except DevError:  # while the API server has its hands full
            return True
        with self._lock:
            if self._said[-1:] != [said]:
                self._said.append(said)
        return True

    @property
    def health(self) -> list[str]:
        """One after the other."""
        with self._lock:
            said = [each.health for each in self._said]
        return [each for before, each in zip([None, *said], said) if before != each]

    @property
    def drift(self) -> set[str]:
        with self._lock:
            return {each.drift for each in self._said if each.drift}

    def __str__(self) -> str:
        with self._lock:
            return "\n".join(f"{each} {each.words}" for each in self._said)
