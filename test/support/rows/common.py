"""Rows that several components share: what they serve by one library, and what a kubeconfig names."""

from __future__ import annotations

from dataclasses import replace

from rows import settings
from rows.beside import Beside
from rows.client import Client
from rows.folder import Folder
from rows.planes import Planes, pair
from rows.row import Row
from rows.tap import Tap

# A reflector of client-go that is refused comes back after 30 s, by its jitter after twice as many, and only then reads
# its bundle again (transport/ca_rotation.go); the next leaf that it is shown is, by turns, the old one.
_TWO_CALLS = 120.0  # seconds


def serving(planes: Planes, seed: int, program: Beside, port: int, page: str) -> list[Row]:
    """`page` is one that only somebody may see whom the program knows."""
    files, component = program.files, program.program.name
    leaf, named = planes.pki.server(), planes.pki.server(f"DNS:{settings.SNI}")
    front = planes.pki.client(settings.FRONT_PROXY, "proxies", new=True)
    newcomer = planes.client(port, planes.new_client)
    fronted = planes.client(port, front, X_Remote_User="somebody", X_Remote_Group="system:masters")

    def known() -> bool:
        return planes.client(port).works(page)

    return [
        Row(
            seed, component, {"--tls-cert-file": files / "tls.crt", "--tls-private-key-file": files / "tls.key"}, "serverLeaf",
            lambda: files.write(pair("tls", leaf)), lambda: Client(port).served() == leaf.fingerprint, program=program,
        ),
        Row(
            seed, component, {"--tls-sni-cert-key": files / "sni.crt"}, "serverLeaf",
            lambda: files.write(pair("sni", named)), lambda: Client(port).served(settings.SNI) == named.fingerprint, program=program,
        ),
        Row(
            seed, component, {"--client-ca-file": files / "client-ca.crt"}, "clientCA",
            lambda: files.write({"client-ca.crt": planes.pki.bundle}), lambda: newcomer.works(page), works=known, program=program,
        ),
        Row(
            seed, component, {"--requestheader-client-ca-file": files / "front-proxy-ca.crt"}, "clientCA",
            lambda: files.write({"front-proxy-ca.crt": planes.pki.bundle}), lambda: fronted.works(page), works=known, program=program,
        ),
    ]  # fmt: skip


def calling(planes: Planes, seed: int, program: Beside, tap: Tap) -> list[Row]:
    """What its kubeconfig names."""
    found = kubeconfig_rows(planes, seed, program.program.name, program.files, tap, "")
    return [replace(row, program=program) for row in found]


def kubeconfig_rows(planes: Planes, seed: int, component: str, files: Folder, tap: Tap, note: str) -> list[Row]:
    """Of a kubeconfig that names api.crt, api.key and server-ca.crt; the tap stands where its server is."""
    leaf = planes.pki.client("api")
    names = {"kubeconfig client-certificate": files / "api.crt", "kubeconfig client-key": files / "api.key"}
    return [
        Row(
            seed, component, names, "clientLeaf",
            lambda: files.write(pair("api", leaf)), lambda: tap.client == leaf.fingerprint,
            via="--kubeconfig", note=note, works=lambda: tap.client is not None, tap=tap,
        ),
        Row(
            seed, component, {"kubeconfig certificate-authority": files / "server-ca.crt"}, "serverCA",
            lambda: files.write({"server-ca.crt": planes.pki.bundle}), tap.is_new_taken,
            via="--kubeconfig", note=note, works=tap.is_old_taken, tap=tap, patience=_TWO_CALLS,
        ),
    ]  # fmt: skip
