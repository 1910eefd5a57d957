"""certroll-sidecar itself, beside a real TLS server: what it delivers, what it refuses, and what it survives."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import os
import re
import shutil
import socket
import socketserver
import ssl
import stat
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from control_plane import ROOT
from sidecar_pod import PROGRAM, Config, Program, Sidecar, leaf_at, wait_for

from certroll_dev.demo import pki  # isort: skip
from programs.volumes import AtomicVolume  # isort: skip

Files = Mapping[str, bytes]


def _files(material: pki.Material) -> Files:
    return {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.trust}


@pytest.fixture(scope="module")
def materials() -> list[pki.Material]:
    """Each of a CA of its own."""
    return [pki.new_authority(number).issue("program") for number in range(3)]


@pytest.fixture
def volume(tmp_path: Path, materials: list[pki.Material]) -> AtomicVolume:
    volume = AtomicVolume(tmp_path / "secret", group=os.getgid())
    volume.write(_files(materials[0]))
    return volume


@pytest.fixture
def program(volume: AtomicVolume) -> Iterator[Program]:
    program = Program(volume.folder / "tls.crt", volume.folder / "tls.key")
    yield program
    program.close()


def _config(volume: AtomicVolume, program: Program | None = None, **further: Any) -> Config:
    """One material, which the program is told of by its socket, and is looked at."""
    told: dict[str, Any] = {}
    if program:
        exchange = {"send": "reload\n", "expect": "OK"}
        told["triggers"] = [{"type": "Socket", "socket": {"address": str(program.socket), "exchanges": [exchange]}}]
        told["proof"] = {"endpoints": [{"port": program.port}], "timeout": "1s"}
    paths = {"certificate": "tls.crt", "privateKey": "tls.key", "trust": "ca.crt"}
    return {"materials": [{"name": "web", **{key: str(volume.folder / name) for key, name in paths.items()}, **told, **further}]}


# --- delivering ---


def test_a_change_reaches_the_program_and_is_proven(
    tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]
) -> None:
    with Sidecar(tmp_path, _config(volume, program)) as sidecar:
        first = sidecar.wait_delivered(materials[0].fingerprint())
        assert first["delivered"]["leafProven"] and first["attempts"] == 0
        assert program.reloads == 0  # it has it already
        for new in (materials[1], materials[2]):
            began = time.monotonic()
            volume.write(_files(new))
            page = sidecar.wait_delivered(new.fingerprint())
            print(f"{time.monotonic() - began:.2f} s from the volume's change to the proof")
            assert program.leaf() == new.fingerprint() == page["served"]["leaf"] == page["found"]["leaf"]
            assert page["delivered"]["leafProven"] and page["attempts"] == 1 and page["message"] == ""
        assert program.reloads == 2
        assert sidecar.metric('certroll_sidecar_triggers_total{material="web",type="Socket",result="success"}') == 2
        assert sidecar.metric('certroll_sidecar_delivery_seconds_count{proven="true"}') == 2
        assert sidecar.metric('certroll_sidecar_material_state{material="web",state="Delivered"}') == 1
        assert sidecar.metric('certroll_sidecar_not_after_timestamp_seconds{material="web"}') > time.time()
        assert sidecar.get("/healthz") == (200, "ok\n")
        assert sidecar.get("/status", "POST")[0] == 405
        assert sidecar.get("/")[0] == 404
        everything = sidecar.log() + sidecar.get("/status")[1] + sidecar.get("/metrics")[1]
    assert '"severity":"Informational"' in everything  # the security event of the change
    assert "PRIVATE KEY" not in everything
    for material in materials:
        assert material.key.decode().splitlines()[1] not in everything


def test_a_trigger_that_fails_is_pulled_until_it_succeeds(
    tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]
) -> None:
    with Sidecar(tmp_path, _config(volume, program)) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        program.failures_left = 2
        volume.write(_files(materials[1]))
        failing = sidecar.wait_state("Failing")
        assert "busy" in failing["message"]
        assert failing["delivered"]["leaf"] == materials[0].fingerprint()
        assert program.leaf() == materials[0].fingerprint()
        assert sidecar.get("/healthz")[0] == 200  # a program that does not reload is no reason to restart the sidecar
        page = sidecar.wait_delivered(materials[1].fingerprint())
        assert page["attempts"] == 3
        assert sidecar.metric('certroll_sidecar_triggers_total{material="web",type="Socket",result="error"}') == 2
    assert '"severity":"Medium"' in sidecar.log()


def test_a_program_that_says_yes_and_serves_the_old_is_told_again(
    tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]
) -> None:
    with Sidecar(tmp_path, _config(volume, program)) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        program.deaf = True
        volume.write(_files(materials[1]))
        failing = sidecar.wait_state("Failing")
        assert failing["served"]["leaf"] == materials[0].fingerprint()
        assert failing["found"]["leaf"] == materials[1].fingerprint()
        program.deaf = False
        assert sidecar.wait_delivered(materials[1].fingerprint())["delivered"]["leafProven"]
    assert program.reloads >= 2


def test_a_new_process_finds_what_the_one_before_left_undone(
    tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]
) -> None:
    """With a proof by looking, without one by its record. It is killed between the change and the trigger."""
    state = tmp_path / "state"
    state.mkdir()
    blind = _config(volume, program)
    del blind["materials"][0]["proof"]
    for config, flags, new in ((_config(volume, program), (), materials[1]), (blind, ("--state-folder", str(state)), materials[2])):
        before = program.leaf()
        with Sidecar(tmp_path, config, *flags) as sidecar:
            sidecar.wait_delivered(before)
            program.failures_left = 10**6
            volume.write(_files(new))
            sidecar.wait_state("Failing")
            sidecar.kill()
        program.failures_left = 0
        told = program.reloads
        with Sidecar(tmp_path, config, *flags) as sidecar:
            sidecar.wait_delivered(new.fingerprint())
            assert program.leaf() == new.fingerprint()
        with Sidecar(tmp_path, config, *flags) as sidecar:  # all is done
            sidecar.wait_delivered(new.fingerprint())
        assert program.reloads == told + 1


# --- hostile files ---


def _half(good: pki.Material, _: pki.Material) -> Files:
    return {**_files(good), "tls.crt": good.certificate[: len(good.certificate) // 2]}


def _mismatched(good: pki.Material, other: pki.Material) -> Files:
    return {**_files(good), "tls.key": other.key}


def _empty(good: pki.Material, _: pki.Material) -> Files:
    return {**_files(good), "tls.key": b""}


def _no_key(good: pki.Material, _: pki.Material) -> Files:
    return {name: content for name, content in _files(good).items() if name != "tls.key"}


def _no_trust_left(good: pki.Material, _: pki.Material) -> Files:
    return {**_files(good), "ca.crt": b"\n"}


def _huge(good: pki.Material, _: pki.Material) -> Files:
    return {**_files(good), "tls.crt": good.certificate + b"#" * 2 * 1024 * 1024}


@pytest.mark.parametrize(
    ("hostile", "says"),
    [(_half, "tls.crt"), (_mismatched, "tls.key"), (_empty, "tls.key"), (_no_key, "tls.key"), (_no_trust_left, "ca.crt"), (_huge, "tls.crt")],
)
def test_what_cannot_be_used_reaches_nobody(
    tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material], hostile: Any, says: str
) -> None:
    out = tmp_path / "out.pem"
    output = {"type": "PEM", "path": str(out), "parts": ["certificate", "privateKey"]}
    with Sidecar(tmp_path, _config(volume, program, outputs=[output])) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        before = out.read_bytes()
        volume.write(hostile(materials[1], materials[2]))
        refused = sidecar.wait_state("Refused")
        assert says in refused["message"] and "BEGIN" not in refused["message"]
        assert refused["delivered"]["leaf"] == refused["found"]["leaf"] == materials[0].fingerprint()
        assert program.reloads == 0 and program.leaf() == materials[0].fingerprint()
        assert out.read_bytes() == before
        volume.write(_files(materials[1]))
        sidecar.wait_delivered(materials[1].fingerprint())
        assert program.leaf() == materials[1].fingerprint()


def _pair_loads(path: Path) -> bool:
    """By one opening: load_cert_chain opens its file twice, and it may be another one the second time."""
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(path.read_bytes())
        copy.flush()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(copy.name)  # raises when key and certificate differ
    return True


class _Swapper:
    """Writes the volume a hundred times a second, in a thread."""

    def __init__(self, volume: AtomicVolume, turns: Sequence[Files]) -> None:
        self.swaps = 0
        self.pauses = 0  # of 100 ms, in which a burst may seem to have ended
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(volume, itertools.cycle(turns)))
        self._thread.start()

    def _run(self, volume: AtomicVolume, turns: Iterator[Files]) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.01):
            volume.write(next(turns))
            self.swaps += 1
            self.pauses += int((time.monotonic() - last) / 0.1)
            last = time.monotonic()

    def __enter__(self) -> _Swapper:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_files_that_change_a_hundred_times_a_second(
    tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]
) -> None:
    """Good ones, mismatched and empty ones in turn. Whoever reads the output at any moment has a pair; the last one wins."""
    out = tmp_path / "out.pem"
    output = {"type": "PEM", "path": str(out), "parts": ["certificate", "privateKey"]}
    turns = [_files(materials[0]), _mismatched(materials[1], materials[0]), _files(materials[1]), _empty(*materials[:2])]
    known = {each.fingerprint() for each in materials}
    with Sidecar(tmp_path, _config(volume, program, outputs=[output])) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        read = 0
        began = time.monotonic()
        with _Swapper(volume, turns) as swapper:
            while swapper.swaps < 200 and time.monotonic() - began < 30:
                assert _pair_loads(out) and program.leaf() in known
                read += 1
        volume.write(_files(materials[2]))
        sidecar.wait_delivered(materials[2].fingerprint())
        assert program.leaf() == materials[2].fingerprint() and _pair_loads(out)
    seconds = time.monotonic() - began
    print(f"{swapper.swaps} swaps in {seconds:.1f} s, {swapper.pauses} pauses, {read} readings of the output, {program.reloads} reloads")
    assert swapper.swaps >= 100 and read > 5
    assert program.reloads <= swapper.pauses + 2 * seconds + 3  # the bursts are waited for, a second at most


def test_a_folder_that_goes_and_comes_back(
    tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]
) -> None:
    with Sidecar(tmp_path, _config(volume, program)) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        shutil.rmtree(volume.folder)
        sidecar.wait_state("Refused")
        assert program.reloads == 0
        AtomicVolume(volume.folder, group=os.getgid()).write(_files(materials[1]))
        sidecar.wait_delivered(materials[1].fingerprint())
        (volume.folder / "tls.key").unlink()  # plain files in the place of links, written to one after the other
        (volume.folder / "tls.key").write_bytes(materials[2].key)
        (volume.folder / "tls.crt").unlink()
        (volume.folder / "tls.crt").write_bytes(materials[2].certificate)
        sidecar.wait_delivered(materials[2].fingerprint())
        assert program.leaf() == materials[2].fingerprint()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "certroll-test", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_file_and_tells_nobody(
    small_disk: Path, tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]
) -> None:
    out, filler = small_disk / "out.pem", small_disk / "filler"
    output = {"type": "PEM", "path": str(out), "parts": ["certificate", "privateKey"], "mode": "0440"}
    with Sidecar(tmp_path, _config(volume, program, outputs=[output])) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        before = out.read_bytes()
        with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 512)
        volume.write(_files(materials[1]))
        failing = sidecar.wait_state("Failing")
        assert str(out) in failing["message"] and "No space" in failing["message"]
        assert out.read_bytes() == before and sorted(each.name for each in small_disk.iterdir()) == ["filler", "out.pem"]
        assert program.reloads == 0
        filler.unlink()
        sidecar.wait_delivered(materials[1].fingerprint())
        assert out.read_bytes() == materials[1].certificate + materials[1].key
        assert stat.S_IMODE(out.stat().st_mode) == 0o440


# --- what it shows ---


def test_the_manual_names_every_metric(tmp_path: Path, volume: AtomicVolume, program: Program, materials: list[pki.Material]) -> None:
    out = {"type": "PEM", "path": str(tmp_path / "out.pem"), "parts": ["certificate"]}
    with Sidecar(tmp_path, _config(volume, program, outputs=[out])) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        volume.write(_files(materials[1]))
        sidecar.wait_delivered(materials[1].fingerprint())
        page = sidecar.get("/metrics")[1]
    rows = re.findall(r"^\| `(certroll_sidecar_\w+)` \| (\w+) \| ([\w, ]+) \|", (ROOT / "docs" / "sidecar.md").read_text(), re.MULTILINE)
    assert {(name, kind) for name, kind, _ in rows} == set(re.findall(r"^# TYPE (certroll_sidecar_\w+) (\w+)$", page, re.MULTILINE))
    for name, _, labels in rows:
        series = re.search(rf"^{name}(?:_bucket)?{{(.*)}} ", page, re.MULTILINE)
        assert series and set(re.findall(r'(\w+)="', series[1])) - {"le"} == set(labels.split(", ")), name


def test_its_page_by_tls(tmp_path: Path, volume: AtomicVolume, materials: list[pki.Material]) -> None:
    """With files that it follows as well; /healthz stays plain at an address of its own."""
    own = AtomicVolume(tmp_path / "own", group=os.getgid())
    own.write(_files(materials[1]))
    files = ("--tls-cert-file", str(own.folder / "tls.crt"), "--tls-private-key-file", str(own.folder / "tls.key"))
    with Sidecar(tmp_path, _config(volume), *files, "--health-address", "127.0.0.1:0") as sidecar:
        wait_for("health is served", lambda: sidecar.port_of("health"))
        assert urllib.request.urlopen(f"http://127.0.0.1:{sidecar.port_of('health')}/healthz").status == 200
        assert leaf_at(sidecar.port_of("page")) == materials[1].fingerprint()
        own.write(_files(materials[2]))
        wait_for("the page's new leaf", lambda: leaf_at(sidecar.port_of("page")) == materials[2].fingerprint())
    refused = subprocess.run(
        [str(PROGRAM), "--config", str(sidecar.config), *files, "--client-ca-file", str(own.folder / "ca.crt")], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2 and "--health-address" in refused.stderr


# --- how it starts and ends ---


def test_once_makes_the_outputs_before_anybody_starts(tmp_path: Path, volume: AtomicVolume, materials: list[pki.Material]) -> None:
    out = tmp_path / "out"
    password = tmp_path / "password"
    password.write_text("changeit\n")
    outputs = [
        {"type": "PEM", "path": str(out / "web.pem"), "parts": ["certificate", "privateKey", "trust"]},
        {"type": "Keystore", "path": str(out / "key.p12"), "passwordFile": str(password)},
        {"type": "Truststore", "path": str(out / "trust.p12"), "passwordFile": str(password)},
    ]
    config = tmp_path / "sidecar.yaml"
    config.write_text(repr(_config(volume, outputs=outputs)))
    words = [str(PROGRAM), "--config", str(config), "--once"]
    failed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert failed.returncode == 1 and "web.pem: its folder is not there" in failed.stderr
    out.mkdir()
    assert subprocess.run(words, check=False).returncode == 0
    new = materials[0]
    assert (out / "web.pem").read_bytes() == new.certificate + new.key + new.trust
    for store in ("key.p12", "trust.p12"):
        text = subprocess.run(
            ["openssl", "pkcs12", "-in", str(out / store), "-passin", "pass:changeit", "-nodes"], capture_output=True, text=True, check=True
        ).stdout
        assert ("PRIVATE KEY" in text) == (store == "key.p12") and "BEGIN CERTIFICATE" in text


def test_check_says_what_a_configuration_would_do(tmp_path: Path, volume: AtomicVolume, program: Program) -> None:
    config = tmp_path / "sidecar.yaml"
    words = [str(PROGRAM), "--config", str(config), "--check"]
    config.write_text(repr(_config(volume, program)))
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert str(volume.folder / "tls.crt") in said and str(program.socket) in said and f"port {program.port}" in said
    config.write_text("materials: [{name: web, trust: /ca.crt, trigger: []}]")
    refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "materials[0].trigger: there is no such field" in refused.stderr


def test_the_program_may_begin_when_the_outputs_are_there(tmp_path: Path, materials: list[pki.Material]) -> None:
    """/healthz is what a startup probe asks."""
    volume = AtomicVolume(tmp_path / "secret", group=os.getgid())
    output = {"type": "PEM", "path": str(tmp_path / "out.pem"), "parts": ["certificate", "privateKey"]}
    with Sidecar(tmp_path, _config(volume, outputs=[output])) as sidecar:
        sidecar.wait_state("Refused")
        status, text = sidecar.get("/healthz")
        assert status == 503 and "web: no outputs yet" in text
        volume.write(_files(materials[0]))
        wait_for("it is healthy", lambda: sidecar.get("/healthz")[0] == 200)
        assert _pair_loads(tmp_path / "out.pem")


def test_it_ends_at_once_also_while_a_trigger_hangs(tmp_path: Path, volume: AtomicVolume, materials: list[pki.Material]) -> None:
    begun = tmp_path / "begun"
    trigger = {"type": "Command", "timeout": "5m", "command": {"argv": ["/bin/sh", "-c", f"touch {begun}; exec sleep 300"]}}
    with Sidecar(tmp_path, _config(volume, triggers=[trigger])) as sidecar:
        sidecar.wait_delivered(materials[0].fingerprint())
        volume.write(_files(materials[1]))
        wait_for("the trigger is pulled", begun.exists)
        assert sidecar.stop() < 10


# --- Envoy's page ---


class _Envoy(http.server.BaseHTTPRequestHandler):
    page = b'{"certificates": []}'
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # a page that is too large is not read to its end
            self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        pass

    def address_string(self) -> str:
        return "unix"


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@pytest.fixture
def sockets() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="certroll-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_envoys_certificates_are_relayed_and_nothing_else(tmp_path: Path, sockets: Path, volume: AtomicVolume, family: int) -> None:
    _Envoy.asked.clear()
    _Envoy.page = b'{"certificates": []}'
    if family == socket.AF_UNIX:
        address = str(sockets / "envoy.sock")
        envoy: Any = _UnixServer(address, _Envoy)
    else:
        envoy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Envoy)
        address = f"127.0.0.1:{envoy.server_port}"
    threading.Thread(target=envoy.serve_forever, daemon=True).start()
    with Sidecar(tmp_path, {**_config(volume), "envoyAdmin": address}) as sidecar:
        assert sidecar.get("/certs?x=y") == (200, '{"certificates": []}')
        assert sidecar.get("/certs", "POST")[0] == 405
        assert sidecar.get("/quitquitquit")[0] == 404
        assert _Envoy.asked == ["GET /certs None"]
        _Envoy.page = b"x" * 3 * 1024 * 1024
        assert sidecar.get("/certs") == (502, "Envoy's admin interface: it is longer than the 2097152 bytes that are read\n")
        envoy.shutdown()
        envoy.server_close()
        assert sidecar.get("/certs")[0] == 502
        assert sidecar.get("/healthz")[0] == 200
