"""What pkg/pki issues, as others judge it: OpenSSL's own program, strictly, and Go's crypto/x509.

Of a rotation there are four pairs of who verifies and what is presented; which of them holds without a shared CA is what
trust first and cross-signing are about.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane import ROOT

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev import tools  # noqa: E402

_DRIVER = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")) / "test" / "pki_driver"
# Of the CA and the leaf before, and after.
_ROTATIONS = [
    ("RSA-2048", "RSA-2048"),
    ("RSA-3072", "RSA-4096"),
    ("RSA-2048", "ECDSA-256"),
    ("ECDSA-256", "ECDSA-384"),
    ("ECDSA-256", "Ed25519-256"),
    ("Ed25519-256", "Ed25519-256"),
]

Verify = Callable[[Path, str, str, str, str], str]  # folder, roots, leaf, intermediates or "", usage: "" or what is wrong


@pytest.fixture(scope="module")
def certcheck() -> str:
    return str(tools.ensure(["certcheck"])["certcheck"])


def _run(*words: str | Path) -> tuple[bool, str]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)  # RSA-4096 on a busy machine
    return done.returncode == 0, done.stdout + done.stderr


def _openssl(folder: Path, roots: str, leaf: str, between: str, usage: str) -> str:
    command = ["openssl", "verify", "-x509_strict", "-check_ss_sig", "-no-CApath", "-no-CAstore"]
    command += ["-purpose", f"ssl{usage}", "-CAfile", str(folder / roots)]
    # "*.shop" it takes for no name: a wildcard needs two labels behind it.
    command += ["-verify_hostname", "web.shop.svc", "-verify_ip", "10.0.0.1"]
    command += ["-untrusted", str(folder / between)] if between else []
    good, text = _run(*command, folder / leaf)
    return "" if good else text


def _go(certcheck: str) -> Verify:
    def verify(folder: Path, roots: str, leaf: str, between: str, usage: str) -> str:
        chain = folder / "chain.crt"
        chain.write_text("".join((folder / name).read_text() for name in (leaf, between) if name))
        command = [certcheck, "verify", "-roots", folder / roots, "-chain", chain, "-usage", usage]
        good, text = _run(*command, "-names", "api.shop,web.shop.svc,[10.0.0.1],[fd00::1]")
        return "" if good else text

    return verify


@pytest.fixture(scope="module", params=_ROTATIONS, ids="-to-".join)
def issued(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("issued")
    good, text = _run(_DRIVER, folder, *request.param)
    assert good, text
    return folder


# Who verifies, what is presented, with what: whether it must hold.
_PATHS = [
    ("old.crt", "leaf-old.crt", "", True),
    ("new.crt", "leaf-new.crt", "", True),
    ("bundle.crt", "leaf-old.crt", "", True),
    ("bundle.crt", "leaf-new.crt", "", True),
    ("old.crt", "leaf-new.crt", "cross.crt", True),
    ("new.crt", "leaf-new.crt", "cross.crt", True),
    ("bundle.crt", "leaf-new.crt", "cross.crt", True),
    ("old.crt", "leaf-new.crt", "", False),
    ("new.crt", "leaf-old.crt", "", False),
    ("new.crt", "leaf-old.crt", "cross.crt", False),
]


@pytest.mark.parametrize("usage", ["server", "client"])
def test_each_path_of_a_rotation_is_what_it_should_be(issued: Path, certcheck: str, usage: str) -> None:
    verifiers: dict[str, Verify] = {"OpenSSL": _openssl, "Go": _go(certcheck)}
    wrong = []
    for who, verify in verifiers.items():
        for roots, leaf, between, holds in _PATHS:
            problem = verify(issued, roots, leaf, between, usage)
            if holds != (not problem):
                wrong.append(f"{who}: {leaf} {between} against {roots}: {problem or 'accepted'}")
    assert not wrong, "\n".join(wrong)


def test_the_bundle_is_the_new_ca_and_the_one_in_use(issued: Path) -> None:
    assert (issued / "bundle.crt").read_text() == (issued / "new.crt").read_text() + (issued / "old.crt").read_text()


def test_keystores_are_opened_by_others(issued: Path, certcheck: str) -> None:
    """By cert-manager's library, and OpenSSL's program without its legacy provider."""
    answers = {
        "keystore": (True, "ok web.shop.svc and 2 other(s)\n"),
        "truststore": (True, "ok 2 trusted\n"),
    }
    for kind, answer in answers.items():
        file = issued / f"{kind}.p12"
        assert _run(certcheck, kind, file, "changeit") == answer
        good, text = _run(certcheck, kind, file, "changeit!")
        assert not good and "password incorrect" in text
        good, text = _run("openssl", "pkcs12", "-in", file, "-passin", "pass:changeit", "-info", "-noout")
        assert good and "MAC: sha256, Iteration 10000" in text and "AES-256-CBC, Iteration 10000, PRF hmacWithSHA256" in text
    good, text = _run("openssl", "pkcs12", "-in", issued / "keystore.p12", "-passin", "pass:changeit", "-nocerts", "-nodes")
    key = text[text.index("-----BEGIN PRIVATE KEY-----") :]
    assert good and key == (issued / "leaf-new.key").read_text()
