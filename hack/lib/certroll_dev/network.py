"""The cluster's network: a namespace with a bridge, and for each further node a namespace behind that bridge.

Pods hang on point-to-point links of their node, so between them every packet is routed and passes the Service rules;
on a bridge, answers would go around them unless the whole machine had br_netfilter. Nothing leads out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from . import commands, locks, paths
from .addresses import Address, Family
from .layout import Machine
from .mounts import is_mount
from .ui import DevError

BRIDGE = "cluster0"
_UPLINK = "eth0"
_NAMES = Path("/run/netns")  # where `ip netns` keeps names


def ensure(machines: Sequence[Machine]) -> None:
    """Namespaces, links, addresses and routes for all of the cluster's machines; what is there is kept."""
    first, *others = machines
    _ensure_namespace(first)
    if not _has_link(first, BRIDGE):
        _ip(first, "link", "add", BRIDGE, "type", "bridge")
    _address(first, BRIDGE)
    for machine in others:
        _ensure_namespace(machine)
        _ensure_cable(first, machine)
        _address(machine, _UPLINK)
    for family in first.cluster.families:
        _ensure_routes(machines, family)


def ensure_balancer(first: Machine) -> None:
    """The address that no node has."""
    address = first.cluster.family.balancer
    _add_address(first, address, address.max_prefixlen, BRIDGE)


def remove(names: Sequence[str]) -> None:
    """Remove the namespaces' names; each ends, with its links, when the last process has left it."""
    with _names_locked():
        for name in names:
            commands.run(["ip", "netns", "delete", name])
        _restore_names_folder()


def namespaces() -> list[str]:
    """The names of all named network namespaces of this machine."""
    return sorted(path.name for path in _NAMES.iterdir()) if _NAMES.is_dir() else []


def namespaces_of(cluster_netns: str) -> list[str]:
    """The named namespaces of a cluster, those of further nodes included."""
    return [name for name in namespaces() if name == cluster_netns or name.startswith(cluster_netns + ".")]


def _ensure_namespace(machine: Machine) -> None:
    if machine.netns_path.exists():
        if commands.succeeds(["ip", "-n", machine.netns, "link", "set", "lo", "up"]):
            return
        # A run was killed within `ip netns add`: a name without a namespace.
        commands.run(["ip", "netns", "delete", machine.netns])
    with _names_locked():
        _remember_names_folder()
        try:
            commands.run(["ip", "netns", "add", machine.netns])
        except DevError as error:
            raise DevError(f"{error}\nNo network namespace can be made: this needs root and CAP_SYS_ADMIN") from error
    _ip(machine, "link", "set", "lo", "up")


def _names_locked() -> contextlib.AbstractContextManager[None]:
    return locks.locked(paths.state_dir() / ".netns.lock", "another cluster's network", remove=True)


def _remember_names_folder() -> None:
    """`ip netns add` makes its folder, and a mount of it, where there was none; note what was not there before."""
    if not is_mount(_NAMES):
        _names_note().write_text("mount" if _NAMES.is_dir() else "mount and folder")


def _restore_names_folder() -> None:
    note = _names_note()
    if not note.exists() or namespaces():
        return  # the mount is not ours, or others have names in it now
    if is_mount(_NAMES):
        commands.run(["umount", _NAMES])
    if _NAMES.is_dir() and "folder" in note.read_text():
        _NAMES.rmdir()
    note.unlink()


def _names_note() -> Path:
    return paths.state_dir() / ".netns-made"


def _ensure_cable(first: Machine, machine: Machine) -> None:
    """A veth pair from the bridge to the machine; it has gone if either end's namespace has."""
    port = machine.name
    if not _has_link(machine, _UPLINK):
        _ip(first, "link", "add", port, "type", "veth", "peer", "name", _UPLINK, "netns", machine.netns)
    _ip(first, "link", "set", port, "master", BRIDGE, "up")


def _ensure_routes(machines: Sequence[Machine], family: Family) -> None:
    first, *others = machines

    def route(machine: Machine, *words: str) -> None:
        _ip(machine, f"-{family.version}", "route", "replace", *words)

    # Nobody answers behind it, but the API server takes its own address from the default route.
    route(first, "default", "dev", BRIDGE)
    for machine in others:
        route(machine, "default", "via", str(family.node(first.number)))
    for here in machines:
        for there in machines:
            if here != there:
                route(here, str(family.pods_of(there.number)), "via", str(family.node(there.number)))


def _address(machine: Machine, link: str) -> None:
    for family in machine.cluster.families:
        _add_address(machine, family.node(machine.number), family.nodes.prefixlen, link)
    _ip(machine, "link", "set", link, "up")


def _add_address(machine: Machine, address: Address, prefix_length: int, link: str) -> None:
    # An IPv6 address could not be used for a second or two while it is looked for elsewhere (RFC 4862), and on a bridge
    # without a port never.
    at_once = ["nodad"] if address.version == 6 else []
    _ip(machine, "address", "replace", f"{address}/{prefix_length}", "dev", link, *at_once)


def _has_link(machine: Machine, link: str) -> bool:
    return commands.succeeds(["ip", "-n", machine.netns, "link", "show", link])


def _ip(machine: Machine, *words: str) -> None:
    commands.run(["ip", "-n", machine.netns, *words])
