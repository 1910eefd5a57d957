"""The check of what was really published (test/support/published_bundles.py) finds a bundle that cuts a client off, and only then."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any

import pytest
from certroll_dev.demo import pki
from certroll_dev.demo.pki import Material
from certroll_dev.demo.waiting import wait_for
from published_bundles import Place, PublishedBundles

_PLACE = Place("secrets", "shop", "web-tls")
_A, _X = pki.new_authority(1), pki.new_authority(2)
_X_BY_A = _A.cross_sign(_X)
_LEAF = _X.issue("web", namespace="shop")
_SERIAL = pki.serial(_LEAF.certificate)


class _Secrets:
    """An API server with one Secret."""

    def __init__(self, *bundle: bytes) -> None:
        self._version = 0
        self._events: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self.write(*bundle)
        self._events.get()

    def write(self, *bundle: bytes) -> None:
        self._version += 1
        self._secret = Material(_LEAF.certificate, _LEAF.key, b"".join(bundle)).secret("web-tls", "shop")
        self._secret["metadata"]["resourceVersion"] = str(self._version)  # type: ignore[index]
        self._events.put(("MODIFIED", self._secret))

    def end_watches(self) -> None:
        self._events.put(("ERROR", {"code": 410, "message": "too old"}))

    def request(self, method: str, target: str) -> dict[str, Any]:
        return {"items": [self._secret], "metadata": {"resourceVersion": str(self._version)}}

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        return self._secret

    def watch(self, kind: str, namespace: str, version: str, seconds: int) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            yield self._events.get(timeout=0.2)
        except queue.Empty:
            return


def _recorded(secrets: _Secrets, served: set[str]) -> PublishedBundles:
    return PublishedBundles(secrets, [_PLACE], lambda _: served)  # type: ignore[arg-type]


def test_another_order_that_suits_all_loses_nobody() -> None:
    secrets = _Secrets(_A.certificate, _X.certificate)
    with _recorded(secrets, {_SERIAL}) as bundles:
        secrets.write(_X.certificate, _X_BY_A)
        secrets.write(_X.certificate)
        verdict = bundles.check()
    assert verdict.changes == 2 and verdict.verified == 2 * 6


def test_a_cross_certificate_without_its_root_cuts_openssl_off() -> None:
    secrets = _Secrets(_X.certificate, _A.certificate)
    with _recorded(secrets, {_SERIAL}) as bundles:
        secrets.write(_X_BY_A, _X.certificate)
        with pytest.raises(AssertionError, match="openssl verified"):
            bundles.check()


def test_a_version_in_between_counts() -> None:
    """What is there in the end is as it was in the beginning."""
    secrets = _Secrets(_X.certificate)
    with _recorded(secrets, {_SERIAL}) as bundles:
        secrets.write(_A.certificate)
        secrets.write(_X.certificate)
        with pytest.raises(AssertionError, match="go verified"):
            bundles.check()


def test_a_leaf_that_nobody_shows_any_more_may_lose_its_ca() -> None:
    secrets = _Secrets(_X.certificate)
    served = {_SERIAL}
    with _recorded(secrets, served) as bundles:
        wait_for("a look at the leaves", lambda: bundles.last_seen(_SERIAL), deadline=30)
        served.clear()
        served.add("another")
        gone = time.time()
        wait_for("a look without it", lambda: bundles.last_seen("another") > gone, deadline=30)
        secrets.write(_A.certificate)
        assert not bundles.check().lost


def test_a_watch_that_broke_proves_nothing() -> None:
    secrets = _Secrets(_X.certificate)
    with _recorded(secrets, {_SERIAL}) as bundles:
        secrets.end_watches()
        wait_for("the watch to end", lambda: bundles.faults, deadline=30)
        with pytest.raises(AssertionError, match="the watch of secrets"):
            bundles.check()
