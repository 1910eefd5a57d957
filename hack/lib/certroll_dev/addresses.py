"""The IP families that a cluster can have, and which addresses nodes, pods and Services get in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Family:
    """One IP family; the networks are the same in every cluster, as each is alone in its namespaces."""

    name: str  # as Kubernetes has it in a Service's ipFamilies
    nodes: Network
    pods: Network
    node_prefix: int  # how long the prefix of one node's part of `pods` is
    services: Network
    loopback: Address
    any_address: str  # to listen at

    @property
    def version(self) -> int:
        return self.nodes.version

    @property
    def everywhere(self) -> str:
        return f"{self.any_address}/0"

    @property
    def balancer(self) -> Address:
        """Of the control plane as pods: no node's own."""
        return self.nodes[100]

    @property
    def api_service(self) -> Address:
        return self.services[1]

    @property
    def dns_service(self) -> Address:
        return self.services[10]

    def node(self, number: int) -> Address:
        """`number` counts from 1."""
        return self.nodes[number]

    def pods_of(self, number: int) -> Network:
        """The part of `pods` that belongs to this node."""
        size = 1 << self.pods.max_prefixlen - self.node_prefix
        return type(self.pods)((int(self.pods.network_address) + (number - 1) * size, self.node_prefix))


IPV4 = Family(
    "IPv4",
    nodes=IPv4Network("192.168.96.0/24"),
    pods=IPv4Network("10.244.0.0/16"),
    node_prefix=21,  # room for 2,000 pods a node, and for layout.MAX_NODES of them and more
    services=IPv4Network("10.96.0.0/16"),
    loopback=IPv4Address("127.0.0.1"),
    any_address="0.0.0.0",
)
# Unique local addresses (RFC 4193) that resemble those of IPv4. Their 40 bits are not random: nothing leads out of a cluster.
IPV6 = Family(
    "IPv6",
    nodes=IPv6Network("fd00:192:168:96::/64"),
    pods=IPv6Network("fd00:10:244::/56"),
    node_prefix=64,
    services=IPv6Network("fd00:10:96::/112"),
    loopback=IPv6Address("::1"),
    any_address="::",
)
# The first is the primary one: a Service that asks for nothing has an address of it.
DEFAULT = ("IPv4",)
_BY_NAME: Mapping[str, Family] = {family.name: family for family in (IPV4, IPV6)}


def families(names: tuple[str, ...]) -> tuple[Family, ...]:
    return tuple(_BY_NAME[name] for name in names)


def with_port(address: Address | str, port: int) -> str:
    """An IPv6 address in brackets (RFC 3986, section 3.2.2)."""
    return f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"


def listed(values: tuple[Address, ...] | tuple[Network, ...]) -> str:
    """As Kubernetes' programs take one value for each family."""
    return ",".join(str(value) for value in values)
