"""What a component shows of itself, with real ones: the API server and etcd as they run, and a scheduler whose files are
changed under it. `inspect` looks and asks once, without memory, so all that it says is seen."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, daemon_pid, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402

PROGRAM = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")).absolute() / "bin" / "certroll-node-agent"
IMAGES = {"etcd": "registry.k8s.io/etcd:3.6.8-0"}


class Seen:
    """A node of some of the machine's processes, as if they were static pods with the words that they run with."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._manifests, self._proc = folder / "manifests", folder / "proc"
        self._manifests.mkdir()
        self._proc.mkdir()
        for each in ("sys", "stat", "uptime"):
            (self._proc / each).symlink_to(f"/proc/{each}")

    def add(self, name: str, pid: int) -> None:
        words = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
        mount = {"name": "all", "mountPath": "/"}
        container = {
            "name": name,
            "image": IMAGES.get(name, f"registry.k8s.io/{name}:v1.36.3"),
            "command": [name, *words[1:]],
            "volumeMounts": [mount],
        }
        volume = {"name": "all", "hostPath": {"path": "/", "type": "Directory"}}
        spec = {"hostNetwork": True, "containers": [container], "volumes": [volume]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}
        (self._manifests / f"{name}.yaml").write_text(json.dumps(pod))
        (self._proc / str(pid)).symlink_to(f"/proc/{pid}")

    def look(self) -> dict[str, Any]:
        """status of the report."""
        words = ["inspect", "--json", "--root", "", "--proc", self._proc, "--manifests", self._manifests]
        return json.loads(self._plane.run(PROGRAM, *words).stdout)


def all_serve(status: dict[str, Any]) -> bool:
    """There is no kubelet."""
    return all(each["health"] == "Serving" for each in status["components"] if each["name"] != "kubelet")


def both_fail(status: dict[str, Any]) -> bool:
    return not serves(status, "etcd") and not serves(status, "kube-apiserver")


def component(status: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in status["components"] if each["name"] == name)


def row(status: dict[str, Any], name: str, parameter: str) -> dict[str, Any]:
    return next(each for each in status["files"] if (each["component"], each["parameter"]) == (name, parameter))


def serves(status: dict[str, Any], name: str) -> bool:
    return component(status, name)["health"] == "Serving"


# --- those that run


@pytest.fixture
def seen(control_plane: ControlPlane, tmp_path: Path) -> Seen:
    found = Seen(control_plane, tmp_path)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        found.add(name, daemon_pid(control_plane, name))
    return found


def test_who_runs_is_seen_to_serve_and_to_have_its_files(seen: Seen) -> None:
    status = wait_until("all to serve", lambda: all_serve(found := seen.look()) and found)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert component(status, name)["running"]
        assert not component(status, name).get("healthMessage")
    assert component(status, "kubelet")["healthMessage"] == "it does not run"
    leaf = row(status, "kube-apiserver", "--tls-cert-file")
    assert (leaf["loaded"], leaf["evidence"]) == ("Loaded", "Verified")
    # Its port announces the CAs of clients and of front proxies together, and none of them is missing.
    for parameter in ("--client-ca-file", "--requestheader-client-ca-file"):
        assert (row(status, "kube-apiserver", parameter)["loaded"]) == "Loaded"
    assert not [each for each in status["files"] if each["loaded"] == "RestartNeeded"]


def test_who_hangs_is_told_and_what_hangs_on_it(control_plane: ControlPlane, seen: Seen) -> None:
    """etcd is there and says nothing: its own page does not answer, and the API server's says that it is not well."""
    etcd = daemon_pid(control_plane, "etcd")
    os.kill(etcd, signal.SIGSTOP)
    try:
        status = wait_until("both to fail", lambda: both_fail(found := seen.look()) and found)
        assert component(status, "etcd")["running"]
        assert component(status, "etcd")["healthMessage"]
        assert component(status, "kube-apiserver")["healthMessage"]
        leaf = row(status, "kube-apiserver", "--tls-cert-file")
        assert (leaf["loaded"], leaf["evidence"]) == ("Loaded", "Verified")  # which says nothing of its health
    finally:
        os.kill(etcd, signal.SIGCONT)
    wait_until("all to serve again", lambda: all_serve(seen.look()))


# --- one whose files are changed


