"""Two operators and one Lease, on a real API server: one acts, the other takes over, and never do both."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import control_plane as planes
from control_plane import ControlPlane, wait_until
from operators import LEASES, PROGRAM, RULES, Operator, account, api_server_stopped, writes_of

LEASE = "certroll-operator"
# The mechanism is the same with shorter times; the API server of a busy machine may be silent for 5 s.
SHORT = {"lease-duration": 8.0, "renew-deadline": 7.0, "retry-period": 0.7}
PAUSE = min(2.5 * SHORT["retry-period"], SHORT["renew-deadline"] - 3 * SHORT["retry-period"])  # between two renewals
JITTER = 1.2
SLACK = 5.0  # of a slow machine

Start = Callable[..., Operator]


@pytest.fixture
def start(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts an operator with a service account of its own, and short times."""
    running: list[Operator] = []

    def go(name: str, *flags: str, rules: list[planes.Object] | None = None) -> Operator:
        kubeconfig = account(control_plane, namespace, name, [*RULES, LEASES] if rules is None else rules, tmp_path)
        times = [f"--leader-elect-{key}={int(value * 1000)}ms" for key, value in SHORT.items()]
        own = f"--operator-namespace={namespace}"
        running.append(Operator(control_plane, namespace, name, kubeconfig, tmp_path, own, *times, *flags))
        return running[-1]

    yield go
    for each in running:
        each.end()


@pytest.fixture
def pair(start: Start) -> tuple[Operator, Operator]:
    """A leader and a standby that could take over."""
    leader = start("first")
    leader.wait_line("all caches are in sync")
    standby = start("second")
    wait_until("the standby to be ready", lambda: standby.lines("serving") and standby.get("/readyz")[0] == 200)
    assert leader.leads() and not standby.leads()
    return leader, standby


def lease(plane: ControlPlane, namespace: str) -> dict[str, object]:
    return plane.get("lease", LEASE, "-n", namespace)["spec"]


def identity(operator: Operator) -> str:
    return operator.lines("leader election: standing by")[0]["identity"]


def policy(name: str) -> planes.Object:
    """One that has something to say in its status: its Secret does not exist."""
    return {
        "apiVersion": "certroll.dev/v1alpha1",
        "kind": "CertRotationPolicy",
        "metadata": {"name": name},
        "spec": {
            "secrets": [{"name": "absent"}],
            "consumers": [
                {"name": "a", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "absent"}},
            ],
        },
    }


def have_status(plane: ControlPlane, namespace: str) -> bool:
    """All policies, of which there is at least one."""
    policies = plane.get("crp", "-n", namespace)["items"]
    return bool(policies) and all("observedGeneration" in each.get("status", {}) for each in policies)


def test_one_leads_and_says_so(control_plane: ControlPlane, namespace: str, pair: tuple[Operator, Operator]) -> None:
    leader, standby = pair
    spec = lease(control_plane, namespace)
    assert spec["holderIdentity"] == identity(leader)
    assert spec["leaseDurationSeconds"] == SHORT["lease-duration"] and spec["leaseTransitions"] == 0
    for each, leads in (leader, 1), (standby, 0):
        assert f'leader_election_master_status{{name="{LEASE}"}} {leads}\n' in each.get("/metrics")[1]
        caught_up = f'certroll_leader_caught_up{{name="{LEASE}"}} {leads}\n'
        wait_until(caught_up, lambda each=each, caught_up=caught_up: caught_up in each.get("/metrics")[1])  # type: ignore[misc]
    for each in pair:
        assert each.get("/readyz") == (200, "ok\n") and each.get("/healthz") == (200, "ok\n")
    events = control_plane.get("events", "-n", namespace, "--field-selector", f"involvedObject.name={LEASE}")["items"]
    assert [(event["reason"], event["message"]) for event in events] == [
        ("LeaderElection", f"{identity(leader)} became leader")
    ]


