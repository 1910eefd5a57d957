"""Argo Rollouts for a local cluster: its controller as a process beside it, and its kinds as far as it needs them.

The controller is the real one (hack/tools/argo-rollouts). Its CRDs are short here: what they would check, the tests do right.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from . import commands, controlplane, daemons, tools
from .layout import Cluster
from .ui import DevError

_GROUP = "argoproj.io"
# Its informers want all of them.
_KINDS = {
    "Rollout": "rollouts",
    "AnalysisRun": "analysisruns",
    "AnalysisTemplate": "analysistemplates",
    "ClusterAnalysisTemplate": "clusteranalysistemplates",
    "Experiment": "experiments",
}
_STARTED = 60.0  # seconds
_PORTS = (18080, 18090)  # in the cluster's network


class ArgoRollouts:
    """Its CRDs and its controller, for one namespace. Use it as a context; afterwards neither is there."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self.log = cluster.logs / "argo-rollouts.log"

    def __enter__(self) -> ArgoRollouts:
        program = tools.ensure(["argo-rollouts"])["argo-rollouts"]
        try:
            self._kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(_crds()))
            controlplane.wait_for_crds(self._cluster, *_crd_names())
            self._start([str(program), *self._arguments()])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if process := getattr(self, "_process", None):
            commands.end(process, 10)
        self._kubectl("delete", "--ignore-not-found", "--timeout=60s", *_crd_names())

    def _arguments(self) -> list[str]:
        healthz, metrics = _PORTS
        return controlplane.arguments({
            "kubeconfig": self._cluster.kubeconfig,
            "namespaced": "true",
            "namespace": self._namespace,
            "leader-elect": "false",
            "healthzPort": healthz,
            "metricsport": metrics,
            "loglevel": "info",
        })  # fmt: skip

    def _start(self, words: list[str]) -> None:
        argv = ["nsenter", f"--net={self._cluster.netns_path}", "--", *words]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(argv, env=daemons.environment({}), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + _STARTED
        while "Started rollout workers" not in self.log.read_text():
            if self._process.poll() is not None or time.monotonic() > end:
                raise DevError(f"the controller of Argo Rollouts has not started, see {self.log}:\n{commands.tail_of(self.log)}")
            time.sleep(0.2)

    def _kubectl(self, *words: str, stdin: str | None = None) -> str:
        return controlplane.kubectl(self._cluster, self._cluster.bin / "kubectl", *words, stdin=stdin)


def _crd_names() -> list[str]:
    return [f"crd/{plural}.{_GROUP}" for plural in _KINDS.values()]


def _crds() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [crd(kind, plural) for kind, plural in _KINDS.items()]}


def crd(kind: str, plural: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.HPAReplicas", "labelSelectorPath": ".status.selector"}
    version: dict[str, Any] = {
        "name": "v1alpha1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }  # fmt: skip
    if kind == "Rollout":
        version["subresources"] = {"status": {}, "scale": scale}
    scope = "Cluster" if kind.startswith("Cluster") else "Namespaced"
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP, "scope": scope, "versions": [version],
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
        },
    }  # fmt: skip
