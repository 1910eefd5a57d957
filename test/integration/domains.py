"""A trust domain on a control plane: an operator beside it, policies that tell at once what has arrived, and what is published.

The policies have no consumers, so each settles what it sees within moments; that the consumers of their first sight have
it, which would take a kubelet's minute and a half, the test writes into their status itself.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import manifests  # noqa: E402
import sanitizers  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API, APIError  # noqa: E402
from operators import Operator  # noqa: E402

Object = dict[str, Any]
Material = Mapping[str, bytes]


def material(data: pki.Material) -> Material:
    return {"tls.crt": data.certificate, "tls.key": data.key, "ca.crt": data.trust}


NAME = "mesh"
OWNER = "certroll.dev/trust-domain"
_DEADLINE = 60.0


def issue(**fields: Any) -> Object:
    """A leaf's source."""
    return {"type": "Issue", "issue": {"dnsNames": ["server.shop.svc"], "usages": ["server", "client"]} | fields}


def mirror(secret: str) -> Object:
    return {"type": "Mirror", "mirror": {"secretName": secret}}


def authority(**fields: Any) -> Object:
    return {"type": "Issue", "issue": {"caSecretName": "mesh-ca"} | fields}


class Domains:
    """Use it as a context, within the network of the API server."""

    def __init__(
        self, plane: ControlPlane, api: API, namespace: str, kubeconfig: Path, folder: Path, *, everywhere: bool = False
    ) -> None:
        self.api = api
        self.namespace = namespace
        self._plane = plane
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._everywhere = everywhere
        # With all namespaces goes the kind that is in none.
        self._kind, self._plural, self._place = ("TrustDomain", "trustdomains", namespace)
        if everywhere:
            self._kind, self._plural, self._place = ("ClusterTrustDomain", "clustertrustdomains", "")
        self._numbers = itertools.count(1)
        self.operator: Operator | None = None
        folder.mkdir(exist_ok=True)

    def __enter__(self) -> Domains:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- the operator

    def start(self, kubeconfig: Path | None = None) -> None:
        self.stop()
        flags = ("--leader-elect=false", f"--operator-namespace={self.namespace}")
        self.operator = Operator(
            self._plane, self.namespace, f"operator-{next(self._numbers)}", kubeconfig or self._kubeconfig, self._folder, *flags,
            extra_environment=sanitizers.ENVIRONMENT, everywhere=self._everywhere,
        )  # fmt: skip
        self.operator.wait_line("all caches are in sync", timeout=_DEADLINE)

    def stop(self) -> None:
        if not self.operator:
            return
        self.operator.end()
        report = sanitizers.report_in(self.operator.log)
        assert not report, report
        self.operator = None

    # --- what there is

    def put(self, name: str, data: Material, owner: str | None = None, namespace: str = "") -> Object:
        secret = manifests.secret(namespace or self.namespace, name, data)
        if owner:
            secret["metadata"]["annotations"] = {OWNER: owner}
        return self.api.apply("secrets", secret)

    def apply(self, name: str = NAME, **spec: Any) -> Object:
        metadata = {"name": name} | ({"namespace": self._place} if self._place else {})
        return self.api.apply(self._plural, {"apiVersion": manifests.POLICY, "kind": self._kind, "metadata": metadata, "spec": spec})

    def merge(self, name: str = NAME, **spec: Any) -> None:
        self.api.merge(self._plural, self._place, name, {"spec": spec})

    def annotate(self, name: str, value: str) -> None:
        self.api.merge(self._plural, self._place, NAME, {"metadata": {"annotations": {name: value}}})

    def rotate(self, what: str, token: str) -> None:
        self.merge(rotate={"token": token, "what": what})

    def get(self, name: str = NAME) -> Object:
        return self.api.get(self._plural, self._place, name)

    def secret(self, name: str, namespace: str = "") -> Material:
        """Empty: it is not there."""
        found = self.api.find("secrets", namespace or self.namespace, name)
        return {key: base64.b64decode(value) for key, value in (found or {}).get("data", {}).items()}

    # --- policies

    def cover(self, *secrets: str, namespace: str = "", name: str = "cover", **spec: Any) -> None:
        self.api.apply("certrotationpolicies", manifests.policy(namespace or self.namespace, name, {
            "secrets": [{"name": each} for each in secrets], "discover": {"enabled": True}} | spec))  # fmt: skip

    def consumers(self, name: str = "cover") -> dict[str, str]:
        """Their states by name."""
        status = self.api.get("certrotationpolicies", self.namespace, name).get("status", {})
        return {each["name"]: each["state"] for each in status.get("consumers", [])}

    def vouch(self, *secrets: str, namespace: str = "", name: str = "cover") -> None:
        """What the policy has seen for the first time, all consumers have."""
        wait_until(f"{name} to have seen {secrets}", lambda: self._vouch(secrets, namespace or self.namespace, name), _DEADLINE)

    def _vouch(self, secrets: Sequence[str], namespace: str, name: str) -> bool:
        policy = self.api.get("certrotationpolicies", namespace, name)
        known = {each["name"]: each for each in policy.get("status", {}).get("secrets", [])}
        if not all(known.get(each, {}).get("settled") for each in secrets):
            return False
        for each in secrets:
            known[each] |= {"trustBy": "Inferred", "leafBy": "Inferred"}
        patch = {"metadata": {"resourceVersion": policy["metadata"]["resourceVersion"]}, "status": {"secrets": list(known.values())}}
        try:
            self.api.merge("certrotationpolicies", namespace, name, patch, subresource="status")
        except APIError as error:
            if error.code != 409:
                raise
            return False
        return True

    # --- what it says

    def wait(self, what: str, holds: Callable[[Object], Any], name: str = NAME, timeout: float = _DEADLINE) -> Object:
        """For the domain; what it says when it does not come to that."""
        try:
            wait_until("", lambda: holds(self.get(name)), timeout, pause=0.05)
        except AssertionError:
            found = self.get(name)
            raise AssertionError(f"not {what}: {json.dumps([found['spec'], found.get('status')], indent=1)}; {self._look_of_operator()}") from None
        return self.get(name)

    def _look_of_operator(self) -> str:
        """What it did last, and whether it waits for its own cache: for whoever reads of a test that failed elsewhere."""
        if not self.operator:
            return "no operator runs"
        ended = self.operator.process.poll()
        if ended is not None:
            return f"the operator ended with {ended}, see {self.operator.log}"
        lags = [line for line in self.operator.get("/metrics")[1].splitlines() if line.startswith("certroll_stale_cache_total")]
        last = [f"{line['ts']} {line['msg']}" for line in self.operator.lines("")[-25:]]
        return "\n".join([f"log: {self.operator.log}", *last, *lags, json.dumps(self.consumers() if self._place else {})])

    def wait_idle(self, name: str = NAME, timeout: float = _DEADLINE) -> Object:
        return self.wait("at rest", at_rest, name, timeout)


