"""A path that goes dead: packets are dropped, both ways, and nobody is told. Found and replaced within 30 s.

The operator runs in a network of its own, beside that of the control plane; what is dropped is dropped on arrival, so
that no sender sees an error."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from control_plane import ControlPlane, wait_until
from operators import LEASES, RULES, Operator, account

REPLACED = 30.0  # what the design promises; TCP finds a dead path in 25 s
BUSY = 30.0  # what a busy machine may take to show it
QUIET_MS = 6000  # longer than between two renewals of the Lease
LEASE = "certroll-operator"


def run(*words: str, input: str | None = None) -> str:
    return subprocess.run(words, input=input, capture_output=True, text=True, check=True, timeout=30).stdout


class Network:
    """A network whose only neighbour is the control plane's."""

    def __init__(self, plane: ControlPlane, number: int) -> None:
        self._far = plane.netns
        self.netns = f"{plane.netns}.path{number}"
        near, self._link = f"10.77.{number}.2", f"path{number}"
        server = re.sub(r"https://|:\d+", "", plane.server)
        self.remove()
        run("ip", "netns", "add", self.netns)
        run("ip", "link", "add", "up0", "netns", self.netns, "type", "veth", "peer", "name", self._link, "netns", self._far)
        for netns, device, address in ((self.netns, "up0", near), (self._far, self._link, f"10.77.{number}.1")):
            run("ip", "-n", netns, "address", "add", f"{address}/24", "dev", device)
            run("ip", "-n", netns, "link", "set", device, "up")
        run("ip", "-n", self.netns, "link", "set", "lo", "up")
        run("ip", "-n", self.netns, "route", "add", server, "via", f"10.77.{number}.1")

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.netns], capture_output=True, check=False)
        subprocess.run(["ip", "-n", self._far, "link", "delete", self._link], capture_output=True, check=False)

    def connections(self) -> dict[int, str]:
        """What ss says of each connection to the API server, by the operator's port."""
        text = run("nsenter", f"--net=/run/netns/{self.netns}", "ss", "-tinHO", "state", "established", "dport", "=", "6443")
        return {int(re.search(r":(\d+) ", line).group(1)): line for line in text.splitlines()}  # type: ignore[union-attr]

    def quiet(self) -> set[int]:
        """Those on which the operator has sent nothing for a while: its watches', and those of requests that nobody makes just now.
        The Lease is renewed each five seconds."""

        def since(line: str) -> int:
            return int(re.search(r"lastsnd:(\d+)", line).group(1))  # type: ignore[union-attr]

        return {port for port, line in self.connections().items() if since(line) > QUIET_MS}

    @contextmanager
    def dead(self, ports: Iterable[int] | None = None) -> Iterator[None]:
        """Drops what belongs to these ports of the operator; None: everything."""
        which = f"{{ {', '.join(map(str, ports))} }}" if ports is not None else None
        sides = ((self.netns, "up0", "dport"), (self._far, self._link, "sport"))
        for netns, device, field in sides:
            match = f'iifname "{device}"' + (f" tcp {field} {which}" if which else "")
            rules = f"chain arriving {{ type filter hook prerouting priority -300; {match} counter drop; }}\n"
            run("nsenter", f"--net=/run/netns/{netns}", "nft", "-f", "-", input=f"table ip dead_{device} {{ {rules} }}")
        try:
            yield
        finally:
            for netns, device, _ in sides:
                run("nsenter", f"--net=/run/netns/{netns}", "nft", "delete", "table", "ip", f"dead_{device}")


@dataclass(frozen=True)
class Elsewhere:
    """The control plane as seen from another network, for what starts programs."""

    plane: ControlPlane
    network: Network

    def environment(self) -> dict[str, str]:
        return self.plane.environment()

    def popen(self, words: list[str | Path], **options: object) -> subprocess.Popen:
        command = ["nsenter", f"--net=/run/netns/{self.network.netns}", "--", *map(str, words)]
        return subprocess.Popen(command, **options)  # type: ignore[call-overload]


Start = Callable[..., tuple[Operator, Network]]


