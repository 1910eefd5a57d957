"""Flux beside a control plane: its source controller and its kustomize controller."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from certroll_dev import tools
from certroll_dev.demo.api import API
from control_plane import ControlPlane, wait_until
from rotations import patiently

from .delivery import DEGRADED, HEALTHY, PROGRESSING, Said
from .git import BRANCH, Repository
from .programs import page, running

Object = dict[str, Any]
_NAMESPACE = "flux-system"
_SOURCE, _KUSTOMIZE = "source-controller", "kustomize-controller"
_ARTIFACTS = 19320
_PAGES = {_SOURCE: (19321, 19322), _KUSTOMIZE: (19323, 19324)}  # of metrics, of health
_INTERVAL = "5s"
_TIMEOUT = "60s"
_DEADLINE_S = 120.0
_WRITTEN = re.compile(r" (created|configured|deleted)$", re.MULTILINE)
_REQUESTED = "reconcile.fluxcd.io/requestedAt"


class Flux:
    """For all namespaces. Use it as a context, within the network of the API server."""

    def __init__(self, plane: ControlPlane, api: API, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self.api = api
        self._programs = tools.ensure([_SOURCE, _KUSTOMIZE])
        self._crds = [tools.module_folder(name, f"github.com/fluxcd/{name}") / "config" / "crd" / "bases" for name in (_SOURCE, _KUSTOMIZE)]
        self._running = contextlib.ExitStack()

    def __enter__(self) -> Flux:
        with contextlib.ExitStack() as stack:
            stack.callback(self._remove)
            self._plane.kubectl("apply", "--server-side", *self._files())
            self._plane.wait_for_crds("crd/gitrepositories.source.toolkit.fluxcd.io", "crd/kustomizations.kustomize.toolkit.fluxcd.io")
            self._plane.kubectl("create", "namespace", _NAMESPACE)
            for name in (_SOURCE, _KUSTOMIZE):
                stack.enter_context(self._controller(name))
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _remove(self) -> None:
        self._plane.kubectl("delete", "--ignore-not-found", "--timeout=60s", *self._files())
        self._plane.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found", "--wait=false")

    def _files(self) -> list[str]:
        return [word for folder in self._crds for word in ("-f", str(folder))]

    def _controller(self, name: str) -> contextlib.AbstractContextManager[None]:
        metrics, health = _PAGES[name]
        words = [self._programs[name], f"--metrics-addr=127.0.0.1:{metrics}", f"--health-addr=127.0.0.1:{health}", "--enable-leader-election=false"]
        if name == _SOURCE:
            address = f"127.0.0.1:{_ARTIFACTS}"
            words += [f"--storage-path={self._folder / name}", f"--storage-addr={address}", f"--storage-adv-addr={address}"]
        return running(self._plane, name, words, self._folder, page(f"127.0.0.1:{health}/readyz"), RUNTIME_NAMESPACE=_NAMESPACE)


class Kustomization:
    """A Delivery: Flux, which waits until all objects are healthy."""

    def __init__(self, flux: Flux) -> None:
        self._api = flux.api

    def follow(self, repository: Repository, revision: str, namespace: str) -> None:
        metadata = {"namespace": _NAMESPACE, "name": repository.name}
        self._api.apply("gitrepositories", {
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata,
            "spec": {"url": repository.url, "ref": {"branch": BRANCH}, "interval": _INTERVAL},
        })  # fmt: skip
        self._api.apply("kustomizations", {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata,
            "spec": {
                "sourceRef": {"kind": "GitRepository", "name": repository.name}, "path": "./", "targetNamespace": namespace,
                "interval": _INTERVAL, "retryInterval": _INTERVAL, "timeout": _TIMEOUT, "prune": True, "wait": True,
            },
        })  # fmt: skip
        self._wait("applied", lambda: self._revision(repository.name).endswith(revision), repository.name)

    def spare(self, name: str) -> None:
        ignored = {"target": {"kind": "Deployment"}, "paths": ["/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt"]}
        self._api.merge("kustomizations", _NAMESPACE, name, {"spec": {"ignore": [ignored]}})

    def forget(self, repository: Repository) -> None:
        for kind in ("kustomizations", "gitrepositories"):
            if self._api.find(kind, _NAMESPACE, repository.name):
                self._api.delete(kind, _NAMESPACE, repository.name)
        gone = lambda: not self._api.find("kustomizations", _NAMESPACE, repository.name)  # noqa: E731
        wait_until(f"the Kustomization {repository.name} to be gone", gone, _DEADLINE_S)

    def look_again(self, name: str, revision: str) -> None:
        request = str(time.time_ns())
        for kind in ("gitrepositories", "kustomizations"):
            self._api.merge(kind, _NAMESPACE, name, {"metadata": {"annotations": {_REQUESTED: request}}})

        def has_looked() -> bool:
            status = self._get(name).get("status", {})
            return status.get("lastHandledReconcileAt") == request and self._revision(name).endswith(revision)

        self._wait("reconciled", has_looked, name)

    def say(self, name: str) -> Said:
        ready = self._ready(name)
        health = {"True": HEALTHY, "False": DEGRADED}.get(ready.get("status", ""), PROGRESSING)
        return Said(health, "", ready.get("message", ""))

    def changes(self, name: str) -> Collection[str]:
        """Its Events name each object that it has created, configured or deleted."""
        events = [each for each in self._api.list("events", _NAMESPACE) if each["involvedObject"]["name"] == name]
        return sorted(f"{each['message']} {each.get('count')}" for each in events if _WRITTEN.search(each["message"]))

    def _get(self, name: str) -> Object:
        return patiently(lambda: self._api.get("kustomizations", _NAMESPACE, name))

    def _revision(self, name: str) -> str:
        """With which all was healthy last."""
        return str(self._get(name).get("status", {}).get("lastAppliedRevision", ""))

    def _ready(self, name: str) -> Object:
        conditions = self._get(name).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Ready"), {})

    def _wait(self, what: str, condition: Any, name: str) -> None:
        try:
            wait_until(f"{name} to be {what}", condition, _DEADLINE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self._get(name).get('status')}") from None
