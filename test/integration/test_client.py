"""The Kubernetes client against a real API server: requests, watches, and what goes wrong with them."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane, b64, daemon_pid, etcd, kill_api_server, start_api_server, wait_until
from kube_driver import Driver, Running


@pytest.fixture
def driver(control_plane: ControlPlane) -> Driver:
    return Driver(control_plane)


@pytest.fixture(scope="module")
def long_watch(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A watch that lives through all tests of this file: bookmarks are a minute apart."""
    log = tmp_path_factory.mktemp("watch") / "stderr"
    with Driver(control_plane).running("watch", "secrets", "kube-node-lease", "3600", log=log) as running:
        yield running


@pytest.fixture(autouse=True)
def _started(long_watch: Running) -> None:
    """So that it starts with the first test."""


def secret(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, **metadata},
        "data": {"value": base64.b64encode(name.encode()).decode()},
    }


# --- requests ---


def test_the_server_s_version_is_the_first_thing_to_ask(driver: Driver) -> None:
    assert driver("version").startswith("v1.")


def test_names_with_odd_characters_reach_the_object_they_mean(driver: Driver, namespace: str) -> None:
    # Roles may have nearly any name; %2F and dots would otherwise lead to other paths.
    name = "system:odd name+?&#=@é"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": []}
    roles = "rbac.authorization.k8s.io/v1/roles"
    assert driver("create", roles, namespace, input=role)["metadata"]["name"] == name
    assert driver("get", roles, namespace, name)["metadata"]["name"] == name
    patched = driver("patch", roles, namespace, name, input={"metadata": {"labels": {"a": "b"}}})
    assert patched["metadata"]["labels"] == {"a": "b"}
    for bad in ("", ".", "..", "a/b", "a%2Fb"):
        assert driver.error("get", roles, namespace, bad)["kind"] == "Invalid"


def test_what_is_not_there_is_not_found(driver: Driver, namespace: str) -> None:
    error = driver.error("get", "secrets", namespace, "absent")
    assert error["kind"] == "NotFound"
    assert error["text"] == f'GET /api/v1/namespaces/{namespace}/secrets/absent: secrets "absent" not found'
    error = driver.error("patch", "secrets", namespace, "absent", input={"metadata": {"labels": {}}})
    assert error["kind"] == "NotFound"
    assert driver.error("get", "example.com/v1/things", namespace, "x")["kind"] == "NotFound"


def test_what_exists_is_a_conflict(driver: Driver, namespace: str) -> None:
    driver("create", "secrets", namespace, input=secret("twice"))
    error = driver.error("create", "secrets", namespace, input=secret("twice"))
    assert error["kind"] == "Conflict" and "already exists" in error["text"]


def test_what_breaks_a_rule_is_invalid_and_says_which(driver: Driver, namespace: str) -> None:
    error = driver.error("create", "secrets", namespace, input=secret("Bad_Name"))
    assert error["kind"] == "Invalid" and "metadata.name" in error["text"]


@pytest.mark.parametrize("field", ["resourceVersion", "uid"])
def test_a_precondition_that_fails_is_a_conflict_and_changes_nothing(
    driver: Driver, namespace: str, field: str
) -> None:
    made = driver("create", "secrets", namespace, input=secret("guarded"))
    patch = {"metadata": {field: made["metadata"][field], "labels": {"first": "yes"}}}
    driver("patch", "secrets", namespace, "guarded", input=patch)
    stale = {"resourceVersion": made["metadata"]["resourceVersion"], "uid": "00000000-0000-0000-0000-000000000000"}
    error = driver.error(
        "patch", "secrets", namespace, "guarded", input={"metadata": {field: stale[field], "labels": {"second": "yes"}}}
    )
    assert error["kind"] == "Conflict"
    assert driver("get", "secrets", namespace, "guarded")["metadata"]["labels"] == {"first": "yes"}


def managers(plane: ControlPlane, namespace: str, kind: str, name: str) -> list[tuple[str, str]]:
    """Who manages fields of it, and by which operation; the client itself leaves that out of what it reads."""
    shown = plane.kubectl("-n", namespace, "get", kind, name, "--show-managed-fields", "-o", "json").stdout
    return [(entry["manager"], entry["operation"]) for entry in json.loads(shown)["metadata"]["managedFields"]]


