"""The demo's trust domain: it takes the three Secrets over, and publishes a new CA before any certificate of it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import NAMESPACE, Material
from certroll_dev.demo.table import Row
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import MANIFESTS

_NAME = "demo"
_CONSENT = "certroll.dev/trust-domain"
_DEADLINE = 60.0
_STAGES = {
    "Trusting": "the bundles have the new CA; no certificate of it is published before every pod trusts it",
    "Switching": "the new certificates are published",
    "Retiring": "the old CA is taken out of the bundles",
    "Held": "something is missing, and nothing is published meanwhile",
}


@dataclass(frozen=True)
class TrustDomain:
    cluster: LocalCluster
    api: API

    def take_over(self, names: Sequence[str]) -> None:
        """The Secrets of these names, which are mounted, are the domain's from now on."""
        for name in names:
            mounted = self.api.get("secrets", NAMESPACE, name)
            issued = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{name}-issued", "namespace": NAMESPACE}}
            self.api.apply("secrets", issued | {"type": mounted["type"], "data": mounted["data"]})
            self.api.merge("secrets", NAMESPACE, name, {"metadata": {"annotations": {_CONSENT: f"{NAMESPACE}/{_NAME}"}}})
        self.cluster.kubectl("apply", "-f", str(MANIFESTS / "60-trust-domain.yaml"))
        wait_for("the trust domain to be at rest", self._is_at_rest, deadline=_DEADLINE, missing=lambda: str(self._status()))

    def issue(self, materials: Mapping[str, Material]) -> Callable[[], Mapping[str, str] | None]:
        """As an issuer that knows nothing of order, all at once. Returns what gives the resourceVersions at which all of it is
        published; None: it is not yet."""
        self._write_issued(materials)
        return lambda: self._published(materials)

    def row(self, seconds: float) -> Row:
        status = self._status()
        stage = status.get("stage", "")
        what = (status.get("rotation") or {}).get("what", "")
        return Row("trust domain", what, "-", stage or "-", status.get("converged", "-"), seconds, _STAGES.get(stage, "nothing is under way"))

    def _write_issued(self, materials: Mapping[str, Material]) -> None:
        for name, material in materials.items():
            self.api.apply("secrets", material.secret(f"{name}-issued"))

    def _published(self, materials: Mapping[str, Material]) -> Mapping[str, str] | None:
        if not self._is_at_rest():
            return None
        secrets = {name: self.api.get("secrets", NAMESPACE, name) for name in materials}
        if any(base64.b64decode(secrets[name]["data"]["tls.crt"]) != material.certificate for name, material in materials.items()):
            return None
        return {name: secret["metadata"]["resourceVersion"] for name, secret in secrets.items()}

    def _is_at_rest(self) -> bool:
        domain = self.api.get("trustdomains", NAMESPACE, _NAME)
        status = domain.get("status") or {}
        converged = any(c["type"] == "Converged" and c["status"] == "True" for c in status.get("conditions", []))
        observed = status.get("observedGeneration") == domain["metadata"]["generation"]
        return bool(observed and converged and status.get("stage") == "Idle" and not status.get("rotation"))

    def _status(self) -> Object:
        status: Object = self.api.get("trustdomains", NAMESPACE, _NAME).get("status") or {}
        return status
