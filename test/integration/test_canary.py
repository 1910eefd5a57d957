"""Whether a server trusts a CA, asked of real servers that verify their clients in every way, and as files are swapped
under them: by a canary, by the names that they announce, by Envoy's page of its certificates."""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from probe_driver import canary, page, probe
from probed import Running, run, subject_digest

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.pki import serial  # noqa: E402
from programs import clouds, known  # noqa: E402
from programs.material import Generations  # noqa: E402
from programs.program import SECRET, Program  # noqa: E402

PORTS = range(30000, 31000, 10)  # not those of known.PORTS and of test_probe.py, which others have in this network
_CONTEXT = ("static_resources", "listeners", 0, "filter_chains", 0, "transport_socket", "typed_config")
_HTTP = ("static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config")


def _nginx(line: str) -> Callable[[Program], Program]:
    """With another line about clients' certificates."""
    return lambda nginx: dataclasses.replace(
        nginx, config={"nginx.conf": nginx.config["nginx.conf"].replace("ssl_verify_client on;", line)}
    )


def _haproxy(words: str) -> Callable[[Program], Program]:
    return lambda haproxy: dataclasses.replace(
        haproxy, config={"haproxy.cfg": haproxy.config["haproxy.cfg"].replace("verify required\n  http", f"{words}\n  http")}
    )


def _envoy(change: Callable[[dict[str, Any]], None]) -> Callable[[Program], Program]:
    return lambda envoy: clouds.rebootstrapped(envoy, change)


def _at(value: Any, keys: tuple[str | int, ...]) -> Any:
    for key in keys:
        value = value[key]
    return value


def _optional(bootstrap: dict[str, Any]) -> None:
    _at(bootstrap, _CONTEXT)["require_client_certificate"] = False


def _untrusted(bootstrap: dict[str, Any]) -> None:
    _at(bootstrap, (*_CONTEXT, "common_tls_context", "validation_context"))["trust_chain_verification"] = "ACCEPT_UNTRUSTED"


def _another_name(bootstrap: dict[str, Any]) -> None:
    matcher = {"san_type": "DNS", "matcher": {"exact": "somebody.else"}}
    _at(bootstrap, (*_CONTEXT, "common_tls_context", "validation_context"))["match_typed_subject_alt_names"] = [matcher]


def _only_http11(bootstrap: dict[str, Any]) -> None:
    """As Envoy does unless it is told otherwise."""
    del _at(bootstrap, _HTTP)["http_protocol_options"]


def _http2(bootstrap: dict[str, Any]) -> None:
    _at(bootstrap, _HTTP)["codec_type"] = "HTTP2"
    _at(bootstrap, (*_CONTEXT, "common_tls_context"))["alpn_protocols"] = ["h2"]


def _as_it_is(program: Program) -> Program:
    return program


@dataclasses.dataclass(frozen=True)
class Case:
    """A program, set up in a way, and what is found of a canary of its CA, and of one of another CA."""

    program: str
    change: Callable[[Program], Program]
    own: str
    other: str


CASES = {
    "nginx, a certificate is optional": Case("nginx", _nginx("ssl_verify_client optional;"), "trusted", "untrusted"),
    "nginx, any certificate will do": Case("nginx", _nginx("ssl_verify_client optional_no_ca;"), "unknown", "unknown"),
    "nginx asks nobody": Case("nginx", _nginx(""), "not asked", "not asked"),
    "nginx, TLS 1.2": Case("nginx", _nginx("ssl_verify_client on; ssl_protocols TLSv1.2;"), "trusted", "untrusted"),
    "HAProxy, a certificate is optional": Case("haproxy", _haproxy("verify optional"), "trusted", "untrusted"),
    "HAProxy, any certificate will do": Case(
        "haproxy", _haproxy("verify optional crt-ignore-err all ca-ignore-err all"), "unknown", "unknown"
    ),
    "Envoy, a certificate is optional": Case("envoy-static", _envoy(_optional), "trusted", "untrusted"),
    "Envoy, any certificate will do": Case("envoy-static", _envoy(_untrusted), "unknown", "unknown"),
    "Envoy knows the CA but wants another name": Case("envoy-static", _envoy(_another_name), "trusted", "untrusted"),
    "Envoy takes no HTTP/1.0": Case("envoy-static", _envoy(_only_http11), "trusted", "untrusted"),
    "Envoy, HTTP/2 only": Case("envoy-static", _envoy(_http2), "trusted", "untrusted"),
    "Apache": Case("apache", _as_it_is, "trusted", "untrusted"),
    "Contour, gRPC": Case("contour", _as_it_is, "trusted", "untrusted"),
    "CoreDNS, no HTTP at all": Case("coredns", _as_it_is, "unknown", "untrusted"),
}


@pytest.fixture(scope="session")
def generations(tmp_path_factory: pytest.TempPathFactory) -> Generations:
    return Generations(tmp_path_factory.mktemp("material"))


@pytest.fixture(scope="session")
def servers(
    control_plane: ControlPlane, generations: Generations, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Running]]:
    control_plane.run("kubectl", "apply", "-f", "-", input="".join(json.dumps(each) for each in clouds.contour_crds()))
    make = known.makers(control_plane.kubeconfig.read_text())
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(run(control_plane, case.change(make[case.program](port)), generations, folder / str(port)))
            for (name, case), port in zip(CASES.items(), PORTS)
        }


