"""What was really published while a test ran, version by version, and whether each leaf in use goes on verifying with it.

A watch has every version of each bundle; the leaves in use are those that are seen to be served, so that a CA may go whose leaves nobody
shows any more. OpenSSL as three clients, Envoy, Go and GnuTLS judge each leaf with each bundle and the one after it: those of the property
game (test/integration/bundle_clients.py).
"""

from __future__ import annotations

import base64
import itertools
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from certroll_dev.demo import pki
from certroll_dev.demo.api import API, APIError, Object, path
from certroll_dev.demo.waiting import wait_for

sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))

from bundle_cases import DAY_S, FIRST_DAY_S  # noqa: E402
from bundle_clients import CLIENTS, Clients, Played, Question  # noqa: E402

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_WATCH_S = 5
_LOOK_EVERY = 0.5
_GONE = 410  # the versions since then are no longer known


@dataclass(frozen=True)
class Place:
    """A Secret with ca.crt, or a ConfigMap with a bundle in that key."""

    kind: str  # secrets, configmaps
    namespace: str
    name: str
    key: str = "ca.crt"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Version:
    at: float  # seconds since the epoch
    bundle: tuple[str, ...]  # certificates, DER in base64


@dataclass
class Verdict:
    changes: int = 0  # of bundles
    verified: int = 0  # how often a client had a leaf to lose
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.changes} bundles replaced, {self.verified} times a client had a leaf in use to lose, {len(self.lost)} lost"


