"""A Kubernetes API client of a few lines: JSON over one connection, as the user of a kubeconfig.

The demo and the tests look at the cluster several times a second; starting kubectl for each look would take more of a
small machine than what is looked at.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from certroll_dev.ui import DevError

Object = dict[str, Any]

_GROUPS = {
    "nodes": "/api/v1", "pods": "/api/v1", "secrets": "/api/v1", "services": "/api/v1", "events": "/api/v1", "configmaps": "/api/v1",
    "deployments": "/apis/apps/v1", "replicasets": "/apis/apps/v1", "statefulsets": "/apis/apps/v1", "daemonsets": "/apis/apps/v1",
    "certrotationpolicies": "/apis/certroll.dev/v1alpha1", "trustdomains": "/apis/certroll.dev/v1alpha1",
    "clustertrustdomains": "/apis/certroll.dev/v1alpha1", "rollouts": "/apis/argoproj.io/v1alpha1",
    "nodecertificatereports": "/apis/certroll.dev/v1alpha1", "controlplanepolicies": "/apis/certroll.dev/v1alpha1",
    "namespaces": "/api/v1", "leases": "/apis/coordination.k8s.io/v1",
    "applications": "/apis/argoproj.io/v1alpha1", "kustomizations": "/apis/kustomize.toolkit.fluxcd.io/v1",
    "gitrepositories": "/apis/source.toolkit.fluxcd.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1", "ingresses": "/apis/networking.k8s.io/v1",
}
_FIELD_MANAGER = "certroll-demo"
_TIMEOUT = 10.0  # seconds
_IDLE = 30.0  # seconds; the API server closes a connection that is idle for 90, and a write is not sent twice


class APIError(DevError):
    """The API server refused; `code` is the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class API:
    """One API server. Usable from several threads; each has a connection of its own. `timeout`: seconds for each wait."""

    def __init__(self, server: str, context: ssl.SSLContext, headers: Mapping[str, str], timeout: float = _TIMEOUT) -> None:
        address = urllib.parse.urlsplit(server)
        self._host, self._port = address.hostname or "", address.port or 443
        self._prefix = address.path.rstrip("/")
        self._context = context
        self._headers = dict(headers)
        self._timeout = timeout
        self._local = threading.local()

    @staticmethod
    def from_kubeconfig(config: Mapping[str, Any], timeout: float = _TIMEOUT) -> API:
        """From what `kubectl config view --raw --minify -o json` prints."""
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        context = ssl.create_default_context(cadata=_text(cluster, "certificate-authority"))
        certificate, key = _text(user, "client-certificate"), _text(user, "client-key")
        if certificate and key:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # mode 0600; ssl reads keys only from files
                file.write(certificate + "\n" + key)
                file.flush()
                context.load_cert_chain(file.name)
        token = user.get("token")
        return API(cluster["server"], context, {"Authorization": f"Bearer {token}"} if token else {}, timeout)

    def get(self, kind: str, namespace: str, name: str) -> Object:
        return self.request("GET", path(kind, namespace, name))

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """Like get, but None where there is none."""
        try:
            return self.get(kind, namespace, name)
        except APIError as error:
            if error.code == 404:
                return None
            raise

    def list(self, kind: str, namespace: str, labels: str = "") -> list[Object]:
        query = "?" + urllib.parse.urlencode({"labelSelector": labels}) if labels else ""
        items: list[Object] = self.request("GET", path(kind, namespace) + query)["items"]
        return items

    def apply(self, kind: str, obj: Object) -> Object:
        """Server-side apply: made or changed, whichever it takes."""
        meta = obj["metadata"]
        query = urllib.parse.urlencode({"fieldManager": _FIELD_MANAGER, "force": "true"})
        target = f"{path(kind, meta.get('namespace', ''), meta['name'])}?{query}"
        return self.request("PATCH", target, obj, "application/apply-patch+yaml")

    def merge(self, kind: str, namespace: str, name: str, patch: Object, subresource: str = "") -> Object:
        target = path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", target, patch, "application/merge-patch+json")

    def delete(self, kind: str, namespace: str, name: str, *, foreground: bool = False) -> Object:
        """foreground: it stays until all that it owns is gone."""
        return self.request("DELETE", path(kind, namespace, name) + ("?propagationPolicy=Foreground" if foreground else ""))

    def watch(self, kind: str, namespace: str, version: str, seconds: int) -> Iterator[tuple[str, Object]]:
        """What changes after that resourceVersion, as type and object, over a connection of its own, for so long at most."""
        query = urllib.parse.urlencode({"watch": "1", "resourceVersion": version, "timeoutSeconds": seconds, "allowWatchBookmarks": "true"})
        target = f"{self._prefix}{path(kind, namespace)}?{query}"
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=seconds + 10, context=self._context)
        try:
            connection.request("GET", target, headers=self._headers)
            response = connection.getresponse()
            if response.status != 200:
                raise APIError(response.status, f"GET {target}: {_message(response.read(), response.status)}")
            for line in response:
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()

    def request(self, method: str, target: str, body: Object | None = None, content_type: str = "application/json") -> Object:
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": content_type} if data else {})
        status, answer = self._exchange(method, self._prefix + target, data, headers)
        if status >= 300:
            raise APIError(status, f"{method} {target}: {_message(answer, status)}")
        parsed: Object = json.loads(answer)
        return parsed

    def _exchange(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        """A kept connection may have been closed by the server meanwhile; a read is then tried once more."""
        for last in (False, True):
            connection = self._kept_connection()
            kept = connection is not None
            if connection is None:
                connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)
                self._local.connection = connection
            self._local.used = time.monotonic()
            try:
                connection.request(method, target, data, headers)
                response = connection.getresponse()
                return response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self._local.connection = None
                if last or not kept or method != "GET":
                    raise APIError(0, f"{method} {target}: the API server does not answer: {error}") from error
        raise AssertionError("unreachable")

    def _kept_connection(self) -> http.client.HTTPSConnection | None:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection and time.monotonic() - self._local.used > _IDLE:
            connection.close()
            return None
        return connection


def path(kind: str, namespace: str, name: str = "") -> str:
    """An empty namespace: of a kind that is in none."""
    inside = f"/namespaces/{urllib.parse.quote(namespace)}" if namespace else ""
    place = f"{_GROUPS[kind]}{inside}/{kind}"
    return f"{place}/{urllib.parse.quote(name)}" if name else place


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    """A PEM that a kubeconfig holds inline (…-data) or by path."""
    if f"{name}-data" in fields:
        return base64.b64decode(fields[f"{name}-data"]).decode()
    return Path(fields[name]).read_text() if name in fields else None


def _message(answer: bytes, status: int) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
