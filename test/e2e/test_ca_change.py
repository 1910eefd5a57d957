"""A changed CA: what reads it once is rolled, once, whatever happens to the operator meanwhile; what hot-reloads is not."""

from __future__ import annotations

import os
import random
import re
import time

import pytest
from certroll_dev.demo import pods
from certroll_dev.demo.policy import Status
from certroll_dev.demo.workloads import ENVOY, NGINX, RATE_LIMIT, WORKLOADS
from world import World, assert_rolled_once

_ROUNDS = 4 if os.environ.get("CERTROLL_LONG") == "1" else 2
_KILLS = 5  # a round


class Words:
    """What the status said of each consumer on the way."""

    def __init__(self) -> None:
        self.decisions: dict[str, set[str]] = {}
        self.reasons: dict[str, set[str]] = {}

    def __call__(self, status: Status) -> None:
        for consumer in status.consumers.values():
            if any(secret.pending for secret in status.secrets.values()):
                self.decisions.setdefault(consumer.name, set()).add(consumer.decision)
                self.reasons.setdefault(consumer.name, set()).add(consumer.reason)


def test_rate_limit_is_rolled_and_envoy_is_not(world: World, report: list[str]) -> None:
    world.install_policy()
    materials = world.new_ca()
    words = Words()
    with world.operator(), world.calls() as calls:
        world.wait_ready()
        before = world.seen()
        started = time.time()
        status = world.wait_settled(world.write_all(materials), seen=words)
        report.append(f"settled {time.time() - started:.1f} s after the CA was changed")
        calls.wait_succeed()
        report.append(f"calls that failed, as the write was naive: {len(calls.failed_since(started))}")
    assert_rolled_once(world, before)
    for workload in WORKLOADS:
        assert world.serves(workload, materials[workload.secret]), f"{workload.consumer} does not serve its new leaf"
    for pod in world.pods(ENVOY):
        assert pods.envoy_trusts(pod.ip) == {world.authority.serial()}, f"{pod.name} does not trust just the new CA"
    assert {rotation.secret for rotation in status.history[:3]} == {workload.secret for workload in WORKLOADS}
    assert all({"IssuerChanged", "TrustReplaced"} <= set(rotation.changes) for rotation in status.history[:3]), status.history
    assert "Restart" in words.decisions["rate-limit"] and "Restart" not in words.decisions["envoy"], words.decisions
    _assert_says_why(world, words)
    _assert_says_what_was_seen(status, report)


def _assert_says_what_was_seen(status: Status, report: list[str]) -> None:
    """Envoy's page and the names that Rate Limit announces show the new CA; nginx asks its clients for nothing."""
    known = {name: (secret.trust_by, secret.leaf_by) for name, secret in status.secrets.items()}
    report.append(f"trust and leaf: {known}")
    assert known[ENVOY.secret] == known[RATE_LIMIT.secret] == ("Verified", "Verified"), known
    assert known[NGINX.secret] == ("Inferred", "Verified"), known
    message = status.conditions["Converged"].message
    assert "Leaves: 3 verified. Trust: 2 verified, 1 inferred." in message, message


def _assert_says_why(world: World, words: Words) -> None:
    """In words, in the status and in an Event on the workload: that it is the CA, and that it is read only at start."""
    why = re.compile(r"(?=.*\b(CA|clientCA|trust)\b)(?=.*\b(restart|start|once)\b)", re.IGNORECASE)
    assert any(why.search(reason) for reason in words.reasons["rate-limit"]), words.reasons
    events = [event["message"] for event in world.events_of(world.deployment(RATE_LIMIT))]
    assert any(why.search(message) for message in events), events


@pytest.mark.parametrize("seed", range(_ROUNDS))
def test_killed_at_random_it_rolls_once(world: World, seed: int, report: list[str]) -> None:
    """SIGKILL at random moments of a CA change: no second rollout, none lost.

    With 4 rounds of 5 kills these are 20, of which each run has half but with CERTROLL_LONG=1. The points before and after each write are test_crash_matrix.py's.
    """
    chance = random.Random(seed)
    materials = world.new_ca()
    world.install_policy()
    with world.operator() as operator:
        world.wait_ready()
        before = world.seen()
        versions = world.write_all(materials)
        pauses = [round(chance.uniform(0.0, 2.5), 3) for _ in range(_KILLS)]
        in_the_middle = 0
        for pause in pauses:
            time.sleep(pause)  # the moment of the kill is what is random; nothing is waited for
            operator.kill_leader()
            in_the_middle += not world.status().settled(versions)
            operator.wait_ready()  # the other one leads
        world.wait_settled(versions)
        report.append(f"killed after {pauses} s, {in_the_middle} times with work left to do")
        assert in_the_middle > 0, "no kill came in the middle of anything: nothing was tested"
        world.wait_at_rest()  # a second rollout would be begun by now
    assert_rolled_once(world, before)
    for workload in WORKLOADS:
        assert world.serves(workload, materials[workload.secret]), f"{workload.consumer} does not serve its new leaf"


def test_a_change_while_it_was_down_is_made_up_for(world: World) -> None:
    materials = world.new_ca()
    world.install_policy()
    with world.operator():
        world.wait_ready()
        world.wait_at_rest()
    before = world.seen()
    versions = world.write_all(materials)
    with world.operator():
        world.wait_settled(versions)
    assert_rolled_once(world, before)
