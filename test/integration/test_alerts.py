"""Each alert on material and conditions, by a real Prometheus that scrapes a real operator: it fires in its state, alone, and
ends when the state is mended."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manifests
from control_plane import ROOT, ControlPlane, wait_until
from domains import dated
from operators import LEASES, RULES, Operator, account
from paper_pods import PaperPods
from prometheus import Prometheus
from rotations import direct

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402

_IN_PLACE_S = 30  # after so many seconds the certificate of "in-place" ends, by itself
_DEADLINE = 180.0
Data = dict[str, bytes]
_SERVED = {"no-name": "no-name", "held": "server"}  # the name that clients of these ask for

# What is done to a settled policy of that name, and which alerts that must raise, without `Certroll`.
_SITUATIONS = {
    "healthy": set(),
    "expired": {"CertificateExpired", "PolicyDegraded"},
    "in-place": {"CertificateExpired", "PolicyDegraded"},
    "mismatched": {"KeyMismatch", "PolicyDegraded"},
    "not-yet": {"CertificateNotYetValid", "PolicyDegraded"},
    "no-name": {"NameMissing", "PolicyDegraded"},
    "held": {"NameMissing", "PolicyDegraded", "HeldCertificateExpiresSoon", "CertificateExpiresSoon"},
    "garbage": {"SecretUnusable", "PolicyDegraded"},
    "missing": {"SecretMissing", "PolicyNotReady", "PolicyDegraded"},
    "soon": {"CertificateExpiresSoon"},
    "ca-soon": {"CAExpiresSoon"},
    "old-ca": {"CAExpired"},
    "no-workload": {"PolicyNotReady", "PolicyDegraded"},
}

pytestmark = pytest.mark.timeout(900)


class World:
    def __init__(self, api: API, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.authority = pki.new_authority(1)

    def good(self, name: str) -> Data:
        made = self.authority.issue(name)
        return {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.trust}

    def put(self, name: str, data: Data) -> None:
        self.api.apply("secrets", manifests.secret(self.namespace, name, data))

    def create(self, name: str) -> None:
        self.put(name, self.good(_SERVED.get(name, name)))
        self.api.apply("deployments", manifests.deployment(self.namespace, name, name))
        consumers = manifests.listed(name)
        if name in _SERVED:
            # Pods on paper do not answer: they count by their start.
            consumers[0]["verify"] = {"port": 8443, "serverName": _SERVED[name], "timeout": "1s", "onUnreachable": "Infer"}
        spec = {"secrets": [{"name": name}], "consumers": consumers}
        self.api.apply("certrotationpolicies", manifests.policy(self.namespace, name, spec))

    def spoil(self, name: str) -> None:
        if name in ("expired", "soon", "not-yet", "in-place"):
            begins, ends = {"expired": (-2, -1), "soon": (-80, 1), "not-yet": (1, 90), "in-place": (-1, _IN_PLACE_S / 86400)}[name]
            self.put(name, dated(self.authority, begins, ends))
        elif name == "mismatched":
            self.put(name, self.good(name) | {"tls.key": pki.new_key()})
        elif name == "no-name":
            self.put(name, self.good("other"))
        elif name == "held":
            self.put(name, dated(self.authority, -80, 1))
            wait_until(f"{name} to be settled", lambda: self.is_settled(name), _DEADLINE)
            self.put(name, self.good("other"))
        elif name == "ca-soon":
            data = self.good(name)
            self.put(name, data | {"ca.crt": data["ca.crt"] + dated(self.authority, -80, 1)["tls.crt"]})
        elif name == "garbage":
            self.put(name, self.good(name) | {"tls.crt": b"no certificate"})
        elif name == "old-ca":
            data = self.good(name)
            self.put(name, data | {"ca.crt": data["ca.crt"] + dated(self.authority, -9, -2)["tls.crt"]})
        elif name == "missing":
            self.api.delete("secrets", self.namespace, name)
        elif name == "no-workload":
            self.api.delete("deployments", self.namespace, name)

    def mend(self, name: str) -> None:
        self.put(name, self.good(_SERVED.get(name, name)))
        if name == "no-workload":
            self.api.apply("deployments", manifests.deployment(self.namespace, name, name))

    def policy(self, name: str) -> dict[str, Any]:
        return self.api.get("certrotationpolicies", self.namespace, name)

    def is_settled(self, name: str) -> bool:
        policy = self.policy(name)
        leaf = manifests.fingerprint(_data(self.api.get("secrets", self.namespace, name)))
        return manifests.settled(policy).get(name, {}).get("leaf") == leaf and manifests.converged(policy)


def test_a_leaf_without_a_name_in_use_is_held_until_one_has_it(control_plane: ControlPlane, world: World, namespace: str, tmp_path: Path) -> None:
    name, api = "no-name", world.api

    def status() -> dict[str, Any]:
        return world.policy(name).get("status") or {}

    def condition(kind: str) -> tuple[str, str]:
        return next(((each["status"], each["reason"]) for each in status().get("conditions", []) if each["type"] == kind), ("", ""))

    def generation() -> int:
        return api.get("deployments", namespace, name)["metadata"]["generation"]

    def events() -> list[int]:
        return [each.get("count", 1) for each in api.list("events", namespace) if each["reason"] == "NameMissing"]

    world.create(name)
    before = generation()
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)
    # No Lease, which a busy machine would lose in the minutes that this takes.
    operator = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}")
    try:
        wait_until("it to be settled", lambda: world.is_settled(name), _DEADLINE)
        world.spoil(name)
        wait_until("the reason", lambda: condition("Degraded") == ("True", "NameMissing"), _DEADLINE)
        held = status()
        assert (held["problem"], held["stage"], held["secrets"][0]["problem"]["reason"]) == ("NameMissing", "Held", "NameMissing")
        assert f"not for {name} (port 8443 of consumer {name})" in held["secrets"][0]["problem"]["message"]
        assert "pending" not in held["secrets"][0]
        assert name in held["secrets"][0]["settled"]["names"]
        assert condition("Converged") == ("False", "NameMissing")
        assert f'certroll_secret_problem{{namespace="{namespace}",policy="{name}",secret="{name}",reason="NameMissing"}} 1' in operator.get("/metrics")[1]
        wait_until("the Event", events, _DEADLINE)
        time.sleep(5)  # in which a restart would come
        assert generation() == before and events() == [1]

        world.mend(name)
        wait_until("the restart", lambda: generation() == before + 1, _DEADLINE)
        wait_until("all to be well", lambda: world.is_settled(name), _DEADLINE)
        assert condition("Degraded") == ("False", "AsExpected") and not status().get("problem")

        # A person may let it go.
        world.spoil(name)
        wait_until("the reason", lambda: condition("Degraded") == ("True", "NameMissing"), _DEADLINE)
        consumers = world.policy(name)["spec"]["consumers"]
        consumers[0]["verify"]["onMissingName"] = "Report"
        api.merge("certrotationpolicies", namespace, name, {"spec": {"consumers": consumers}})
        wait_until("the restart", lambda: generation() == before + 2, _DEADLINE)
        wait_until("the warning", lambda: status()["consumers"][0].get("warnings") == ["NameMissing"], _DEADLINE)
        assert condition("Degraded") == ("True", "NameMissing") and "problem" not in status()["secrets"][0]
    finally:
        operator.end()


def _data(secret: dict[str, Any]) -> bytes:
    return base64.b64decode(secret["data"]["tls.crt"])


@pytest.fixture
def world(control_plane: ControlPlane, namespace: str) -> Iterator[World]:
    with direct(control_plane) as api, PaperPods(api, [namespace], address="10.99.0.1"):  # where nothing answers
        yield World(api, namespace)


def test_each_alert_fires_in_its_state_and_ends_when_it_is_mended(
    control_plane: ControlPlane, world: World, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)
    for name in _SITUATIONS:
        world.create(name)
    operator = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--operator-namespace", namespace)
    try:
        for name in _SITUATIONS:
            wait_until(f"{name} to be settled", lambda name=name: world.is_settled(name), _DEADLINE)
        with Prometheus(control_plane, tmp_path, operator.serving()["port"]) as alerts:
            wait_until("all to be well", lambda: not alerts.firing(), _DEADLINE)
            _spoil_and_mend(world, alerts)
    finally:
        operator.end()


def _spoil_and_mend(world: World, alerts: Prometheus) -> None:
    expected = {(alert, name) for name, raised in _SITUATIONS.items() for alert in raised}
    for name in _SITUATIONS:
        world.spoil(name)
    ends_at = time.time() + _IN_PLACE_S
    wait_until("all but what ends in place", lambda: alerts.firing() >= {each for each in expected if each[1] != "in-place"}, _DEADLINE)
    alerts.wait_exactly(expected)
    # In all of these states a summary that is green would be false.
    for name, raised in _SITUATIONS.items():
        status = world.policy(name)["status"]
        assert bool(status.get("problem")) == bool(raised), (name, status.get("problem"))
        conditions = {each["type"]: each["status"] for each in status["conditions"]}
        assert conditions["Converged"] == ("True" if name in ("healthy", "soon", "ca-soon", "old-ca") else "False"), (name, status["conditions"])
    columns = world.policy("in-place")["status"]
    assert (columns["stage"], columns["problem"]) == ("Held", "Expired")
    print(f"what ended in place was known {time.time() - ends_at:.0f} s later, with all else")
    remaining = dict(_SITUATIONS)
    for name in _SITUATIONS:
        world.mend(name)
        remaining.pop(name)
        # Of the others all go on.
        alerts.wait_exactly({(alert, each) for each, raised in remaining.items() for alert in raised})
    assert not any(world.policy(name)["status"].get("problem") for name in _SITUATIONS)
