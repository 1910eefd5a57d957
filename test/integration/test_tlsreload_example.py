"""The example of docs/tlsreload.md is what it is said to be, and follows its files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import ssl
import subprocess
import time
from pathlib import Path

from control_plane import ROOT, wait_until
from operators import PROGRAM

SOURCE = ROOT / "test" / "integration" / "drivers" / "tls_example.c"
EXAMPLE = PROGRAM.parents[1] / "test" / "tls_example"


def test_the_page_has_the_program_that_is_compiled() -> None:
    (block,) = re.findall(r"```c\n(.*?)```", (ROOT / "docs" / "tlsreload.md").read_text(), re.DOTALL)
    assert SOURCE.read_text().split("\n", 1)[1].strip() == block.strip()


def test_the_example_serves_what_its_files_hold(tmp_path: Path) -> None:
    first, second = _pair(tmp_path / "a"), _pair(tmp_path / "b")
    (tmp_path / "current").symlink_to("a")
    port = _free_port()
    words = [EXAMPLE, tmp_path / "current" / "tls.crt", tmp_path / "current" / "tls.key", str(port)]
    log = tmp_path / "log"
    with log.open("w") as errors, subprocess.Popen(words, stderr=errors) as server:
        try:
            wait_until("the example serves", lambda: _served(port) == first, 60)
            (tmp_path / "fresh").symlink_to("b")
            os.replace(tmp_path / "fresh", tmp_path / "current")
            wait_until("the example has reloaded", lambda: _served(port) == second, 60)
            wait_until("it has told so", lambda: log.read_text().endswith("\n"), 60)
        finally:
            server.terminate()
    (line,) = log.read_text().splitlines()
    event = json.loads(line)
    assert (event["class_uid"], event["status"], event["severity"]) == (5019, "Success", "Informational")
    assert (event["unmapped"]["leaf_before"], event["unmapped"]["leaf"]) == (first, second)
    assert abs(event["time"] / 1000 - time.time()) < 600


def test_the_example_refuses_to_start_with_a_key_of_another(tmp_path: Path) -> None:
    _pair(tmp_path / "a"), _pair(tmp_path / "b")
    words = [EXAMPLE, tmp_path / "a" / "tls.crt", tmp_path / "b" / "tls.key", str(_free_port())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "does not belong to the certificate in" in done.stderr


def _pair(folder: Path) -> str:
    """A certificate and its key; the fingerprint."""
    folder.mkdir()
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost"
    files = ["-keyout", folder / "tls.key", "-out", folder / "tls.crt"]
    subprocess.run([*words.split(), *files], check=True, capture_output=True)
    return _fingerprint((folder / "tls.crt").read_text())


def _fingerprint(pem: str) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def _served(port: int) -> str | None:
    try:
        return _fingerprint(ssl.get_server_certificate(("127.0.0.1", port), timeout=10))
    except OSError:
        return None


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
