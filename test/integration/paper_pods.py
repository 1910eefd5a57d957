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


class PaperPods(Ticker):
    """Makes every pod of these namespaces ready. Use it as a context, within the network of the API server."""

    def __init__(self, api: API, namespaces: Sequence[str], pause: float = _PAUSE) -> None:
        super().__init__("paper-pods", pause)
        self._api = api
        self._namespaces = namespaces

    def tick(self) -> bool:
        for namespace in self._namespaces:
            with contextlib.suppress(APIError):  # while the API server is away, or for a pod that has gone meanwhile
                self._make_ready(namespace)
        return True

    def _make_ready(self, namespace: str) -> None:
        for pod in self._api.list("pods", namespace):
            if pod.get("status", {}).get("phase") == "Pending" and "deletionTimestamp" not in pod["metadata"]:
                self._api.merge("pods", namespace, pod["metadata"]["name"], {"status": _ready(pod)}, subresource="status")


def _ready(pod: dict[str, Any]) -> dict[str, Any]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kinds = ("Initialized", "PodScheduled", "ContainersReady", "Ready")
    container = pod["spec"]["containers"][0]
    return {
        "phase": "Running", "startTime": now,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds],
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "", "ready": True, "restartCount": 0, "started": True,
            "state": {"running": {"startedAt": now}},
        }],
    }  # fmt: skip
