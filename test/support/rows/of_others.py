"""Rows of etcd, its probe, and CoreDNS."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rows import settings
from rows.client import Client
from rows.planes import Planes, pair
from rows.row import Row, after


def rows(planes: Planes) -> list[Row]:
    # The Corefile is CoreDNS's own, which no node's agent reads.
    names = [replace(row, by_catalogue=("Corefile",)) for row in _dns(planes)]
    return [*_clients(planes), *_gateway(planes), *_peers(planes), *_probe(planes), *names]


def _clients(planes: Planes) -> list[Row]:
    program = planes.programs["etcd"]
    files = program.files
    leaf = planes.pki.server()
    own = planes.client(settings.ETCD_OWN)
    newcomer = planes.client(settings.ETCD_OWN, planes.new_client)
    served = Client(settings.ETCD_OWN)

    return [
        Row(
            17, "etcd", _pair_of(planes, "etcd", "--cert-file", "--key-file", "tls"), "serverLeaf",
            lambda: files.write(pair("tls", leaf)), lambda: served.served() == leaf.fingerprint, program=program,
        ),
        Row(
            17, "etcd", {"--trusted-ca-file": files / "ca.crt"}, "clientCA",
            lambda: files.write({"ca.crt": planes.pki.bundle}), lambda: newcomer.works("/health"), works=lambda: own.works("/health"),
            restart=program.restart, program=program,
        ),
    ]  # fmt: skip


def _gateway(planes: Planes) -> list[Row]:
    """etcd's JSON gateway calls etcd itself, by this certificate. It begins with one that is refused."""
    program, leaf = planes.programs["gateway"], planes.pki.client("gateway")
    own = planes.client(settings.GATEWAY_OWN)

    def works() -> bool:
        return own.call("POST", "/v3/kv/range", {"key": "YQ=="})[0] == 200

    return [
        Row(
            17, "etcd", _pair_of(planes, "gateway", "--client-cert-file", "--client-key-file", "client"), "clientLeaf",
            lambda: program.files.write(pair("client", leaf)), works, works=lambda: own.works("/health") and not works(),
            program=program, note="of its gateway",
        ),
    ]  # fmt: skip


def _peers(planes: Planes) -> list[Row]:
    program, tap = planes.programs["member"], planes.taps["member"]
    files = program.files
    leaf, caller = planes.pki.server(), planes.pki.client("member")
    own, newcomer = planes.client(settings.MEMBER_OWN), planes.client(settings.MEMBER_OWN, planes.new_client)
    served = Client(settings.MEMBER_OWN)

    def authority(role: str, seen: Callable[[], bool], works: Callable[[], bool]) -> Row:
        return Row(
            18, "etcd", {"--peer-trusted-ca-file": files / "ca.crt"}, role, lambda: files.write({"ca.crt": planes.pki.bundle}), seen,
            works=works, tap=tap if role == "serverCA" else None, restart=program.restart, program=program,
        )  # fmt: skip

    return [
        Row(
            18, "etcd", _pair_of(planes, "member", "--peer-cert-file", "--peer-key-file", "tls"), "serverLeaf",
            lambda: files.write(pair("tls", leaf)), lambda: served.served() == leaf.fingerprint, program=program,
        ),
        Row(
            18, "etcd", _pair_of(planes, "member", "--peer-client-cert-file", "--peer-client-key-file", "client"), "clientLeaf",
            lambda: files.write(pair("client", caller)), lambda: tap.client == caller.fingerprint,
            works=lambda: tap.client is not None, tap=tap, program=program,
        ),
        authority("clientCA", lambda: newcomer.get("/members")[0] != 0, lambda: own.get("/members")[0] != 0),
        authority("serverCA", tap.is_new_taken, tap.is_old_taken),
    ]  # fmt: skip


def _probe(planes: Planes) -> list[Row]:
    """etcdctl, which a probe of type exec starts each time."""
    tap, files = planes.taps["etcdctl"], planes.programs["etcd"].files
    leaf = planes.pki.client("ctl")

    def run() -> bool:
        return subprocess.run(planes.etcdctl(), capture_output=True).returncode == 0

    names = {"--cert": files / "ctl.crt", "--key": files / "ctl.key"}
    return [
        Row(
            19, "etcdctl", names, "clientLeaf", lambda: files.write(pair("ctl", leaf)),
            lambda: run() and tap.client == leaf.fingerprint, works=run, tap=tap, note="health: etcd's probe",
        ),
        Row(
            19, "etcdctl", {"--cacert": files / "ctl-ca.crt"}, "serverCA", lambda: files.write({"ctl-ca.crt": planes.pki.bundle}),
            after(run, tap.is_new_taken), works=run, tap=tap, note="health: etcd's probe",
        ),
    ]  # fmt: skip


def _dns(planes: Planes) -> list[Row]:
    program, tap = planes.programs["coredns"], planes.taps["coredns"]
    files = program.files
    leaf, caller = planes.pki.server(), planes.pki.client("api")
    served, newcomer = Client(settings.METRICS), planes.client(settings.METRICS, planes.new_client)
    names = {"kubernetes tls CERT": files / "api.crt", "kubernetes tls KEY": files / "api.key"}
    signal = {"SIGUSR1": lambda: program.signal("SIGUSR1")}
    metrics = Row(
        21, "coredns", {"prometheus tls": files / "tls.crt"}, "serverLeaf", lambda: files.write(pair("tls", leaf)),
        lambda: served.served() == leaf.fingerprint, program=program,
    )  # fmt: skip
    return [
        Row(
            20, "coredns", names, "clientLeaf", lambda: files.write(pair("api", caller)), lambda: tap.client == caller.fingerprint,
            works=lambda: tap.client is not None, tap=tap, program=program,
        ),
        Row(
            20, "coredns", {"kubernetes tls CACERT": files / "server-ca.crt"}, "serverCA",
            lambda: files.write({"server-ca.crt": planes.pki.bundle}), tap.is_new_taken,
            works=tap.is_old_taken, tap=tap, restart=program.restart, triggers=signal, program=program,
        ),
        metrics,
        replace(
            metrics, files={"prometheus tls": files / "client-ca.crt"}, role="clientCA", note="client_ca_file of its web configuration",
            swap=lambda: files.write({"client-ca.crt": planes.pki.bundle}), seen=lambda: newcomer.works("/metrics"),
            works=lambda: planes.client(settings.METRICS).works("/metrics"),
        ),
        Row(22, "coredns", {"health tls": files / "tls.crt"}, "serverLeaf", seen=lambda: _is_refused(planes), unobservable=_NO_TLS),
    ]  # fmt: skip


_NO_TLS = "upstream's plugin has no TLS: CoreDNS refuses to start with it"


def _is_refused(planes: Planes) -> bool:
    program = planes.programs["coredns"]
    file = planes.place / "Corefile.health"
    file.write_text(f".:{settings.DNS} {{\n    health 127.0.0.1:{settings.HEALTH} {{\n        tls a b\n    }}\n}}\n")
    done = subprocess.run([program.program, "-conf", file], capture_output=True, text=True, timeout=30)
    return done.returncode != 0 and "tls" in done.stdout + done.stderr


def _pair_of(planes: Planes, program: str, certificate: str, key: str, name: str) -> dict[str, Path]:
    files = planes.programs[program].files
    return {certificate: files / f"{name}.crt", key: files / f"{name}.key"}
