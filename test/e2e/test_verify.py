"""Several endpoints of one pod: two names on one port and a port of its own, of two Secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from certroll_dev.demo.api import Object
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from world import World

_NAME = "two-names"
_SHOP, _ADMIN = "two-names-shop", "two-names-admin"  # Secrets
_CONF = """
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr warn;
events {}
http {
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 9443 ssl; server_name shop.example; ssl_certificate /shop/tls.crt; ssl_certificate_key /shop/tls.key; }
  server { listen 9443 ssl; server_name admin.example; ssl_certificate /admin/tls.crt; ssl_certificate_key /admin/tls.key; }
  server { listen 9444 ssl; ssl_certificate /shop/tls.crt; ssl_certificate_key /shop/tls.key; }
}
"""
_ENDPOINTS = [
    {"port": 9443, "serverName": "shop.example"},
    {"port": 9443, "serverName": "admin.example"},
    {"port": 9444, "secretName": _SHOP},
]


def _deployment() -> Object:
    mounts = {"config": "/etc/nginx", "shop": "/shop", "admin": "/admin"}
    container = {
        "name": "nginx",
        "image": "docker.io/library/nginx:1.22.1",
        "imagePullPolicy": "Never",
        "readinessProbe": {"tcpSocket": {"port": 9443}, "periodSeconds": 1},
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in mounts.items()],
    }
    volumes = [
        {"name": "config", "configMap": {"name": _NAME}},
        {"name": "shop", "secret": {"secretName": _SHOP}},
        {"name": "admin", "secret": {"secretName": _ADMIN}},
    ]
    pod = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1}
    labels = {"app": _NAME}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return _object("apps/v1", "Deployment", spec=spec)


def _object(api_version: str, kind: str, **members: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": _NAME, "namespace": NAMESPACE}, **members}


def _policy() -> Object:
    """Of an nginx that is said to watch its files, which it does not: so its old leaf goes on being seen."""
    consumer = {
        "name": _NAME,
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": _NAME},
        "reload": {"serverLeaf": {"method": "Watch"}, "clientLeaf": {"method": "Watch"}},
        "verify": {"endpoints": _ENDPOINTS},
    }
    spec = {"secrets": [{"name": _SHOP}, {"name": _ADMIN}], "consumers": [consumer], "restart": {"coalesce": "1s"}}
    return _object("certroll.dev/v1alpha1", "CertRotationPolicy", spec=spec)


def _leaf(world: World, secret: str) -> Object:
    """For the name that it is asked for."""
    return world.authority.issue({_SHOP: "shop.example", _ADMIN: "admin.example"}[secret]).secret(secret)


@pytest.fixture
def two_names(world: World) -> Iterator[World]:
    api = world.api
    for name in (_SHOP, _ADMIN):
        api.apply("secrets", _leaf(world, name))
    api.apply("configmaps", _object("v1", "ConfigMap", data={"nginx.conf": _CONF}))
    api.apply("deployments", _deployment())
    wait_for("nginx to be ready", lambda: api.get("deployments", NAMESPACE, _NAME).get("status", {}).get("readyReplicas"), deadline=60)
    yield world
    for kind in ("certrotationpolicies", "deployments", "configmaps"):
        if api.find(kind, NAMESPACE, _NAME):
            api.delete(kind, NAMESPACE, _NAME)
    for name in (_SHOP, _ADMIN):
        api.delete("secrets", NAMESPACE, name)


def _consumer(world: World) -> Object:
    (found,) = world.api.get("certrotationpolicies", NAMESPACE, _NAME).get("status", {}).get("consumers", [{}])
    return found


def test_each_name_and_port_speaks_for_its_own_secret(two_names: World) -> None:
    world = two_names
    world.install_policy()
    with world.operator() as operator:
        world.api.apply("certrotationpolicies", _policy())
        wait_for("the first sight", lambda: _consumer(world).get("state") == "Idle", deadline=60)

        world.api.apply("secrets", _leaf(world, _ADMIN))
        (example,) = wait_for(
            "the old leaf to be seen", lambda: "still serves" in str(_consumer(world).get("examples")) and _consumer(world)["examples"],
            deadline=60, missing=lambda: str(_consumer(world)),
        )  # fmt: skip
        assert example.endswith(": port 9443 (admin.example) still serves the old leaf")
        assert _consumer(world)["pods"]["stale"] == 1

        # The truth about nginx: it is restarted, and then every endpoint of that Secret shows the new leaf.
        consumers = _policy()["spec"]["consumers"]
        del consumers[0]["reload"]
        world.api.merge("certrotationpolicies", NAMESPACE, _NAME, {"spec": {"consumers": consumers}})
        settled = wait_for(
            "the new leaf to be verified", lambda: (found := _consumer(world)).get("state") == "Converged" and found,
            deadline=180, missing=lambda: str(_consumer(world)),
        )  # fmt: skip
        assert settled["pods"] == {"total": 1, "verified": 1, "inferred": 0, "stale": 0, "unknown": 0}
        assert settled["decision"] == "Restart"
        operator.check()
