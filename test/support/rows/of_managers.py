"""Rows of kube-controller-manager and kube-scheduler: what they hand out and sign, beside what all components have."""

from __future__ import annotations

import base64
import functools
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

from certroll_dev import commands
from certroll_dev.demo import pki
from certroll_dev.demo.pki import Authority
from rows import settings
from rows.beside import Beside
from rows.common import calling, serving
from rows.of_api import kid, kid_of_token
from rows.planes import SIGNERS, Planes
from rows.row import Row

_NAMESPACE = "/api/v1/namespaces/default"
_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_PAGE = "/configz"
_ANSWER = 10.0  # seconds that a controller may take
_LEGACY = "the API refuses requests for this signer since 1.22, so nobody can have anything signed"


def rows(planes: Planes) -> list[Row]:
    manager, scheduler = planes.programs["manager"], planes.programs["scheduler"]
    return [
        *serving(planes, 7, manager, settings.MANAGER_OWN, _PAGE),
        *_handed_out(planes, manager),
        *_signed(planes),
        *calling(planes, 11, manager, planes.taps["manager"]),
        *_embedded(planes),
        *serving(planes, 12, scheduler, settings.SCHEDULER_OWN, _PAGE),
        *calling(planes, 13, scheduler, planes.taps["scheduler"]),
    ]


def _handed_out(planes: Planes, program: Beside) -> list[Row]:
    files, api = program.files, planes.api
    old, new = planes.keys["old"], planes.keys["new"]

    def bundle() -> str | None:
        """As it writes kube-root-ca.crt when there is none."""
        api.call("DELETE", f"{_NAMESPACE}/configmaps/kube-root-ca.crt")
        return _until(lambda: _field(planes, f"{_NAMESPACE}/configmaps/kube-root-ca.crt", "ca.crt"))

    def token() -> str | None:
        """The key of a Secret's token, in a Secret that was not there before."""
        metadata = {"generateName": "rows-", "annotations": {"kubernetes.io/service-account.name": "rows"}}
        status, answer = api.call("POST", f"{_NAMESPACE}/secrets", {"type": "kubernetes.io/service-account-token", "metadata": metadata})
        if status != 201:
            return None
        found = _until(lambda: _field(planes, f"{_NAMESPACE}/secrets/{json.loads(answer)['metadata']['name']}", "token"))
        return kid_of_token(base64.b64decode(found).decode()) if found else None

    before, after = planes.pki.old.certificate.decode(), planes.pki.bundle.decode()
    return [
        Row(
            8, "kube-controller-manager", {"--root-ca-file": files / "root-ca.crt"}, "serverCA",
            lambda: files.write({"root-ca.crt": planes.pki.bundle}), lambda: bundle() == after,
            works=lambda: bundle() == before, restart=program.restart, program=program, note="kube-root-ca.crt",
        ),
        Row(
            10, "kube-controller-manager", {"--service-account-private-key-file": files / "sa.key"}, "opaque",
            lambda: files.write({"sa.key": new}), lambda: token() == kid(new),
            works=lambda: token() == kid(old), restart=program.restart, program=program, note="a new Secret's token",
        ),
    ]  # fmt: skip


