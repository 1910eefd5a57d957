"""A Secret that changes every two seconds: so many restarts as the breaker lets through, then it is told, and it ends by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from ticker import again_and_again
from web import Web, web
from world import World

_LONG = os.environ.get("CERTROLL_LONG") == "1"
_FLAPS_FOR = 300.0 if _LONG else 20.0  # seconds
_EVERY = 2.0
_RESTARTS, _HOUR = 3, "1h"  # the defaults
_COALESCE = None if _LONG else "1s"  # the default takes a minute for each restart
_LEFT = timedelta(seconds=10)  # of the breaker's time, once it is shortened: an hour is too long for a test


@pytest.fixture
def flapping(world: World) -> Iterator[Web]:
    with web(world) as found:
        yield found


@pytest.mark.timeout(900)
def test_a_secret_that_flaps_is_held_and_taken_up_by_itself(flapping: Web, report: list[str]) -> None:
    with flapping.world.operator() as operator:
        flapping.install_policy(coalesce=_COALESCE, breaker=None)
        before, mark = flapping.rollouts(), flapping.world.audit.mark()
        changes = _flap(flapping)
        material, version = flapping.renew()
        held = flapping.wait_consumer("Pending")
        assert held.blocked_reason == "CircuitBreaker" and f"restarted {_RESTARTS} times within {_HOUR}; " in held.blocked_by, held
        assert flapping.restarts_since(mark) == _RESTARTS
        assert len(flapping.rollouts() - before) == _RESTARTS
        writes = [write for write in flapping.world.audit.since(mark) if write.resource != "leases"]
        report.append(f"{changes} changes in {_FLAPS_FOR:.0f} s: {_RESTARTS} restarts, {len(writes)} writes of any kind")

        degraded = flapping.status().conditions["Degraded"]
        assert (degraded.status, degraded.reason) == (True, "RestartedTooOften"), degraded
        wait_for("an Event", lambda: flapping.events_of_deployment("RestartedTooOften"), deadline=30)
        assert len(flapping.events_of_deployment("RestartedTooOften")) == 1, "told once, not with each change"
        wait_for("the metric", lambda: _is_held(operator.page("/metrics")), deadline=30)

        _shorten(flapping)
        flapping.wait_settled(version, deadline=120)
        assert flapping.restarts_since(mark) == _RESTARTS + 1, "the newest one is rolled out, once"
        assert flapping.serves(material)
        assert not flapping.status().holds("Degraded")
        wait_for("the metric to go", lambda: not _is_held(operator.page("/metrics")), deadline=30)


def _flap(flapping: Web) -> int:
    """How many changes that were."""
    changes = 0

    def change() -> None:
        nonlocal changes
        flapping.renew()
        changes += 1

    with again_and_again(_EVERY, change):
        end = time.monotonic() + _FLAPS_FOR
        wait_for("the flapping to end", lambda: time.monotonic() >= end, deadline=_FLAPS_FOR + 5)
    return changes


def _shorten(flapping: Web) -> None:
    """The breaker's time, so that the first restart is soon longer ago."""
    policy = flapping.world.api.get("certrotationpolicies", NAMESPACE, "web")
    first = min(datetime.fromisoformat(each) for each in policy["status"]["consumers"][0]["restarts"])
    within = datetime.now(UTC) - first + _LEFT
    flapping.change_policy({"restart": {"breaker": {"within": f"{within.total_seconds():.0f}s"}}})


def _is_held(metrics: str) -> bool:
    return 'policy="web",reason="CircuitBreaker"} 1' in metrics