def test_writes_carry_our_field_manager(control_plane: ControlPlane, driver: Driver, namespace: str) -> None:
    made = driver("create", "secrets", namespace, input=secret("managed"))
    assert managers(control_plane, namespace, "secret", "managed") == [("certroll", "Update")]
    assert "managedFields" not in made["metadata"]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


MAPS = "/v1/configmaps"


def test_what_is_applied_becomes_ours_and_what_is_left_out_goes(
    control_plane: ControlPlane, driver: Driver, namespace: str
) -> None:
    made = driver("apply", MAPS, namespace, "bundle", input=config_map("bundle", a="1", b="2"))
    assert made["data"] == {"a": "1", "b": "2"}
    assert managers(control_plane, namespace, "configmap", "bundle") == [("certroll", "Apply")]
    again = driver("apply", MAPS, namespace, "bundle", input=config_map("bundle", a="1", b="2"))
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]  # nothing to write
    assert driver("apply", MAPS, namespace, "bundle", input=config_map("bundle", a="3"))["data"] == {"a": "3"}


def test_a_field_of_another_manager_is_a_conflict_that_names_it(
    driver: Driver, namespace: str, control_plane: ControlPlane
) -> None:
    theirs = json.dumps(config_map("shared", a="theirs", b="theirs"))
    apply = ("apply", "-n", namespace, "--server-side", "--field-manager=gitops", "-f", "-")
    control_plane.kubectl(*apply, input=theirs)
    ours = config_map("shared", a="ours", b="ours")
    error = driver.error("apply", MAPS, namespace, "shared", input=ours)
    assert error["kind"] == "Conflict"
    assert '"gitops"' in error["text"] and ".data.a" in error["text"] and ".data.b" in error["text"]
    assert driver("apply", MAPS, namespace, "shared", "force", input=ours)["data"] == {"a": "ours", "b": "ours"}