class PublishedBundles:
    """Watches from when it is entered; in the cluster's network."""

    def __init__(self, api: API, places: Sequence[Place], served: Callable[[PublishedBundles], Iterable[str]]) -> None:
        """`served`: serial numbers of the leaves that are shown at the moment, as pki.serial() has them."""
        self._api = api
        self._places = {(place.kind, place.namespace, place.name): place for place in places}
        self._served = served
        self._versions: dict[Place, list[Version]] = {place: [] for place in places}
        self._noted: dict[Place, str] = {}  # the last resourceVersion
        self._chains: dict[str, tuple[str, ...]] = {}  # by the serial number of the leaf
        self._leaves: dict[Place, list[tuple[float, str]]] = {}  # since when each was published
        self._last: dict[str, float] = {}  # when a leaf was last seen to be served
        self.faults: list[str] = []  # for which nothing is proved
        self._ending = threading.Event()
        watched = sorted({(place.kind, place.namespace) for place in places})
        self._threads = [threading.Thread(target=self._watch, args=each, daemon=True) for each in watched]
        self._looker = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        wait_for("the watches to begin", lambda: self.faults or all(self._versions.values()), deadline=30)
        self._looker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in (*self._threads, self._looker):
            thread.join()

    # --- what is recorded

    def _watch(self, kind: str, namespace: str) -> None:
        try:
            listed = self._api.request("GET", path(kind, namespace))
            for item in listed["items"]:
                self._note(kind, item)
            version = listed["metadata"]["resourceVersion"]
            while not self._ending.is_set():
                for what, item in self._api.watch(kind, namespace, version, _WATCH_S):
                    if what == "ERROR":
                        raise APIError(item.get("code", 0), item.get("message", ""))
                    version = item["metadata"]["resourceVersion"]
                    if what in ("ADDED", "MODIFIED"):
                        self._note(kind, item)
        except Exception as error:  # a version may have been missed: then nothing is proved
            self.faults.append(f"the watch of {kind} in {namespace}: {error!r}")

    def _note(self, kind: str, item: Object) -> None:
        place = self._places.get((kind, item["metadata"]["namespace"], item["metadata"]["name"]))
        if not place:
            return
        if kind == "secrets" and (chain := _certificates(_value(kind, item, "tls.crt"))):
            serial = _serial(chain[0])
            self._chains[serial] = chain
            self._leaves.setdefault(place, []).append((time.time(), serial))
        self._noted[place] = item["metadata"]["resourceVersion"]
        bundle = _certificates(_value(kind, item, place.key))
        versions = self._versions[place]
        if not versions or versions[-1].bundle != bundle:
            versions.append(Version(time.time(), bundle))

    def _look(self) -> None:
        try:
            while not self._ending.wait(_LOOK_EVERY):
                began = time.time()
                for serial in self._served(self):
                    self._last[serial] = began
        except Exception as error:
            self.faults.append(f"the looks at the leaves: {error!r}")

    def leaf_at(self, place: Place, at: float) -> str:
        """Serial number of the leaf that was published there at that time; the first that is known, of a time before it."""
        leaves = self._leaves[place]
        return next((serial for since, serial in reversed(leaves) if since <= at), leaves[0][1])

    def cas_at(self, place: Place, at: float) -> set[str]:
        """Serial numbers of the CAs that were published there at that time; the first that are known, of a time before it."""
        versions = self._versions[place]
        return {_serial(each) for each in next((version for version in reversed(versions) if version.at <= at), versions[0]).bundle}

    def last_seen(self, serial: str) -> float:
        """When that leaf was seen to be served; 0: it was not."""
        return self._last.get(serial, 0.0)

    # --- what is made of it

    def check(self) -> Verdict:
        """Raises AssertionError when a client lost a leaf in use, or a version may have been missed."""
        self._settle()
        assert not self.faults, self.faults
        verdict = Verdict()
        names = _Names()
        chains = {serial: names.of(chain) for serial, chain in self._chains.items()}
        changes = [(place, before, after) for place in self._versions for before, after in itertools.pairwise(self._versions[place])]
        asked: list[tuple[Place, Version, Question, Question]] = []
        for place, before, after in changes:
            in_use = [chain for serial, chain in chains.items() if self.last_seen(serial) >= after.at]
            for client, chain in itertools.product(CLIENTS, in_use):
                old, new = (Question(client, _day(), tuple(names.of(version.bundle)), ",".join(chain)) for version in (before, after))
                asked.append((place, after, old, new))
        played = Played(names.lines(), (), ())
        with Clients() as clients:
            clients.ask([(played, [question for _, _, *both in asked for question in both])])
        verdict.changes = len(changes)
        for place, after, old, new in asked:
            verdict.verified += played.answers[old]
            if played.answers[old] and not played.answers[new]:
                verdict.lost.append(f"{place} at {after.at:.1f}: {old.client} verified {old.chain} with {old.roots} and does not with {new.roots}")
        assert not verdict.lost, "\n".join([*verdict.lost, names.lines()])
        return verdict

    def _settle(self) -> None:
        """Until what is there now has come by the watch, and the leaves were looked at since."""
        began = time.time()

        def come() -> bool:
            objects = {place: self._api.get(place.kind, place.namespace, place.name) for place in self._versions}
            return bool(self.faults) or all(self._noted[place] == obj["metadata"]["resourceVersion"] for place, obj in objects.items())

        wait_for("the last versions of the bundles", come, deadline=30)
        wait_for("a look at the leaves", lambda: max(self._last.values(), default=0.0) > began, deadline=30)


class _Names:
    """Certificates by short names, as the clients are told of them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, certificates: Iterable[str]) -> list[str]:
        return [self._names.setdefault(each, f"c{len(self._names)}") for each in certificates]

    def lines(self) -> str:
        return "".join(f"cert {name} {text}\n" for text, name in self._names.items())


def _value(kind: str, item: Object, key: str) -> bytes:
    text: str = (item.get("data") or {}).get(key, "")
    return base64.b64decode(text) if kind == "secrets" else text.encode()


def _certificates(pem: bytes) -> tuple[str, ...]:
    return tuple(re.sub(rb"\s", b"", block).decode() for block in _BLOCK.findall(pem))


def _serial(certificate: str) -> str:
    lines = "\n".join(certificate[i : i + 64] for i in range(0, len(certificate), 64))
    return pki.serial(f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n".encode())


def _day() -> int:
    """The next one that begins: what was issued a moment ago is valid then on all clocks."""
    return math.ceil((time.time() - FIRST_DAY_S) / DAY_S)
