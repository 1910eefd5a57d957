"""certroll-sidecar beside the real programs of the distribution: they take up leaf and CAs without a restart, and a client
of a CA that has gone is refused, also when it resumes a session of before."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sidecar_pod import Sidecar, wait_for

from certroll_dev import namespaces  # isort: skip
from certroll_dev.demo.programs import DebianPrograms  # isort: skip
from programs import known, stores, web  # isort: skip
from programs.handshake import Server  # isort: skip
from programs.material import Generation, Generations, Identity  # isort: skip
from programs.program import SECRET, Program  # isort: skip
from programs.sandbox import Sandbox  # isort: skip

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
Config = Mapping[str, Any]


@dataclass
class Client:
    """One that keeps its session and resumes it where it may."""

    server: Server
    identity: Identity
    version: ssl.TLSVersion
    session: ssl.SSLSession | None = None
    resumed: bool = False
    _context: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self._context = context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = self.version
        context.load_cert_chain(self.identity.file)

    def is_accepted(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.server.port), 10) as plain:
                self.server.prelude(plain)
                with self._context.wrap_socket(plain, server_hostname="program", session=self.session) as tls:
                    self.resumed = tls.session_reused is True
                    tls.sendall(self.server.request)
                    accepted = self.server.accepted(tls.recv(4096))
                    self.session = tls.session or self.session
                    return accepted
        except OSError:
            return False


@dataclass(frozen=True)
class Case:
    program: Program
    materials: Callable[[Sandbox], list[Config]]
    announces: bool = True  # the CAs, so that they can be proven
    resumes: bool = True  # sessions, at all
    prepare: Callable[[Sandbox], object] = lambda _: None
    fails_with: str = ""


def _material(sandbox: Sandbox, server: Server, trigger: Config, *parts: str, protocol: str = "TLS") -> Config:
    """parts: none: all of them."""
    volume = sandbox.folder / "volumes" / "certs"
    files = {"certificate": "tls.crt", "privateKey": "tls.key", "trust": "ca.crt"}
    paths = {part: str(volume / name) for part, name in files.items() if part in parts or not parts}
    proof = {"endpoints": [{"port": server.port, "protocol": protocol}], "timeout": "1s"}
    return {"name": "trust" if parts == ("trust",) else "leaf", **paths, "triggers": [trigger], "proof": proof}


def _signal(name: str, file: Path) -> Config:
    return {"type": "Signal", "signal": {"name": name, "pidFile": str(file)}}


def _nginx(debian: DebianPrograms, port: int) -> Case:
    """With a cache of sessions that outlives its workers."""
    program = web.nginx(debian, port)
    line = "ssl_verify_client on;"
    text = program.config["nginx.conf"].replace(line, f"{line} ssl_session_cache shared:tls:1m;", 1)
    return Case(
        replace(program, config={"nginx.conf": text}),
        lambda box: [_material(box, program.server, _signal("SIGHUP", box.root / "tmp/nginx.pid"))],
    )


def _postgresql(debian: DebianPrograms, port: int) -> Case:
    program = stores.postgresql(debian, port)

    def materials(box: Sandbox) -> list[Config]:
        trigger = _signal("SIGHUP", box.root / "var/lib/data/db/postmaster.pid")
        return [_material(box, program.server, trigger, protocol="PostgreSQL")]

    return Case(program, materials, resumes=False)


def _redis(debian: DebianPrograms, port: int) -> Case:
    program = stores.redis(debian, port)

    def materials(box: Sandbox) -> list[Config]:
        return [_material(box, program.server, {"type": "Redis", "redis": {"address": str(box.root / "tmp/redis.sock")}})]

    return Case(program, materials, announces=False)


def _runtime_api(sandbox: Sandbox, **files: list[str]) -> Config:
    return {"type": "HAProxy", "haproxy": {"address": str(sandbox.root / "tmp/haproxy.sock"), **files}}


def _write_pid(sandbox: Sandbox) -> None:
    (sandbox.root / "tmp/haproxy.pid").write_text(f"{sandbox.pid}\n")


def _haproxy(debian: DebianPrograms, port: int) -> Case:
    """The leaf by the runtime API, the CAs by a reload: see trigger_haproxy.c."""
    program = web.haproxy(debian, port)

    def materials(box: Sandbox) -> list[Config]:
        leaf = _runtime_api(box, certificates=["/certs/tls.crt"])
        return [
            _material(box, program.server, leaf, "certificate", "privateKey"),
            _material(box, program.server, _signal("SIGUSR2", box.root / "tmp/haproxy.pid"), "trust"),
        ]

    return Case(program, materials, prepare=_write_pid)


def _haproxy_cas(debian: DebianPrograms, port: int) -> Case:
    program = web.haproxy(debian, port)

    def materials(box: Sandbox) -> list[Config]:
        trigger = _runtime_api(box, certificates=["/certs/tls.crt"], caFiles=["/certs/ca.crt"])
        return [_material(box, program.server, trigger)]

    return Case(program, materials, fails_with="SIGUSR2")


CASES = {"nginx": _nginx, "postgresql": _postgresql, "redis": _redis, "haproxy": _haproxy, "haproxy-cas": _haproxy_cas}


# --- what is seen ---


def _rotate(case: Case, sandbox: Sandbox, sidecar: Sidecar, old: Generation, new: Generation) -> float:
    """To a leaf and a CA that have nothing in common with those of before. Seconds until both were delivered."""
    server = case.program.server
    clients = [Client(server, old.client, version) for version in VERSIONS]
    for client in clients:
        assert client.is_accepted() and client.is_accepted(), f"{client.version.name}: {sandbox.log_tail()}"
        assert client.resumed is case.resumes
    trust, pid, began = _trust(sidecar), sandbox.pid, time.monotonic()
    sandbox.write_secret(SECRET, new.secret())
    page = sidecar.wait_delivered(new.program_leaf)
    wait_for("the CAs are delivered", lambda: _trust(sidecar) not in (trust, None))
    seconds = time.monotonic() - began
    sandbox.check()
    assert sandbox.pid == pid and page["delivered"]["leafProven"]
    assert _holder(sidecar)["delivered"]["trustProven"] is case.announces
    # Workers that are on their way out may still answer for a moment.
    wait_for("the new leaf is served", lambda: server.leaf() == new.program_leaf)
    wait_for("a client of the new CA is accepted", lambda: server.accepts(new.client))
    wait_for("a client of the CA that has gone is refused", lambda: not server.accepts(old.client))
    for client in clients:
        wait_for(f"no session of the CA that has gone is resumed with {client.version.name}", lambda: not client.is_accepted())
    return seconds


def _holder(sidecar: Sidecar) -> dict[str, Any]:
    """The material that the CAs are part of: the last one."""
    return sidecar.material(-1)


def _trust(sidecar: Sidecar) -> str | None:
    """None: it is not delivered now."""
    material = _holder(sidecar)
    return str(material["delivered"]["trust"]) if material["state"] == "Delivered" else None


def _seen(case: Case, generations: Generations, folder: Path, logs: Path) -> list[float]:
    """Twice in a row: what one rotation has broken, the next one shows."""
    logs.mkdir()
    with case.program.running(folder, generations[1].secret()) as sandbox:
        try:
            case.prepare(sandbox)
            with Sidecar(logs, {"materials": case.materials(sandbox)}) as sidecar:
                sidecar.wait_delivered(generations[1].program_leaf)
                wait_for("the CAs are delivered", lambda: _trust(sidecar))
                if case.fails_with:
                    return _is_refused(case, sandbox, sidecar, generations[2])
                return [_rotate(case, sandbox, sidecar, generations[n], generations[n + 1]) for n in (1, 2)]
        finally:
            shutil.copy(sandbox.log, logs / "program.log")


def _is_refused(case: Case, sandbox: Sandbox, sidecar: Sidecar, new: Generation) -> list[float]:
    """And nothing is half done."""
    before = case.program.server.leaf()
    sandbox.write_secret(SECRET, new.secret())
    wait_for("it is said why", lambda: case.fails_with in sidecar.material()["message"])
    assert case.program.server.leaf() == before
    return []


@pytest.fixture(scope="module")
def network() -> Iterator[Path]:
    """Of these programs alone, whose ports are fixed."""
    words = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec sleep infinity"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline() == b"ready\n"
        yield Path(f"/proc/{holder.pid}/ns/net")
        holder.kill()


@pytest.fixture(scope="module")
def seen(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[list[float]]]]:
    """All at once: each waits most of its time."""
    debian, logs = known.debian(), tmp_path_factory.mktemp("triggers")
    generations = Generations(logs)
    with tempfile.TemporaryDirectory(prefix="certroll-") as short, ThreadPoolExecutor(len(CASES)) as pool:  # sockets have short paths
        os.chmod(short, 0o755)

        def run(name: str, port: int) -> list[float]:
            case = CASES[name](debian, port)
            return namespaces.in_network(network, lambda: _seen(case, generations, Path(short) / name, logs / name))

        yield {name: pool.submit(run, name, port) for name, port in zip(CASES, known.PORTS, strict=False)}


@pytest.mark.parametrize("name", CASES)
def test_a_program_takes_up_leaf_and_cas_without_a_restart(seen: dict[str, Future[list[float]]], name: str) -> None:
    seconds = seen[name].result()
    print(f"{name}: {', '.join(f'{each:.2f}' for each in seconds)} s from the volume's change")
