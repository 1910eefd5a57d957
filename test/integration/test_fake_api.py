"""The fault-injecting API server: what it must not change, that a tape is as good as the API server it is of, what faults look like."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from kube_driver import Driver

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from fake_api import FakeApi, Tape, frames, lists, requests, watches, writes  # noqa: E402
from fake_api.faults import (  # noqa: E402
    BrokenGzip, Close, CutFrame, ErrorEvent, GoAway, LoseAnswer, NoMark, PastList, Refuse, Repeat, ShuffledList, Silent,
)  # fmt: skip

MAPS = "/v1/configmaps"
KIND = "configmaps"


@pytest.fixture
def fake(control_plane: ControlPlane, tmp_path: Path) -> Iterator[FakeApi]:
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    with LocalCluster(control_plane.name).network(), FakeApi(tmp_path, config) as fake:
        yield fake
    assert fake.errors == []


@pytest.fixture
def driver(control_plane: ControlPlane, fake: FakeApi, tmp_path: Path) -> Driver:
    return Driver(control_plane, fake.kubeconfig(tmp_path / "fake.kubeconfig"))


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def patch(**data: str) -> dict[str, Any]:
    return {"data": data}


def work(driver: Driver, namespace: str, log: Path) -> tuple[list[Any], list[str]]:
    """Requests of all kinds and a watch beside them: their answers, and what the watch told of the object."""
    with driver.running("watch", MAPS, namespace, "3600", log=log) as watch:
        watch.callback("synced")
        answers = [driver("create", MAPS, namespace, input=config_map("m", a="1"))]
        watch.callback("object", key=f"{namespace}/m")
        answers.append(driver("patch", MAPS, namespace, "m", input=patch(a="2")))
        answers.append(driver("get", MAPS, namespace, "m"))
        answers.append(driver("list", MAPS, namespace))
        answers.append(driver("delete", MAPS, namespace, "m"))
        watch.callback("delete", key=f"{namespace}/m")
        return answers, [line["callback"] for line in watch.lines if line.get("key") == f"{namespace}/m"]


def test_a_tape_is_as_good_as_the_api_server(
    control_plane: ControlPlane, namespace: str, fake: FakeApi, driver: Driver, tmp_path: Path
) -> None:
    recorded = work(driver, namespace, tmp_path / "recorded.log")
    tape = tmp_path / "tape"
    fake.tape.save(tape)
    assert tape.stat().st_mode & 0o077 == 0
    (folder := tmp_path / "replay").mkdir()
    with FakeApi(folder, tape=Tape.load(tape)) as replay:
        again = Driver(control_plane, replay.kubeconfig(tmp_path / "replay.kubeconfig"))
        assert work(again, namespace, tmp_path / "replayed.log") == recorded
        assert again.error("create", MAPS, namespace, input=config_map("m", a="1"))["kind"] == "Conflict"  # made before
    assert replay.errors == []


def test_a_write_that_is_not_on_the_tape_is_an_error(
    control_plane: ControlPlane, namespace: str, fake: FakeApi, driver: Driver, tmp_path: Path
) -> None:
    driver("create", MAPS, namespace, input=config_map("m", a="1"))
    (folder := tmp_path / "replay").mkdir()
    with FakeApi(folder, tape=fake.tape) as replay:
        again = Driver(control_plane, replay.kubeconfig(tmp_path / "replay.kubeconfig"))
        assert "error" in again("create", MAPS, namespace, input=config_map("m", a="2"))
    assert len(replay.errors) == 1 and f"POST /api/v1/namespaces/{namespace}/configmaps" in replay.errors[0]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_it_speaks_both_versions_of_http(control_plane: ControlPlane, fake: FakeApi, version: str) -> None:
    done = control_plane.run("curl", "-sSk", version, "-w", " %{http_version}", f"{fake.address}/version")
    body, _, spoken = done.stdout.rpartition(" ")
    assert json.loads(body)["major"] == "1" and spoken == version.removeprefix("--http")


def test_a_long_answer_waits_for_the_client_s_window(
    control_plane: ControlPlane, namespace: str, fake: FakeApi, driver: Driver
) -> None:
    for number in range(4):
        driver("create", MAPS, namespace, input=config_map(f"m{number}", a="x" * 900_000))
    names = {each["metadata"]["name"] for each in driver("list", MAPS, namespace)["items"]}
    assert names - {"kube-root-ca.crt"} == {f"m{number}" for number in range(4)}  # a controller's, which may come later


def test_no_token_comes_onto_a_tape(namespace: str, fake: FakeApi, driver: Driver, tmp_path: Path) -> None:
    driver("list", MAPS, namespace)
    fake.tape.save(tmp_path / "tape")
    assert "earer" not in (tmp_path / "tape").read_text()


REQUESTS = [
    (Refuse(401), "Unauthorized"), (Refuse(409), "Conflict"), (Refuse(429, 1), "Throttled"), (Refuse(503), "Transient"),
    (LoseAnswer("reset"), "Transient"), (LoseAnswer("drop"), "Transient"), (Silent(0.5), "Transient"),
    (BrokenGzip("checksum"), None), (BrokenGzip("cut"), None), (GoAway(processed=True), ""), (GoAway(processed=False), "?"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "kind"), REQUESTS, ids=[str(fault) for fault, _ in REQUESTS])
def test_what_a_client_sees_of_a_fault(
    control_plane: ControlPlane, namespace: str, fake: FakeApi, driver: Driver, fault: Any, kind: str | None
) -> None:
    """"": nothing, for a connection that is to be left is no trouble; None: whatever it is, it is an error. "?": a library may
    send what certainly was not looked at again, or leave that to us."""
    rule = fake.fault(writes(KIND), fault)
    if isinstance(fault, Refuse) and fault.code == 401:
        rule.times = 2  # a client asks once more with what it reads then
    answer = driver("create", MAPS, namespace, input=config_map("m"))
    assert rule.struck >= 1
    assert kind == "?" or ("error" in answer) == (kind != "")
    assert kind in (None, "", "?") or answer["error"]["kind"] == kind
    done = control_plane.kubectl("get", KIND, "m", "-n", namespace, check=False).returncode == 0
    assert done == any(call.forwarded == 201 for call in fake.calls(writes(KIND)))
    assert done == (isinstance(fault, (LoseAnswer, BrokenGzip)) or "error" not in answer)


BREAKS = [
    CutFrame("reset"), CutFrame("drop"), CutFrame("finish"), Close("reset"), Close("drop"), Close("finish"), ErrorEvent(410),
    ErrorEvent(500), GoAway(processed=True), GoAway(processed=False), Repeat(3),
]  # fmt: skip


@pytest.mark.parametrize("fault", BREAKS, ids=map(str, BREAKS))
def test_a_watch_that_breaks_at_an_event_tells_it_all_the_same(
    namespace: str, fake: FakeApi, driver: Driver, tmp_path: Path, fault: Any
) -> None:
    rule = fake.fault(watches(KIND), fault, frames("ADDED", "m"))
    with driver.running("watch", MAPS, namespace, "3600", log=tmp_path / "log") as watch:
        watch.callback("synced")
        driver("create", MAPS, namespace, input=config_map("m"))
        watch.callback("object", key=f"{namespace}/m")
        assert rule.struck == 1


LISTS = [NoMark(), ShuffledList(), Refuse(410), Refuse(422), Refuse(429, 1), BrokenGzip("cut")]


@pytest.mark.parametrize("fault", LISTS, ids=map(str, LISTS))
def test_a_list_that_fails_is_made_again(namespace: str, fake: FakeApi, driver: Driver, tmp_path: Path, fault: Any) -> None:
    driver("create", MAPS, namespace, input=config_map("m"))
    rule = fake.fault(lists(KIND), fault)
    with driver.running("watch", MAPS, namespace, "3600", log=tmp_path / "log") as watch:
        synced = watch.callback("synced")
        assert f"{namespace}/m" in watch.keys("object")[:synced]
        assert rule.struck == 1


def test_a_list_from_the_past_is_caught_up_with(namespace: str, fake: FakeApi, driver: Driver, tmp_path: Path) -> None:
    with driver.running("watch", MAPS, namespace, "3600", log=tmp_path / "log") as watch:
        watch.callback("synced")
        driver("create", MAPS, namespace, input=config_map("m"))
        there = watch.callback("object", key=f"{namespace}/m")
        fake.fault(lists(KIND), PastList(0.5))
        assert fake.strike(watches(KIND), ErrorEvent(410)) == 1
        back = watch.callback("synced", after=there)
        assert f"{namespace}/m" not in [line.get("key") for line in watch.lines[there + 1 : back]]
        watch.callback("object", after=back, key=f"{namespace}/m")


def test_it_is_used_by_hand(control_plane: ControlPlane, tmp_path: Path) -> None:
    """record, look at the API server through it, end it, replay."""

    def run(*words: str | Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "fake_api", *words, "--tape", tmp_path / "tape", "--out", tmp_path / "config"]
        environment = {**control_plane.environment(), "PYTHONPATH": str(ROOT / "test" / "support")}
        (tmp_path / "config").unlink(missing_ok=True)
        return control_plane.popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def version() -> str:
        wait_until("the kubeconfig", lambda: (tmp_path / "config").exists() and (tmp_path / "config").read_text())
        return str(Driver(control_plane, tmp_path / "config")("version"))

    said = []
    for words in (["record", "--kubeconfig", control_plane.kubeconfig], ["replay"]):
        process = run(*words)
        said.append(version())
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert said[0] == said[1] and said[0].startswith("v1.")


def test_all_but_the_lease_is_counted(fake: FakeApi, driver: Driver, namespace: str) -> None:
    driver("list", MAPS, namespace)
    driver("create", MAPS, namespace, input=config_map("m"))
    assert [call.request.method for call in fake.calls(requests(KIND))] == ["GET", "POST"]
    assert json.loads(fake.calls(writes())[0].request.body)["metadata"]["name"] == "m"