@pytest.fixture
def start(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts an operator in a network of its own, and waits until it is in sync."""
    operators: list[Operator] = []
    networks: list[Network] = []

    def go(name: str, *flags: str) -> tuple[Operator, Network]:
        network = Network(control_plane, len(networks) + 1)
        networks.append(network)
        kubeconfig = account(control_plane, namespace, name, [*RULES, LEASES], tmp_path)
        elsewhere = Elsewhere(control_plane, network)
        operator = Operator(elsewhere, namespace, name, kubeconfig, tmp_path, f"--operator-namespace={namespace}", *flags)  # type: ignore[arg-type]
        operators.append(operator)
        operator.wait_line("all caches are in sync")
        return operator, network

    yield go
    for operator in operators:
        operator.end()
    for network in networks:
        network.remove()


def create_policy(plane: ControlPlane, namespace: str, name: str) -> None:
    consumer = {"name": "web", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    plane.create(
        {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"secrets": [{"name": f"{name}-tls"}], "consumers": [consumer]},
        }
    )


def is_seen(plane: ControlPlane, namespace: str, name: str) -> bool:
    """Whether the operator has said something of the policy."""
    return "observedGeneration" in plane.get("certrotationpolicy", name, "-n", namespace)["status"]


def test_watches_on_dead_connections_are_replaced_and_the_lease_is_kept(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    operator, network = start("leader")
    operator.wait_line("became leader")
    # The Lease's, which is used for nothing else, is quiet, too, when a renewal is late.
    watches = wait_until("the watches alone to be quiet", lambda: (quiet := network.quiet()) < set(network.connections()) and quiet)
    oldest = 0.0
    with network.dead(watches):
        began = time.time()
        create_policy(control_plane, namespace, "late")
        while not is_seen(control_plane, namespace, "late"):
            assert time.time() - began < REPLACED + BUSY, "the watches were not replaced"
            oldest = max(oldest, lease_age(control_plane, namespace))
            time.sleep(0.2)
        assert not watches & set(network.connections())
        assert found_dead(operator) - began < REPLACED
    lease = control_plane.get("lease", LEASE, "-n", namespace)["spec"]
    assert lease["leaseTransitions"] == 0 and oldest < 8.0
    assert operator.process.poll() is None


def found_dead(operator: Operator) -> float:
    """When the last of its watches was, by its log."""
    return max(datetime.fromisoformat(line["ts"]).timestamp() for line in operator.lines("a watch is interrupted"))


def lease_age(plane: ControlPlane, namespace: str) -> float:
    asked = time.time()
    renewed = plane.get("lease", LEASE, "-n", namespace)["spec"]["renewTime"]
    whole, _, rest = renewed.partition(".")
    at = time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0." + rest.rstrip("Z"))
    return asked - at


def test_a_leader_whose_connections_are_all_dead_opens_others_in_time(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    """As when a balancer or a NAT has forgotten them: what is opened anew goes through."""
    operator, network = start("leader")
    operator.wait_line("became leader")
    dead = set(network.connections())
    with network.dead(dead):
        began = time.time()
        create_policy(control_plane, namespace, "late")
        wait_until("the policy to be seen", lambda: is_seen(control_plane, namespace, "late"), REPLACED + BUSY)
        assert found_dead(operator) - began < REPLACED
        assert operator.process.poll() is None, "the Lease was lost"
        assert control_plane.get("lease", LEASE, "-n", namespace)["spec"]["leaseTransitions"] == 0
        assert not dead & set(network.connections()), f"after {time.time() - began:.1f} s"


def test_a_path_that_is_dead_for_all_is_told_and_goes_on_when_packets_pass(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    operator, network = start("single", "--leader-elect=false")
    with network.dead():
        began = time.time()
        create_policy(control_plane, namespace, "late")
        operator.wait_line("a watch is interrupted", REPLACED)
        assert time.time() - began > 5, "this is not what silence looks like"
        assert not is_seen(control_plane, namespace, "late")
    wait_until("the policy to be seen", lambda: is_seen(control_plane, namespace, "late"), REPLACED)