def _signed(planes: Planes) -> list[Row]:
    found = [_signer(planes, planes.programs["signer"], "", "kube-apiserver-client")]
    for flag, kind in zip(SIGNERS, ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown"), strict=True):
        found.append(_signer(planes, planes.programs["signers"], flag, kind))
    return found


def _signer(planes: Planes, program: Beside, flag: str, kind: str) -> Row:
    files, new = program.files, pki.new_authority(3)
    names = {f"--cluster-signing{flag}-{what}-file": files / f"sign{flag}.{suffix}" for what, suffix in (("cert", "crt"), ("key", "key"))}
    row = Row(
        9, "kube-controller-manager", names, "opaque",
        lambda: files.write({f"sign{flag}.crt": new.certificate, f"sign{flag}.key": new.key}),
        lambda: _issuer(planes, kind) == _subject(new), works=lambda: _issuer(planes, kind) == _subject(planes.pki.old), program=program,
    )  # fmt: skip
    if kind == "legacy-unknown":
        return replace(row, unobservable=_LEGACY, seen=lambda: _ask(planes, kind)[0] == 422, works=lambda: True)
    return row


def _embedded(planes: Planes) -> list[Row]:
    """All in the kubeconfig, leaf and CA at once."""
    program, tap = planes.programs["signer"], planes.taps["signer"]
    leaf = planes.pki.client("api")
    text = planes.embedded(f"https://127.0.0.1:{settings.SIGNER}", leaf, planes.pki.bundle)

    def row(role: str, parameters: tuple[str, ...], seen: Callable[[], bool], works: Callable[[], bool]) -> Row:
        names = {f"kubeconfig {name}": program.files / "kubeconfig" for name in parameters}
        return Row(
            11, "kube-controller-manager", names, role, lambda: program.files.write({"kubeconfig": text}), seen,
            via="--kubeconfig", note="embedded", works=works, tap=tap, restart=program.restart, program=program,
        )  # fmt: skip

    return [
        row("clientLeaf", ("client-certificate", "client-key"), lambda: tap.client == leaf.fingerprint, lambda: tap.client is not None),
        row("serverCA", ("certificate-authority",), tap.is_new_taken, tap.is_old_taken),
    ]


# --- requests of certificates


_USAGES = {"kubelet-serving": ["digital signature", "server auth"]}
_SUBJECTS = {"kube-apiserver-client": "/CN=somebody"}


def _ask(planes: Planes, kind: str) -> tuple[int, str]:
    """The status of the answer, and the name of the request."""
    spec = {
        "request": base64.b64encode(_request_for(kind)).decode(),
        "signerName": f"kubernetes.io/{kind}",
        "usages": _USAGES.get(kind, ["digital signature", "client auth"]),
    }
    status, answer = planes.api.call("POST", _REQUESTS, {"metadata": {"generateName": "rows-"}, "spec": spec})
    return status, json.loads(answer)["metadata"]["name"] if status == 201 else ""


@functools.cache
def _request_for(kind: str) -> bytes:
    words = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null"]
    words += ["-subj", _SUBJECTS.get(kind, "/O=system:nodes/CN=system:node:rows-node")]
    if kind == "kubelet-serving":
        words += ["-addext", "subjectAltName=DNS:rows-node"]
    return subprocess.run(words, check=True, capture_output=True).stdout


def _issuer(planes: Planes, kind: str) -> str | None:
    """Of the certificate that is signed for a request of now; None when none is."""
    status, name = _ask(planes, kind)
    if status != 201:
        return None
    path = f"{_REQUESTS}/{name}"
    condition = {"type": "Approved", "status": "True", "reason": "rows", "message": "of a test"}
    try:
        request = planes.api.json("GET", path)
        request["status"]["conditions"] = [condition]
        planes.api.json("PUT", f"{path}/approval", request)
        signed = _until(lambda: planes.api.json("GET", path)["status"].get("certificate"))
    except AssertionError:  # no answer in time: the next look asks anew
        return None
    finally:
        planes.api.call("DELETE", path)
    return _openssl_name(base64.b64decode(signed), "-issuer") if signed else None


def _subject(authority: Authority) -> str:
    return _openssl_name(authority.certificate, "-subject")


def _openssl_name(certificate: bytes, which: str) -> str:
    return commands.run(["openssl", "x509", "-noout", which], stdin=certificate.decode()).partition("=")[2].strip()


def _field(planes: Planes, path: str, name: str) -> str | None:
    status, answer = planes.api.get(path)
    value = (json.loads(answer).get("data") or {}).get(name) if status == 200 else None
    return str(value) if value else None


def _until(look: Callable[[], str | None]) -> str | None:
    end = time.monotonic() + _ANSWER
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    return None
