"""The load balancer in front of several API servers: HAProxy, in the cluster's network.

It belongs to no machine, so that it lives on when the one of node-1 is killed. Its backends are asked for /readyz each
second. One that refuses a connection is out at once: the connection goes to another, and the client sees nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from . import addresses, controlplane, daemons, files, layout, namespaces, network
from .daemons import Daemon, Process
from .demo import programs
from .layout import Cluster, Machine

MACHINE = "cluster"  # where others have the name of their node

_CONFIG = """\
global
    maxconn 4096
    log stdout format raw local0

defaults
    mode tcp
    log global
    option tcplog
    option dontlog-normal
    option log-health-checks
    option redispatch 1
    retries 3
    timeout connect 2s
    timeout check 5s
    # Watches are quiet for long.
    timeout client 1h
    timeout server 1h

frontend api
    bind {address}
    default_backend api-servers

backend api-servers
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
    # Whether it is the right server is what the client checks: the balancer sees no plain text.
    default-server check check-ssl verify none inter 1s fastinter 500ms fall 2 rise 1
    default-server observe layer4 error-limit 1 on-error mark-down
{servers}
"""


def start(cluster: Cluster, control_plane: Sequence[Machine], inside: int) -> None:
    """Start it unless it runs; there need be no API server yet. `inside` is a process in the cluster's network."""
    network.ensure_balancer(cluster.machine(1))
    daemon = _daemon(cluster, control_plane)
    if daemon.start(None, enter=[(cluster.netns_path, namespaces.NEW_NET)]):
        daemon.wait(lambda: controlplane.listens(inside, layout.BALANCER_PORT), 60, "listening")


def processes(cluster: Cluster) -> list[Process]:
    """Found by the command line, with or without a record."""
    config = str(_config(cluster))
    found = []
    for pid in daemons.all_pids():
        words = daemons.command_line(pid)
        if words and os.path.basename(words[0]) == "haproxy" and config in words:
            found.append(Process.of(pid))
    return [process for process in found if process]


def _daemon(cluster: Cluster, control_plane: Sequence[Machine]) -> Daemon:
    servers = "\n".join(f"    server {node.name} {addresses.with_port(node.address, layout.API_PORT)}" for node in control_plane)
    text = _CONFIG.format(address=addresses.with_port(cluster.family.balancer, layout.BALANCER_PORT), servers=servers)
    config = files.put(_config(cluster), text)
    debian = programs.debian(programs.BALANCER)
    libraries = {str(library.parent) for library in (debian.root / "usr" / "lib").glob("**/*.so*")}
    return Daemon(
        name="haproxy",
        argv=[debian.root / "usr" / "sbin" / "haproxy", "-db", "-f", config],
        log=cluster.logs / "haproxy.log",
        record=cluster.daemons / MACHINE / "haproxy.json",
        files=[config],
        env={"LD_LIBRARY_PATH": ":".join(sorted(libraries))},
    )


def _config(cluster: Cluster) -> Path:
    return cluster.root / "etc" / "haproxy.cfg"
