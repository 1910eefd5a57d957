"""Where a situation is: one policy with what belongs to it, all of it called like the situation."""

from __future__ import annotations

import base64
import copy
import ssl
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from control_plane import ROOT, ControlPlane, wait_until

from .serving_pods import PORT, Serves, ServingPods

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import manifests  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402

Object = dict[str, Any]
Data = dict[str, bytes]
_SETTLED_S = 120.0


@dataclass
class Ground:
    """What all situations of a namespace share."""

    plane: ControlPlane
    api: API
    namespace: str
    pods: ServingPods
    authority: pki.Authority
    other: pki.Authority


@dataclass
class Place:
    """`written`: the Secret's data, as written last."""

    ground: Ground
    name: str
    apps: list[str] = field(default_factory=list)  # its consumers' pods
    written: Data | None = field(default=None, repr=False)

    # --- the Secret

    def good(self, authority: pki.Authority | None = None, key: bytes | None = None) -> Data:
        made = (authority or self.ground.authority).issue(self.name, key=key)
        return {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.trust}

    def put(self, data: Mapping[str, bytes], **fields: Any) -> None:
        """All of it, whatever it held."""
        secret = manifests.secret(self.ground.namespace, self.name, data, type="Opaque") | fields
        self.ground.api.apply("secrets", secret)
        self.written = dict(data)

    def patch(self, data: Mapping[str, bytes]) -> None:
        """What else the Secret has stays."""
        self.merge("secrets", {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}})
        self.written = dict(data)

    def spoil(self, **data: bytes | None) -> None:
        """Some keys of new material are others, or are not there."""
        named = {key.replace("_", "."): value for key, value in data.items()}
        new = self.good() | named
        self.put({key: value for key, value in new.items() if value is not None})

    def rotate(self) -> None:
        self.put(self.good())

    def take_away(self) -> None:
        self.ground.api.delete("secrets", self.ground.namespace, self.name)
        self.written = None

    # --- who uses it

    def deploy(self, app: str = "", kind: str = "deployments", **spec: Any) -> None:
        app = app or self.name
        made = manifests.deployment(self.ground.namespace, app, self.name)
        made["spec"] |= copy.deepcopy(spec)
        if kind == "statefulsets":
            made["kind"] = "StatefulSet"
            made["spec"] |= {"serviceName": app}
        if kind == "replicasets":
            made["kind"] = "ReplicaSet"
        if kind != "deployments":
            made["spec"].pop("revisionHistoryLimit", None)
        self.ground.api.apply(kind, made)
        if app not in self.apps:
            self.apps.append(app)

    def merge(self, kind: str, patch: Object, name: str = "") -> Object:
        return self.ground.api.merge(kind, self.ground.namespace, name or self.name, patch)

    def serve(self, serves: Serves, app: str = "") -> None:
        self.ground.pods.serve(app or self.name, serves)

    # --- the policy

    def consumer(self, app: str = "", **fields: Any) -> Object:
        """A Deployment of that name, which is asked at its port."""
        made = manifests.listed(app or self.name)[0] | {"verify": {"port": PORT}} | fields
        return {key: value for key, value in made.items() if value is not None}

    def govern(self, name: str = "", **spec: Any) -> None:
        usual: Object = {"secrets": [{"name": self.name}], "consumers": [self.consumer()]}
        restart = {"coalesce": "0s", "breaker": {"within": "0s"}} | spec.pop("restart", {})
        made = manifests.policy(self.ground.namespace, name or self.name, usual | spec | {"restart": restart})
        made["spec"] = {key: value for key, value in made["spec"].items() if value is not None}
        self.ground.api.apply("certrotationpolicies", made)

    def policy(self) -> Object:
        return self.ground.api.get("certrotationpolicies", self.ground.namespace, self.name)

    def wait_served(self) -> None:
        wait_until(f"the pods of {self.name} to serve", lambda: self.apps and all(map(self._serves, self.apps)), _SETTLED_S)

    def wait_settled(self) -> None:
        wait_until(f"{self.name} to be settled", self.is_settled, _SETTLED_S)

    def is_settled(self) -> bool:
        settled = manifests.settled(self.policy()).get(self.name, {})
        return settled.get("leaf") == self.leaf() and all(map(self._serves, self.apps))

    def wait_missed(self) -> None:
        """That its Secret does not exist was seen: one that comes back at once may never have been away, to who looks at it."""
        wait_until(f"{self.name} to be missed", lambda: self.policy()["status"].get("problem") == "NoSecret", _SETTLED_S)

    def _serves(self, app: str) -> bool:
        leaves = self.ground.pods.leaves(app)
        return bool(leaves) and set(leaves) == {self.leaf()}

    # --- what is looked at

    kind, columns = "certrotationpolicies", ("stage", "converged", "problem")
    passing: ClassVar[frozenset[str]] = frozenset()  # Events that come or do not, by who is first

    def is_waited_for(self, policy: Object) -> bool:
        """What the page's first command looks for: settled.leaf of the Secret is the leaf that was written. test_waiting runs the commands."""
        leaf = self.leaf()
        return leaf is not None and manifests.settled(policy).get(self.name, {}).get("leaf") == leaf

    def look(self) -> None:
        """Before it is asked for the truth."""

    def truth(self, of_pods: str) -> str:
        """With what pods show beside their leaves."""
        return of_pods

    # --- the truth

    def leaf(self) -> str | None:
        """SHA-256 of what the Secret holds, if that can be read."""
        try:
            return manifests.fingerprint((self.written or {})["tls.crt"])
        except (KeyError, ValueError, ssl.SSLError):
            return None


def encrypted(key: bytes) -> bytes:
    return subprocess.run(["openssl", "pkcs8", "-topk8", "-passout", "pass:secret"], input=key, check=True, capture_output=True).stdout
