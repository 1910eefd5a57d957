"""Trust domains in situations: one that issues the Secret of its place, whose pods take clients of its CAs alone."""

from __future__ import annotations

import base64
import hashlib
import ssl
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

from control_plane import ROOT, wait_until

from .place import Data, Object, Place

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import manifests  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import APIError, path  # noqa: E402
from domains import at_rest, authority, issue  # noqa: E402

_SETTLED_S = 300.0  # at first sight a kubelet has its minute and a half
_MOMENT_S = 90.0
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@dataclass
class DomainPlace(Place):
    """`before`: the CA that shall go; None: none shall."""

    before: pki.Authority | None = field(default=None, repr=False)

    kind, columns = "trustdomains", ("stage", "converged", "problem")
    passing: ClassVar[frozenset[str]] = frozenset({"NotFound"})  # told when the policy is seen before the domain has made the Secret

    # --- what there is

    def establish(self, *, restart: Object | None = None, **spec: Any) -> None:
        self.ground.pods.verify_clients(self.name)
        self.deploy()
        self.govern(restart=restart or {})
        leaves = [{"name": self.name, "source": issue(dnsNames=[self.name])}]
        domain = {"authority": authority(caSecretName=self._ca_name()), "leaves": leaves, "retire": "Converged"} | spec
        metadata = {"namespace": self.ground.namespace, "name": self.name}
        self.ground.api.apply("trustdomains", {"apiVersion": manifests.POLICY, "kind": "TrustDomain", "metadata": metadata, "spec": domain})

    def replace_ca(self, token: str = "one") -> None:
        """By a new one, and the one of before goes."""
        self.before = self._authority()
        self.merge("trustdomains", {"spec": {"rotate": {"token": token, "what": "CA"}}})

    def distrust(self) -> None:
        self.before = self._authority()
        fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.before.certificate.decode())).hexdigest()
        self.merge("trustdomains", {"spec": {"distrust": [fingerprint]}})

    def overwrite(self) -> None:
        """As another program does, with material that is fine."""
        patch = {"data": {key: base64.b64encode(value).decode() for key, value in self.good().items()}}
        target = path("secrets", self.ground.namespace, self.name) + "?fieldManager=gitops"
        self.ground.api.request("PATCH", target, patch, "application/merge-patch+json")

    def refuse_writes(self) -> None:
        """Nobody may change its Secret any more."""
        name = f"{self.ground.namespace}-{self.name}"
        condition = f"request.namespace == '{self.ground.namespace}' && object.metadata.name == '{self.name}'"
        specs: dict[str, Object] = {
            "ValidatingAdmissionPolicy": {
                "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["secrets"]}]},
                "matchConditions": [{"name": "one", "expression": condition}],
                "validations": [{"expression": "false", "message": "this Secret is not to be changed", "reason": "Forbidden"}],
            },
            "ValidatingAdmissionPolicyBinding": {"policyName": name, "validationActions": ["Deny"]},
        }  # fmt: skip
        for kind, spec in specs.items():
            made = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            plural = kind.lower().replace("policy", "policies") if kind.endswith("Policy") else f"{kind.lower()}s"
            self.ground.api.request("POST", f"{_ADMISSION}/{plural}", made)
        wait_until("the API server to refuse", self._is_refused, _MOMENT_S)

    def restarts(self) -> int:
        """Nothing but a restart changes the Deployment's spec."""
        return int(self.ground.api.get("deployments", self.ground.namespace, self.name)["metadata"]["generation"])

    def wait_restarts(self, count: int) -> None:
        wait_until(f"{self.name} to be restarted", lambda: self.restarts() >= count, _MOMENT_S, pause=0.05)

    def wait_published(self) -> None:
        wait_until(f"{self.name} to be put back", self._has_ours, _MOMENT_S)

    def _has_ours(self) -> bool:
        """What another program has put there stays trusted for an hour."""
        own = self._secret(self._ca_name()).get("tls.crt", b"").strip()
        return bool(own) and own in self._secret(self.name).get("ca.crt", b"")

    def domain(self) -> Object:
        return self.ground.api.get("trustdomains", self.ground.namespace, self.name)

    # --- what is looked at

    def wait_settled(self) -> None:
        wait_until(f"{self.name} to be at rest", self.is_settled, _SETTLED_S)

    def is_settled(self) -> bool:
        self.look()
        return at_rest(self.domain()) and self.written is not None and all(map(self._serves, self.apps))

    def is_waited_for(self, domain: Object) -> bool:
        """What was asked for last is carried out."""
        spec, status = domain["spec"], domain.get("status") or {}
        gone = {each["fingerprint"] for each in status.get("distrusted", []) if each.get("gone")}
        return status.get("lastHandledToken") == spec.get("rotate", {}).get("token") and gone == set(spec.get("distrust", []))

    def look(self) -> None:
        self.written = self._secret(self.name) or None

    def truth(self, of_pods: str) -> str:
        if not self.before:
            return of_pods
        now = self._authority()
        if now.certificate == self.before.certificate:
            return f"{of_pods}; the CA of before is in use"
        taken = [taken for app in self.apps for taken in self.ground.pods.takes(app, self.before.issue(self.name))]
        refused = [not taken for app in self.apps for taken in self.ground.pods.takes(app, now.issue(self.name))]
        words = [f"{sum(taken)} of {len(taken)} take clients of the CA of before"] if any(taken) else []
        words += [f"{sum(refused)} of {len(refused)} refuse clients of the CA in use"] if any(refused) else []
        return "; ".join([of_pods, *(words or ["none takes clients of the CA of before"])])

    # --- parts

    def _ca_name(self) -> str:
        return f"{self.name}-ca"

    def _secret(self, name: str) -> Data:
        found = self.ground.api.find("secrets", self.ground.namespace, name) or {}
        return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}

    def _authority(self) -> pki.Authority:
        """The CA in use, with its key."""
        found = self._secret(self._ca_name())
        return pki.Authority(1, found["tls.crt"], found["tls.key"])

    def _is_refused(self) -> bool:
        target = path("secrets", self.ground.namespace, self.name) + "?dryRun=All"
        try:
            self.ground.api.request("PATCH", target, {"metadata": {"labels": {"probe": "x"}}}, "application/merge-patch+json")
        except APIError as error:
            return error.code == 403
        return False
