"""The sidecar as users have it (the release build), with all that it can: it stays as small as it begins.

1,000 changes with CERTROLL_LONG=1, else 60."""

from __future__ import annotations

import http.server
import json
import os
import re
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import ROOT
from sidecar_pod import Config, Program, Sidecar, leaf_at, wait_for

from certroll_dev.demo import pki  # isort: skip
from programs.volumes import AtomicVolume  # isort: skip

_PROGRAM = Path(os.environ.get("CERTROLL_BUILDS", ROOT / "build")) / "release" / "bin" / "certroll-sidecar"
_CHANGES = 1000 if os.environ.get("CERTROLL_LONG") else 60
_RSS_ANON_KIB = 3 * 1024


def _write(folder: Path, name: str, material: pki.Material) -> tuple[str, str, str]:
    """Paths of certificate, key and CA."""
    files = {"crt": material.certificate, "key": material.key, "ca": material.trust}
    for ending, content in files.items():
        (folder / f"{name}.{ending}").write_bytes(content)
    return (str(folder / f"{name}.crt"), str(folder / f"{name}.key"), str(folder / f"{name}.ca"))


class _Admin:
    """An admin endpoint that makes the program reload, by https."""

    def __init__(self, folder: Path, program: Program) -> None:
        certificate, key, self.ca = _write(folder, "admin", pki.new_authority(7).issue("admin"))

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert b"BEGIN PRIVATE KEY" in body
                program.reload()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}/load"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Stage:
    def __init__(self, folder: Path) -> None:
        self.materials = [pki.new_authority(number).issue("program") for number in range(2)]
        self._volume = AtomicVolume(folder / "secret", group=os.getgid())
        self.change(0)
        self.program = Program(self._volume.folder / "tls.crt", self._volume.folder / "tls.key")
        self.admin = _Admin(folder, self.program)
        self._folder = folder
        (folder / "password").write_text("changeit")

    def change(self, number: int) -> str:
        """The leaf that is there now."""
        new = self.materials[number % 2]
        self._volume.write({"tls.crt": new.certificate, "tls.key": new.key, "ca.crt": new.trust})
        return new.fingerprint()

    def config(self) -> Config:
        inputs = {"certificate": "tls.crt", "privateKey": "tls.key", "trust": "ca.crt"}
        stores = [
            {"type": kind, "path": str(self._folder / f"{kind}.p12"), "passwordFile": str(self._folder / "password")}
            for kind in ("Keystore", "Truststore")
        ]
        pem = {"type": "PEM", "path": str(self._folder / "web.pem"), "parts": ["certificate", "privateKey"]}
        http = {"url": self.admin.url, "body": "${combined}", "caFile": self.admin.ca, "serverName": "admin"}
        material = {
            "name": "web",
            **{key: str(self._volume.folder / name) for key, name in inputs.items()},
            "outputs": [pem, *stores],
            "triggers": [{"type": "HTTP", "http": http}],
            "proof": {"endpoints": [{"port": self.program.port}]},
        }
        return {"materials": [material]}

    def flags(self) -> tuple[str, ...]:
        state = self._folder / "state"
        state.mkdir()
        certificate, key, _ = _write(self._folder, "page", pki.new_authority(8).issue("page"))
        return ("--state-folder", str(state), "--tls-cert-file", certificate, "--tls-private-key-file", key)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[_Stage]:
    stage = _Stage(tmp_path)
    yield stage
    stage.admin.close()
    stage.program.close()


def _page(sidecar: Sidecar, path: str) -> str:
    context = ssl._create_unverified_context()  # noqa: S323 - the page is ours
    url = f"https://127.0.0.1:{sidecar.port_of('page')}{path}"
    with urllib.request.urlopen(url, context=context, timeout=30) as answer:
        return str(answer.read().decode())


def _has(sidecar: Sidecar, leaf: str) -> bool:
    (material,) = json.loads(_page(sidecar, "/status"))["materials"]
    return bool(material["state"] == "Delivered" and material["delivered"]["leaf"] == leaf and material["delivered"]["leafProven"])


def _status(sidecar: Sidecar) -> dict[str, int]:
    """RssAnon (KiB), threads, descriptors."""
    process = Path("/proc") / str(sidecar.process.pid)
    fields = dict(re.findall(r"^(\w+):\s+(\d+)", (process / "status").read_text(), re.MULTILINE))
    return {"RssAnon": int(fields["RssAnon"]), "threads": int(fields["Threads"]), "descriptors": len(list((process / "fd").iterdir()))}


@pytest.mark.timeout(1800)
def test_it_stays_small(tmp_path: Path, stage: _Stage) -> None:
    with Sidecar(tmp_path, stage.config(), *stage.flags(), program=_PROGRAM) as sidecar:
        figures: list[dict[str, Any]] = []
        for number in range(1, _CHANGES + 1):
            leaf = stage.change(number)
            wait_for("it is delivered", lambda leaf=leaf: _has(sidecar, leaf))
            assert leaf_at(stage.program.port) == leaf
            if number in (10, _CHANGES):
                _page(sidecar, "/metrics")
                figures.append(_status(sidecar))
        # The last change's thread may still be about to end.
        wait_for("as many threads as before", lambda: _status(sidecar)["threads"] <= figures[0]["threads"])
    print(f"{_CHANGES} changes, {stage.program.reloads} reloads: {figures[0]} after 10, {figures[1]} after all")
    assert stage.program.reloads == _CHANGES
    assert figures[1]["RssAnon"] <= _RSS_ANON_KIB
    assert figures[1]["descriptors"] <= figures[0]["descriptors"] + 1  # a connection to the page that is just being closed
