"""Envoy as a client of the game of bundles: BoringSSL, as Envoy uses it, at any day of the game.

One Envoy for each day, with a cluster for each question: its bundle is what is trusted, and its endpoint serves the chain.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundle_cases import DAY_S, FIRST_DAY_S, Case
from bundle_clients import Played, Question
from certroll_dev import commands
from certroll_dev.demo import programs
from control_plane import ROOT, wait_until

_REFUSED = b"CERTIFICATE_VERIFY_FAILED"
_READY_S = 120.0

Object = dict[str, Any]


class Chains:
    """A TLS server on a socket of its own, which serves the chain that the client names, by SNI, and answers with 200."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "chains.sock"
        self._folder = folder
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._socket = socket.socket(socket.AF_UNIX)

    def add(self, name: str, chain: str, key: str) -> None:
        file = self._folder / f"{name}.pem"
        file.write_text(key + chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        self._contexts[name] = context

    def __enter__(self) -> Chains:
        self._socket.bind(str(self.path))
        self._socket.listen(128)
        self._thread = threading.Thread(target=self._serve, name="chains", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        self.path.unlink()

    def _serve(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self._choose
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                connection.settimeout(30)
                self._answer(context, connection)

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        if name not in self._contexts:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        connection.context = self._contexts[name]
        return None

    @staticmethod
    def _answer(context: ssl.SSLContext, connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as stream:
            text = b""
            while b"\r\n\r\n" not in text:
                more = stream.recv(4096)
                if not more:
                    return
                text += more
            stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


class Envoy:
    """That asks what it is given, on one day. Use it as a context."""

    def __init__(self, day: int, trusted: Mapping[str, str], chains: Chains, other_time: Path, folder: Path) -> None:
        """By the names of chains: the bundle that is trusted, PEM. `other_time`: the library that gives it its day."""
        self._folder, self._listener = folder, folder / "envoy.sock"
        self._day, self._other_time = day, other_time
        clusters = [_cluster(name, bundle, chains.path) for name, bundle in trusted.items()]
        self._config = {"static_resources": {"listeners": [_listener(self._listener)], "clusters": clusters}}

    def __enter__(self) -> Envoy:
        config = self._folder / "envoy.json"
        config.write_text(json.dumps(self._config))
        today = FIRST_DAY_S + self._day * DAY_S
        other_time = {"LD_PRELOAD": str(self._other_time), "OTHER_TIME_S": str(today - int(time.time()))}
        self._log = self._folder / "envoy.log"
        words = [programs.envoy(), "--config-path", config, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(words, env=os.environ | other_time, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until("Envoy to be ready", self._is_ready, _READY_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        commands.end(self._process, 30)
        self._listener.unlink(missing_ok=True)

    def verifies(self, name: str) -> bool:
        with contextlib.closing(_Unix(self._listener)) as connection:
            connection.request("GET", "/", headers={"x-cluster": name})
            answer = connection.getresponse()
            body = answer.read()
        assert answer.status == 200 or _REFUSED in body, f"{answer.status}: {body!r}"
        return answer.status == 200

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, f"Envoy has ended:\n{self._log.read_text()[-3000:]}"
        with socket.socket(socket.AF_UNIX) as attempt:
            return attempt.connect_ex(str(self._listener)) == 0


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("envoy", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True)
class Asked:
    case: Case
    played: Played
    question: Question  # its client does not matter

    @property
    def bundle(self) -> str:
        return self._pem(self.question.roots)

    @property
    def chain(self) -> str:
        return self._pem(self.question.chain.split(","))

    @property
    def key(self) -> int:
        """The leaf's, by its number."""
        return self.case.certs[self.question.chain.split(",")[0]].own.key

    def _pem(self, names: Iterable[str]) -> str:
        return "".join(self.played.pems[name] for name in names)


def answers(asked: Sequence[Asked], key_of: Callable[[int], str], folder: Path) -> list[bool]:
    """Whether Envoy verifies the chains of the questions, in their order."""
    other_time = folder / "other_time.so"
    commands.run(["cc", "-shared", "-fPIC", "-O2", "-o", other_time, ROOT / "test" / "support" / "other_time.c"])
    found = {i: False for i, each in enumerate(asked) if not each.question.roots}
    for day in sorted({each.question.day for each in asked if each.question.roots}):
        of_day = {f"q{i}": each for i, each in enumerate(asked) if each.question.day == day and each.question.roots}
        own = folder / str(day)
        own.mkdir()
        with Chains(own) as chains:
            for name, each in of_day.items():
                chains.add(name, each.chain, key_of(each.key))
            with Envoy(day, {name: each.bundle for name, each in of_day.items()}, chains, other_time, own) as envoy:
                found |= {int(name[1:]): envoy.verifies(name) for name in of_day}
    return [found[i] for i in range(len(asked))]


def _cluster(name: str, bundle: str, endpoint: Path) -> Object:
    trusted = {"trusted_ca": {"inline_string": bundle}}
    tls = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": name, "common_tls_context": {"validation_context": trusted},
    }  # fmt: skip
    address = {"pipe": {"path": str(endpoint)}}
    return {
        "name": name, "connect_timeout": "30s", "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]},
        "transport_socket": {"name": "tls", "typed_config": tls},
    }  # fmt: skip


def _listener(path: Path) -> Object:
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "questions",
        "local_reply_config": {"body_format": {"text_format_source": {"inline_string": "%UPSTREAM_TRANSPORT_FAILURE_REASON%"}}},
        "route_config": {"virtual_hosts": [{
            "name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster_header": "x-cluster"}}],
        }]},
        "http_filters": [{
            "name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
        }],
    }  # fmt: skip
    filters = [{"name": "http", "typed_config": manager}]
    return {"name": "questions", "address": {"pipe": {"path": str(path)}}, "filter_chains": [{"filters": filters}]}