def test_only_the_leader_acts(control_plane: ControlPlane, namespace: str, pair: tuple[Operator, Operator]) -> None:
    leader, standby = pair
    control_plane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(policy("p")))
    wait_until("the leader to write a status", lambda: have_status(control_plane, namespace))
    assert any("certrotationpolicies/p" in write for write in writes_of(control_plane, leader.user, 0))
    assert writes_of(control_plane, standby.user, 0) == []
    assert not standby.lines("all caches are in sync")


def test_a_killed_leader_is_followed_when_its_time_is_over(
    control_plane: ControlPlane, namespace: str, pair: tuple[Operator, Operator]
) -> None:
    leader, standby = pair
    leader.signal(signal.SIGKILL)
    killed = time.monotonic()
    control_plane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(policy("p")))
    standby.wait_line("became leader")
    took = time.monotonic() - killed
    # Not before the time of the last renewal is over; a standby sees it up to a retry period (with jitter) late.
    assert took > SHORT["lease-duration"] - PAUSE - 1
    assert took < SHORT["lease-duration"] + SHORT["retry-period"] * (1 + JITTER) + SLACK
    spec = lease(control_plane, namespace)
    assert spec["holderIdentity"] == identity(standby) and spec["leaseTransitions"] == 1
    wait_until("the work to go on", lambda: have_status(control_plane, namespace))


def test_a_leader_that_is_asked_to_end_hands_over_at_once(
    control_plane: ControlPlane, namespace: str, pair: tuple[Operator, Operator]
) -> None:
    leader, standby = pair
    leader.signal(signal.SIGTERM)
    asked = time.monotonic()
    standby.wait_line("became leader")
    assert time.monotonic() - asked < SHORT["retry-period"] * (1 + JITTER) + SLACK < SHORT["lease-duration"]
    assert leader.wait() == 0
    assert leader.lines("the Lease is given up") and leader.lines("ended")
    assert lease(control_plane, namespace)["leaseTransitions"] == 1
    events = control_plane.get("events", "-n", namespace, "--field-selector", f"involvedObject.name={LEASE}")["items"]
    assert f"{identity(leader)} stopped leading" in [event["message"] for event in events]


def test_a_standby_that_ends_leaves_the_lease_alone(
    control_plane: ControlPlane, namespace: str, pair: tuple[Operator, Operator]
) -> None:
    leader, standby = pair
    standby.signal(signal.SIGTERM)
    assert standby.wait() == 0
    assert writes_of(control_plane, standby.user, 0) == []
    assert lease(control_plane, namespace)["holderIdentity"] == identity(leader)


def test_a_leader_that_was_stopped_changes_nothing_when_it_wakes_up(
    control_plane: ControlPlane, namespace: str, pair: tuple[Operator, Operator]
) -> None:
    leader, standby = pair
    # Stopped in the middle of much work, so that it has something to write the moment it goes on.
    words = ["kubectl", "create", "-n", namespace, "-f", "-"]
    with control_plane.popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as creating:
        assert creating.stdin
        creating.stdin.write("".join(json.dumps(policy(f"p{number}")) for number in range(150)))
        creating.stdin.close()
        wait_until("the work to be under way", lambda: len(writes_of(control_plane, leader.user, 0)) > 20, pause=0)
        leader.signal(signal.SIGSTOP)
    standby.wait_line("became leader")
    wait_until("the other to do the work", lambda: have_status(control_plane, namespace), timeout=120)
    woken = time.time()
    leader.signal(signal.SIGCONT)
    assert leader.wait() == 3
    # What was past the last look at the clock when it was stopped goes out, and changes nothing: the other has written since.
    late = writes_of(control_plane, leader.user, woken)
    assert len(late) <= 1 and all(re.search("patch certrotationpolicies/p[0-9]+: (409|504)$", write) for write in late), late
    assert leader.lines("stopped leading: nothing more is done here")
    assert lease(control_plane, namespace)["holderIdentity"] == identity(standby)


