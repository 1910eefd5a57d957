"""The examples of manifests/shutdown-manager as they are: real HAProxy and nginx, told to end in the middle of requests."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from certroll_dev import paths
from certroll_dev.demo import component_images, pki
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.component_images import Image
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import is_rolled_out
from certroll_dev.operator_image import Image as OwnImage
from certroll_dev.pod_logs import PodLogs
from programs import known

_NAMESPACE = "shutdown-examples"
_EXAMPLES = paths.REPOSITORY / "manifests" / "shutdown-manager" / "examples"
_PORT = 8443
_CLIENTS = 10
_HOLD = 10.0  # seconds; the examples begin to drain after 5
_UP, _GOES = 120.0, 60.0  # seconds; their grace period is 300


@pytest.fixture(scope="module")
def running(
    cluster: LocalCluster, api: API, shutdown_manager_image: OwnImage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    debian = known.debian()
    images = [component_images.haproxy(debian), component_images.nginx(debian)]
    images.append(Image(shutdown_manager_image.reference, shutdown_manager_image.archive))
    for image in images:
        cluster.load_image(image.archive)
    cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found")  # of a run before, if any
    cluster.kubectl("create", "namespace", _NAMESPACE)
    try:
        for name in ("haproxy", "nginx"):
            api.apply("secrets", _secret(name))
            folder = _overlay(tmp_path_factory.mktemp(name), name, images)
            cluster.kubectl("apply", "--server-side", "-f", "-", stdin=cluster.kubectl("kustomize", str(folder)))
        for name in ("haproxy", "nginx"):
            wait_for(
                name, lambda name=name: is_rolled_out(api.get("deployments", _NAMESPACE, name)), deadline=_UP,
                missing=lambda: cluster.kubectl("-n", _NAMESPACE, "describe", "pods")[-3000:],
            )  # fmt: skip
        yield
    finally:
        cluster.kubectl("delete", "namespace", _NAMESPACE, "--wait=false")


def _secret(name: str) -> Object:
    material = pki.new_authority(1).issue(name, namespace=_NAMESPACE)
    secret: Object = material.secret(f"{name}-tls", _NAMESPACE)
    secret["data"]["tls.pem"] = base64.b64encode(material.certificate + material.key).decode()
    return secret


def _overlay(folder: Path, name: str, images: Sequence[Image]) -> Path:
    """The example with this machine's images; kustomize takes no absolute paths."""
    content = {
        "namespace": _NAMESPACE,
        "resources": [os.path.relpath(_EXAMPLES / name, folder.resolve())],
        "images": [dict(zip(("name", "newTag"), image.reference.rsplit(":", 1), strict=True)) for image in images],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(content))
    return folder


@contextmanager
def _in_the_middle_of_a_request(ip: str) -> Iterator[list[ssl.SSLSocket]]:
    """Each has said half of one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(_CLIENTS):
            plain = socket.create_connection((ip, _PORT), timeout=60)
            clients.append(stack.enter_context(context.wrap_socket(plain)))
            clients[-1].sendall(b"GET / HTTP/1.1\r\nHost: example\r\n")
        yield clients


def _answer(client: ssl.SSLSocket) -> str:
    """To the request, once it is whole."""
    try:
        client.sendall(b"\r\n")
        return client.recv(4096).decode().partition("\r\n")[0] or "closed"
    except OSError as error:
        return str(error)


@pytest.mark.parametrize(("name", "event"), [("haproxy", False), ("nginx", True)])
def test_who_asks_is_answered_before_it_ends(
    cluster: LocalCluster, api: API, running: None, name: str, event: bool, report: list[str]
) -> None:
    """nginx is its container's first process: it takes the hook with it when it has drained, which the kubelet calls a failure."""
    logs = PodLogs(cluster.layout, _NAMESPACE, name)
    pod = api.list("pods", _NAMESPACE, f"app={name}")[0]
    uid, pod_name = pod["metadata"]["uid"], pod["metadata"]["name"]

    def gone() -> bool:
        logs.keep()
        found = api.find("pods", _NAMESPACE, pod_name)
        return found is None or found["metadata"]["uid"] != uid

    with _in_the_middle_of_a_request(pod["status"]["podIP"]) as clients:
        cluster.kubectl("-n", _NAMESPACE, "delete", "pod", pod_name, "--wait=false")
        began = time.monotonic()
        wait_for("a stretch of the drain", lambda: gone() or time.monotonic() - began >= _HOLD, deadline=_HOLD + 30)
        answers = [_answer(client) for client in clients]
    ended = time.monotonic()
    wait_for("the pod to end", gone, deadline=_GOES)
    log = logs.text(uid)
    report.append(f"{answers.count('HTTP/1.1 200 OK')} of {_CLIENTS} answered; the pod gone {time.monotonic() - ended:.1f} s later; {log.splitlines()[-1]}")
    assert answers == ["HTTP/1.1 200 OK"] * _CLIENTS
    assert '"the proxy is draining"' in log and ('"Drained"' in log) != event, log

    def failed() -> bool:
        return any(each["involvedObject"].get("uid") == uid and each["reason"] == "FailedPreStopHook" for each in api.list("events", _NAMESPACE))

    if event:
        wait_for("the kubelet's Event", failed, deadline=30)
    else:
        assert not failed()