def test_preconditions_of_an_apply(driver: Driver, namespace: str) -> None:
    made = driver("apply", MAPS, namespace, "guarded", input=config_map("guarded", a="1"))
    changed = config_map("guarded", a="2")
    changed["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    assert driver.error("apply", MAPS, namespace, "guarded", "force", input=changed)["kind"] == "Conflict"
    changed["metadata"] = {"name": "guarded", "uid": made["metadata"]["uid"], "resourceVersion": "1"}
    assert driver.error("apply", MAPS, namespace, "guarded", "force", input=changed)["kind"] == "Conflict"
    changed["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    assert driver("apply", MAPS, namespace, "guarded", input=changed)["data"] == {"a": "2"}
    # With a uid it is never created: what was deleted meanwhile stays so.
    gone = config_map("gone", a="1")
    gone["metadata"]["uid"] = made["metadata"]["uid"]
    assert driver.error("apply", MAPS, namespace, "gone", input=gone)["kind"] == "Conflict"


def test_a_delete_has_preconditions_and_a_propagation(
    driver: Driver, namespace: str, control_plane: ControlPlane
) -> None:
    made = driver("create", "secrets", namespace, input=secret("doomed"))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    other = "00000000-0000-0000-0000-000000000000"
    for preconditions in ((other,), (uid, "1"), ("-", "1")):
        assert driver.error("delete", "secrets", namespace, "doomed", *preconditions)["kind"] == "Conflict"
    assert driver("delete", "secrets", namespace, "doomed", uid, version) is True
    assert driver.error("delete", "secrets", namespace, "doomed")["kind"] == "NotFound"
    # What a finalizer keeps will be deleted: that is no error.
    driver("create", "secrets", namespace, input=secret("kept", finalizers=["certroll.dev/test"]))
    assert driver("delete", "secrets", namespace, "kept", "-", "-", "Foreground") is True
    assert "deletionTimestamp" in control_plane.get("secret", "kept", "-n", namespace)["metadata"]
    control_plane.kubectl("patch", "secret", "kept", "-n", namespace, "-p", '{"metadata":{"finalizers":null}}')
    error = driver.error("delete", "secrets", namespace, "absent", "-", "-", "Sideways")
    assert error["kind"] == "Invalid" and "propagationPolicy" in error["text"]


def test_a_list_of_1200_comes_whole_and_in_pages(driver: Driver, namespace: str, control_plane: ControlPlane) -> None:
    items = [secret(f"s{number:04}", labels={"even": str(number % 2 == 0).lower()}) for number in range(1200)]
    assert driver("create", "secrets", namespace, input={"kind": "List", "items": items}) == 1200
    listed = driver("list", "secrets", namespace)
    assert sorted(item["metadata"]["name"] for item in listed["items"]) == [item["metadata"]["name"] for item in items]
    assert {(item["apiVersion"], item["kind"]) for item in listed["items"]} == {("v1", "Secret")}
    assert "continue" not in listed["metadata"]
    assert len(driver("list", "secrets", namespace, "even in (true)")["items"]) == 600
    pages = [
        entry["requestURI"]
        for entry in map(json.loads, control_plane.audit_lines())
        if entry["verb"] == "list" and f"/{namespace}/secrets?limit=500" in entry["requestURI"]
    ]
    assert len(pages) == 3 + 2
    assert sum("continue=" in page for page in pages) == 2 + 1


# Passes all on to the API server; of what comes back only so much until the file exists.
HOLDING = """
import os, socket, sys, threading, time

def pump(a, b, held_from):
    passed = 0
    while data := a.recv(16384):
        while held_from and passed > held_from and not os.path.exists(sys.argv[3]):
            print("held", flush=True)
            time.sleep(0.05)
        b.sendall(data)
        passed += len(data)
    b.close()

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    client = listener.accept()[0]
    server = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    threading.Thread(target=pump, args=(client, server, 0), daemon=True).start()
    threading.Thread(target=pump, args=(server, client, 60000), daemon=True).start()
"""


def test_a_list_whose_state_is_forgotten_between_two_pages_begins_anew(
    driver: Driver, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    # Events, since the API server has no cache of them: what etcd has forgotten is gone (410).
    def event(name: str) -> dict[str, Any]:
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": "web"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "message": secrets.token_hex(500),  # hard to compress
        }

    driver("create", "events", namespace, input={"kind": "List", "items": [event(f"e{n:04}") for n in range(1200)]})
    host, port = control_plane.server.split("://")[1].rstrip("/").rsplit(":", 1)
    release = tmp_path / "release"
    holding = control_plane.popen(
        [sys.executable, "-c", HOLDING, host, port, str(release)], stdout=subprocess.PIPE, text=True
    )
    try:
        config = json.loads(control_plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
        config["clusters"][0]["cluster"] |= {
            "server": f"https://127.0.0.1:{holding.stdout.readline().strip()}",
            "tls-server-name": host,
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        slow = Driver(control_plane, tmp_path / "kubeconfig")
        with ThreadPoolExecutor(1) as pool:
            listing = pool.submit(slow, "list", "events", namespace)
            assert holding.stdout.readline() == "held\n"  # in the middle of the first page
            driver("delete", "events", namespace, "e1100")
            driver("create", "events", namespace, input=event("late"))
            revision = etcd(control_plane, "put", key=b64("/certroll-test"), value=b64("x"))["header"]["revision"]
            etcd(control_plane, "compaction", revision=revision, physical=True)
            release.touch()
            names = [item["metadata"]["name"] for item in listing.result(timeout=60)["items"]]
    finally:
        holding.kill()
        holding.wait()
    assert sorted(names) == sorted({f"e{n:04}" for n in range(1200)} - {"e1100"} | {"late"})
    codes = [
        entry["responseStatus"]["code"]
        for entry in map(json.loads, control_plane.audit_lines())
        if f"/{namespace}/events?limit=500" in entry["requestURI"] and entry["stage"] == "ResponseComplete"
    ]
    assert codes == [200, 410, 200, 200, 200]


def test_an_event_is_written_once_for_its_repeats(driver: Driver, namespace: str) -> None:
    driver("event", namespace, "Pod", "web-1", "some-uid", "Restarted", "because of é", "3")
    events = driver("list", "events", namespace)["items"]
    assert [(event["reason"], event["message"], event["involvedObject"]["name"]) for event in events] == [
        ("Restarted", "because of é", "web-1")
    ]


# --- evictions ---


@pytest.fixture
def guarded_pod(control_plane: ControlPlane, namespace: str) -> dict[str, Any]:
    """A pod that is said to run (there is no node) under a budget that lets nothing go."""
    account = ("get", "serviceaccount", "default", "-n", namespace)
    wait_until("a service account", lambda: control_plane.kubectl(*account, check=False).stdout)
    control_plane.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": namespace, "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "none"}]},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep-web", "namespace": namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    control_plane.kubectl("patch", "pod", "web", "-n", namespace, "--subresource=status", "-p", json.dumps(status))
    wait_until(
        "the budget to count the pod",
        lambda: control_plane.get("pdb", "keep-web", "-n", namespace).get("status", {}).get("currentHealthy") == 1,
    )
    return control_plane.get("pod", "web", "-n", namespace)


def test_an_eviction_is_limited_by_budget_and_uid(
    driver: Driver, namespace: str, guarded_pod: dict[str, Any], control_plane: ControlPlane
) -> None:
    uid = guarded_pod["metadata"]["uid"]
    error = driver.error("evict", namespace, "web", uid)
    assert error["kind"] == "Throttled" and "keep-web" in error["text"]
    control_plane.kubectl("delete", "pdb", "keep-web", "-n", namespace)
    other = driver.error("evict", namespace, "web", "00000000-0000-0000-0000-000000000000")
    assert other["kind"] == "Conflict"
    assert driver("evict", namespace, "web", uid) is True
    # There is no kubelet to end it: evicted means that it is being deleted, or gone.
    left = driver("get", "pods", namespace, "web")
    assert "error" in left or "deletionTimestamp" in left["metadata"]


def test_a_pod_under_two_budgets_cannot_be_evicted_and_the_text_says_so(
    driver: Driver, namespace: str, guarded_pod: dict[str, Any], control_plane: ControlPlane
) -> None:
    control_plane.kubectl("create", "pdb", "second", "-n", namespace, "--selector=app=web", "--min-available=0")
    error = driver.error("evict", namespace, "web", guarded_pod["metadata"]["uid"])
    assert error["kind"] == "Transient" and "more than one PodDisruptionBudget" in error["text"]


# --- permissions ---


def kubeconfig_of(plane: ControlPlane, namespace: str, folder: Path, token: str, account: str = "watcher") -> Path:
    """The kubeconfig of a service account, whose token is in a file beside it."""
    admin = json.loads(plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    (folder / "token").write_text(token)
    config = {
        **admin,
        "contexts": [{"name": "c", "context": {"cluster": admin["clusters"][0]["name"], "user": account}}],
        "current-context": "c",
        "users": [{"name": account, "user": {"tokenFile": "token"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def account_token(control_plane: ControlPlane, namespace: str) -> str:
    control_plane.kubectl("create", "serviceaccount", "watcher", "-n", namespace)
    return control_plane.kubectl("create", "token", "watcher", "-n", namespace).stdout.strip()


def grant(plane: ControlPlane, namespace: str) -> None:
    plane.kubectl("create", "role", "watcher", "-n", namespace, "--verb=get,list,watch", "--resource=secrets")
    account = f"--serviceaccount={namespace}:watcher"
    plane.kubectl("create", "rolebinding", "watcher", "-n", namespace, "--role=watcher", account)


def test_a_forbidden_watch_says_what_to_grant_and_goes_on_once_it_is(
    control_plane: ControlPlane, namespace: str, account_token: str, tmp_path: Path
) -> None:
    driver = Driver(control_plane, kubeconfig_of(control_plane, namespace, tmp_path, account_token))
    error = driver.error("get", "secrets", namespace, "any")
    assert error["kind"] == "Forbidden" and "cannot get resource" in error["text"]
    with driver.running("watch", "secrets", namespace, "60", log=tmp_path / "stderr") as watch:
        trouble = watch.lines[watch.callback("trouble", kind="Forbidden")]
        assert 'cannot watch resource "secrets"' in trouble["text"]
        assert trouble["text"].endswith(f"; grant get, list and watch on secrets in namespace {namespace}")
        grant(control_plane, namespace)
        watch.callback("synced")
        assert "synced" not in [line["callback"] for line in watch.lines[: watch.callback("connected")]]


def test_a_token_is_read_again_after_a_401(
    control_plane: ControlPlane, namespace: str, account_token: str, tmp_path: Path
) -> None:
    grant(control_plane, namespace)
    driver = Driver(control_plane, kubeconfig_of(control_plane, namespace, tmp_path, "not-a-token"))
    assert driver.error("list", "secrets", namespace)["kind"] == "Unauthorized"
    with driver.running("watch", "secrets", namespace, "60", log=tmp_path / "stderr") as watch:
        watch.callback("trouble", kind="Unauthorized")
        (tmp_path / "token").write_text(account_token + "\n")
        watch.callback("synced", timeout=15)


def test_a_ca_is_read_again_when_the_server_is_not_trusted(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    cluster = config["clusters"][0]["cluster"]
    right = base64.b64decode(cluster.pop("certificate-authority-data"))
    client = base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
    (tmp_path / "ca.crt").write_bytes(client)  # a certificate, but not of the CA
    cluster["certificate-authority"] = "ca.crt"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    driver = Driver(control_plane, tmp_path / "kubeconfig")
    error = driver.error("version")
    assert error["kind"] == "Transient" and "the server's certificate is not trusted" in error["text"]
    with driver.running("watch", "secrets", namespace, "60", log=tmp_path / "stderr") as watch:
        watch.callback("trouble")
        (tmp_path / "ca.crt").write_bytes(right)
        watch.callback("synced", timeout=15)


# --- watches ---


def test_a_watch_begins_with_all_and_sees_each_change(driver: Driver, namespace: str, tmp_path: Path) -> None:
    driver("create", "secrets", namespace, input=secret("old"))
    with driver.running("watch", "secrets", namespace, "60", log=tmp_path / "stderr") as watch:
        synced = watch.callback("synced")
        assert [line["callback"] for line in watch.lines[: synced + 1]] == ["replace", "connected", "object", "synced"]
        key = f"{namespace}/new"
        made = driver("create", "secrets", namespace, input=secret("new"))
        added = watch.callback("object", after=synced, key=key)
        assert watch.lines[added]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert watch.lines[added]["kind"] == "Secret"
        driver("patch", "secrets", namespace, "new", input={"metadata": {"labels": {"a": "b"}}})
        modified = watch.callback("object", after=added + 1, key=key)
        driver.plane.kubectl("delete", "secret", "new", "-n", namespace)
        watch.callback("delete", after=modified, key=key)


def test_a_selector_limits_a_watch(driver: Driver, namespace: str, tmp_path: Path) -> None:
    driver("create", "secrets", namespace, input=secret("mine", labels={"app": "a-b"}))
    driver("create", "secrets", namespace, input=secret("other", labels={"app": "x"}))
    with driver.running("watch", "secrets", namespace, "60", "app in (a-b,c),app!=x", log=tmp_path / "stderr") as watch:
        watch.callback("synced")
        assert watch.keys("object") == [f"{namespace}/mine"]


def test_a_watch_survives_a_restart_of_the_api_server_and_misses_nothing(
    driver: Driver, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    driver("create", "secrets", namespace, input=secret("stays"))
    driver("create", "secrets", namespace, input=secret("vanishes"))
    address = "127.0.0.1:9797"
    with (
        driver.running("watch", "secrets", namespace, "300", log=tmp_path / "watch.log") as watch,
        driver.running("manage", "secrets", namespace, address, log=tmp_path / "manage.log") as manager,
    ):
        watch.callback("synced")
        manager.wait_for("reconcile", lambda line: line == {"reconciled": f"{namespace}/vanishes", "exists": True})
        kill_api_server(control_plane)
        try:
            lost = watch.callback("trouble")
            assert watch.lines[lost]["kind"] == "Transient"
            # While nobody can tell: one is deleted, and history is compacted beyond what the watch knows.
            etcd(control_plane, "deleterange", key=b64(f"/registry/secrets/{namespace}/vanishes"))
            revision = etcd(control_plane, "put", key=b64("/certroll-test"), value=b64("x"))["header"]["revision"]
            etcd(control_plane, "compaction", revision=revision, physical=True)
        finally:
            start_api_server(control_plane)
        # 410: everything is listed again, and what is not in the list is gone.
        gone = watch.callback("trouble", after=lost, kind="Gone", timeout=60)
        replaced = watch.callback("replace", after=gone)
        synced = watch.callback("synced", after=replaced)
        assert f"{namespace}/vanishes" not in watch.keys("object", after=replaced)
        assert f"{namespace}/stays" in watch.keys("object", after=replaced)
        manager.wait_for("reconcile", lambda line: line == {"reconciled": f"{namespace}/vanishes", "exists": False}, timeout=90)
        driver("create", "secrets", namespace, input=secret("later"))
        watch.callback("object", after=synced, key=f"{namespace}/later")
        ready = control_plane.run("curl", "-s", f"http://{address}/readyz").stdout
        assert ready == "ok\n"


# --- the manager ---


def test_readyz_says_why_not_while_the_server_is_unreachable_and_a_stop_is_clean(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    admin = json.loads(control_plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    admin["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(admin))
    with Driver(control_plane, path).running("manage", "secrets", namespace, "127.0.0.1:9798", log=tmp_path / "log"):

        def page(name: str) -> str:
            url = f"http://127.0.0.1:9798/{name}"
            return control_plane.run("curl", "-s", "-w", " %{http_code}", url, check=False).stdout

        wait_until("a reason", lambda: "not in sync: " in page("readyz"))
        assert page("readyz").startswith(f"secrets in namespace {namespace}: not in sync: watch /api/v1/")
        assert page("readyz").endswith(" 503")
        assert page("healthz") == "ok\n 200"


def test_readyz_names_what_a_person_must_grant(
    control_plane: ControlPlane, namespace: str, account_token: str, tmp_path: Path
) -> None:
    driver = Driver(control_plane, kubeconfig_of(control_plane, namespace, tmp_path, account_token))
    with driver.running("manage", "secrets", namespace, "127.0.0.1:9799", log=tmp_path / "log"):

        def readyz() -> str:
            return control_plane.run("curl", "-s", "http://127.0.0.1:9799/readyz", check=False).stdout

        wait_until("what to grant", lambda: "grant get, list and watch on secrets" in readyz())
        grant(control_plane, namespace)
        wait_until("readiness", lambda: readyz() == "ok\n")
    assert (tmp_path / "log").read_text().count('"kind":"Forbidden"') == 1  # said once, not with each try


def test_a_manager_can_be_stopped_at_any_moment(driver: Driver, namespace: str, tmp_path: Path) -> None:
    items = [secret(f"s{number}") for number in range(200)]
    driver("create", "secrets", namespace, input={"kind": "List", "items": items})
    for lines in (0, 1, 20, 100):
        log = tmp_path / f"log-{lines}"
        with driver.running("manage", "secrets", namespace, "127.0.0.1:0", log=log) as manager:
            wait_until("a first word", lambda: log.stat().st_size, pause=0.001)
            wait_until(f"{lines} lines", lambda: len(manager.lines) >= lines, pause=0.001)


@pytest.mark.parametrize("signals", [1, 2])
def test_requests_without_an_answer_hold_up_a_stop_for_the_grace_time_at_most(
    driver: Driver, namespace: str, control_plane: ControlPlane, tmp_path: Path, signals: int
) -> None:
    driver("create", "secrets", namespace, input=secret("asked-for-again-and-again"))
    log = tmp_path / "log"
    pid = daemon_pid(control_plane, "kube-apiserver")
    with (
        pytest.raises(AssertionError, match="exit 1:") if signals == 2 else nullcontext(),
        driver.running("manage", "secrets", namespace, "127.0.0.1:0", log=log) as manager,
    ):
        manager.wait_for("reconcile", lambda line: "reconciled" in line)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(1)  # longer than the driver's pause between two requests
            start = time.monotonic()
            manager.process.send_signal(signal.SIGTERM)
            wait_until("its word", lambda: "stopping" in log.read_text())
            if signals == 2:
                manager.process.send_signal(signal.SIGTERM)
            manager.process.wait(timeout=30)
            took = time.monotonic() - start
        finally:
            os.kill(pid, signal.SIGCONT)
    assert took < 8 if signals == 2 else 9 < took < 25
    assert ("requests are cancelled" in log.read_text()) == (signals == 1)


# --- last, since it takes its time ---


def test_bookmarks_move_a_quiet_watch_on(long_watch: Running) -> None:
    place = long_watch.callback("bookmark", timeout=100)
    assert int(long_watch.lines[place]["resourceVersion"]) > 0
