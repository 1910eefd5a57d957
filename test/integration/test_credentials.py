"""How the client gets its credentials and its way to the API server: plugins, proxies, the pod's own account."""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane, wait_until
from kube_driver import Driver, Running

V1 = "client.authentication.k8s.io/v1"
REVIEWS = "authentication.k8s.io/v1/selfsubjectreviews"


def admin_config(plane: ControlPlane) -> dict[str, Any]:
    return json.loads(plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)


def with_user(plane: ControlPlane, folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig of the cluster with this user."""
    admin = admin_config(plane)
    admin["clusters"][0]["cluster"] |= cluster
    name = admin["clusters"][0]["name"]
    document = {
        **admin,
        "contexts": [{"name": "c", "context": {"cluster": name, "user": "u"}}],
        "current-context": "c",
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


def plugin(folder: Path, script: str, **fields: Any) -> dict[str, Any]:
    """A user whose plugin is this shell script beside the kubeconfig."""
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\ncd {shlex.quote(str(folder))}\n{script}\n")
    path.chmod(0o755)
    return {"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never", **fields}}


def credential(**status: str) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def printing(plane: ControlPlane, namespace: str, more: str = "") -> str:
    """A script that asks for a token of the account `watcher` as kubectl does, and prints it."""
    kubectl = shlex.quote(str(plane.bin / "kubectl"))
    config = shlex.quote(str(plane.kubeconfig))
    form = credential(token="%s").replace("}}", more + "}}")
    return (
        f"echo run >> runs\ntoken=$({kubectl} --kubeconfig {config} create token watcher -n {namespace} $BOUND) || exit 1\n"
        f"printf '{form}' \"$token\""
    )


def runs(folder: Path) -> int:
    path = folder / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def whoami(driver: Driver) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return driver("create", REVIEWS, "-", input=review)["status"]["userInfo"]["username"]


def create_account(plane: ControlPlane, namespace: str) -> str:
    """A service account that may look at the Secrets of the namespace; its name as a user."""
    plane.kubectl("create", "serviceaccount", "watcher", "-n", namespace)
    plane.kubectl("create", "role", "watcher", "-n", namespace, "--verb=get,list,watch", "--resource=secrets")
    name = f"{namespace}:watcher"
    plane.kubectl("create", "rolebinding", "watcher", "-n", namespace, "--role=watcher", f"--serviceaccount={name}")
    return f"system:serviceaccount:{name}"


@pytest.fixture
def account(control_plane: ControlPlane, namespace: str) -> str:
    return create_account(control_plane, namespace)


def put_secret(plane: ControlPlane, namespace: str, name: str) -> None:
    plane.kubectl("create", "secret", "generic", name, "-n", namespace, "--from-literal=a=b")


# --- credential plugins ---


def test_a_plugin_s_token_serves_requests_and_watches(
    control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    script = 'printf "%s" "$KUBERNETES_EXEC_INFO" > info\n' + printing(control_plane, namespace)
    user = plugin(tmp_path, script, provideClusterInfo=True, env=[{"name": "BOUND", "value": "--duration=10m"}])
    driver = Driver(control_plane, with_user(control_plane, tmp_path, user))
    assert whoami(driver) == account
    info = json.loads((tmp_path / "info").read_text())
    cluster = admin_config(control_plane)["clusters"][0]["cluster"]
    assert info["apiVersion"] == V1 and info["spec"]["interactive"] is False
    assert info["spec"]["cluster"]["server"] == cluster["server"]
    told = base64.b64decode(info["spec"]["cluster"]["certificate-authority-data"])
    assert told.strip() == base64.b64decode(cluster["certificate-authority-data"]).strip()
    before = runs(tmp_path)
    put_secret(control_plane, namespace, "seen")
    with driver.running("watch", "secrets", namespace, "60", log=tmp_path / "stderr") as watch:
        watch.callback("synced")
        assert f"{namespace}/seen" in watch.keys("object")
    assert runs(tmp_path) == before + 1


def test_kubectl_takes_the_same_kubeconfig(
    control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    """So that what these tests call a kubeconfig is one."""
    user = plugin(tmp_path, printing(control_plane, namespace))
    path = with_user(control_plane, tmp_path, user)
    done = control_plane.kubectl("--kubeconfig", str(path), "auth", "whoami", "-o", "json")
    assert json.loads(done.stdout)["status"]["userInfo"]["username"] == account


def test_a_plugin_s_client_certificate_is_the_connections(control_plane: ControlPlane, tmp_path: Path) -> None:
    user = admin_config(control_plane)["users"][0]["user"]
    (tmp_path / "answer").write_text(
        credential(
            clientCertificateData=base64.b64decode(user["client-certificate-data"]).decode(),
            clientKeyData=base64.b64decode(user["client-key-data"]).decode(),
        )
    )
    path = with_user(control_plane, tmp_path, plugin(tmp_path, "cat answer"))
    admin = whoami(Driver(control_plane))
    assert whoami(Driver(control_plane, path)) == admin
    # Without it nobody is anybody, so it was the certificate.
    (tmp_path / "answer").write_text(credential(token="not-a-token"))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    error = Driver(control_plane, path).error("create", REVIEWS, "-", input=review)
    assert error["kind"] == "Unauthorized", error


def test_a_token_is_renewed_before_it_ends_and_nobody_notices(
    control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    more = ', "expirationTimestamp": "\'"$(date -u -d "+12 seconds" +%Y-%m-%dT%H:%M:%SZ)"\'"'
    user = plugin(tmp_path, printing(control_plane, namespace, more))
    driver = Driver(control_plane, with_user(control_plane, tmp_path, user))
    put_secret(control_plane, namespace, "asked-for-again-and-again")
    log = tmp_path / "log"
    with driver.running("manage", "secrets", namespace, "127.0.0.1:0", log=log) as manager:
        wait_until("a third token", lambda: runs(tmp_path) >= 3, timeout=60)
        seen = len(manager.lines)
        manager.wait_for("a further reconcile", lambda line: "reconciled" in line, after=seen)
    assert not [line for line in log.read_text().splitlines() if '"level":"warn"' in line or '"level":"error"' in line]


FAILING = [
    ("echo checking >&2; echo 'your session has ended: log in' >&2; exit 2", "failed with exit status 2: your session has"),
    ("echo '<html>SECRET</html>'", "what it printed is no JSON"),
    (f"echo '{credential()}'", "status has neither a token nor a client certificate"),
    (f"echo '{credential(token='t').replace('/v1', '/v1beta1')}'", f"the kubeconfig has apiVersion {V1}, but it printed"),
    ("head -c 2000000 /dev/zero", "it printed more than 1048576 bytes"),
]


@pytest.mark.parametrize(("script", "says"), FAILING)
def test_a_plugin_s_trouble_is_told_in_words(
    control_plane: ControlPlane, tmp_path: Path, script: str, says: str
) -> None:
    driver = Driver(control_plane, with_user(control_plane, tmp_path, plugin(tmp_path, script)))
    error = driver.error("version")
    assert error["kind"] == "Unauthorized"
    assert f"GET /version: credential plugin '{tmp_path}/./plugin': {says}" in error["text"]
    assert "SECRET" not in error["text"]


def test_a_missing_plugin_comes_with_its_hint(control_plane: ControlPlane, tmp_path: Path) -> None:
    user = plugin(tmp_path, "", command="certroll-no-such-plugin", installHint="Get it with\n  apt install plugin")
    error = Driver(control_plane, with_user(control_plane, tmp_path, user)).error("version")
    assert error["kind"] == "Unauthorized"
    assert error["text"].endswith("no program 'certroll-no-such-plugin' in the folders of $PATH: Get it with   apt install plugin")


def test_a_plugin_that_fails_at_first_is_tried_again(
    control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    script = "[ -e ready ] || { echo not yet >&2; exit 1; }\n" + printing(control_plane, namespace)
    driver = Driver(control_plane, with_user(control_plane, tmp_path, plugin(tmp_path, script)))
    with driver.running("watch", "secrets", namespace, "60", log=tmp_path / "stderr") as watch:
        trouble = watch.lines[watch.callback("trouble", kind="Unauthorized")]
        assert trouble["text"].endswith("failed with exit status 1: not yet")
        (tmp_path / "ready").touch()
        watch.callback("synced")


@pytest.mark.parametrize("command", [("watch", "60"), ("manage", "127.0.0.1:0")])
def test_a_plugin_that_hangs_holds_no_stop_up_and_is_killed(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, command: tuple[str, str]
) -> None:
    user = plugin(tmp_path, "sleep 600 &\necho $! > pid.new; mv pid.new pid; wait")
    driver = Driver(control_plane, with_user(control_plane, tmp_path, user))
    name, argument = command
    with driver.running(name, "secrets", namespace, argument, log=tmp_path / "log"):
        pid = int(wait_until("the plugin", lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        os.kill(pid, 0)
        start = time.monotonic()
    assert time.monotonic() - start < 8
    wait_until("its end", lambda: not Path(f"/proc/{pid}/exe").exists())


def test_a_refused_write_is_told_as_such(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The API server refuses it before it has read the body, and libcurl may then call the answer cut off."""
    driver = Driver(control_plane, with_user(control_plane, tmp_path, {"token": "not-a-token"}))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    errors = [driver.error("create", REVIEWS, "-", input=review) for _ in range(20)]
    assert {error["kind"] for error in errors} == {"Unauthorized"}, errors


# --- a way around ---

# CONNECT (RFC 9110, 9.3.6) and SOCKS5 (RFC 1928), one thread for each direction; prints what it was asked for.
PROXY = """
import socket, sys, threading

def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    finally:
        b.close()

def http(client):
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        head += client.recv(4096)
    lines = head.decode().split("\\r\\n")
    login = next((line.split()[-1] for line in lines if line.lower().startswith("proxy-authorization:")), "-")
    print("http", lines[0].split()[1], login, flush=True)
    client.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
    return lines[0].split()[1]

def socks(client):
    client.recv(255)
    client.sendall(bytes([5, 0]))
    head = client.recv(4)
    kind = {1: "ipv4", 3: "name", 4: "ipv6"}[head[3]]
    raw = client.recv({1: 4, 4: 16}.get(head[3]) or client.recv(1)[0])
    host = raw.decode() if kind == "name" else socket.inet_ntop(socket.AF_INET if kind == "ipv4" else socket.AF_INET6, raw)
    port = int.from_bytes(client.recv(2), "big")
    print("socks5", f"{host}:{port}", "-", flush=True)
    client.sendall(bytes([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
    return f"{host}:{port}"

def serve(client):
    target = (http if client.recv(1, socket.MSG_PEEK) != bytes([5]) else socks)(client)
    host, port = target.rsplit(":", 1)
    server = socket.create_connection((host.strip("[]"), int(port)))
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    threading.Thread(target=pump, args=(server, client), daemon=True).start()

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[subprocess.Popen]:
    process = control_plane.popen([sys.executable, "-c", PROXY], stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("http://127.0.0.1:{}", "http {} -"),
        ("http://some:one@127.0.0.1:{}", "http {} " + base64.b64encode(b"some:one").decode()),
        ("socks5://127.0.0.1:{}", "socks5 {} -"),
    ],
)
@pytest.mark.parametrize("name", [None, "kubernetes.default.svc"])
def test_the_kubeconfig_s_proxy_is_gone_through(
    control_plane: ControlPlane, tmp_path: Path, proxy: subprocess.Popen, form: str, said: str, name: str | None
) -> None:
    cluster = {"proxy-url": form.format(proxy.stdout.readline().strip())}
    if name:
        cluster["tls-server-name"] = name
    user = admin_config(control_plane)["users"][0]["user"]
    driver = Driver(control_plane, with_user(control_plane, tmp_path, user, **cluster))
    assert driver("version").startswith("v1.")
    assert proxy.stdout.readline().strip() == said.format(control_plane.server.split("://")[1].rstrip("/"))


def test_a_proxy_that_is_not_there_is_trouble_of_the_network(control_plane: ControlPlane, tmp_path: Path) -> None:
    user = admin_config(control_plane)["users"][0]["user"]
    path = with_user(control_plane, tmp_path, user, **{"proxy-url": "http://some:SECRET@127.0.0.1:1"})
    error = Driver(control_plane, path).error("version")
    assert error["kind"] == "Transient" and "127.0.0.1 port 1" in error["text"] and "SECRET" not in error["text"]


# --- a token that is withdrawn while it is in use ---


def bound_token(plane: ControlPlane, namespace: str, name: str) -> str:
    """A token that ends with the Secret of that name."""
    put_secret(plane, namespace, name)
    words = ("create", "token", "watcher", "-n", namespace, "--bound-object-kind=Secret", f"--bound-object-name={name}")
    return plane.kubectl(*words).stdout.strip()


def is_valid(plane: ControlPlane, token: str) -> bool:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    done = plane.kubectl("create", "-o", "json", "-f", "-", input=json.dumps(review))
    return json.loads(done.stdout)["status"].get("authenticated", False)


def withdraw(plane: ControlPlane, namespace: str, name: str, token: str) -> None:
    plane.kubectl("delete", "secret", name, "-n", namespace)
    wait_until("the token to be refused", lambda: not is_valid(plane, token), timeout=60)


def goes_on(manager: Running, plane: ControlPlane, namespace: str, name: str) -> None:
    """Both its requests and its watch do: the watch shows the new Secret, a request asks for it."""
    put_secret(plane, namespace, name)
    manager.wait_for(name, lambda line: line == {"reconciled": f"{namespace}/{name}", "exists": True}, timeout=60)


def test_a_withdrawn_token_of_a_plugin_is_replaced(
    control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(bound_token(control_plane, namespace, "first"))
    script = f"echo run >> runs\nprintf '{credential(token='%s')}' \"$(cat token)\""
    driver = Driver(control_plane, with_user(control_plane, tmp_path, plugin(tmp_path, script)))
    with driver.running("manage", "secrets", namespace, "127.0.0.1:0", log=tmp_path / "log") as manager:
        goes_on(manager, control_plane, namespace, "before")
        old = (tmp_path / "token").read_text()
        (tmp_path / "token").write_text(bound_token(control_plane, namespace, "second"))
        withdraw(control_plane, namespace, "first", old)
        wait_until("another run", lambda: runs(tmp_path) >= 2)
        goes_on(manager, control_plane, namespace, "after")
    assert "Unauthorized" not in (tmp_path / "log").read_text()


# --- in a pod ---


class Pod:
    """The service account's folder as the kubelet writes it: files behind a link that is renamed."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self.folder = folder / "serviceaccount"
        self.folder.mkdir()
        self._generation = 0
        authority = admin_config(plane)["clusters"][0]["cluster"]["certificate-authority-data"]
        self._fixed = {"ca.crt": base64.b64decode(authority), "namespace": namespace.encode()}

    def write(self, token: str) -> None:
        old = self.folder / f"..{self._generation}"
        self._generation += 1
        fresh = self.folder / f"..{self._generation}"
        fresh.mkdir()
        for name, data in {**self._fixed, "token": token.encode()}.items():
            (fresh / name).write_bytes(data)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        link = self.folder / "..data.new"
        link.symlink_to(fresh.name)
        link.rename(self.folder / "..data")
        if old.exists():
            for path in old.iterdir():
                path.unlink()
            old.rmdir()


class PodDriver(Driver):
    """The driver where a pod's own files are, without a kubeconfig: in a mount namespace of its own."""

    def __init__(self, plane: ControlPlane, pod: Pod) -> None:
        super().__init__(plane)
        mount = (
            "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && "
            f"ln -s {shlex.quote(str(pod.folder))} /run/secrets/kubernetes.io/serviceaccount && "
            'unset KUBECONFIG && exec "$@"'
        )
        host, port = plane.server.split("://")[1].rstrip("/").rsplit(":", 1)
        program = self._words[0]
        environment = ["env", f"KUBERNETES_SERVICE_HOST={host}", f"KUBERNETES_SERVICE_PORT={port}"]
        self._words = [*environment, "unshare", "--mount", "sh", "-c", mount, "sh", program]


def test_a_pod_s_token_is_rotated_under_requests_and_watches(
    control_plane: ControlPlane, namespace: str, account: str, tmp_path: Path
) -> None:
    pod = Pod(control_plane, namespace, tmp_path)
    pod.write(bound_token(control_plane, namespace, "first"))
    driver = PodDriver(control_plane, pod)
    assert whoami(driver) == account
    log = tmp_path / "log"
    with driver.running("manage", "secrets", namespace, "127.0.0.1:0", log=log) as manager:
        goes_on(manager, control_plane, namespace, "before")
        started = time.monotonic()
        old = (pod.folder / "token").read_text()
        pod.write(bound_token(control_plane, namespace, "second"))
        withdraw(control_plane, namespace, "first", old)
        goes_on(manager, control_plane, namespace, "after")
        # Within the minute after which files are read again anyway: it was the refusal.
        assert time.monotonic() - started < 55
    assert "Unauthorized" not in log.read_text()


@pytest.fixture(scope="module")
def quiet_rotation(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A pod that goes on asking while its token is replaced by another one, both valid; the second one's id. It lives
    through all tests of this file, since files are read again each minute."""
    namespace, folder = f"quiet-{time.time_ns() % 10**9}", tmp_path_factory.mktemp("quiet")
    control_plane.kubectl("create", "namespace", namespace)
    create_account(control_plane, namespace)
    put_secret(control_plane, namespace, "asked-for-again-and-again")
    pod = Pod(control_plane, namespace, folder)
    pod.write(bound_token(control_plane, namespace, "first"))
    with PodDriver(control_plane, pod).running("manage", "secrets", namespace, "127.0.0.1:0", log=folder / "log") as manager:
        manager.wait_for("a reconcile", lambda line: "reconciled" in line)
        second = bound_token(control_plane, namespace, "second")
        pod.write(second)
        yield json.loads(base64.urlsafe_b64decode(second.split(".")[1] + "=="))["jti"]
    assert "Unauthorized" not in (folder / "log").read_text()
    control_plane.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(autouse=True)
def _started(quiet_rotation: str) -> None:
    """So that it starts with the first test."""


def test_a_pod_s_token_is_read_again_each_minute(control_plane: ControlPlane, quiet_rotation: str) -> None:
    used = f'"JTI={quiet_rotation}"'
    wait_until("the second token to be used", lambda: used in control_plane.audit_log.read_text(), timeout=75, pause=1)
