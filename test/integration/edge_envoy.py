"""A real Envoy with listeners of each kind, in the network of its test."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from control_plane import ROOT
from edge_clients import Address
from sidecar_pod import wait_for

sys.path.insert(0, str(ROOT / "hack" / "lib"))

from certroll_dev.demo import programs  # noqa: E402

_TYPES = "type.googleapis.com/envoy.extensions"

HTTP, HTTP6, TCP, NAMED, VIA, TLS, STATS = 10080, 10081, 10082, 10083, 10084, 10085, 8002
UPSTREAM_HTTP, UPSTREAM_TCP = 9000, 9001
INNER = "inner"  # a listener inside of Envoy


def _at(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def _filter(kind: str, path: str, **config: Any) -> dict[str, Any]:
    return {"name": kind, "typed_config": {"@type": f"{_TYPES}.filters.{path}", **config}}


def _http(cluster: str, **further: Any) -> dict[str, Any]:
    routes = [{"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "0s"}}]
    return _filter(
        "hcm",
        "network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="edge",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        http_filters=[_filter("router", "http.router.v3.Router")],
        **further,
    )


def _tcp(cluster: str) -> dict[str, Any]:
    return _filter("tcp", "network.tcp_proxy.v3.TcpProxy", stat_prefix="plain", cluster=cluster)


def _listener(name: str, address: dict[str, Any], network_filter: dict[str, Any], **further: Any) -> dict[str, Any]:
    return {"name": name, "address": address, "filter_chains": [{"filters": [network_filter]}], **further}


def _cluster(name: str, address: dict[str, Any]) -> dict[str, Any]:
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    return {"name": name, "type": "STATIC", "connect_timeout": "5s", "load_assignment": {"cluster_name": name, "endpoints": endpoints}}


@dataclass
class Envoy:
    """admin: "127.0.0.1:9901", "[::1]:9901", or "admin.sock" in its folder."""

    admin: str = "127.0.0.1:9901"
    hcm: dict[str, Any] = field(default_factory=dict)  # further fields of the HTTP connection managers
    allow_paths: Sequence[str] = ()  # of the admin interface; none: all
    options: Sequence[str] = ()
    folder: Path = Path()
    process: subprocess.Popen[bytes] | None = None

    @property
    def admin_address(self) -> str:
        return self.admin if ":" in self.admin else str(self.folder / self.admin)

    @property
    def socket(self) -> str:
        """Of its listener without a port."""
        return str(self.folder / "http.sock")

    @property
    def addresses(self) -> dict[str, Address]:
        """Of what serves HTTP to clients."""
        return {"IPv4": ("127.0.0.1", HTTP), "IPv6": ("::1", HTTP6), "Unix": self.socket, "stat_prefix": ("127.0.0.1", NAMED)}

    @contextlib.contextmanager
    def running(self, log: Path) -> Iterator[Envoy]:
        binary = programs.envoy()
        with tempfile.TemporaryDirectory(prefix="certroll-") as folder, log.open("ab") as out:  # paths of sockets are short
            self.folder = Path(folder)
            config = self.folder / "envoy.json"
            config.write_text(json.dumps(self._bootstrap()))
            words = [binary, "-c", config, "--concurrency", "2", "--disable-hot-restart", "--log-level", "warn", *self.options]
            with subprocess.Popen(words, stdout=out, stderr=out) as self.process:
                try:
                    wait_for("Envoy is ready", self.ready)
                    yield self
                finally:
                    self.process.kill()

    def ready(self) -> bool:
        assert self.process and self.process.poll() is None, "Envoy has ended"
        try:
            return self.ask("/ready") == (200, "LIVE\n")
        except OSError:
            return False

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        """Its admin interface, by another program than ours."""
        words = ["curl", "-sS", "-g", "--max-time", "10", "-X", method, "-w", "\n%{http_code}"]
        if ":" in self.admin:
            words.append(f"http://{self.admin}{path}")
        else:
            words += ["--unix-socket", self.admin_address, f"http://admin{path}"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr)
        body, _, status = done.stdout.rpartition("\n")
        return int(status), body

    def _bootstrap(self) -> dict[str, Any]:
        host, _, port = self.admin.rpartition(":")
        admin = _at(host.strip("[]"), int(port)) if host else {"pipe": {"path": self.admin_address}}
        allowed = {"allow_paths": [{"prefix": path} for path in self.allow_paths]} if self.allow_paths else {}
        edge, more = _http("http", **self.hcm), [{"address": _at("127.0.0.1", NAMED + 100)}]
        sni = [_filter("sni", "listener.tls_inspector.v3.TlsInspector")]
        inner = {"envoy_internal_address": {"server_listener_name": INNER}}
        return {
            "admin": {"address": admin, **allowed},
            "bootstrap_extensions": [
                {"name": "internal", "typed_config": {"@type": f"{_TYPES}.bootstrap.internal_listener.v3.InternalListener"}}
            ],
            "static_resources": {
                "listeners": [
                    _listener("edge", _at("127.0.0.1", HTTP), edge),
                    _listener("edge-6", _at("::1", HTTP6), edge),
                    _listener("edge-unix", {"pipe": {"path": self.socket}}, edge),
                    _listener("edge-named", _at("127.0.0.1", NAMED), edge, stat_prefix="my.edge", additional_addresses=more),
                    _listener("plain", _at("127.0.0.1", TCP), _tcp("tcp")),
                    _listener("tls", _at("127.0.0.1", TLS), _tcp("tcp"), listener_filters=sni),
                    _listener("via", _at("127.0.0.1", VIA), _http(INNER)),
                    {"name": INNER, "internal_listener": {}, "filter_chains": [{"filters": [_tcp("http")]}]},
                    _listener("stats-health", _at("127.0.0.1", STATS), _http("http")),
                ],
                "clusters": [
                    _cluster("http", _at("127.0.0.1", UPSTREAM_HTTP)),
                    _cluster("tcp", _at("127.0.0.1", UPSTREAM_TCP)),
                    _cluster(INNER, inner),
                ],
            },
        }