def at_rest(domain: Object) -> bool:
    """Of the domain as it is now, with nothing under way."""
    status = domain.get("status") or {}
    spec_token = (domain["spec"].get("rotate") or {}).get("token")
    return (
        status.get("observedGeneration") == domain["metadata"]["generation"]
        and status.get("stage") == "Idle"
        and status.get("lastHandledToken") == spec_token
        and conditions(domain).get("Converged", ("", ""))[0] == "True"
    )


def conditions(domain: Object) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in (domain.get("status") or {}).get("conditions", [])}


def message(domain: Object, condition: str) -> str:
    return next((each["message"] for each in (domain.get("status") or {}).get("conditions", []) if each["type"] == condition), "")


def object_status(domain: Object, name: str, namespace: str = "") -> Object:
    listed = (domain.get("status") or {}).get("objects", [])
    return next((each for each in listed if each["name"] == name and namespace in ("", each.get("namespace"))), {})


# --- certificates


def dated(signer: pki.Authority, begins: int, ends: int) -> Material:
    """A leaf of that authority whose life begins and ends so many days from now."""
    at = [time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400)) for days in (begins, ends)]
    key = pki.new_key()
    with tempfile.TemporaryDirectory(prefix="certroll-test-") as scratch:
        folder = Path(scratch)
        (folder / "ca.crt").write_bytes(signer.certificate)
        (folder / "ca.key").write_bytes(signer.key)
        (folder / "key").write_bytes(key)
        (folder / "index").touch()
        (folder / "config").write_text(_CA_CONFIG.format(folder=folder))
        _openssl("req", "-new", "-key", folder / "key", "-subj", "/CN=server", "-out", folder / "request")
        _openssl("ca", "-batch", "-notext", "-config", folder / "config", "-in", folder / "request", "-out", folder / "crt",
                 "-startdate", at[0], "-enddate", at[1])  # fmt: skip
        return {"tls.crt": (folder / "crt").read_bytes(), "tls.key": key, "ca.crt": signer.certificate}


def bulky_authority(generation: int) -> pki.Authority:
    """One whose bundle, the CA itself and ten more, is most of what a Secret can hold."""
    key = pki.new_key()
    with tempfile.TemporaryDirectory(prefix="certroll-test-") as scratch:
        folder = Path(scratch)
        (folder / "key").write_bytes(key)
        (folder / "config").write_text(_BULKY_CONFIG + "2.999.1 = ASN1:UTF8String:" + "x" * 41_000 + "\n")
        bundle = b""
        for name in ("", *(f" {number}" for number in range(10))):
            _openssl("req", "-x509", "-new", "-key", folder / "key", "-subj", f"/CN=bulky {generation}{name}", "-days", "30",
                     "-config", folder / "config", "-out", folder / "crt")  # fmt: skip
            bundle += (folder / "crt").read_bytes()
        return pki.Authority(generation, bundle, key)


