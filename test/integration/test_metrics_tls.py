"""The operator's own /metrics over TLS: by which flags, for whom, and with files that change."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import PROGRAM, UNGUARDED, Operator
from test_metrics import documented, parse, value

sys.path[:0] = [str(ROOT / "hack" / "lib"), str(ROOT / "test" / "support")]

from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402
from certroll_dev.demo.pki import Material  # noqa: E402
from programs.volumes import AtomicVolume  # noqa: E402
from scrape import REFUSALS, Page, client_context  # noqa: E402

_SERVICE = "metrics"


class Files:
    """A Secret's volume, as its kubelet writes it."""

    def __init__(self, folder: Path) -> None:
        self._volume = AtomicVolume(folder, group=os.getgid())
        self.flags = [
            f"--metrics-tls-cert-file={folder}/tls.crt", f"--metrics-tls-private-key-file={folder}/tls.key",
            f"--metrics-client-ca-file={folder}/ca.crt",
        ]  # fmt: skip

    def write(self, material: Material, *, trust: bytes | None = None, key: bytes | None = None) -> None:
        self._volume.write({"tls.crt": material.certificate, "tls.key": key or material.key, "ca.crt": trust or material.trust})


def page_of(operator: Operator) -> Page:
    """From a process in the cluster's network."""
    return Page("127.0.0.1", int(operator.serving()["port"]), _SERVICE)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "tls")


@contextlib.contextmanager
def running(plane: ControlPlane, namespace: str, folder: Path, flags: Sequence[str], program: Path = PROGRAM) -> Iterator[Operator]:
    own = ("--leader-elect=false", "--metrics-auth=none")
    operator = Operator(plane, namespace, "operator", plane.kubeconfig, folder, *own, *flags, program=program, open_metrics=False)
    try:
        operator.wait_line("all caches are in sync")
        yield operator
    finally:
        operator.end()


def test_it_is_tls_for_who_shows_a_certificate_and_probes_are_as_they_were(
    control_plane: ControlPlane, api: API, namespace: str, files: Files, tmp_path: Path
) -> None:
    authority, stranger = pki.new_authority(1), pki.new_authority(2)
    material = authority.issue(_SERVICE)
    files.write(material)
    with running(control_plane, namespace, tmp_path, files.flags) as operator:
        page = page_of(operator)
        assert page.leaf() == material.fingerprint()
        shown = parse(page.get(client_context(authority.certificate, authority.issue("prometheus"))))
        told = {name for name in documented() if name.startswith("certroll_tls_")}
        assert told and told == {name for name in shown if name.startswith("certroll_tls_")}
        for nobody in (None, stranger.issue("prometheus")):
            with pytest.raises(REFUSALS):
                page.get(client_context(authority.certificate, nobody))
        done = control_plane.run("curl", "-sS", "--max-time", "20", f"http://127.0.0.1:{page.port}/metrics", check=False)
        assert done.returncode != 0 and "certroll" not in done.stdout
        assert operator.get("/healthz", page="/healthz") == (200, "ok\n")


def test_curl_as_the_documentation_has_it(
    control_plane: ControlPlane, namespace: str, files: Files, tmp_path: Path
) -> None:
    authority = pki.new_authority(1)
    material = authority.issue(_SERVICE)
    files.write(material)
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    (tmp_path / "client.pem").write_bytes(material.certificate + material.key)
    with running(control_plane, namespace, tmp_path, files.flags) as operator:
        words = ("--cacert", str(tmp_path / "ca.crt"), "--connect-to", f"{_SERVICE}::127.0.0.1:")
        client = ("--cert", str(tmp_path / "client.pem"))
        port = page_of(operator).port
        done = control_plane.run("curl", "-sSf", *words, *client, f"https://{_SERVICE}:{port}/metrics")
        assert value(done.stdout, "certroll_tls_last_reload_successful") == 1


