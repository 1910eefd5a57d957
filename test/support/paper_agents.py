"""A control plane on paper: nodes that are not there, and their agents, who report what a test has "written" to their files and do
what is ordered at once.

Three nodes of kubeadm's layout, as far as the operator's plan looks at it. What is in a file is a list of fingerprints; a component
has it at once where its parameter reloads, and else after a restart that was ordered.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hack" / "lib"))

from certroll_dev.demo.api import API, APIError  # noqa: E402
from ticker import Ticker  # noqa: E402

Object = dict[str, Any]
_PAUSE = 0.1
_RENEW = 5.0


@dataclass(frozen=True)
class Row:
    component: str
    parameter: str
    role: str
    kind: str
    file: str
    reloads: bool = False


ROWS = (
    Row("etcd", "--trusted-ca-file", "clientCA", "Trust", "etcd/ca.crt"),
    Row("etcd", "--peer-trusted-ca-file", "clientCA", "Trust", "etcd/ca.crt"),
    Row("etcd", "--cert-file", "serverLeaf", "Leaf", "etcd/server.crt", reloads=True),
    Row("kube-apiserver", "--etcd-cafile", "serverCA", "Trust", "etcd/ca.crt"),
    Row("kube-apiserver", "--etcd-certfile", "clientLeaf", "Leaf", "apiserver-etcd-client.crt", reloads=True),
    Row("kube-apiserver", "--client-ca-file", "clientCA", "Trust", "ca.crt", reloads=True),
    Row("kube-apiserver", "--tls-cert-file", "serverLeaf", "Leaf", "apiserver.crt", reloads=True),
    Row("kube-apiserver", "--service-account-key-file", "opaque", "Keys", "sa.pub"),
    Row("kube-apiserver", "--service-account-signing-key-file", "opaque", "Keys", "sa.key"),
    Row("kube-controller-manager", "--root-ca-file", "serverCA", "Trust", "ca.crt"),
    Row("kube-controller-manager", "--service-account-private-key-file", "opaque", "Keys", "sa.key"),
)
# A node without etcd and what is of it: one restart follows a new signing key.
SMALL = tuple(row for row in ROWS if "etcd" not in row.component + row.parameter and row.parameter != "--service-account-signing-key-file")


@dataclass(frozen=True)
class Restart:
    node: str
    component: str
    token: str
    began: float
    ended: float


class PaperAgents(Ticker):
    """Use it as a context, within the network of the API server. `files`: what each node has at first, by file."""

    def __init__(
        self,
        api: API,
        nodes: Sequence[str],
        files: dict[str, list[str]],
        issuers: dict[str, str],
        rows: Sequence[Row] = ROWS,
        real_nodes: bool = False,
    ) -> None:
        """`issuers`: of a leaf's file, the CA. Real nodes are there already, and stay."""
        super().__init__("paper-agents", _PAUSE)
        self._api = api
        self._issuers = issuers
        self._rows = rows
        self._real_nodes = real_nodes
        self._components = tuple(dict.fromkeys(row.component for row in rows))
        self._lock = threading.RLock()
        self._processes = itertools.count(1)
        self._files = {node: dict(files) for node in nodes}
        self._has = {node: {row: files[row.file] for row in rows} for node in nodes}
        self._started = {(node, component): time.time() - 3600 for node in nodes for component in self._components}
        self._process = {(node, component): f"p{next(self._processes)}" for node in nodes for component in self._components}
        self._act: dict[str, Object] = {node: {} for node in nodes}
        self._due = dict.fromkeys(nodes, 0.0)
        self.silent: set[str] = set()
        self.lost: set[str] = set()  # take an order and never say what came of it
        self.ends: dict[str, float] = {}  # when a CA ends, by its fingerprint; Unix time
        self.restarts: list[Restart] = []

    def __enter__(self) -> PaperAgents:
        for node in self._files:
            if not self._real_nodes:
                self._api.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
            kind = {"apiVersion": "certroll.dev/v1alpha1", "kind": "NodeCertificateReport"}
            self._api.request("POST", "/apis/certroll.dev/v1alpha1/nodecertificatereports", {**kind, "metadata": {"name": node}, "spec": {}})
        return super().__enter__()

    def __exit__(self, *arguments: object) -> None:
        super().__exit__(*arguments)
        for node in self._files:
            with contextlib.suppress(APIError):
                self._api.delete("nodecertificatereports", "", node)
                if not self._real_nodes:
                    self._api.delete("nodes", "", node)

    # --- what a test does

    def write(self, file: str, prints: list[str], nodes: Sequence[str] | None = None) -> None:
        """As kubeadm, a person or a tool would."""
        with self._lock:
            for node in nodes or self._files:
                self._files[node][file] = prints
                for row in self._rows:
                    if row.file == file and row.reloads:
                        self._has[node][row] = prints
                self._due[node] = 0.0

    def order(self, node: str) -> Object:
        return self._api.get("nodecertificatereports", "", node)["spec"].get("restart") or {}

    # --- what agents do

    def tick(self) -> bool:
        with contextlib.suppress(APIError):
            for report in self._api.list("nodecertificatereports", ""):
                node = report["metadata"]["name"]
                if node in self._files and node not in self.silent:
                    self._obey(node, report["spec"].get("restart"))
                    self._renew(node)
        return True

    def _obey(self, node: str, order: Object | None) -> None:
        if not order or self._act[node].get("token") == order["token"] and self._act[node]["phase"] in ("Done", "Failed"):
            return
        component = order["component"]
        began = time.time()
        with self._lock:
            if self._act[node].get("token") != order["token"]:
                self._act[node] = {**order, "phase": "Restarting", "started": _time(began), "process": self._process[node, component]}
                self._due[node] = 0.0
        self._renew(node)
        if node in self.lost:
            return
        with self._lock:
            self._started[node, component] = time.time()
            self._process[node, component] = f"p{next(self._processes)}"
            for row in self._rows:
                if row.component == component:
                    self._has[node][row] = self._files[node][row.file]
            self._act[node] |= {"phase": "Done", "finished": _time(time.time())}
            self.restarts.append(Restart(node, component, order["token"], began, time.time()))
            self._due[node] = 0.0

    def _renew(self, node: str) -> None:
        with self._lock:
            if time.monotonic() < self._due[node]:
                return
            status = self._status(node)
            self._due[node] = time.monotonic() + _RENEW
        self._api.merge("nodecertificatereports", "", node, {"status": status}, subresource="status")

    def _status(self, node: str) -> Object:
        return {
            "seen": _time(time.time()), "agent": "paper", "restart": copy.copy(self._act[node]),
            "components": [self._component(node, component) for component in self._components],
            "files": [self._row(node, row) for row in self._rows],
            "cas": [{"fingerprint": each, "notAfter": _time(ends)} for each, ends in self.ends.items()],
            "tokens": {"known": True, "keys": []},
        }  # fmt: skip

    def _component(self, node: str, component: str) -> Object:
        return {
            "name": component, "version": "1.36.3", "pod": f"{component}-{node}", "running": True, "restart": "Manifest", "health": "Serving",
            "started": _time(self._started[node, component]), "process": self._process[node, component],
        }  # fmt: skip

    def _row(self, node: str, row: Row) -> Object:
        prints, has = self._files[node][row.file], self._has[node][row]
        out = {
            "component": row.component, "parameter": row.parameter, "role": row.role, "kind": row.kind, "place": "Host",
            "path": f"/etc/kubernetes/pki/{row.file}", "method": "Watch" if row.reloads else "Restart", "fingerprints": prints,
            "loaded": "Loaded" if has == prints else "RestartNeeded", "hasKnown": True, "evidence": "Inferred", "why": "on paper",
            "notAfter": "2036-11-21T06:10:21Z",
        }  # fmt: skip
        if has != prints:
            out["has"] = has
        if row.file in self._issuers:
            out["issuers"] = [self._issuers[row.file]]
        return out


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
