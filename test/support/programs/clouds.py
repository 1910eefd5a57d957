"""Envoy, Contour, CoreDNS."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from programs.handshake import HTTP_REQUEST, Server, exchange
from programs.program import CALLS, CONFIG, SERVES, Program

_TYPES = "type.googleapis.com/envoy.extensions"


def envoy(program: Path, version: str, port: int, *, sds: bool) -> Program:
    """With certificates in its bootstrap, or by SDS from files as Envoy Gateway sets it up."""
    plain, peer = port + 1, port + 2
    bootstrap = json.dumps(_bootstrap(port, plain, peer, sds))
    resources = {f"{name}.json": json.dumps({"resources": [_resource(name)]}) for name in (_LEAF, _CA)}
    return Program(
        name="envoy-sds" if sds else "envoy-static",
        image=f"docker.io/envoyproxy/envoy:v{version}",
        command=[
            "envoy", *(("--config-yaml", bootstrap) if sds else ("-c", f"{CONFIG}/envoy.yaml")),
            "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn",
        ],
        config=resources if sds else {"envoy.yaml": bootstrap},
        config_at=("/sds",) if sds else (CONFIG,),
        programs={"envoy": program},
        server=Server(port),
        roles=SERVES | CALLS,
        peer_port=peer,
        provoke=lambda: exchange(plain, HTTP_REQUEST),
    )


def rebootstrapped(envoy: Program, change: Callable[[dict[str, Any]], None]) -> Program:
    """With a bootstrap that `change` has edited."""
    flag, command = "--config-yaml", list(envoy.command)
    at = command.index(flag) + 1 if flag in command else 0
    bootstrap = json.loads(command[at] if at else envoy.config["envoy.yaml"])
    change(bootstrap)
    if not at:
        return dataclasses.replace(envoy, config={**envoy.config, "envoy.yaml": json.dumps(bootstrap)})
    command[at] = json.dumps(bootstrap)
    return dataclasses.replace(envoy, command=command)


_LEAF, _CA = "xds-certificate", "xds-trusted-ca"  # Envoy Gateway's names
_CERTIFICATE = {"certificate_chain": {"filename": "/certs/tls.crt"}, "private_key": {"filename": "/certs/tls.key"}}
_TRUST = {"trusted_ca": {"filename": "/certs/ca.crt"}}


def _resource(name: str) -> dict[str, Any]:
    content = {_LEAF: {"tls_certificate": _CERTIFICATE}, _CA: {"validation_context": _TRUST}}[name]
    return {"@type": f"{_TYPES}.transport_sockets.tls.v3.Secret", "name": name, **content}


def _common(sds: bool) -> dict[str, Any]:
    if not sds:
        return {"tls_certificates": [_CERTIFICATE], "validation_context": _TRUST}

    def source(name: str) -> dict[str, Any]:
        return {"name": name, "sds_config": {"resource_api_version": "V3", "path_config_source": {"path": f"/sds/{name}.json"}}}

    return {"tls_certificate_sds_secret_configs": [source(_LEAF)], "validation_context_sds_secret_config": source(_CA)}


def _tls(kind: str, sds: bool, **further: Any) -> dict[str, Any]:
    context = {"@type": f"{_TYPES}.transport_sockets.tls.v3.{kind}", "common_tls_context": _common(sds), **further}
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _bootstrap(port: int, plain: int, peer: int, sds: bool) -> dict[str, Any]:
    answer = {
        "name": "hcm",
        "typed_config": {
            "@type": f"{_TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "tls",
            "http_protocol_options": {"accept_http_10": True},
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
                {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "ok"}}}]}]},
            "http_filters": [{"name": "router", "typed_config": {"@type": f"{_TYPES}.filters.http.router.v3.Router"}}],
        },
    }
    forward = {
        "name": "tcp",
        "typed_config": {"@type": f"{_TYPES}.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "plain", "cluster": "peer"},
    }
    server = _tls("DownstreamTlsContext", sds, require_client_certificate=True)
    return {
        "node": {"id": "program", "cluster": "test"},
        "static_resources": {
            "listeners": [
                {"name": "tls", "address": _address(port), "filter_chains": [{"transport_socket": server, "filters": [answer]}]},
                {"name": "plain", "address": _address(plain), "filter_chains": [{"filters": [forward]}]},
            ],
            "clusters": [{
                "name": "peer", "type": "STATIC", "connect_timeout": "3s",
                "load_assignment": {"cluster_name": "peer", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(peer)}}]}]},
                "transport_socket": _tls("UpstreamTlsContext", sds, sni="peer", max_session_keys=0),
            }],
        },
    }


def contour(program: Path, version: str, port: int, kubeconfig: str) -> Program:
    """Its xDS server. It waits for the API server and needs the CRDs of HTTPProxy and TLSCertificateDelegation."""
    return Program(
        name="contour",
        image=f"ghcr.io/projectcontour/contour:{version}",
        command=[
            "contour", "serve", "--contour-cafile=/certs/ca.crt", "--contour-cert-file=/certs/tls.crt", "--contour-key-file=/certs/tls.key",
            "--xds-address=127.0.0.1", f"--xds-port={port}", "--http-address=127.0.0.1", f"--http-port={port + 1}",
            "--health-address=127.0.0.1", f"--health-port={port + 2}", "--debug-http-address=127.0.0.1", f"--debug-http-port={port + 3}",
            f"--kubeconfig={CONFIG}/kubeconfig", "--disable-leader-election", "--disable-feature=extensionservices",
        ],
        config={"kubeconfig": kubeconfig},
        programs={"contour": program},
        server=Server(port, request=b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", alpn=("h2",)),
        roles=SERVES,
    )


def contour_crds() -> list[dict[str, Any]]:
    """So much of them that Contour can watch: without fields."""
    return [_crd(kind, plural) for kind, plural in (("HTTPProxy", "httpproxies"), ("TLSCertificateDelegation", "tlscertificatedelegations"))]


def _crd(kind: str, plural: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    group = "projectcontour.io"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


_COREFILE = """
tls://.:{port} {{
    tls /certs/tls.crt /certs/tls.key /certs/ca.crt {{
        client_auth require_and_verify
    }}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
    reload 2s 1s
}}
.:{plain} {{
    forward . tls://127.0.0.1:{peer} {{
        tls /certs/tls.crt /certs/tls.key /certs/ca.crt
        tls_servername peer
        max_fails 0
    }}
    reload 2s 1s
}}
"""
# A query for "a." with its length before it, as over TCP.
_QUERY = struct.pack("!HHHHHHH", 19, 1, 0x0100, 1, 0, 0, 0) + b"\1a\0" + struct.pack("!HH", 1, 1)


def coredns(program: Path, version: str, port: int) -> Program:
    """DNS over TLS, forwarding to DNS over TLS, with the plugin that reloads (each 2 s, the least that it allows)."""
    plain, peer = port + 1, port + 2
    return Program(
        name="coredns",
        image=f"registry.k8s.io/coredns/coredns:{version}",
        command=["coredns", "-conf", f"{CONFIG}/Corefile"],
        config={"Corefile": _COREFILE.format(port=port, plain=plain, peer=peer)},
        programs={"coredns": program},
        server=Server(port, request=_QUERY),
        roles=SERVES | CALLS,
        peer_port=peer,
        provoke=lambda: exchange(plain, _QUERY),
    )
