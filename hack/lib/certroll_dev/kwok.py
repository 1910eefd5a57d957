"""Nodes that are not there, by kwok (sigs.k8s.io/kwok): pods that are bound to one become Ready, and go when they are deleted.

For a control plane without nodes of its own (hack/cluster up --control-plane-only). Nothing runs in such a pod: thousands of
them cost what their objects cost.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import commands, controlplane, daemons, files, tools
from .layout import Cluster
from .ui import DevError

_STARTED = 60.0  # seconds
_ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
# Four pods at a time, its default, take a quarter of an hour for 20,000. Beside one option, the others have no defaults.
_OPTIONS = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    "options": {"podPlayStageParallelism": 64, "nodePlayStageParallelism": 4, "nodeLeaseParallelism": 4, "podsOnNodeSyncParallelism": 1},
}

# Templates of what a kubelet would report. Pods have no addresses: nobody can connect to one.
_NOW = "{{ $now := Now }}\n"
_READY = ("Initialized", "PodScheduled", "ContainersReady", "Ready")
_RUNNING = """\
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: true, restartCount: 0,
   state: {running: {startedAt: {{ $now | Quote }}}}}
{{ end }}
phase: Running
startTime: {{ $now | Quote }}
"""


def node_name(number: int) -> str:
    """From 0. What is bound by spec.nodeName needs no scheduler."""
    return f"kwok-{number}"


class Kwok:
    """`nodes` nodes from kwok-0 on, and kwok itself. Use it as a context; afterwards nodes and pods stay as they are.

    A pod is Ready `ready_after` seconds after it was bound, and gone as soon as it is deleted. Nodes are kept alive by Leases,
    so that a controller manager may run.
    """

    def __init__(self, cluster: Cluster, nodes: int, ready_after: float = 0.0) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._ready_after = ready_after
        self.log = cluster.logs / "kwok.log"

    def __enter__(self) -> Kwok:
        program = tools.ensure(["kwok"])["kwok"]
        config = files.put(self._cluster.root / "etc" / "kwok.json", _documents([_OPTIONS, *_stages(self._ready_after)]))
        self._kubectl("apply", "--server-side", "-f", "-", stdin=_documents(_node(number) for number in range(self._nodes)))
        flags = {
            "kubeconfig": self._cluster.kubeconfig,
            "config": config,
            "manage-nodes-with-annotation-selector": ",".join(f"{key}={value}" for key, value in _ANNOTATION.items()),
            "node-lease-duration-seconds": 40,
            "v": "WARN",  # else it tells of each pod
        }
        argv = ["nsenter", f"--net={self._cluster.netns_path}", "--", str(program), *controlplane.arguments(flags)]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(argv, env=daemons.environment({}), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait_for_nodes()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait_running(self, namespace: str, timeout: float) -> None:
        """Until no pod of the namespace is in another phase than Running; DevError otherwise."""
        path = f"/api/v1/namespaces/{namespace}/pods?fieldSelector=status.phase%21%3DRunning&limit=1"

        def running() -> bool:
            with contextlib.suppress(DevError):  # while the API server has its hands full
                return not json.loads(self._kubectl("get", f"--raw={path}"))["items"]
            return False

        self._wait(running, timeout, f"made the pods of {namespace} ready")

    def _wait_for_nodes(self) -> None:
        def ready() -> bool:
            nodes = json.loads(self._kubectl("get", "nodes", "-o", "json"))["items"]
            return sum(_is_ready(node) for node in nodes) >= self._nodes

        self._wait(ready, _STARTED, f"made {self._nodes} nodes ready")

    def _wait(self, holds: Callable[[], bool], timeout: float, what: str) -> None:
        end, asked = time.monotonic() + timeout, time.monotonic()
        while not holds():
            if self._process.poll() is not None:
                raise DevError(f"kwok ended, see {self.log}:\n{commands.tail_of(self.log)}")
            if time.monotonic() > end:
                raise DevError(f"kwok has not {what} within {timeout:g} s, see {self.log}:\n{commands.tail_of(self.log)}")
            # The API server goes through all pods for an answer, and that must not be what it is busy with.
            time.sleep(max(0.2, 5 * (time.monotonic() - asked)))
            asked = time.monotonic()

    def _end(self) -> None:
        commands.end(self._process, 10)

    def _kubectl(self, *words: str, stdin: str | None = None) -> str:
        return controlplane.kubectl(self._cluster, self._cluster.bin / "kubectl", *words, stdin=stdin)


def _documents(objects: Iterable[dict[str, Any]]) -> str:
    return "".join(f"---\n{json.dumps(each, indent=1)}\n" for each in objects)


def _node(number: int) -> dict[str, Any]:
    room = {"cpu": "1000", "memory": "1Ti", "pods": "100000"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name(number), "annotations": _ANNOTATION},
        "status": {"allocatable": room, "capacity": room},
    }  # fmt: skip


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _stages(ready_after: float) -> list[dict[str, Any]]:
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    not_ready = {"key": '.status.conditions.[] | select(.type == "Ready") | .status', "operator": "NotIn", "values": ["True"]}
    return [
        _stage("Node", "node-ready", [not_ready], {"statusTemplate": _NOW + _conditions("Ready")}),
        _stage("Pod", "pod-ready", [alive, not_ready], {"statusTemplate": _NOW + _conditions(*_READY) + _RUNNING}, ready_after),
        _stage("Pod", "pod-gone", [{**alive, "operator": "Exists"}], {"delete": True}),
    ]


def _conditions(*kinds: str) -> str:
    lines = [f'- {{type: {kind}, status: "True", lastTransitionTime: {{{{ $now | Quote }}}}}}' for kind in kinds]
    return "\n".join(["conditions:", *lines, ""])


def _stage(kind: str, name: str, matching: list[dict[str, Any]], then: dict[str, Any], delay: float = 0.0) -> dict[str, Any]:
    spec = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": matching},
        "delay": {"durationMilliseconds": round(delay * 1000)},
        "next": then,
    }
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}
