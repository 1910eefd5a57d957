"""Rows of kube-apiserver. The first of two takes up by itself what can be; the second is restarted for the rest."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable
from pathlib import Path

from certroll_dev import commands
from rows import settings
from rows.client import Client
from rows.common import serving
from rows.planes import Planes, pair, public
from rows.row import Row, after
from rows.tap import Tap

_NAMESPACE = "/api/v1/namespaces/default"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/rows-provoke"


def rows(planes: Planes) -> list[Row]:
    first = planes.programs["api-a"]
    return [*serving(planes, 1, first, settings.A, _NAMESPACE), *_calls(planes), *_restarted(planes)]


def _calls(planes: Planes) -> list[Row]:
    """Leaves by which it calls others, and CAs by which client-go verifies them."""
    api, program, taps = planes.api, planes.programs["api-a"], planes.taps
    files = program.files

    def leaf(seed: int, name: str, flags: tuple[str, str], tap: Tap, provoke: Callable[[], object]) -> Row:
        new = planes.pki.client(name)
        names = {flag: files / f"{name}.{suffix}" for flag, suffix in zip(flags, ("crt", "key"), strict=True)}
        return Row(
            seed, "kube-apiserver", names, "clientLeaf", lambda: files.write(pair(name, new)), after(provoke, lambda: tap.client == new.fingerprint),
            works=after(provoke, lambda: tap.client is not None), tap=tap, program=program,
        )  # fmt: skip

    def authority(seed: int, flag: str, name: str, tap: Tap, provoke: Callable[[], object]) -> Row:
        return Row(
            seed, "kube-apiserver", {flag: files / f"{name}-ca.crt"}, "serverCA", lambda: files.write({f"{name}-ca.crt": planes.pki.bundle}),
            after(provoke, tap.is_new_taken), works=after(provoke, tap.is_old_taken), tap=tap, program=program,
        )  # fmt: skip

    def call_kubelet() -> None:
        api.get("/api/v1/nodes/rows-node/proxy/healthz")

    def call_peer() -> None:
        """It asks its peers when a Lease of one of them has another holder."""
        api.call("PATCH", _LEASE, {"spec": {"holderIdentity": f"rows-{secrets.token_hex(4)}"}})

    return [
        leaf(3, "kubelet", ("--kubelet-client-certificate", "--kubelet-client-key"), taps["kubelet"], call_kubelet),
        authority(3, "--kubelet-certificate-authority", "kubelet", taps["kubelet"], call_kubelet),
        leaf(4, "proxy", ("--proxy-client-cert-file", "--proxy-client-key-file"), taps["aggregated"], lambda: api.get("/apis/rows.test/v1")),
        authority(4, "--peer-ca-file", "peer", taps["peer"], call_peer),
    ]


def _restarted(planes: Planes) -> list[Row]:
    program, taps = planes.programs["api-b"], planes.taps
    files, api = program.files, planes.client(settings.B)
    old, new = planes.keys["old"], planes.keys["new"]
    both = public(old) + public(new)

    def row(seed: int, flag: str, path: Path, role: str, content: bytes, seen: Callable[[], bool], works: Callable[[], bool], tap: Tap | None) -> Row:
        return Row(
            seed, "kube-apiserver", {flag: path}, role, lambda: files.write({path.name: content}), seen,
            works=works, tap=tap, restart=program.restart, program=program,
        )  # fmt: skip

    def keys() -> set[str]:
        status, answer = api.get("/openid/v1/jwks")
        return {key["kid"] for key in json.loads(answer)["keys"]} if status == 200 else set()

    def signer() -> str | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["rows"]}}
        status, answer = api.call("POST", f"{_NAMESPACE}/serviceaccounts/rows/token", body)
        return kid_of_token(json.loads(answer)["status"]["token"]) if status == 201 else None

    def login() -> None:
        Client(settings.B, headers={"Authorization": f"Bearer {_foreign_token()}"}).get(_NAMESPACE)

    oidc, etcd = taps["oidc"], taps["etcd"]
    names, leaf = {"--etcd-certfile": files / "etcd.crt", "--etcd-keyfile": files / "etcd.key"}, planes.pki.client("etcd")
    return [
        Row(
            2, "kube-apiserver", names, "clientLeaf", lambda: files.write(pair("etcd", leaf)),
            lambda: etcd.client == leaf.fingerprint, works=lambda: etcd.client is not None, tap=etcd, program=program,
        ),
        row(
            2, "--etcd-cafile", files / "etcd-ca.crt", "serverCA", planes.pki.bundle,
            after(etcd.drop, etcd.is_new_taken), etcd.is_old_taken, etcd,
        ),
        row(
            5, "--service-account-key-file", files / "sa.pub", "opaque", both,
            lambda: keys() == {kid(old), kid(new)}, lambda: keys() == {kid(old)}, None,
        ),
        row(
            5, "--service-account-signing-key-file", files / "sa.key", "opaque", new,
            lambda: signer() == kid(new), lambda: signer() == kid(old), None,
        ),
        row(
            6, "--oidc-ca-file", files / "oidc-ca.crt", "serverCA", planes.pki.bundle,
            after(login, oidc.is_new_taken), after(login, oidc.is_old_taken), oidc,
        ),
    ]  # fmt: skip


def kid(key: bytes) -> str:
    """Of a signing key, as Kubernetes names it: SHA-256 of its public key, base64url (pkg/serviceaccount/jwt.go)."""
    lines = commands.run(["openssl", "pkey", "-pubout"], stdin=key.decode()).splitlines()
    return _base64url(hashlib.sha256(base64.b64decode("".join(lines[1:-1]))).digest())


def kid_of_token(token: str) -> str:
    head = token.split(".")[0]
    return str(json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["kid"])


def _foreign_token() -> str:
    """Of our OIDC provider, signed with a key that it has just got: whoever verifies it has to ask for the keys."""
    head = {"alg": "RS256", "typ": "JWT", "kid": secrets.token_hex(8)}
    claims = {"iss": f"https://localhost:{settings.OIDC}", "aud": "rows", "sub": "somebody", "exp": 4102444800, "iat": 0}
    parts = [_base64url(json.dumps(each).encode()) for each in (head, claims)]
    return ".".join([*parts, _base64url(secrets.token_bytes(256))])


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