_BULKY_CONFIG = """
[req]
distinguished_name = any
x509_extensions = ca
[any]
[ca]
basicConstraints = critical,CA:TRUE
subjectKeyIdentifier = hash
keyUsage = critical,keyCertSign
"""

_CA_CONFIG = """
[ca]
default_ca = one
[one]
database = {folder}/index
new_certs_dir = {folder}
certificate = {folder}/ca.crt
private_key = {folder}/ca.key
default_md = sha256
rand_serial = yes
policy = any
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:server
authorityKeyIdentifier = keyid:always
"""


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True)


def certificates(pem: bytes) -> list[bytes]:
    end = b"-----END CERTIFICATE-----\n"
    return [part.lstrip() + end for part in pem.split(end) if b"BEGIN CERTIFICATE" in part]


@lru_cache(maxsize=None)
def serial(certificate: bytes) -> str:
    done = subprocess.run(["openssl", "x509", "-noout", "-serial"], input=certificate, capture_output=True, check=True)
    return done.stdout.decode().strip()


@lru_cache(maxsize=None)
def verifies(chain: bytes, bundle: bytes) -> bool:
    """The leaf, with what it is served with, by who trusts just the bundle."""
    with tempfile.TemporaryDirectory(prefix="certroll-test-") as scratch:
        leaf, trust = Path(scratch) / "leaf", Path(scratch) / "trust"
        leaf.write_bytes(chain)
        trust.write_bytes(bundle)
        words = ["openssl", "verify", "-CAfile", str(trust), "-untrusted", str(leaf), str(leaf)]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0


def matches(secret: Material) -> bool:
    """The key is the leaf's."""
    return _public_key("x509", "-pubkey", "-noout", text=secret["tls.crt"]) == _public_key("pkey", "-pubout", text=secret["tls.key"])


def _public_key(*words: str, text: bytes) -> bytes:
    return hashlib.sha256(subprocess.run(["openssl", *words], input=text, capture_output=True, check=True).stdout).digest()


# --- what was published, moment by moment


@dataclass
class Moment:
    """The Secrets of the namespace at some time, those that changed just then named."""

    changed: str
    secrets: dict[str, Material] = field(default_factory=dict)


class Watching:
    """Everything that happens to the Secrets of a namespace while it is a context."""

    def __init__(self, api: API, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._events: list[tuple[str, Object]] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Watching:
        target = f"/api/v1/namespaces/{self._namespace}/secrets"
        listed = self._api.request("GET", target)
        self._first = {each["metadata"]["name"]: _data(each) for each in listed["items"]}
        version = listed["metadata"]["resourceVersion"]
        threading.Thread(target=self._watch, args=(version,), name="watching", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _watch(self, version: str) -> None:
        for event in self._api.watch("secrets", self._namespace, version, 600):
            with self._lock:
                self._events.append(event)

    def moments(self) -> Iterator[Moment]:
        """Until now: all that was written before this call has been seen."""
        marker = f"marker-{time.time_ns()}"
        self._api.apply("secrets", manifests.secret(self._namespace, marker, {}, type="Opaque"))
        wait_until("the watch to have seen all", lambda: any(name == marker for name in self._names()))
        with self._lock:
            events = list(self._events)
        state = dict(self._first)
        yield Moment("", dict(state))
        for kind, secret in events:
            name = secret["metadata"]["name"]
            if kind == "BOOKMARK" or name.startswith("marker-"):
                continue
            state.pop(name, None)
            if kind != "DELETED":
                state[name] = _data(secret)
            yield Moment(name, dict(state))

    def _names(self) -> list[str]:
        with self._lock:
            return [secret["metadata"].get("name", "") for _, secret in self._events]


def _data(secret: Object) -> Material:
    return {key: base64.b64decode(value) for key, value in secret.get("data", {}).items()}


def broken_trust(moments: Iterator[Moment], published: Sequence[str]) -> list[str]:
    """At each moment each published leaf must verify against each published bundle: whoever has got either may meet the other."""
    wrong = []
    for moment in moments:
        there = {name: moment.secrets[name] for name in published if "ca.crt" in moment.secrets.get(name, {})}
        for (leaf, one), (trust, other) in itertools.product(there.items(), there.items()):
            if "tls.crt" in one and not verifies(one["tls.crt"], other["ca.crt"]):
                wrong.append(f"when {moment.changed} was written, the leaf of {leaf} did not verify against the bundle of {trust}")
    return wrong


def issued(moments: Iterator[Moment], names: Sequence[str], key: str = "tls.crt") -> dict[str, list[str]]:
    """The serial numbers that each of the Secrets has had, in order."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for moment in moments:
        for name in names:
            listed = certificates(moment.secrets.get(name, {}).get(key, b""))[:1]
            for each in map(serial, listed):
                if each not in found[name]:
                    found[name].append(each)
    return found
