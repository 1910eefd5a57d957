"""The TLS probe against real servers: what they show, what they make of a client's certificate, and how it ends."""

from __future__ import annotations

import dataclasses
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from probe_driver import canary, probe
from probed import Running, run

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev import namespaces  # noqa: E402
from programs import known  # noqa: E402
from programs.material import Generations  # noqa: E402
from programs.program import SECRET  # noqa: E402
from programs.sandbox import Sandbox  # noqa: E402

_MANY = [f"10.99.{i // 250}.{i % 250 + 1}" for i in range(500)]
_SILENT = 64  # of them
PORTS = range(31000, 32000, 10)  # not those of known.PORTS, which others have in this network
_HOSTS_ADDRESS = "10.98.0.7"  # of this network, and not of loopback: a server that keeps count of hosts does so for it


@dataclasses.dataclass(frozen=True)
class Expected:
    """How a server is asked, and what it makes of a client: of its own CA, and of a CA that it does not know. Whether
    it names its CA, and whether a canary can be had of it."""

    protocol: str
    good: str
    bad: str
    names: bool = True
    canary: bool = True


# In TLS 1.3 a server that lets a client in need not say so; nginx refuses nobody before it has a request.
SERVERS = {
    "postgresql": Expected("PostgreSQL", "silent", "denied", canary=False),
    "mariadb": Expected("MySQL", "accepted", "denied", names=False, canary=False),
    "redis": Expected("TLS", "accepted", "denied", names=False),
    "nginx": Expected("TLS", "accepted", "accepted"),
    "haproxy": Expected("TLS", "accepted", "denied"),
    "etcd": Expected("TLS", "accepted", "denied"),
    "envoy-static": Expected("TLS", "silent", "denied"),
}


@pytest.fixture(scope="session")
def generations(tmp_path_factory: pytest.TempPathFactory) -> Generations:
    return Generations(tmp_path_factory.mktemp("material"))


@pytest.fixture(scope="session")
def servers(
    control_plane: ControlPlane, generations: Generations, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Running]]:
    make = known.makers(control_plane.kubeconfig.read_text())
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(run(control_plane, make[name](port), generations, folder / name))
            for name, port in zip(SERVERS, PORTS)
        }


@pytest.mark.parametrize("name", SERVERS)
def test_the_leaf_is_seen_and_the_client_is_judged_as_the_server_does(
    control_plane: ControlPlane, servers: dict[str, Running], name: str
) -> None:
    server, expected = servers[name], SERVERS[name]
    clients = {None: "none", server.good: expected.good, server.bad: expected.bad}
    for client, verdict in clients.items():
        seen = probe(control_plane, expected.protocol, server.port, client=client and client.file).one
        assert seen["outcome"] == "served", seen
        assert seen["leaf"] == server.leaf
        assert seen["client"] == verdict, seen
        assert seen["detail"] == ("alert unknown CA" if verdict == "denied" else "")


@pytest.mark.parametrize("name", SERVERS)
def test_the_names_of_its_cas_are_seen_without_a_client(control_plane: ControlPlane, servers: dict[str, Running], name: str) -> None:
    server, expected = servers[name], SERVERS[name]
    seen = probe(control_plane, expected.protocol, server.port).one
    assert (seen["asked"], seen["more"]) == (True, False)
    assert seen["names"] == ([server.name] if expected.names else [])


@pytest.mark.parametrize("name", SERVERS)
def test_a_canary_is_trusted_where_its_ca_is(control_plane: ControlPlane, servers: dict[str, Running], name: str) -> None:
    server, expected = servers[name], SERVERS[name]
    verdicts = {server.good: "trusted", server.bad: "untrusted"} if expected.canary else {server.good: "unknown"}
    for client, verdict in verdicts.items():
        seen = canary(control_plane, verdict, server.port, client.file, protocol=expected.protocol)
        assert seen["canary"] == verdict, seen


@pytest.mark.parametrize(("name", "protocol"), [("postgresql", "TLS"), ("postgresql", "MySQL"), ("mariadb", "TLS"), ("nginx", "PostgreSQL")])
def test_the_wrong_protocol_is_told(control_plane: ControlPlane, servers: dict[str, Running], name: str, protocol: str) -> None:
    seen = probe(control_plane, protocol, servers[name].port, timeout=1000).one
    assert seen["outcome"] != "served"
    assert seen["leaf"] == ""
    assert seen["detail"]


def test_postgresql_has_nothing_to_complain_of(control_plane: ControlPlane, servers: dict[str, Running]) -> None:
    """A connection that is broken off would be a line in the server's log, each time."""
    server = servers["postgresql"]
    before = server.sandbox.log.read_text()
    for client in (None, server.good.file):
        probe(control_plane, "PostgreSQL", server.port, repeat=20, client=client)
    assert server.sandbox.log.read_text() == before


