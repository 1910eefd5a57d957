"""Pods that run on paper: what a kubelet would report is written into their status, so that rollouts complete without a node.

A Deployment without replicas is never restarted (no pod of it can be old), so tests of restarts need pods. A pod that was never
bound to a node is deleted by the API server at once, so nothing else is missed of a kubelet.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from typing import Any

from control_plane import ROOT

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.api import API, APIError  # noqa: E402
from ticker import Ticker  # noqa: E402

_PAUSE = 0.2
_NODE = "10.97.0.4"  # its address


EVERYWHERE = ("",)


class PaperPods(Ticker):
    """Makes every pod of these namespaces ready, or those of them that have these labels. Use it as a context, within the network of
    the API server. `address`: that all of them have."""

    def __init__(self, api: API, namespaces: Sequence[str], pause: float = _PAUSE, labels: str = "", address: str = "") -> None:
        super().__init__("paper-pods", pause)
        self._api = api
        self._namespaces = namespaces
        self._labels = labels
        self._address = address

    def tick(self) -> bool:
        for namespace in self._namespaces:
            with contextlib.suppress(APIError):  # while the API server is away
                self._make_ready(namespace)
        return True

    def _make_ready(self, namespace: str) -> None:
        for pod in self._api.list("pods", namespace, self._labels):
            metadata = pod["metadata"]
            if pod.get("status", {}).get("phase") == "Pending" and "deletionTimestamp" not in metadata:
                status = ready_status(pod, self._address)
                with contextlib.suppress(APIError):  # it has gone meanwhile
                    self._api.merge("pods", metadata["namespace"], metadata["name"], {"status": status}, subresource="status")


def ready_status(pod: dict[str, Any], address: str = "") -> dict[str, Any]:
    """Of a pod whose container has just been started, at that address if there is one."""
    addresses = {"podIP": address, "podIPs": [{"ip": address}], "hostIP": _NODE} if address else {}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kinds = ("Initialized", "PodScheduled", "ContainersReady", "Ready")
    container = pod["spec"]["containers"][0]
    return addresses | {
        "phase": "Running", "startTime": now,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds],
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0, "started": True,
            "state": {"running": {"startedAt": now}},
        }],
    }  # fmt: skip
