"""An operator that follows a ControlPlanePolicy, with the rights of manifests/components/control-plane and no others beyond its own
namespace, under the admission policy; paper agents beside it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import string
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from control_plane import ROOT, ControlPlane, wait_until
from operators import RULES, Operator, account

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import sanitizers  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402
from paper_agents import ROWS, SMALL, PaperAgents  # noqa: E402

Object = dict[str, Any]
NAME = "control-plane"
SYSTEM = "kube-system"
KEY = "certroll-service-account-key"
_ROLE_NAME = "certroll-operator-control-plane"
NODES = ("paper-1", "paper-2", "paper-3")
_ROLE = ROOT / "manifests" / "components" / "control-plane" / "role.yaml"
_ADMISSION = ROOT / "manifests" / "base" / "admission.yaml"


def fake(name: str) -> str:
    """A fingerprint."""
    return hashlib.sha256(name.encode()).hexdigest()


def joined(*prints: str) -> str:
    return ",".join(sorted(prints))


def token(key: str) -> str:
    """As the controller manager makes them, signed by nobody."""
    kid = base64.urlsafe_b64encode(bytes.fromhex(key)).decode().rstrip("=")
    head = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": kid}).encode()).decode().rstrip("=")
    return f"{head}.e30.c2lnbmVk"


def _padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)


def root_of(plane: ControlPlane) -> str:
    """The cluster's CA, as it is in each kube-root-ca.crt."""
    text = plane.get("configmap", "kube-root-ca.crt", "-n", "default")["data"]["ca.crt"]
    return hashlib.sha256(base64.b64decode("".join(line for line in text.splitlines() if "-----" not in line))).hexdigest()


def key_of(plane: ControlPlane) -> str:
    """With which the controller manager signs tokens."""
    file = plane.kubeconfig.parent / "pki" / "service-account.key"
    der = subprocess.run(["openssl", "pkey", "-in", file, "-pubout", "-outform", "DER"], capture_output=True, check=True).stdout
    return hashlib.sha256(der).hexdigest()


