"""How a container takes a Secret decides whether new material reaches it, whatever its software can do.

All pods run the same Envoy, which reloads files by itself; what differs is how the certificate comes to it. The catalogue's
rules say for each pod template what a renewed leaf needs, and the pod's handshakes show whether that is so.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import catalogue
import pytest
from certroll_dev.demo import component_images, pki, pods, programs, workloads
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Material
from certroll_dev.demo.waiting import wait_for
from certroll_dev.images import cached_image

_NAMESPACE = f"certroll-usages-{os.getpid()}"  # of this run: a kept cluster may still be removing another
_COPY_IMAGE = "certroll.test/copy:1"
_PORT = 10443
_NGINX_PORT = 8443
_START = 120.0
_ARRIVES = 90.0  # a nudged volume takes about a second; the machine is small
_STAYS = 8.0  # so long after it has arrived elsewhere it is watched that it does not arrive here

_NGINX_CONF = f"""
pid /tmp/nginx.pid;
error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server {{ listen {_NGINX_PORT} ssl; ssl_certificate /certs/tls.crt; ssl_certificate_key /certs/tls.key; }}
}}
"""


@dataclass(frozen=True)
class Usage:
    """A pod template, less what is the same in all of them."""

    name: str
    decision: str  # the rule that is pinned here
    mounts: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()
    env: tuple[Object, ...] = ()
    env_from: tuple[Object, ...] = ()
    init: tuple[Object, ...] = ()
    further: tuple[Object, ...] = ()  # containers
    files: tuple[str, str] | None = ("/certs/tls.crt", "/certs/tls.key")
    variables: tuple[str, str] = ("", "")
    # Ports that show the new leaf without a restart, and those that do not.
    arrives: tuple[int, ...] = ()
    stays: tuple[int, ...] = ()

    @property
    def secret(self) -> str:
        return f"{self.name}-tls"

    def pod_spec(self, images: dict[str, str]) -> Object:
        config = {"name": "config", "mountPath": "/sds", "readOnly": True}
        envoy = {
            "name": "envoy", "image": images["envoy"], "imagePullPolicy": "Never",
            "args": ["--config-yaml", json.dumps(_BOOTSTRAP), "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"],
            "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
            "volumeMounts": [config, *self.mounts], "env": list(self.env), "envFrom": list(self.env_from),
        }
        further = [{**container, "image": images[container["name"]], "imagePullPolicy": "Never"} for container in self.further]
        init = [{**container, "image": images[container["name"]], "imagePullPolicy": "Never"} for container in self.init]
        return {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "initContainers": init,
            "containers": [envoy, *further],
            "volumes": [{"name": "config", "configMap": {"name": self.name}}, *self.volumes],
        }

    def config(self) -> dict[str, str]:
        names = ("certificate_chain", "private_key")
        kind, values = ("filename", self.files) if self.files else ("environment_variable", self.variables)
        certificate = {name: {kind: value} for name, value in zip(names, values, strict=True)}
        resource = {"@type": f"{_TYPES}.transport_sockets.tls.v3.Secret", "name": "leaf", "tls_certificate": certificate}
        return {
            "xds-certificate.json": json.dumps({"resources": [resource]}),
            "nginx.conf": _NGINX_CONF,
        }


_TYPES = "type.googleapis.com/envoy.extensions"
_SDS = {"name": "leaf", "sds_config": {"resource_api_version": "V3", "path_config_source": {"path": "/sds/xds-certificate.json"}}}
_TLS = {
    "name": "tls",
    "typed_config": {
        "@type": f"{_TYPES}.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {"tls_certificate_sds_secret_configs": [_SDS]},
    },
}
_ECHO = {"name": "echo", "typed_config": {"@type": f"{_TYPES}.filters.network.echo.v3.Echo"}}
_BOOTSTRAP = {
    "node": {"id": "usages", "cluster": "usages"},
    "static_resources": {
        "listeners": [{
            "name": "tls",
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": _PORT}},
            "filter_chains": [{"transport_socket": _TLS, "filters": [_ECHO]}],
        }]
    },
}


def _mount(name: str, path: str, **rest: object) -> Object:
    return {"name": name, "mountPath": path, "readOnly": True, **rest}


def _secret_volume(secret: str) -> Object:
    return {"name": "certs", "secret": {"secretName": secret}}


def _variable(name: str, secret: str, key: str) -> Object:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


_ITEMS = [{"key": key, "path": key} for key in ("tls.crt", "tls.key")]

USAGES = (
    Usage(
        "volume", "HotReload",
        mounts=(_mount("certs", "/certs"),), volumes=(_secret_volume("volume-tls"),), arrives=(_PORT,),
    ),
    Usage(
        "projected", "HotReload",
        mounts=(_mount("certs", "/certs"),),
        volumes=({"name": "certs", "projected": {"sources": [{"secret": {"name": "projected-tls", "items": _ITEMS}}]}},),
        arrives=(_PORT,),
    ),
    Usage(
        "subpath", "Restart",
        mounts=tuple(_mount("certs", f"/certs/{key}", subPath=key) for key in ("tls.crt", "tls.key")),
        volumes=(_secret_volume("subpath-tls"),), stays=(_PORT,),
    ),
    Usage(
        "env", "Restart",
        env=(_variable("LEAF", "env-tls", "tls.crt"), _variable("LEAF_KEY", "env-tls", "tls.key")),
        files=None, variables=("LEAF", "LEAF_KEY"), stays=(_PORT,),
    ),
    Usage(
        "envfrom", "Restart",
        env_from=({"secretRef": {"name": "envfrom-tls"}},),
        files=None, variables=("tls.crt", "tls.key"), stays=(_PORT,),
    ),
    Usage(
        "init", "Restart",
        init=({
            "name": "copy", "args": ["/from/tls.crt", "/from/tls.key", "/certs"],
            "volumeMounts": [_mount("certs", "/from"), {"name": "copies", "mountPath": "/certs"}],
        },),
        mounts=(_mount("copies", "/certs"),),
        volumes=(_secret_volume("init-tls"), {"name": "copies", "emptyDir": {}}), stays=(_PORT,),
    ),
    # The strictest of the containers decides for the pod, though one of them reloads.
    Usage(
        "several", "Restart",
        further=({"name": "nginx", "volumeMounts": [_mount("certs", "/certs"), _mount("config", "/etc/nginx")]},),
        mounts=(_mount("certs", "/certs"),), volumes=(_secret_volume("several-tls"),),
        arrives=(_PORT,), stays=(_NGINX_PORT,),
    ),
)


class Pods:
    """The pods of all usages, one each, and what they serve."""

    def __init__(self, api: API, images: dict[str, str]) -> None:
        self.api, self.images = api, images
        self.authority = pki.new_authority(1)
        self.leaves: dict[str, Material] = {}

    def renew(self) -> None:
        for usage in USAGES:
            self.leaves[usage.name] = self.authority.issue(usage.name, namespace=_NAMESPACE)
            self.api.apply("secrets", self.leaves[usage.name].secret(usage.secret, _NAMESPACE))

    def create(self) -> None:
        for usage in USAGES:
            meta = {"name": usage.name, "namespace": _NAMESPACE}
            self.api.apply("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": usage.config()})
            labels = {"app": usage.name}
            template = {"metadata": {"labels": labels}, "spec": usage.pod_spec(self.images)}
            spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": template}
            self.api.apply("deployments", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})

    def pod_spec(self, usage: Usage) -> Object:
        """As the API server has it."""
        spec: Object = self.api.get("deployments", _NAMESPACE, usage.name)["spec"]["template"]["spec"]
        return spec

    def wait_up(self, usage: Usage) -> None:
        wait_for(
            f"the pod of {usage.name}",
            lambda: workloads.is_rolled_out(self.api.get("deployments", _NAMESPACE, usage.name)),
            deadline=_START,
            missing=lambda: json.dumps([pod.get("status") for pod in self.api.list("pods", _NAMESPACE, f"app={usage.name}")])[:2000],
        )

    def shows(self, usage: Usage, port: int) -> bool:
        """Whether the newest leaf is what a handshake shows."""
        found = pods.of_app(self.api, _NAMESPACE, usage.name)
        leaf = self.leaves[usage.name].fingerprint()
        return len(found) == 1 and pods.served_leaf(found[0].ip, port, usage.name) == leaf

    def nudge(self) -> None:
        """An annotation of the pod makes its kubelet write all its volumes now."""
        patch: Object = {"metadata": {"annotations": {"e2e.certroll.dev/nudge": str(time.time_ns())}}}
        for usage in USAGES:
            for pod in pods.of_app(self.api, _NAMESPACE, usage.name):
                self.api.merge("pods", _NAMESPACE, pod.name, patch, "status")

    def restart(self, usage: Usage) -> None:
        annotations = {"kubectl.kubernetes.io/restartedAt": datetime.now(UTC).isoformat()}
        patch: Object = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
        self.api.merge("deployments", _NAMESPACE, usage.name, patch)


@pytest.fixture(scope="module")
def running(cluster: LocalCluster, api: API) -> Iterator[Pods]:
    cluster.load_image(cached_image(_COPY_IMAGE, {"/bin/cp": Path("/bin/cp")}, entrypoint=["/bin/cp"]))
    nginx = component_images.nginx(programs.debian()).reference
    cluster.kubectl("create", "namespace", _NAMESPACE)
    try:
        found = Pods(api, {"envoy": component_images.ENVOY, "nginx": nginx, "copy": _COPY_IMAGE})
        found.renew()
        found.create()
        for usage in USAGES:
            found.wait_up(usage)
        yield found
    finally:
        cluster.kubectl("delete", "namespace", _NAMESPACE, "--wait=false")


@dataclass
class Seen:
    """After a renewal, without a restart; seconds since then, or None."""

    arrived: dict[tuple[str, int], float | None]
    after_restart: dict[tuple[str, int], bool]


@pytest.fixture(scope="module")
def seen(running: Pods) -> Seen:
    """One renewal for all: what they show while nothing but volumes changes, and then with a new pod."""
    places = [(usage, port) for usage in USAGES for port in (*usage.arrives, *usage.stays)]
    for usage, port in places:
        wait_for(f"{usage.name} to serve its first leaf at {port}", lambda: running.shows(usage, port), deadline=_ARRIVES)
    running.renew()
    result = Seen({(usage.name, port): None for usage, port in places}, {})
    _watch(running, places, result)
    for usage in USAGES:
        running.restart(usage)
    for usage, port in places:
        result.after_restart[usage.name, port] = _shows_after_restart(running, usage, port)
    return result


def _watch(running: Pods, places: list[tuple[Usage, int]], result: Seen) -> None:
    """Nudges all the time, until what should arrive has arrived everywhere, and for a while beyond."""
    expected = [(usage.name, port) for usage in USAGES for port in usage.arrives]
    start, nudged, complete = time.monotonic(), 0.0, 0.0
    while True:
        now = time.monotonic() - start
        if now - nudged > 2 or not nudged:
            nudged = now
            running.nudge()
        for usage, port in places:
            if result.arrived[usage.name, port] is None and running.shows(usage, port):
                result.arrived[usage.name, port] = now
        if not complete and all(result.arrived[place] is not None for place in expected):
            complete = now
        if now > _ARRIVES or (complete and now > complete + _STAYS):
            return
        time.sleep(0.2)


def _shows_after_restart(running: Pods, usage: Usage, port: int) -> bool:
    """A new pod may still mount the Secret of before, from the kubelet's cache: then once more."""
    for _ in range(3):
        running.wait_up(usage)
        if running.shows(usage, port):
            return True
        running.restart(usage)
    return False


@pytest.mark.parametrize("usage", USAGES, ids=lambda usage: usage.name)
def test_a_usage_does_what_the_rules_decide(running: Pods, seen: Seen, usage: Usage) -> None:
    answer = catalogue.ask(running.pod_spec(usage), usage.secret, catalogue.LEAF_CHANGED)
    shown = {port: seen.arrived[usage.name, port] for port in (*usage.arrives, *usage.stays)}
    reloads = all(seconds is not None for seconds in shown.values())
    assert answer["decision"] == ("HotReload" if reloads else "Restart"), f"{answer['reason']} But handshakes show: {shown}"
    assert answer["decision"] == usage.decision, answer["reason"]
    assert {port for port, seconds in shown.items() if seconds is not None} == set(usage.arrives)
    assert all(seen.after_restart[usage.name, port] for port in shown), "not even a restart brings the new leaf"