def test_a_leader_without_api_server_ends_before_another_could_lead(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    leader = start("first")
    leader.wait_line("all caches are in sync")
    with api_server_stopped(control_plane):
        stopped = time.monotonic()
        assert leader.wait(20) == 3
        took = time.monotonic() - stopped
    assert took < SHORT["lease-duration"] + SLACK
    lost = leader.wait_line("stopped leading")
    assert f"could not be renewed for {SHORT['renew-deadline']:g}s" in lost["error"] and "no answer within" in lost["error"]


def test_a_lease_taken_by_another_ends_the_leader(control_plane: ControlPlane, namespace: str, start: Start) -> None:
    leader = start("first")
    leader.wait_line("all caches are in sync")
    patch = '{"spec":{"holderIdentity":"somebody else"}}'
    control_plane.kubectl("patch", "lease", LEASE, "-n", namespace, "--type=merge", "-p", patch)
    assert leader.wait() == 3
    assert f"the Lease {namespace}/{LEASE} is held by somebody else now" in leader.wait_line("stopped leading")["error"]
    assert lease(control_plane, namespace)["holderIdentity"] == "somebody else"


def test_a_deleted_lease_is_made_again_by_its_leader(
    control_plane: ControlPlane, namespace: str, pair: tuple[Operator, Operator]
) -> None:
    leader, standby = pair
    control_plane.kubectl("delete", "lease", LEASE, "-n", namespace)
    get = ("get", "lease", LEASE, "-n", namespace)
    wait_until("the Lease to be back", lambda: not control_plane.kubectl(*get, check=False).returncode)
    assert lease(control_plane, namespace)["holderIdentity"] == identity(leader)
    assert not standby.leads() and leader.process.poll() is None


def test_without_rights_on_leases_nobody_leads_and_readyz_says_why(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    operator = start("first", rules=RULES)
    refused = operator.wait_line("the Lease is refused to us: grant get and patch of it, and create of leases")
    assert "forbidden" in refused["error"] and refused["lease"] == LEASE
    status, why = operator.get("/readyz")
    assert status == 503 and "leader election: GET" in why and "forbidden" in why
    assert operator.get("/healthz")[0] == 200
    assert len(operator.lines("the Lease is refused to us")) == 1
    assert not operator.leads()


def test_a_right_that_is_given_later_is_enough(control_plane: ControlPlane, namespace: str, start: Start) -> None:
    operator = start("first", rules=RULES)
    operator.wait_line("the Lease is refused to us")
    patch = [{"op": "add", "path": "/rules/-", "value": LEASES}]
    control_plane.kubectl("patch", "role", "first", "-n", namespace, "--type=json", "-p", json.dumps(patch))
    operator.wait_line("became leader")
    wait_until("it to be ready", lambda: operator.get("/readyz")[0] == 200)


def test_outside_of_a_pod_it_must_be_told_its_namespace(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    operator = Operator(control_plane, namespace, "alone", control_plane.kubeconfig, tmp_path)
    assert operator.wait() == 1
    why = operator.lines("cannot run")[0]["error"]
    assert "--operator-namespace" in why and "--leader-elect=false" in why


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--leader-elect=perhaps", "--leader-elect must be true or false, not 'perhaps'"),
        ("--leader-elect-renew-deadline=15s", "the lease duration (15s) must be longer than the renew deadline (15s)"),
        ("--leader-elect-retry-period=11s", "the renew deadline (12s) must be longer than 1.2 times the retry period"),
        ("--leader-elect-lease-duration=15", "--leader-elect-lease-duration: "),
        ("--leader-elect-lease-duration=15s500ms", "must be whole seconds"),
        ("--leader-elect-lease-name=a/b", "'a/b' is no name of a Lease"),
        ("--operator-namespace=Shop", "--operator-namespace 'Shop' is no name of a namespace"),
        ("--metrics-auth=basic", "--metrics-auth must be none or token, not 'basic'"),
    ],
)
def test_flags_that_make_no_sense_are_refused_in_words(flag: str, why: str) -> None:
    done = subprocess.run([PROGRAM, flag], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and why in done.stderr
