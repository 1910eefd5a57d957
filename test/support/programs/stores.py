"""Redis, PostgreSQL, MariaDB from Debian's packages; etcd."""

from __future__ import annotations

import re
from pathlib import Path

from certroll_dev.demo.programs import DebianPrograms
from programs.handshake import (
    Server,
    mysql_login,
    mysql_prelude,
    postgresql_prelude,
    postgresql_startup,
)
from programs.program import CALLS, CONFIG, SERVES, Program
from programs.sandbox import Sandbox

_DATA = "/var/lib/data/db"


def redis(debian: DebianPrograms, port: int) -> Program:
    """A replica of our peer, which it calls each second."""
    peer = port + 1
    flags = ["--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--dir", "/tmp", "--save", ""]
    flags += ["--tls-cert-file", "/certs/tls.crt", "--tls-key-file", "/certs/tls.key", "--tls-ca-cert-file", "/certs/ca.crt"]
    flags += ["--tls-auth-clients", "yes", "--tls-replication", "yes", "--replicaof", "127.0.0.1", str(peer)]
    flags += ["--unixsocket", "/tmp/redis.sock"]
    return Program(
        name="redis",
        image=f"docker.io/library/redis:{debian.versions['redis-server']}",
        command=["redis-server", *flags],
        usr=debian.root / "usr",
        server=Server(port, request=b"PING\r\n", accepted=lambda answer: answer.startswith(b"+PONG")),
        roles=SERVES | CALLS,
        peer_port=peer,
        commands=_config_set,
    )


def _config_set(sandbox: Sandbox, trigger: str) -> None:
    """CONFIG SET of the options that `trigger` names, each to the value that it has."""
    options = re.findall(r"tls-[a-z-]+", trigger)
    if not trigger.startswith("CONFIG SET") or not options:
        raise AssertionError(f"Redis has no {trigger!r}")
    cli = ["redis-cli", "-s", "/tmp/redis.sock"]
    words = []
    for option in options:
        _, value = sandbox.run([*cli, "CONFIG", "GET", option]).decode().splitlines()
        words += [option, value]
    answer = sandbox.run([*cli, "CONFIG", "SET", *words]).decode().strip()
    if answer != "OK":
        raise AssertionError(f"Redis refused CONFIG SET {' '.join(words)}: {answer}")


_PG_HBA = "local all all trust\nhostssl all all all trust clientcert=verify-ca\n"


def postgresql(debian: DebianPrograms, port: int, major: str = "15") -> Program:
    bin = f"/usr/lib/postgresql/{major}/bin"
    settings = {
        "port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "/tmp", "hba_file": f"{CONFIG}/pg_hba.conf",
        "ssl": "on", "ssl_cert_file": "/certs/tls.crt", "ssl_key_file": "/certs/tls.key", "ssl_ca_file": "/certs/ca.crt",
    }
    flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return Program(
        name="postgresql",
        image=f"docker.io/library/postgres:{debian.versions[f'postgresql-{major}']}",
        command=[f"{bin}/postgres", "-D", _DATA, *flags],
        config={"pg_hba.conf": _PG_HBA},
        usr=debian.root / "usr",
        server=Server(port, request=postgresql_startup("app"), prelude=postgresql_prelude),
        roles=SERVES,
        prepare=lambda sandbox: sandbox.run([f"{bin}/initdb", "--no-sync", "--auth=trust", "-D", _DATA]),
        commands=lambda sandbox, trigger: _sql(sandbox, trigger, [f"{bin}/psql", "-h", "/tmp", "-p", str(port), "-d", "postgres", "-Atc"]),
    )


def mariadb(debian: DebianPrograms, port: int) -> Program:
    flags = [f"--datadir={_DATA}", "--socket=/tmp/mysql.sock", "--bind-address=127.0.0.1", f"--port={port}", "--skip-log-bin"]
    flags += ["--ssl-cert=/certs/tls.crt", "--ssl-key=/certs/tls.key", "--ssl-ca=/certs/ca.crt"]
    install = ["mysql_install_db", "--no-defaults", f"--datadir={_DATA}", "--auth-root-authentication-method=normal", "--skip-test-db"]
    return Program(
        name="mariadb",
        image=f"docker.io/library/mariadb:{debian.versions['mariadb-server-core']}",
        command=["mariadbd", "--no-defaults", *flags],
        usr=debian.root / "usr",
        server=Server(port, request=mysql_login("nobody"), prelude=mysql_prelude),
        roles=SERVES,
        prepare=lambda sandbox: sandbox.run(install),
        commands=lambda sandbox, trigger: _sql(sandbox, trigger, ["mariadb", "--no-defaults", "-uroot", "-S", "/tmp/mysql.sock", "-e"]),
    )


def _sql(sandbox: Sandbox, trigger: str, client: list[str]) -> None:
    sandbox.run([*client, trigger])


def etcd(program: Path, version: str, port: int) -> Program:
    """One member; its clients' port."""
    url = f"https://localhost:{port}"
    return Program(
        name="etcd",
        image=f"quay.io/coreos/etcd:{version}",
        command=[
            "etcd", "--data-dir=/var/lib/data/etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://localhost:{port + 1}", "--cert-file=/certs/tls.crt", "--key-file=/certs/tls.key",
            "--trusted-ca-file=/certs/ca.crt", "--client-cert-auth", "--log-level=error",
        ],
        programs={"etcd": program},
        server=Server(port),
        roles=SERVES,
    )


def etcd_member(program: Path, version: str, port: int) -> Program:
    """One of two members, whose other is our peer: it calls it all the time, and listens for its calls."""
    peer, own = port + 1, f"https://localhost:{port}"
    return Program(
        name="etcd-member",
        image=f"quay.io/coreos/etcd:{version}",
        command=[
            "etcd", "--name=a", "--data-dir=/var/lib/data/etcd", f"--listen-client-urls=http://localhost:{port + 2}",
            f"--advertise-client-urls=http://localhost:{port + 2}", f"--listen-peer-urls={own}", f"--initial-advertise-peer-urls={own}",
            f"--initial-cluster=a={own},b=https://peer:{peer}", "--peer-cert-file=/certs/tls.crt", "--peer-key-file=/certs/tls.key",
            "--peer-trusted-ca-file=/certs/ca.crt", "--peer-client-cert-auth", "--log-level=error",
        ],
        programs={"etcd": program},
        server=Server(port),
        roles=SERVES | CALLS,
        peer_port=peer,
    )
