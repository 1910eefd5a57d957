"""Pods that serve TLS for real: each has an address of its own, and shows what its program would have read of its Secret.

What a kubelet would report is written into their status, as in paper_pods.py; beside that, each pod has a server.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import itertools
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from control_plane import ROOT, ControlPlane
from paper_pods import ready_status

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API, APIError  # noqa: E402
from ticker import Ticker  # noqa: E402

Object = dict[str, Any]
PORT = 8443
_NETWORK = "10.98.0.1/16"  # on loopback, so that each of its addresses is here, and none is one of 127/8, where no pod is
_PAUSE = 0.2
_TIMEOUT = 5.0


class Serves(Enum):
    """What the program in a pod does with its Secret."""

    AT_START = "reads it at its start"
    FOLLOWS = "reads it whenever it changes"
    COPY = "keeps the copy that the first of its pods has made"
    OTHER = "serves a certificate of its own"
    PLAIN = "speaks no TLS"
    NOTHING = "does not listen"


@dataclass
class _Pod:
    name: str
    app: str
    secret: str
    address: str
    serves: Serves
    context: ssl.SSLContext | None = None
    loaded: tuple[bytes, bytes] | None = None  # certificate and key
    server: asyncio.Server | None = None


@dataclass
class _Behaviour:
    serves: Serves = Serves.AT_START
    becomes_ready: bool = True  # of pods that come from now on
    copy: tuple[bytes, bytes] | None = field(default=None, repr=False)


class ServingPods(Ticker):
    """Of all pods of a namespace that mount a Secret. Use it as a context, within the network of the API server."""

    def __init__(self, plane: ControlPlane, api: API, namespace: str, authority: pki.Authority) -> None:
        super().__init__("serving-pods", _PAUSE)
        plane.run("ip", "address", "replace", _NETWORK, "dev", "lo")
        self._api, self._namespace, self._authority = api, namespace, authority
        self._addresses = (f"10.98.{number // 250 + 1}.{number % 250 + 1}" for number in itertools.count())
        self._pods: dict[str, _Pod] = {}
        self._behaviours: dict[str, _Behaviour] = {}
        self._loop = asyncio.new_event_loop()
        self._serving = threading.Thread(target=self._loop.run_forever, name="pods' servers", daemon=True)
        self._lock = threading.Lock()

    def __enter__(self) -> ServingPods:
        self._serving.start()
        super().__enter__()
        return self

    def __exit__(self, *what: object) -> None:
        super().__exit__(*what)
        for pod in self._pods.values():
            self._close(pod)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._serving.join()

    # --- what a situation says

    def serve(self, app: str, serves: Serves) -> None:
        """Pods of this app, also those that run."""
        with self._lock:
            self._behaviour(app).serves = serves

    def hold_back(self, app: str) -> None:
        """Pods of this app that come from now on do not become ready."""
        with self._lock:
            self._behaviour(app).becomes_ready = False

    # --- the truth

    def leaves(self, app: str) -> list[str | None]:
        """What each pod of the app that uses a Secret shows in a handshake now, as SHA-256; None where there is no handshake."""
        pods = [pod for pod in self._api.list("pods", self._namespace, f"app={app}") if _secret_of(pod)]
        running = [pod for pod in pods if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]
        return [_shown(pod["status"]["podIP"]) for pod in running if pod["status"].get("podIP")]

    # --- its life

    def tick(self) -> bool:
        with contextlib.suppress(APIError), self._lock:
            pods = {pod["metadata"]["uid"]: pod for pod in self._api.list("pods", self._namespace) if "deletionTimestamp" not in pod["metadata"]}
            for uid in self._pods.keys() - pods.keys():
                self._close(self._pods.pop(uid))
            secrets: dict[str, tuple[bytes, bytes] | None] = {}
            for uid, pod in pods.items():
                self._follow(uid, pod, secrets)
        return True

    def _follow(self, uid: str, pod: Object, secrets: dict[str, tuple[bytes, bytes] | None]) -> None:
        app = pod["metadata"].get("labels", {}).get("app", pod["metadata"]["name"])
        behaviour = self._behaviour(app)
        known = self._pods.get(uid)
        if known is None:
            if pod.get("status", {}).get("phase") != "Pending" or not behaviour.becomes_ready:
                return
            known = _Pod(pod["metadata"]["name"], app, _secret_of(pod), next(self._addresses), behaviour.serves)
            if not self._start(known, behaviour, secrets):
                return  # as a container that ends at once: the pod does not become ready
            self._pods[uid] = known
            with contextlib.suppress(APIError):  # it has gone meanwhile
                self._api.merge("pods", self._namespace, known.name, {"status": ready_status(pod, known.address)}, subresource="status")
        elif known.serves is not behaviour.serves:
            self._close(known)
            known.serves = behaviour.serves
            self._start(known, behaviour, secrets)
        elif known.serves is Serves.FOLLOWS and (pair := self._read(known.secret, secrets)) and pair != known.loaded and known.context:
            with contextlib.suppress(ssl.SSLError):  # it keeps what it has
                _load(known.context, pair)
                known.loaded = pair

    def _start(self, pod: _Pod, behaviour: _Behaviour, secrets: dict[str, tuple[bytes, bytes] | None]) -> bool:
        pair = self._read(pod.secret, secrets)
        if pod.serves is Serves.COPY:
            pair = behaviour.copy = behaviour.copy or pod.loaded or pair
        if pod.serves is Serves.OTHER:
            made = self._authority.issue(pod.app)
            pair = (made.certificate, made.key)
        if pod.serves is Serves.NOTHING:
            return True
        if pod.serves is not Serves.PLAIN and pod.secret:
            pair = pod.loaded or pair if pod.serves is Serves.AT_START else pair
            if pair is None:
                return False
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            try:
                _load(context, pair)
            except ssl.SSLError:
                return False
            pod.context, pod.loaded = context, pair
        elif pod.serves is Serves.PLAIN:
            pod.context = None
        pod.server = self._await(asyncio.start_server(_hang_up, pod.address, PORT, ssl=pod.context))
        return True

    def _read(self, secret: str, secrets: dict[str, tuple[bytes, bytes] | None]) -> tuple[bytes, bytes] | None:
        """Once a round."""
        if secret not in secrets:
            found = self._api.find("secrets", self._namespace, secret) if secret else None
            data: Mapping[str, str] = (found or {}).get("data") or {}
            pair = tuple(base64.b64decode(data.get(key, "")) for key in ("tls.crt", "tls.key"))
            secrets[secret] = (pair[0], pair[1]) if all(pair) else None
        return secrets[secret]

    def _behaviour(self, app: str) -> _Behaviour:
        return self._behaviours.setdefault(app, _Behaviour())

    def _close(self, pod: _Pod) -> None:
        if pod.server:
            self._loop.call_soon_threadsafe(pod.server.close)
            pod.server = None

    def _await(self, what: Coroutine[Any, Any, asyncio.Server]) -> asyncio.Server:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(_TIMEOUT)


def _secret_of(pod: Object) -> str:
    """Which it mounts; empty: none."""
    mounted = [each["secret"]["secretName"] for each in pod["spec"].get("volumes", []) if "secret" in each]
    return mounted[0] if mounted else ""


async def _hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def _load(context: ssl.SSLContext, pair: tuple[bytes, bytes]) -> None:
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # mode 0600; ssl reads keys only from files
        file.write(b"\n".join(pair))
        file.flush()
        context.load_cert_chain(file.name)


def _shown(address: str) -> str | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((address, PORT), _TIMEOUT) as plain, context.wrap_socket(plain) as connection:
            return hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()
    except OSError:
        return None
