"""A ControlPlanePolicy on a real API server with a real controller manager; nodes and agents are on paper (paper_agents.py)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane
from control_planes import NAME, NODES, SYSTEM, World, fake, joined, world
from operators import writes_of
from paper_pods import PaperPods
from test_metrics import documented, parse

OLD, NEW = fake("etcd"), fake("etcd, the next")

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def place(control_plane: ControlPlane, api: Any, namespace: str, tmp_path: Path) -> Iterator[World]:
    with world(control_plane, api, namespace, tmp_path) as found:
        yield found


def test_a_second_ca_is_loaded_by_everybody_one_after_the_other_and_a_waiting_script_goes_on(place: World) -> None:
    with place.agents() as agents:
        place.start()
        place.apply()
        place.wait_converged()
        status = place.status()
        assert status["etcd"]["trusted"] == OLD and status["cluster"]["trusted"] == place.root
        assert status["serviceAccounts"]["signing"] == status["serviceAccounts"]["verifying"] == place.key
        assert status["nodes"] == {"total": 3, "converged": 3}
        assert status["namespaces"]["total"] == status["namespaces"]["converged"] > 3
        place.wait("the key to be published", lambda: place.published() == place.key)

        waiting = place.wait_for(".status.etcd.trusted", joined(OLD, NEW))
        agents.write("etcd/ca.crt", [NEW, OLD])
        said = waiting.communicate(timeout=150)[0]
        assert waiting.returncode == 0, f"{said}{json.dumps(place.status(), indent=1)}"
        assert [(each.node, each.component) for each in agents.restarts] == [
            *((node, "etcd") for node in NODES), *((node, "kube-apiserver") for node in NODES)
        ]  # fmt: skip
        assert all(first.ended <= second.began for first, second in zip(agents.restarts, agents.restarts[1:], strict=False))
        place.wait_converged()
        assert not any(agents.order(node) for node in NODES)  # an order that is over is taken away
        assert place.status()["etcd"]["pending"] == ""

        trusted = ("Trusted", f"etcd: everybody has loaded {joined(OLD, NEW)}")
        place.wait("each to be told of", lambda: len([1 for reason, _ in place.events() if reason == "Restarted"]) == 6 and trusted in place.events())
        said_of = place.events()
        assert ("Restarting", "etcd on paper-1 is restarted") in said_of
        assert place.metric('certroll_control_plane_restarts_total{component="etcd",outcome="done"} 3')
        assert place.metric('certroll_control_plane_objects{kind="nodes",state="converged"} 3')
        assert place.metric('certroll_control_plane_condition{type="Converged"} 1')
        _assert_documented(place)


def _assert_documented(place: World) -> None:
    """Nothing is being restarted, and no other label is there."""
    assert place.operator
    prefix = "certroll_control_plane_"
    shown = {name: family for name, family in parse(place.operator.get("/metrics")[1]).items() if name.startswith(prefix)}
    told = {name: rest for name, rest in documented().items() if name.startswith(prefix)}
    assert sorted(shown) == sorted(told)
    for name, family in shown.items():
        assert family.type == told[name][0], name
        assert all(has.keys() - {"le"} == told[name][1] for _, has, _ in family.samples), name


def test_a_new_signing_key_is_followed_by_token_secrets_workloads_and_the_configmap(place: World) -> None:
    """The controller manager signs with the new key all the time; what the nodes say of it is on paper."""
    old = fake("the key before")
    place.make_token_secret("robot-token", old)
    reader = place.make_reader()
    with PaperPods(place.api, [place.apps]), place.agents(**{"sa.pub": [old, place.key], "sa.key": [old]}) as agents:
        place.start()
        place.apply(workloads=[reader])
        place.wait("the key before to be published", lambda: place.published() == old)
        place.wait("it to be known", lambda: place.status()["workloads"] == {"total": 1, "converged": 1})
        assert place.key_of_secret("robot-token") == old
        time.sleep(1.1)  # pods tell their start in whole seconds: not a wait for anything

        agents.write("sa.key", [place.key])
        place.wait("the key to be published", lambda: place.published() == place.key, 120)
        place.wait("the token to be made anew", lambda: place.key_of_secret("robot-token") == place.key)
        place.wait("the workload to be restarted", lambda: place.reader()[1] == place.key)
        place.wait_converged()
        assert {each.component for each in agents.restarts} == {"kube-apiserver", "kube-controller-manager"}
        assert len(agents.restarts) == 6
        status = place.status()
        assert status["tokenSecrets"] == {"total": 1, "converged": 1} and status["workloads"] == {"total": 1, "converged": 1}
        assert status["serviceAccounts"]["removable"] == old
        assert place.metric("certroll_control_plane_token_secrets_renewed_total 1")


def test_what_a_user_makes_too_large_to_be_read_holds_no_rotation(place: World) -> None:
    """The controller manager restores the data of kube-root-ca.crt, and nothing else of it."""
    old = fake("the key before")
    place.make_token_secret("robot-token", place.key)
    place.fill("configmaps", "kube-root-ca.crt", "binaryData")
    with place.agents(**{"sa.pub": [old, place.key]}):
        place.start()
        place.apply()
        place.wait_converged()
        assert place.status()["cluster"]["trusted"] == place.root
        assert place.apps not in place.message("Converged")
        namespaces = place.status()["namespaces"]["total"]

        place.api.merge("configmaps", place.apps, "kube-root-ca.crt", {"binaryData": None})
        place.fill("configmaps", "kube-root-ca.crt", "metadata", "labels")
        place.fill("secrets", "robot-token", "data")
        place.start()
        place.wait("both to be named", lambda: place.message("Converged").count(place.apps) == 2)
        said = place.message("Converged")
        assert f"one is {place.apps};" in said and f"one is {place.apps}/robot-token." in said
        assert place.condition("Converged") == ("True", "AllLoaded")
        status = place.status()
        assert status["cluster"]["trusted"] == place.root and status["serviceAccounts"]["removable"] == old
        assert status["namespaces"] == {"total": namespaces - 1, "converged": namespaces - 1}
        assert status["tokenSecrets"]["total"] == 0


@pytest.mark.parametrize("spec", [{"mode": "Plan"}, {"suspend": True}])
def test_plan_and_suspend_write_nothing_but_the_status(place: World, spec: dict[str, Any]) -> None:
    with place.agents() as agents:
        since = time.time()
        place.start()
        place.apply(**spec)
        agents.write("etcd/ca.crt", [NEW, OLD])
        place.wait("it to be told what would be done", lambda: "etcd of paper-1 would be restarted" in place.status().get("next", ""))
        user = f"system:serviceaccount:{place.namespace}:certroll-operator"
        assert not agents.restarts and not any(agents.order(node) for node in NODES)
        written = {line.split()[2].rstrip(":") for line in writes_of(place.plane, user, since)}
        assert {each for each in written if not each.startswith("events/")} == {f"controlplanepolicies/{NAME}"}
        place.apply()  # and once it may
        place.wait("it to be done", lambda: len(agents.restarts) == 6, 120)


def test_of_two_policies_the_older_counts_and_one_elsewhere_is_not_heard(place: World) -> None:
    with place.agents():
        place.start()
        place.apply()
        place.wait_converged()
        place.apply("second", mode="Plan")
        place.apply("elsewhere", namespace=place.namespace)
        place.wait("the second to be told", lambda: place.condition("Conflict", "second")[0] == "True")
        assert f"{NAME} is older" in place.message("Conflict", "second")
        assert place.condition("Converged") == ("True", "AllLoaded")
        assert "observedGeneration" not in place.api.get("controlplanepolicies", place.namespace, "elsewhere")["status"]
        place.api.delete("controlplanepolicies", SYSTEM, NAME)
        place.wait("the second to count", lambda: place.condition("Conflict", "second") == ("False", "None"))
        place.api.delete("controlplanepolicies", SYSTEM, "second")
        place.wait("its series to go", lambda: not place.metric("certroll_control_plane_objects{"))


def test_a_node_that_falls_silent_takes_away_what_was_safe(place: World) -> None:
    with place.agents() as agents:
        place.start()
        place.apply()
        place.wait_converged()
        agents.silent.add("paper-2")
        place.wait("it to be missed", lambda: place.status()["etcd"]["trusted"] == "", 150)
        assert place.condition("Degraded")[0] == "True" and "paper-2" in place.message("Degraded")
        agents.silent.clear()
        place.wait("it to be back", lambda: place.status()["etcd"]["trusted"] == OLD, 60)


def test_what_may_not_be_read_or_written_is_told_with_what_to_grant(place: World) -> None:
    place.refuse_for_secrets("list", "watch", "patch")
    with place.agents():
        place.start()
        place.apply()
        place.wait("it to be told", lambda: place.condition("Ready") == ("False", "Forbidden"))
        assert "secrets" in place.message("Ready") and place.status()["cluster"]["trusted"] == ""
        place.refuse_for_secrets("patch")
        place.start()  # a watch that is refused is asked for again only after a while
        place.wait("it to be known", lambda: place.status()["cluster"]["trusted"] == place.root)
        place.make_token_secret("robot-token", fake("the key before"))
        place.wait("it to be told", lambda: place.condition("Blocked") == ("True", "Refused"))
        assert "cannot patch resource" in place.message("Blocked") and "secrets" in place.message("Blocked")
        # The new Secret has its ca.crt a moment later.
        place.wait("what is safe to be told all the same", lambda: place.status()["cluster"]["trusted"] == place.root)
        assert place.condition("Blocked") == ("True", "Refused")
        place.refuse_for_secrets()
        place.wait("the token to be made anew", lambda: place.key_of_secret("robot-token") == place.key)
        place.wait("it to be forgotten", lambda: place.condition("Blocked") == ("False", "NotBlocked"))


def test_without_a_policy_nothing_of_the_cluster_is_watched(place: World) -> None:
    operator = place.start()
    watched = 'certroll_watch'
    page = operator.get("/metrics")[1]
    assert watched in page
    assert not any(f'resource="{resource}"' in page for resource in ("nodes", "nodecertificatereports", "namespaces"))
    place.apply()
    place.wait("nodes to be watched", lambda: place.condition("Ready") == ("False", "NoNodes"))
