"""Material of other kinds than a leaf with its CA: what is opaque, what is immutable, what comes without a CA."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator

import pytest
from certroll_dev import install
from certroll_dev.demo import pods, workloads
from certroll_dev.demo.api import Object
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY
from world import World, steadily

_NAME = "keys"
_DIGEST_KEY = "certroll-digest-key"
_QUIET = 5.0  # seconds in which it is watched that nothing is touched
_SAID_WITHIN = 30.0


def _secret(data: dict[str, str]) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": _NAME, "namespace": NAMESPACE}, "data": encoded}


def _deployment(world: World) -> Object:
    """A pod that takes one key of the Secret and sleeps on it; the program is Redis, which is there."""
    redis = world.api.get("deployments", NAMESPACE, "redis")["spec"]["template"]["spec"]["containers"][0]
    container = {key: redis[key] for key in ("image", "command", "args") if key in redis}
    container |= {"name": "app", "imagePullPolicy": "Never", "volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    volume = {"name": "keys", "secret": {"secretName": _NAME, "items": [{"key": "hmac", "path": "hmac"}]}}
    labels = {"app": _NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], "volumes": [volume]},
            },
        },
    }


@pytest.fixture
def keys(world: World) -> Iterator[None]:
    world.api.apply("secrets", _secret({"hmac": "correct horse", "keystore.p12": "one"}))
    world.api.apply("deployments", _deployment(world))
    workloads.wait_rolled_out(world.api, _NAME)
    yield
    world.api.delete("deployments", NAMESPACE, _NAME)
    world.api.delete("secrets", NAMESPACE, _NAME)


def _name_keys(spec: Object) -> None:
    spec["secrets"].append({"name": _NAME})
    spec["consumers"].append({"name": _NAME, "targetRef": {"kind": "Deployment", "name": _NAME}})


def _annotations(world: World) -> dict[str, str]:
    found = world.api.get("deployments", NAMESPACE, _NAME)["spec"]["template"]["metadata"].get("annotations", {})
    return {name: value for name, value in found.items() if name.startswith("certroll.dev/")}


def _remembered(world: World) -> Object:
    for secret in world.policy().get("status", {}).get("secrets", []):
        if secret["name"] == _NAME:
            return dict(secret.get("settled", {}))
    return {}


def _digest(world: World) -> str:
    """Empty: there is none yet."""
    found: str = _remembered(world).get("opaque", "")
    return found if ":" in found else ""


def _write(world: World, data: dict[str, str]) -> dict[str, str]:
    return {_NAME: world.api.apply("secrets", _secret(data))["metadata"]["resourceVersion"]}


def test_an_opaque_key_restarts_who_takes_it_and_nobody_else(world: World, keys: None) -> None:
    world.install_policy(_name_keys)
    with world.operator() as operator:
        world.wait_ready()
        wait_for("the keys to be seen", lambda: _digest(world), deadline=_SAID_WITHIN, missing=world.describe)
        first = _remembered(world)
        assert [key.split("=")[0] for key in first["opaqueKeys"]] == ["hmac", "keystore.p12"]
        made = world.api.get("secrets", install.NAMESPACE, _DIGEST_KEY)
        assert made["immutable"] is True
        assert len(base64.b64decode(made["data"]["key"])) == 32

        # One that nobody takes: a keystore that changes with every renewal.
        mark = world.audit.mark()
        world.wait_settled(_write(world, {"hmac": "correct horse", "keystore.p12": "two"}))
        assert _remembered(world)["opaque"] != first["opaque"]
        steadily(
            "touched for a key that nobody takes", _QUIET, lambda: [str(write) for write in world.audit.disruptive_since(mark)]
        )
        assert not _annotations(world)

        # The one that is taken.
        world.wait_settled(_write(world, {"hmac": "battery staple", "keystore.p12": "two"}), deadline=180)
        (value,) = _annotations(world).values()
        second = _remembered(world)
        assert value.startswith(f"opaque={second['opaque'][:8]}.")
        operator.check()

        # Nothing of it can be guessed from what is public, and the key of the digests is not in it.
        public = json.dumps(world.policy()) + json.dumps(world.api.get("deployments", NAMESPACE, _NAME))
        for secret in (b"battery staple", b"correct horse"):
            assert base64.b64encode(secret).decode() not in public
            assert hashlib.sha256(secret).hexdigest()[:16] not in public
        assert made["data"]["key"] not in public

    # Another process, and another key: a first sight, no restart.
    world.api.delete("secrets", install.NAMESPACE, _DIGEST_KEY)
    before = _annotations(world)
    with world.operator() as operator:
        wait_for(
            "the new key's digests",
            lambda: _digest(world)[:8] not in ("", second["opaque"][:8]),
            deadline=_SAID_WITHIN,
            missing=world.describe,
        )
        world.wait_at_rest()
        assert _annotations(world) == before
        assert not world.status().secrets[_NAME].pending

        # The other replica reads that key, and compares with what this one has remembered by it.
        third = _remembered(world)
        operator.delete_leader()
        world.wait_settled(_write(world, {"hmac": "battery staple", "keystore.p12": "three"}))
        fourth = _remembered(world)
        assert fourth["opaque"][:8] == third["opaque"][:8] and fourth["opaque"] != third["opaque"]
        assert _annotations(world) == before


def test_a_replaced_immutable_secret_asks_for_a_person(world: World) -> None:
    world.install_policy()
    with world.operator() as operator:
        world.wait_ready()
        world.api.merge("secrets", NAMESPACE, ENVOY.secret, {"immutable": True})
        wait_for("it to be on record", lambda: _immutable_on_record(world), deadline=_SAID_WITHIN, missing=world.describe)
        world.wait_at_rest(1.0)
        before = world.seen()[ENVOY.consumer].pods
        mark = world.audit.mark()

        material = world.authority.issue(ENVOY.deployment)
        world.api.delete("secrets", NAMESPACE, ENVOY.secret)
        versions = world.write(ENVOY, material)
        wait_for("the consumer to say what is wrong", lambda: _blocked(world), deadline=_SAID_WITHIN, missing=world.describe)
        steadily("touched in vain", _QUIET, lambda: [str(write) for write in world.audit.disruptive_since(mark)])
        assert pods.identity(world.pods(ENVOY)) == pods.identity(before)
        assert not world.serves(ENVOY, material), "the kubelet does refresh it: the rule and its documentation are wrong"
        operator.check()

        _none_and_then_new_ones(world)  # what a person does about it
        world.wait_settled(versions, deadline=180)
        assert world.serves(ENVOY, material)


def _none_and_then_new_ones(world: World) -> None:
    """One pod that is still leaving is enough for the kubelet to keep the Secret, and to give it to those that start."""
    replicas = world.deployment(ENVOY)["spec"]["replicas"]
    world.api.merge("deployments", NAMESPACE, ENVOY.deployment, {"spec": {"replicas": 0}})
    selector = f"app={ENVOY.deployment}"
    wait_for("the pods to be gone", lambda: not world.api.list("pods", NAMESPACE, selector), deadline=120)
    gone = time.monotonic()
    wait_for("the kubelet to forget the Secret", lambda: time.monotonic() - gone > 3, deadline=10)
    world.api.merge("deployments", NAMESPACE, ENVOY.deployment, {"spec": {"replicas": replicas}})
    workloads.wait_rolled_out(world.api, ENVOY.deployment)


def _immutable_on_record(world: World) -> bool:
    secrets = world.policy().get("status", {}).get("secrets", [])
    return any(secret["name"] == ENVOY.secret and secret.get("immutable") for secret in secrets)


def _blocked(world: World) -> bool:
    consumer = world.status().consumers.get(ENVOY.consumer)
    return consumer is not None and consumer.state == "Blocked" and consumer.blocked_reason == "ImmutableSecret"