def test_files_that_change_are_served_and_what_is_broken_is_not(
    control_plane: ControlPlane, api: API, namespace: str, files: Files, tmp_path: Path
) -> None:
    old, new = pki.new_authority(1), pki.new_authority(2)
    first, second, third = old.issue(_SERVICE), old.issue(_SERVICE), new.issue(_SERVICE)
    both = old.certificate + new.certificate
    files.write(first)
    with running(control_plane, namespace, tmp_path, files.flags) as operator:
        page = page_of(operator)
        as_old = client_context(both, first)
        as_new = client_context(both, third)

        files.write(second)
        wait_until("the new leaf to be served", lambda: page.leaf() == second.fingerprint())
        event = operator.wait_line("TLS material reloaded")["ocsf"]
        assert (event["severity"], event["status"], event["class_uid"]) == ("Informational", "Success", 5019)
        assert event["unmapped"]["leaf"] == second.fingerprint()

        files.write(third, key=first.key, trust=both)
        refused = operator.wait_line("TLS material refused")
        assert "does not belong" in refused["error"] and (refused["ocsf"]["severity"], refused["ocsf"]["status"]) == ("Medium", "Failure")
        assert page.leaf() == second.fingerprint()
        shown = page.get(as_old)
        assert value(shown, "certroll_tls_last_reload_successful") == 0
        assert value(shown, "certroll_tls_reloads_total", result="refused") >= 1

        files.write(third, trust=both)
        wait_until("what was mended to be served", lambda: page.leaf() == third.fingerprint())
        for client in (as_old, as_new):
            assert value(page.get(client), "certroll_tls_last_reload_successful") == 1
        text = operator.log.read_text()
        assert "PRIVATE KEY" not in text and "BEGIN" not in text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_has_a_session_of_a_ca_that_is_dropped_is_refused(
    control_plane: ControlPlane, api: API, namespace: str, files: Files, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """A session is resumed without a look at the certificate, so that it must not outlive its CA."""
    old, new = pki.new_authority(1), pki.new_authority(2)
    served = new.issue(_SERVICE)
    files.write(served, trust=new.certificate + old.certificate)
    with running(control_plane, namespace, tmp_path, files.flags) as operator:
        page = page_of(operator)
        client = client_context(new.certificate, old.issue("prometheus"), version)
        with page.connect(client) as first:
            page.read(first)
            session = first.session
        with page.connect(client, session) as again:
            assert again.session_reused, "there is nothing to be seen here when sessions are not resumed at all"
            page.read(again)
            session = again.session
        files.write(served, trust=new.certificate)
        wait_until("the change to be told", lambda: operator.lines("TLS material reloaded"))
        with pytest.raises(REFUSALS), page.connect(client, session) as late:
            page.read(late)
        page.get(client_context(new.certificate, new.issue("prometheus"), version))


def test_a_thousand_connections_cost_neither_probes_nor_memory(
    control_plane: ControlPlane, api: API, namespace: str, files: Files, tmp_path: Path
) -> None:
    """Those that ask nothing give way, and whoever asks is served; the kubelet's probe never waits."""
    authority = pki.new_authority(1)
    files.write(authority.issue(_SERVICE))
    with running(control_plane, namespace, tmp_path, files.flags[:2]) as operator, contextlib.ExitStack() as stack:
        page = page_of(operator)
        context = client_context(authority.certificate)
        before = _resident(operator)
        held = [stack.enter_context(page.connect(context)) for _ in range(400)]
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", page.port), 20)) for _ in range(600)]
        health = next(line for line in operator.lines("serving") if line["pages"].startswith("/healthz"))["port"]
        for _ in range(3):
            assert urllib.request.urlopen(f"http://127.0.0.1:{health}/healthz", timeout=5).status == 200
        grown = (_resident(operator) - before) / 1024
        print(f"{len(held)} connections with a handshake, {len(idle)} without: {grown:.1f} MiB more")
        assert grown < 256, "with AddressSanitizer ten times what it is without: 12.4 MiB"
        for connection in idle:
            connection.close()
        page.get(context)


def _resident(operator: Operator) -> int:
    """KiB."""
    [pid] = {operator.process.pid}
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])  # type: ignore[index]


@pytest.mark.parametrize(
    ("flags", "status", "says"),
    [
        (["--metrics-tls-cert-file=a"], 2, "needs --metrics-tls-private-key-file"),
        (["--metrics-tls-private-key-file=a"], 2, "needs --metrics-tls-cert-file"),
        (["--metrics-client-ca-file=a"], 2, "needs --metrics-tls-cert-file"),
        (["TLS", "--metrics-client-ca-file=a", "--health-probe-bind-address="], 2, "give --health-probe-bind-address"),
        (["TLS", "--metrics-open"], 2, "it excludes --metrics-tls-cert-file"),
        (["--metrics-open", "--metrics-auth=token"], 2, "it excludes --metrics-auth=token"),
        (["TLS", "--metrics-client-ca-file=FOLDER/none", "--health-probe-bind-address=127.0.0.1:0"], 1, "FOLDER/none"),
        (["--metrics-tls-cert-file=FOLDER/none", "--metrics-tls-private-key-file=FOLDER/tls.key"], 1, "FOLDER/none"),
        (["--metrics-tls-cert-file=FOLDER/tls.crt", "--metrics-tls-private-key-file=FOLDER/tls.crt"], 1, "FOLDER/tls.crt"),
    ],
)
def test_what_cannot_be_served_is_said_at_the_start(
    control_plane: ControlPlane, tmp_path: Path, flags: list[str], status: int, says: str
) -> None:
    files = Files(tmp_path / "tls")
    files.write(pki.new_authority(1).issue(_SERVICE))
    folder = str(tmp_path / "tls")
    words = [word.replace("FOLDER", folder) for flag in flags for word in (files.flags[:2] if flag == "TLS" else [flag])]
    own = ["--kubeconfig", str(control_plane.kubeconfig), "--leader-elect=false", *UNGUARDED, "--metrics-bind-address=127.0.0.1:0"]
    done = subprocess.run([PROGRAM, *own, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status and says.replace("FOLDER", folder) in done.stderr, done.stderr