@pytest.mark.parametrize("name", CASES)
def test_only_who_verifies_its_clients_is_said_to_trust(control_plane: ControlPlane, servers: dict[str, Running], name: str) -> None:
    server, case = servers[name], CASES[name]
    for client, verdict in {server.good: case.own, server.bad: case.other}.items():
        seen = canary(control_plane, verdict, server.port, client.file)
        assert seen["canary"] == verdict, seen


def test_an_api_server_is_judged_by_what_it_answers(control_plane: ControlPlane, generations: Generations, tmp_path: Path) -> None:
    """It takes any certificate in TLS, and anonymous requests as well."""
    host, port = control_plane.server.removeprefix("https://").rsplit(":", 1)
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "-o", "json").stdout)
    user = config["users"][0]["user"]
    known_client = tmp_path / "known.pem"
    known_client.touch(mode=0o600)
    known_client.write_bytes(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("key", "certificate")))
    for client, verdict in {known_client: "trusted", generations[2].client.file: "untrusted"}.items():
        seen = canary(control_plane, verdict, int(port), client, host)
        assert seen["canary"] == verdict, seen
        assert seen["names"]


def test_redis_sees_no_attack(control_plane: ControlPlane, generations: Generations, tmp_path: Path) -> None:
    """Of a line that begins with "Host:" or POST it would say so in its log."""
    redis = known.makers(control_plane.kubeconfig.read_text())["redis"](PORTS[60])
    with run(control_plane, redis, generations, tmp_path / "redis") as server:
        assert canary(control_plane, "trusted", server.port, server.good.file)["canary"] == "trusted"
        assert "ATTACK" not in server.sandbox.log.read_text()


def _with_page(port: int) -> Callable[[Program], Program]:
    def admin(bootstrap: dict[str, Any]) -> None:
        bootstrap["admin"] = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}

    return _envoy(admin)


def test_a_live_swap_is_followed(control_plane: ControlPlane, generations: Generations, tmp_path: Path) -> None:
    """Envoy takes up new files by itself: names, canary and page tell so, each by itself."""
    old, new = generations[1], generations[2]
    port, admin = PORTS[70], PORTS[70] + 5
    make = known.makers(control_plane.kubeconfig.read_text())["envoy-sds"]
    both = dict(old.secret()) | {"ca.crt": new.authority.certificate + old.authority.certificate}
    names = {each.number: subject_digest(each.authority.certificate) for each in (old, new)}
    cas = {each.number: _hex(each.authority.serial()) for each in (old, new)}
    leaves = {each.number: _hex(serial(each.program.certificate)) for each in (old, new)}

    with run(control_plane, _with_page(admin)(make(port)), generations, tmp_path / "envoy") as server:

        def seen() -> tuple[list[str], str, set[tuple[str, ...]], set[tuple[str, ...]]]:
            answer = probe(control_plane, "TLS", port, canary=new.client.file).one
            certs = page(control_plane, admin)
            assert certs["read"], certs
            assert not any("path" in context for context in certs["contexts"])  # by SDS they are inline
            cas = {tuple(context["cas"]) for context in certs["contexts"]}
            return answer["names"], answer["canary"], cas, {tuple(context["leaves"]) for context in certs["contexts"]}

        def becomes(what: str, *expected: Any) -> None:
            wait_until(what, lambda: seen() == expected, timeout=60)

        becomes("Envoy has the old ones", [names[1]], "untrusted", {(cas[1],)}, {(leaves[1],)})
        server.sandbox.write_secret(SECRET, both)
        becomes("it trusts both", [names[2], names[1]], "trusted", {(cas[2], cas[1])}, {(leaves[1],)})
        server.sandbox.write_secret(SECRET, new.secret())
        becomes("it has the new ones", [names[2]], "trusted", {(cas[2],)}, {(leaves[2],)})
        server.sandbox.write_secret(SECRET, old.secret())
        becomes("it was taken back", [names[1]], "untrusted", {(cas[1],)}, {(leaves[1],)})


def test_the_page_names_the_files_that_envoy_has_read(
    control_plane: ControlPlane, generations: Generations, tmp_path: Path
) -> None:
    port, admin = PORTS[90], PORTS[90] + 5
    make = known.makers(control_plane.kubeconfig.read_text())["envoy-static"]
    with run(control_plane, _with_page(admin)(make(port)), generations, tmp_path / "envoy"):
        seen = page(control_plane, admin)
    assert {context["path"] for context in seen["contexts"]} == {"/certs/ca.crt"}


def _hex(number: str) -> str:
    return number.lower().lstrip("0")


def test_what_is_no_page_is_told(control_plane: ControlPlane, servers: dict[str, Running]) -> None:
    refused = page(control_plane, servers["nginx asks nobody"].port)  # a TLS port
    assert not refused["read"] and refused["words"] == "it answered HTTP 400"
    nobody = page(control_plane, PORTS[80])
    assert not nobody["read"] and nobody["words"] == "Couldn't connect to server"