def test_postgresql_without_tls_says_so(control_plane: ControlPlane, generations: Generations, tmp_path: Path) -> None:
    program = known.makers(control_plane.kubeconfig.read_text())["postgresql"](PORTS[50])
    off = dataclasses.replace(program, command=[word.replace("ssl=on", "ssl=off") for word in program.command])
    network = Path("/run/netns") / control_plane.netns
    sandbox = Sandbox(tmp_path / "postgresql", off.pod(), configs={"program": off.config}, usr=off.usr)
    try:
        sandbox.write_secret(SECRET, generations[1].secret())
        off.prepare(sandbox)
        namespaces.in_network(network, sandbox.start)
        seen = wait_until(
            "PostgreSQL answers",
            lambda: (found := probe(control_plane, "PostgreSQL", PORTS[50]).one)["outcome"] != "unreachable" and found,
        )
        assert seen["outcome"] == "not TLS"
        assert seen["detail"] == "PostgreSQL answered that it has no TLS"
    finally:
        sandbox.remove()


def test_mariadb_blocks_nobody_because_of_us(control_plane: ControlPlane, generations: Generations, tmp_path: Path) -> None:
    """A host whose connections break off max_connect_errors times is blocked. Ours do not count as broken off."""
    program = known.makers(control_plane.kubeconfig.read_text())["mariadb"](PORTS[60])
    flags = ["--max-connect-errors=3", "--performance-schema=ON"]
    command = [*(word.replace("127.0.0.1", "0.0.0.0") for word in program.command), *flags]

    def prepare(sandbox: Sandbox) -> None:
        with (sandbox.root / "etc/hosts").open("a") as file:
            file.write(f"{_HOSTS_ADDRESS} prober\n")  # a host without a name is not counted
        program.prepare(sandbox)

    counting = dataclasses.replace(program, command=command, prepare=prepare)
    control_plane.run("ip", "address", "replace", f"{_HOSTS_ADDRESS}/32", "dev", "lo")
    with run(control_plane, counting, generations, tmp_path / "mariadb") as server:

        def sql(query: str) -> str:
            return server.sandbox.run(["mariadb", "--no-defaults", "-uroot", "-S", "/tmp/mysql.sock", "-Ne", query]).decode().strip()

        def errors() -> str:
            return sql(f"SELECT SUM_CONNECT_ERRORS FROM performance_schema.host_cache WHERE IP = '{_HOSTS_ADDRESS}'")

        # A host from which no account may come is sent away before TLS.
        stranger = probe(control_plane, "MySQL", server.port, _HOSTS_ADDRESS).one
        assert stranger["outcome"] == "unreachable"
        assert "MySQL answered with the error 'Host .prober. is not allowed to connect" in stranger["detail"]

        sql("CREATE USER 'app'@'%' IDENTIFIED BY 'secret'; FLUSH HOSTS")
        polite = probe(control_plane, "MySQL", server.port, _HOSTS_ADDRESS, repeat=20).one
        assert polite["outcome"] == "served", polite
        assert polite["leaf"] == server.leaf
        assert errors() == "0"

        # Who hangs up after the greeting is counted: so the count can count.
        for _ in range(3):
            namespaces.in_network(Path("/run/netns") / control_plane.netns, lambda: _hang_up(server.port))
        wait_until("MariaDB has counted", lambda: errors() == "3")
        blocked = probe(control_plane, "MySQL", server.port, _HOSTS_ADDRESS).one
        assert blocked["outcome"] == "unreachable"
        assert "is blocked because of many connection errors" in blocked["detail"]


def _hang_up(port: int) -> None:
    with socket.create_connection((_HOSTS_ADDRESS, port), 5.0) as connection:
        connection.recv(4096)


@pytest.fixture(scope="session")
def many(control_plane: ControlPlane, generations: Generations, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A TLS server at 500 addresses; at the first 64 of them somebody else listens, who never answers."""
    control_plane.run("ip", "route", "replace", "local", "10.99.0.0/16", "dev", "lo")
    nginx = known.makers(control_plane.kubeconfig.read_text())["nginx"](PORTS[70])
    listens = " ".join(f"listen {address}:{PORTS[70]} ssl;" for address in ["127.0.0.1", *_MANY[_SILENT:]])
    text = nginx.config["nginx.conf"].replace("events {}", "events { worker_connections 4096; }")
    everywhere = dataclasses.replace(nginx, config={"nginx.conf": text.replace(f"listen 127.0.0.1:{PORTS[70]} ssl;", listens)})
    with ExitStack() as stack:
        for address in _MANY[:_SILENT]:
            listener = namespaces.in_network(Path("/run/netns") / control_plane.netns, socket.socket)
            stack.enter_context(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, PORTS[70]))
            listener.listen()
        yield stack.enter_context(run(control_plane, everywhere, generations, tmp_path_factory.mktemp("many")))


@pytest.mark.parametrize(
    "limits",
    [pytest.param((), id="as-it-is"), pytest.param(("--nofile=40",), id="few-file-descriptors")],
)
def test_the_silent_starve_nobody(control_plane: ControlPlane, many: Running, limits: tuple[str, ...]) -> None:
    """500 pods in one go, the silent ones first. The time is that of a busy machine."""
    seen = probe(control_plane, "TLS", many.port, *_MANY, timeout=20_000, limits=limits)
    assert {each["detail"] for each in seen.results[:_SILENT]} == {"no TLS answer in time"}
    starved = [each for each in seen.results[_SILENT:] if each["leaf"] != many.leaf]
    assert not starved, (len(starved), starved[0], seen.cost)
    assert seen.cost["tookMs"] < 21_000