class World:
    def __init__(self, plane: ControlPlane, api: API, namespace: str, folder: Path) -> None:
        self.plane, self.api, self.namespace, self.folder = plane, api, namespace, folder
        self.apps = f"{namespace}-apps"  # where the operator has no other rights
        self.root, self.key = root_of(plane), key_of(plane)
        self.etcd = fake("etcd")
        self.kubeconfig = account(plane, namespace, "certroll-operator", RULES, folder)
        self._numbers = itertools.count(1)
        self.operator: Operator | None = None
        self._rules: list[Object] = plane.get("clusterrole", _ROLE_NAME)["rules"]

    def agents(self, *, small: bool = False, **files: list[str]) -> PaperAgents:
        """`small`: one node, without etcd."""
        first = {
            "etcd/ca.crt": [self.etcd], "etcd/server.crt": [fake("server")], "apiserver-etcd-client.crt": [fake("client")],
            "ca.crt": [self.root], "apiserver.crt": [fake("apiserver")], "sa.pub": [self.key], "sa.key": [self.key],
        }  # fmt: skip
        issuers = {"etcd/server.crt": self.etcd, "apiserver-etcd-client.crt": self.etcd, "apiserver.crt": self.root}
        return PaperAgents(self.api, NODES[:1] if small else NODES, first | files, issuers, SMALL if small else ROWS)

    # --- the operator

    def start(self, kubeconfig: Path | None = None) -> Operator:
        self.stop()
        flags = ("--leader-elect=false", "--control-plane", f"--operator-namespace={self.namespace}")
        self.operator = Operator(
            self.plane, self.namespace, f"operator-{next(self._numbers)}", kubeconfig or self.kubeconfig, self.folder, *flags,
            extra_environment=sanitizers.ENVIRONMENT,
        )  # fmt: skip
        self.operator.wait_line("all caches are in sync", timeout=60)
        return self.operator

    def stop(self) -> None:
        if self.operator:
            self.operator.end()
            assert not sanitizers.report_in(self.operator.log)
        self.operator = None

    def refuse_for_secrets(self, *verbs: str) -> None:
        """From now on its role has all that it had at first, but for these verbs on Secrets."""
        left = [{**rule, "verbs": [verb for verb in rule["verbs"] if not ("secrets" in rule["resources"] and verb in verbs)]} for rule in self._rules]
        patch = json.dumps({"rules": [rule for rule in left if rule["verbs"]]})
        self.plane.kubectl("patch", "clusterrole", _ROLE_NAME, "--type=merge", "-p", patch)

    # --- the policy

    def apply(self, name: str = NAME, namespace: str = SYSTEM, **spec: Any) -> None:
        kind = {"apiVersion": "certroll.dev/v1alpha1", "kind": "ControlPlanePolicy"}
        self.api.apply("controlplanepolicies", {**kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec})

    def status(self, name: str = NAME) -> Object:
        return self.api.get("controlplanepolicies", SYSTEM, name).get("status", {})

    def condition(self, kind: str, name: str = NAME) -> tuple[str, str]:
        found = (each for each in self.status(name).get("conditions", []) if each["type"] == kind)
        return next(((each["status"], each["reason"]) for each in found), ("", ""))

    def message(self, kind: str, name: str = NAME) -> str:
        return next((each["message"] for each in self.status(name).get("conditions", []) if each["type"] == kind), "")

    def wait(self, what: str, condition: Any, timeout: float = 90.0) -> Any:
        try:
            return wait_until(what, condition, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; the status: {json.dumps(self.status(), indent=1)}") from error

    def wait_converged(self, timeout: float = 120.0) -> None:
        self.wait("everything to have converged", lambda: self.condition("Converged")[0] == "True", timeout)

    def wait_for(self, path: str, value: str, timeout: int = 120) -> subprocess.Popen[str]:
        """As docs/control-plane.md has it, begun before the change."""
        words = ("kubectl", "-n", SYSTEM, "wait", f"controlplanepolicy/{NAME}", f"--for=jsonpath={{{path}}}={value}", f"--timeout={timeout}s")
        return self.plane.popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def published(self) -> str:
        """In the key's ConfigMap."""
        found = self.api.find("configmaps", SYSTEM, KEY)
        return found["data"]["key"] if found else ""

    # --- who follows

    def make_token_secret(self, name: str, key: str) -> None:
        kind = "kubernetes.io/service-account-token"
        metadata = {"name": name, "namespace": self.apps, "annotations": {"kubernetes.io/service-account.name": "default"}}
        self.plane.create({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "stringData": {"token": token(key)}})

    def fill(self, kind: str, name: str, *path: str) -> None:
        """Gives one of the user's namespace more entries than are read. Records of who set which field go first: etcd has no room for both."""
        keys = map("".join, itertools.product(string.ascii_letters + string.digits, repeat=3))
        patch: Object = dict.fromkeys(itertools.islice(keys, 100_001), "")
        for member in reversed(path):
            patch = {member: patch}
        for each in ({"metadata": {"managedFields": [{}]}}, patch):
            self.plane.kubectl("-n", self.apps, "patch", kind, name, "--type=merge", "--patch-file=/dev/stdin", input=json.dumps(each))

    def key_of_secret(self, name: str) -> str:
        """"": it has no token."""
        text = base64.b64decode(self.api.get("secrets", self.apps, name).get("data", {}).get("token", "")).decode()
        return base64.urlsafe_b64decode(_padded(json.loads(base64.urlsafe_b64decode(_padded(text.split(".")[0])))["kid"])).hex() if text else ""

    def make_reader(self) -> Object:
        """A Deployment that reads its token once; as spec.workloads has it."""
        labels = {"app": "reader"}
        pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "none"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pods}
        metadata = {"name": "reader", "namespace": self.apps}
        self.plane.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        target = {"kind": "Deployment", "namespace": self.apps, "name": "reader"}
        return {"name": "reader", "targetRef": target, "reads": ["Token"]}

    def reader(self) -> tuple[int, str]:
        """Its generation, and the key that it was restarted for."""
        found = self.api.get("deployments", self.apps, "reader")
        annotations = found["spec"]["template"]["metadata"].get("annotations", {})
        return found["metadata"]["generation"], annotations.get("certroll.dev/service-account-key", "")

    # --- what is said

    def events(self) -> list[tuple[str, str]]:
        found = self.api.list("events", SYSTEM)
        return [(each["reason"], each["message"]) for each in found if each["involvedObject"]["kind"] == "ControlPlanePolicy"]

    def metric(self, line: str) -> bool:
        assert self.operator
        return line in self.operator.get("/metrics")[1]


@contextmanager
def world(plane: ControlPlane, api: API, namespace: str, folder: Path) -> Iterator[World]:
    role = _ROLE.read_text().replace("namespace: certroll-system", f"namespace: {namespace}")
    plane.kubectl("apply", "--server-side", "-f", "-", input=role)
    plane.kubectl("apply", "--server-side", "-f", str(_ADMISSION))
    plane.kubectl("create", "namespace", f"{namespace}-apps")
    # A token Secret whose account is not there yet is taken for a leftover, and deleted.
    account_of = ("get", "serviceaccount", "default", "-n", f"{namespace}-apps")
    wait_until("the namespace's account", lambda: plane.kubectl(*account_of, check=False).returncode == 0)
    found = World(plane, api, namespace, folder)
    try:
        yield found
    finally:
        found.stop()
        for policy in api.list("controlplanepolicies", SYSTEM):
            api.delete("controlplanepolicies", SYSTEM, policy["metadata"]["name"])
        plane.kubectl("delete", "namespace", found.apps, "--wait=false")
        plane.kubectl("delete", "-f", "-", input=role)
        plane.kubectl("delete", "-f", str(_ADMISSION))
        plane.kubectl("-n", SYSTEM, "delete", "configmap", KEY, "--ignore-not-found")
        plane.kubectl("-n", SYSTEM, "delete", "events", "--field-selector=involvedObject.kind=ControlPlanePolicy")

