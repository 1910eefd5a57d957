"""A Secret with nonsense in it: said by a condition and an Event; nothing is touched, and good material is welcome again."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from certroll_dev.demo import pki, pods
from certroll_dev.demo.pki import Authority, Material
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY, WORKLOADS
from world import World, openssl, steadily

_QUIET = 5.0  # seconds in which it is watched that nothing is touched
_SAID_WITHIN = 60.0


def _mismatched_key(good: Material, ca: Authority) -> Material:
    return Material(good.certificate, pki.new_key(), good.trust)


def _not_pem(good: Material, ca: Authority) -> Material:
    return Material(b"this is no certificate\n", good.key, good.trust)


def _corrupt_pem(good: Material, ca: Authority) -> Material:
    lines = good.certificate.splitlines(keepends=True)
    return Material(b"".join([*lines[:2], b"!!!!\n", *lines[3:]]), good.key, good.trust)


def _empty_certificate(good: Material, ca: Authority) -> Material:
    return Material(b"", good.key, good.trust)


def _empty_key(good: Material, ca: Authority) -> Material:
    return Material(good.certificate, b"", good.trust)


def _empty_trust(good: Material, ca: Authority) -> Material:
    return Material(good.certificate, good.key, b"")


def _corrupt_trust(good: Material, ca: Authority) -> Material:
    """A good certificate first: a reader that stops at the broken one would not notice."""
    return Material(good.certificate, good.key, good.trust + good.trust.replace(b"MII", b"!!!", 1))


def _joined_trust(good: Material, ca: Authority) -> Material:
    """As `cat` joins files whose last line does not end: OpenSSL sees no certificate at all in it."""
    return Material(good.certificate, good.key, good.trust.rstrip(b"\n") + good.trust)


def _ca_first(good: Material, ca: Authority) -> Material:
    """The chain turned round."""
    return Material(good.trust + good.certificate, good.key, good.trust)


def _encrypted_key(good: Material, ca: Authority) -> Material:
    key = openssl("pkcs8", "-topk8", "-passout", "pass:secret", stdin=good.key)
    return Material(good.certificate, key, good.trust)


def _expired(good: Material, ca: Authority) -> Material:
    return ca.issue(ENVOY.deployment, days=-1)


_CASES = [
    (_mismatched_key, "KeyMismatch"),
    (_not_pem, "UnparsableMaterial"),
    (_corrupt_pem, "UnparsableMaterial"),
    (_corrupt_trust, "UnparsableMaterial"),
    (_joined_trust, "UnparsableMaterial"),
    (_ca_first, "KeyMismatch"),
    (_empty_certificate, "EmptyMaterial"),
    (_empty_key, "EmptyMaterial"),
    (_empty_trust, "EmptyMaterial"),
    (_encrypted_key, "EncryptedKey"),
    (_expired, "Expired"),
]
_LONG = os.environ.get("CERTROLL_LONG") == "1"
if not _LONG:  # one of each reason: what else is read as what is a matter of unit tests
    _CASES = [next(case for case in _CASES if case[1] == reason) for reason in dict.fromkeys(reason for _, reason in _CASES)]


@pytest.mark.parametrize(("spoil", "reason"), _CASES, ids=[spoil.__name__.strip("_") for spoil, _ in _CASES])
def test_bad_material_is_reported_and_nothing_touched(
    world: World, spoil: Callable[[Material, Authority], Material], reason: str
) -> None:
    world.install_policy()
    with world.operator() as operator:
        world.wait_ready()
        world.wait_at_rest(1.0)
        before = world.seen()
        mark = world.audit.mark()
        world.write(ENVOY, spoil(world.authority.issue(ENVOY.deployment), world.authority))

        wait_for("the policy to say that it is degraded", lambda: _said(world, reason), deadline=_SAID_WITHIN, missing=world.describe)
        steadily(
            "touched though the new material is no good",
            _QUIET,
            lambda: [str(write) for write in world.audit.disruptive_since(mark)],
        )
        operator.check()
        for workload in WORKLOADS:
            name = workload.consumer
            assert pods.identity(world.pods(workload)) == pods.identity(before[name].pods), f"{name} was restarted"

        mended = world.authority.issue(ENVOY.deployment)
        world.wait_settled(world.write(ENVOY, mended))
        wait_for("the policy to be well again", lambda: not _degraded(world), deadline=_SAID_WITHIN, missing=world.describe)
        assert world.serves(ENVOY, mended)


def _said(world: World, reason: str) -> bool:
    """By a condition and the Secret's own problem, each with words, and by an Event on the policy."""
    status = world.status()
    secret = status.secrets.get(ENVOY.secret)
    named = secret is not None and secret.problem.startswith(f"{reason}: ")
    return bool(_degraded(world) and named and status.conditions["Degraded"].message and _warned(world))


def _degraded(world: World) -> bool:
    return world.status().holds("Degraded")


def _warned(world: World) -> bool:
    events = world.events_of(world.policy())
    return any(event["type"] == "Warning" and ENVOY.secret in event["message"] for event in events)
