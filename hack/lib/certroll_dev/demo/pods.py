"""Pods as they are, not as the operator says they are: who they are, and which certificate they serve."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
from dataclasses import dataclass

from certroll_dev.demo.api import API, Object

_TIMEOUT = 10.0


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    ip: str
    restarts: int  # of all its containers
    ready: bool
    leaving: bool  # being deleted

    @staticmethod
    def of(obj: Object) -> Pod:
        status = obj.get("status", {})
        conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
        return Pod(
            name=obj["metadata"]["name"],
            uid=obj["metadata"]["uid"],
            ip=status.get("podIP", ""),
            restarts=sum(c["restartCount"] for c in status.get("containerStatuses", [])),
            ready=conditions.get("Ready") == "True",
            leaving="deletionTimestamp" in obj["metadata"],
        )


def of_app(api: API, namespace: str, app: str) -> list[Pod]:
    """The pods of a workload that are to stay, by name."""
    pods = [Pod.of(obj) for obj in api.list("pods", namespace, f"app={app}")]
    return sorted((pod for pod in pods if not pod.leaving), key=lambda pod: pod.name)


def identity(pods: list[Pod]) -> set[tuple[str, int]]:
    """Changes when a pod was replaced or one of its containers was started again."""
    return {(pod.uid, pod.restarts) for pod in pods}


def served_leaf(ip: str, port: int, server_name: str) -> str | None:
    """SHA-256 of the certificate that is served there, in hexadecimal; None when nobody answers.

    The certificate comes before the server asks for ours, so it is seen even where a client certificate is required.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # what is served is to be seen, whoever issued it
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((ip, port), _TIMEOUT) as plain, context.wrap_socket(plain, server_hostname=server_name) as tls:
            der = tls.getpeercert(binary_form=True)
            return hashlib.sha256(der).hexdigest() if der else None
    except OSError:  # ssl.SSLError is one
        return None


def envoy_trusts(ip: str, admin_port: int = 19000) -> set[str] | None:
    """Serial numbers of the CAs that an Envoy holds, from its admin page; None without an answer.

    In lower-case hexadecimal without leading zeros.
    """
    connection = http.client.HTTPConnection(ip, admin_port, timeout=_TIMEOUT)
    try:
        connection.request("GET", "/certs")
        page = json.loads(connection.getresponse().read())
        return {ca["serial_number"].lower().lstrip("0") for entry in page["certificates"] for ca in entry.get("ca_cert", [])}
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