class Scheduler:
    """A kube-scheduler with a leaf and a bundle of its own."""

    def __init__(self, plane: ControlPlane, folder: Path, *flags: str) -> None:
        self.pki = folder
        self._plane = plane
        self._process: subprocess.Popen | None = None
        self._authority = pki.new_authority(1)
        self.put_leaf()
        self.trusted = b""
        self.trust(self._authority.certificate)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._words = [
            plane.bin / "kube-scheduler", f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1",
            f"--secure-port={port}", f"--tls-cert-file={folder}/s.crt", f"--tls-private-key-file={folder}/s.key",
            f"--client-ca-file={folder}/ca.crt", "--authentication-skip-lookup", *flags,
        ]  # fmt: skip

    def __enter__(self) -> Scheduler:
        with (self.pki / "scheduler.log").open("a") as log:
            self._process = self._plane.popen(self._words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        name = Path(f"/proc/{self.pid}/comm")
        wait_until("nsenter to have become it", lambda: name.read_text() == "kube-scheduler\n", pause=0.01)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def put_leaf(self) -> str:
        """Its fingerprint."""
        leaf = self._authority.issue("scheduler")
        self._put("s.key", leaf.key)
        self._put("s.crt", leaf.certificate)
        return leaf.fingerprint()

    def trust(self, *certificates: bytes) -> None:
        self.trusted += b"".join(certificates)
        self._put("ca.crt", self.trusted)

    def _put(self, name: str, content: bytes) -> None:
        new = self.pki / f".{name}.new"
        new.write_bytes(content)
        os.replace(new, self.pki / name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "pki"
    found.mkdir()
    return found


@pytest.fixture
def scheduler(control_plane: ControlPlane, folder: Path) -> Iterator[Scheduler]:
    with LocalCluster(control_plane.name).network(), Scheduler(control_plane, folder) as found:
        yield found


def look_at(plane: ControlPlane, scheduler: Scheduler, tmp_path: Path) -> Seen:
    found = Seen(plane, tmp_path)
    found.add("kube-scheduler", scheduler.pid)
    wait_until("the scheduler to serve", lambda: serves(found.look(), "kube-scheduler"), timeout=60)
    return found


def state(status: dict[str, Any], parameter: str) -> tuple[str, str]:
    found = row(status, "kube-scheduler", parameter)
    return found["loaded"], found["evidence"]


def test_a_leaf_is_seen_served_as_soon_as_it_is(control_plane: ControlPlane, scheduler: Scheduler, tmp_path: Path) -> None:
    seen = look_at(control_plane, scheduler, tmp_path)
    assert state(seen.look(), "--tls-cert-file") == ("Loaded", "Verified")
    new = scheduler.put_leaf()
    served = ("Loaded", "Verified")
    status = wait_until("the new one", lambda: state(found := seen.look(), "--tls-cert-file") == served and found)
    assert row(status, "kube-scheduler", "--tls-cert-file")["fingerprints"] == [new]
    assert row(status, "kube-scheduler", "--tls-private-key-file")["loaded"] == "Loaded"


def one_name(count: int) -> Sequence[bytes]:
    """CAs of one subject, as kubeadm's successive ones are."""
    made = []
    for _ in range(count):
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
        words += ["-subj", "/CN=kubernetes", "-keyout", "/dev/null"]
        made.append(subprocess.run(words, check=True, capture_output=True).stdout)
    return made


def test_cas_of_one_name_are_announced_once_each(control_plane: ControlPlane, scheduler: Scheduler, tmp_path: Path) -> None:
    """Else a bundle of two would count as refuted for ever."""
    seen = look_at(control_plane, scheduler, tmp_path)
    scheduler.trust(*one_name(2))
    wait_until("the bundle to be loaded", lambda: state(seen.look(), "--client-ca-file") == ("Loaded", "Inferred"))
    assert len(row(seen.look(), "kube-scheduler", "--client-ca-file")["fingerprints"]) == 3


def test_a_bundle_that_is_not_taken_up_is_not_believed(control_plane: ControlPlane, scheduler: Scheduler, tmp_path: Path) -> None:
    """The scheduler of the manifest has another file than the one that runs: what is announced lacks a CA of it."""
    seen = look_at(control_plane, scheduler, tmp_path)
    manifest = tmp_path / "manifests" / "kube-scheduler.yaml"
    other = scheduler.pki / "other.crt"
    other.write_bytes(scheduler.trusted + pki.new_authority(7).certificate)
    manifest.write_text(manifest.read_text().replace(str(scheduler.pki / "ca.crt"), str(other)))
    status = seen.look()
    loaded, evidence = state(status, "--client-ca-file")
    assert (loaded, evidence) == ("Soon", "Verified")
    assert "does not announce all of its CAs" in row(status, "kube-scheduler", "--client-ca-file")["why"]


def test_pairs_with_names_do_not_stand_for_the_one_without(control_plane: ControlPlane, folder: Path, tmp_path: Path) -> None:
    """One of them is for the address that is asked: without a name it would be served."""
    named = folder / "named"
    named.mkdir()
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    words += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-keyout", str(named / "n.key"), "-out", str(named / "n.crt")]
    subprocess.run(words, check=True, capture_output=True)
    pair = f"--tls-sni-cert-key={named}/n.crt,{named}/n.key"
    with LocalCluster(control_plane.name).network(), Scheduler(control_plane, folder, pair) as scheduler:
        seen = look_at(control_plane, scheduler, tmp_path)
        assert state(seen.look(), "--tls-cert-file") == ("Loaded", "Verified")
