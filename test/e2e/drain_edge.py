"""An Envoy at the edge: an HTTP listener and one that passes streams on, both behind a certificate that it reads once at its
start, before the upstream of drain_upstream.py. How it ends is said by a component of manifests/shutdown-manager, or by patches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certroll_dev import paths
from certroll_dev.demo import component_images
from certroll_dev.demo.api import Object

NAMESPACE = "edge"
HTTP, TCP, ADMIN = 10443, 10444, 9901
_COMPONENTS = paths.REPOSITORY / "manifests" / "shutdown-manager"
MANAGER = "certroll.dev/shutdown-manager"  # the image, and the annotation


@dataclass(frozen=True)
class Edge:
    """Its name is that of its Deployment, Service, policy and of its pods' label app."""

    name: str
    component: str = ""  # exec or sidecar: as the annotation has it, too
    replicas: int = 2
    pod: Mapping[str, Any] = field(default_factory=dict)  # a strategic merge patch of the pod's spec, after the component
    admin: str = f"127.0.0.1:{ADMIN}"  # or the path of a Unix socket

    @property
    def secret(self) -> str:
        return f"{self.name}-tls"

    @property
    def server_name(self) -> str:
        return f"{self.name}.{NAMESPACE}.svc"

    # --- objects

    def write(self, folder: Path, upstream: str, manager: str) -> Path:
        """A kustomization as a user has it. `upstream`: HOST:PORT; `manager`: the reference of the shutdown manager's image."""
        folder.mkdir(parents=True)
        objects = [self._config(upstream), self._deployment(), self._service(), self._policy()]
        (folder / "edge.json").write_text("\n---\n".join(json.dumps(obj) for obj in objects))
        tag = manager.rpartition(":")[2]
        kustomization: Object = {
            "namespace": NAMESPACE,
            "resources": ["edge.json"],
            "images": [{"name": MANAGER, "newTag": tag}],
        }
        if self.component:  # kustomize takes no absolute paths
            kustomization["components"] = [os.path.relpath(_COMPONENTS / self.component, folder.resolve())]
        if self.pod:
            patch = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name}, "spec": {"template": {"spec": self.pod}}}
            kustomization["patches"] = [{"patch": json.dumps(patch)}]
        (folder / "kustomization.yaml").write_text(json.dumps(kustomization, indent=1))
        return folder

    def _config(self, upstream: str) -> Object:
        data = {"envoy.yaml": json.dumps(_bootstrap(upstream, self.admin), indent=1)}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name}, "data": data}

    def _deployment(self) -> Object:
        labels = {"app": self.name}
        annotations = {MANAGER: self.component} if self.component else {}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "annotations": annotations},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                "template": {"metadata": {"labels": labels}, "spec": self._pod()},
            },
        }

    def _pod(self) -> Object:
        # /healthz is answered by the listener itself, and by 503 as soon as Envoy was told to fail its health check.
        probe = {"httpGet": {"path": "/healthz", "port": "https", "scheme": "HTTPS"}, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 60}
        return {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 60,
            "containers": [{
                "name": "envoy",
                "image": component_images.ENVOY,
                "imagePullPolicy": "Never",
                "args": ["-c", "/etc/envoy/envoy.yaml", "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"],
                "ports": [{"name": "https", "containerPort": HTTP}, {"name": "tcp", "containerPort": TCP}],
                "readinessProbe": probe,
                "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/envoy", "readOnly": True},
                    {"name": "certs", "mountPath": "/certs", "readOnly": True},
                ],
            }],
            "volumes": [
                {"name": "config", "configMap": {"name": self.name}},
                {"name": "certs", "secret": {"secretName": self.secret}},
            ],
        }  # fmt: skip

    def _service(self) -> Object:
        ports = [{"name": name, "port": port, "targetPort": name} for name, port in (("https", HTTP), ("tcp", TCP))]
        spec = {"selector": {"app": self.name}, "ports": ports}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": self.name}, "spec": spec}

    def _policy(self) -> Object:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name}
        consumer = {"name": self.name, "targetRef": target, "verify": {"port": HTTP, "serverName": self.server_name}}
        return {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": self.name},
            "spec": {"secrets": [{"name": self.secret}], "consumers": [consumer], "restart": {"coalesce": "0s"}},
        }


def _bootstrap(upstream: str, admin: str) -> Object:
    host, _, port = upstream.rpartition(":")
    address = {"socket_address": {"address": host, "port_value": int(port)}}
    cluster = {
        "name": "upstream",
        "type": "STATIC",
        "connect_timeout": "30s",
        "load_assignment": {"cluster_name": "upstream", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]},
    }
    http = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "https",
        "stream_idle_timeout": "0s",
        "route_config": {"virtual_hosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "0s"}}],
        }]},
        "http_filters": [
            {"name": "envoy.filters.http.health_check", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck",
                "pass_through_mode": False,
                "headers": [{"name": ":path", "string_match": {"exact": "/healthz"}}],
            }},
            {"name": "envoy.filters.http.router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}},
        ],
    }  # fmt: skip
    stream = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": "streams",
        "cluster": "upstream",
    }
    return {
        "admin": {"address": _admin_address(admin)},
        "static_resources": {
            "listeners": [
                _listener("https", HTTP, "envoy.filters.network.http_connection_manager", http),
                _listener("streams", TCP, "envoy.filters.network.tcp_proxy", stream),
            ],
            "clusters": [cluster],
        },
    }


def _admin_address(admin: str) -> Object:
    if admin.startswith("/"):
        return {"pipe": {"path": admin}}
    host, _, port = admin.rpartition(":")
    return {"socket_address": {"address": host, "port_value": int(port)}}


def _listener(name: str, port: int, filter_name: str, config: Object) -> Object:
    """With certificate and key as Envoy reads them when it starts, and never again."""
    pair = {"certificate_chain": {"filename": "/certs/tls.crt"}, "private_key": {"filename": "/certs/tls.key"}}
    tls = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {"tls_certificates": [pair]},
    }
    chain = {
        "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
        "filters": [{"name": filter_name, "typed_config": config}],
    }
    return {"name": name, "address": {"socket_address": {"address": "0.0.0.0", "port_value": port}}, "filter_chains": [chain]}
