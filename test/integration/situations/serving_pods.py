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
    OLD_TRUST = "reads its leaf at its start, and its CAs from the copy that the first of its pods has made"
    OTHER = "serves a certificate of its own"
    PLAIN = "speaks no TLS"
    NOTHING = "does not listen"


# Certificate, key, and the CAs beside them.
Loaded = tuple[bytes, bytes, bytes]


@dataclass
class _Pod:
    name: str
    app: str
    secret: str
    address: str
    serves: Serves
    context: ssl.SSLContext | None = None
    loaded: Loaded | None = None
    server: asyncio.Server | None = None


@dataclass
class _Behaviour:
    serves: Serves = Serves.AT_START
    becomes_ready: bool = True  # of pods that come from now on
    verifies_clients: bool = False
    copy: Loaded | None = field(default=None, repr=False)


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
        """Pods of this app, also those that run. What they copy is what one of them has read by now, whichever is looked at first."""
        with self._lock:
            behaviour = self._behaviour(app)
            behaviour.serves = serves
            behaviour.copy = behaviour.copy or next((pod.loaded for pod in self._pods.values() if pod.app == app and pod.loaded), None)

    def hold_back(self, app: str) -> None:
        """Pods of this app that come from now on do not become ready."""
        with self._lock:
            self._behaviour(app).becomes_ready = False

    def let_go(self, app: str) -> None:
        """Those that were held back become ready."""
        with self._lock:
            self._behaviour(app).becomes_ready = True

    def verify_clients(self, app: str) -> None:
        """Pods of this app that come from now on take no client certificate but of their Secret's CAs; none will do as well."""
        with self._lock:
            self._behaviour(app).verifies_clients = True

    # --- the truth

    def takes(self, app: str, client: pki.Material) -> list[bool]:
        """Whether each pod of the app that uses a Secret takes this client certificate in a handshake now."""
        return [_takes(address, client) for address in self._running(app)]

    def leaves(self, app: str) -> list[str | None]:
        """What each pod of the app that uses a Secret shows in a handshake now, as SHA-256; None where there is no handshake."""
        return [_shown(address) for address in self._running(app)]

    def _running(self, app: str) -> list[str]:
        pods = [pod for pod in self._api.list("pods", self._namespace, f"app={app}") if _secret_of(pod)]
        running = [pod for pod in pods if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]
        return [pod["status"]["podIP"] for pod in running if pod["status"].get("podIP")]

    # --- its life

    def tick(self) -> bool:
        with contextlib.suppress(APIError), self._lock:
            pods = {pod["metadata"]["uid"]: pod for pod in self._api.list("pods", self._namespace) if "deletionTimestamp" not in pod["metadata"]}
            for uid in self._pods.keys() - pods.keys():
                self._close(self._pods.pop(uid))
            secrets: dict[str, Loaded | None] = {}
            for uid, pod in pods.items():
                self._follow(uid, pod, secrets)
        return True

    def _follow(self, uid: str, pod: Object, secrets: dict[str, Loaded | None]) -> None:
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

    def _start(self, pod: _Pod, behaviour: _Behaviour, secrets: dict[str, Loaded | None]) -> bool:
        pair = self._read(pod.secret, secrets)
        if pod.serves is Serves.COPY:
            pair = behaviour.copy = behaviour.copy or pod.loaded or pair
        if pod.serves is Serves.OLD_TRUST:
            behaviour.copy = behaviour.copy or pod.loaded or pair
            pair = pod.loaded or (pair and behaviour.copy and (*pair[:2], behaviour.copy[2]))
        if pod.serves is Serves.OTHER:
            made = self._authority.issue(pod.app)
            pair = (made.certificate, made.key, made.trust)
        if pod.serves is Serves.NOTHING:
            return True
        if pod.serves is not Serves.PLAIN and pod.secret:
            pair = pod.loaded or pair if pod.serves is Serves.AT_START else pair
            if pair is None:
                return False
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            try:
                _load(context, pair)
                if behaviour.verifies_clients:
                    _verify_clients(context, pair)
            except ssl.SSLError:
                return False
            pod.context, pod.loaded = context, pair
        elif pod.serves is Serves.PLAIN:
            pod.context = None
        pod.server = self._await(asyncio.start_server(_hang_up, pod.address, PORT, ssl=pod.context))
        return True

    def _read(self, secret: str, secrets: dict[str, Loaded | None]) -> Loaded | None:
        """Once a round."""
        if secret not in secrets:
            found = self._api.find("secrets", self._namespace, secret) if secret else None
            data: Mapping[str, str] = (found or {}).get("data") or {}
            certificate, key, trust = (base64.b64decode(data.get(each, "")) for each in ("tls.crt", "tls.key", "ca.crt"))
            secrets[secret] = (certificate, key, trust) if certificate and key else None
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


def _load(context: ssl.SSLContext, pair: Loaded) -> None:
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # mode 0600; ssl reads keys only from files
        file.write(b"\n".join(pair[:2]))
        file.flush()
        context.load_cert_chain(file.name)


def _verify_clients(context: ssl.SSLContext, pair: Loaded) -> None:
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=pair[2].decode())


def _takes(address: str, client: pki.Material) -> bool:
    """With TLS 1.2 the server's verdict is part of the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    _load(context, (client.certificate, client.key, b""))
    try:
        with socket.create_connection((address, PORT), _TIMEOUT) as plain, context.wrap_socket(plain):
            return True
    except OSError:
        return False


def _shown(address: str) -> str | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((address, PORT), _TIMEOUT) as plain, context.wrap_socket(plain) as connection:
            return hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()
    except OSError:
        return None
