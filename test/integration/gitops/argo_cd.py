"""Argo CD beside a control plane: its application controller and repository server, Redis, and the health check of manifests/argocd."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from certroll_dev import tools
from certroll_dev.demo import programs
from certroll_dev.demo.api import API
from control_plane import ROOT, ControlPlane, wait_until
from rotations import patiently

from .delivery import DEGRADED, HEALTHY, PROGRESSING, Said
from .git import BRANCH, Repository
from .programs import page, running

Object = dict[str, Any]
_NAMESPACE = "argocd"
_LUA = ROOT / "manifests" / "argocd" / "health.lua"
_REDIS, _REPOSITORIES, _REPOSITORIES_PAGE, _CONTROLLER_PAGE = 19310, 19311, 19312, 19313
_MODULE = "github.com/argoproj/argo-cd/v3"
_VERIFY = "git-verify-wrapper.sh"
_RESYNC_S = 5
_DEADLINE_S = 120.0
_KINDS = ("CertRotationPolicy", "TrustDomain", "ClusterTrustDomain", "ControlPlanePolicy")


class ArgoCD:
    """For all namespaces. Use it as a context, within the network of the API server."""

    def __init__(self, plane: ControlPlane, api: API, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self.api = api
        self._program = tools.ensure(["argo-cd"])["argo-cd"]
        source = tools.module_folder("argo-cd", _MODULE)
        self._crds = source / "manifests" / "crds"
        self._scripts = folder / "bin"  # what its image has beside its program
        self._scripts.mkdir()
        shutil.copy(source / "hack" / _VERIFY, self._scripts)
        (self._scripts / _VERIFY).chmod(0o755)
        self._running = contextlib.ExitStack()

    def __enter__(self) -> ArgoCD:
        with contextlib.ExitStack() as stack:
            stack.callback(self._remove)
            self._plane.kubectl("apply", "--server-side", "-k", str(self._crds))
            self._plane.wait_for_crds("crd/applications.argoproj.io", "crd/appprojects.argoproj.io")
            self._plane.create(*_settings())
            self._start(stack)
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _remove(self) -> None:
        self._plane.kubectl("delete", "--ignore-not-found", "--timeout=60s", "-k", str(self._crds))
        self._plane.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found", "--wait=false")

    def _start(self, stack: contextlib.ExitStack) -> None:
        redis = programs.debian().root
        unpacked = ["env", "LD_LIBRARY_PATH=" + ":".join(map(str, (redis / "usr" / "lib").glob("*-linux-gnu")))]
        words = [*unpacked, redis / "usr/bin/redis-server", "--port", str(_REDIS), "--bind", "127.0.0.1", "--save", ""]
        ready = [*unpacked, redis / "usr/bin/redis-cli", "-p", str(_REDIS), "ping"]
        stack.enter_context(running(self._plane, "redis", words, self._folder, ready))
        common = ["--namespace", _NAMESPACE, "--redis", f"127.0.0.1:{_REDIS}", "--logformat", "text"]
        self._run(stack, "repo-server", _REPOSITORIES_PAGE, *common[2:], "--disable-tls", "--client-ca-path=", "--address", "127.0.0.1",
                  "--port", str(_REPOSITORIES), "--metrics-address", "127.0.0.1", "--metrics-port", str(_REPOSITORIES_PAGE))  # fmt: skip
        self._run(stack, "application-controller", _CONTROLLER_PAGE, *common, "--repo-server-plaintext", "--repo-server", f"127.0.0.1:{_REPOSITORIES}",
                  "--metrics-port", str(_CONTROLLER_PAGE), "--app-resync", str(_RESYNC_S), "--app-resync-jitter", "0")  # fmt: skip

    def _run(self, stack: contextlib.ExitStack, name: str, port: int, *words: str) -> None:
        settings = {
            "ARGOCD_FAKE_IN_CLUSTER": "true", "ARGOCD_GPG_ENABLED": "false", "ARGOCD_ASK_PASS_SOCK": str(self._folder / f"{name}.sock"),
            "PATH": f"{self._scripts}:{os.environ['PATH']}",
        }  # fmt: skip
        ready = page(f"127.0.0.1:{port}/healthz")
        stack.enter_context(running(self._plane, name, [self._program, name, *words], self._folder, ready, **settings))


def _settings() -> list[Object]:
    """As an installation has them, and how certroll's manifests say."""
    labels = {"app.kubernetes.io/part-of": "argocd"}
    health = {f"resource.customizations.health.certroll.dev_{kind}": _LUA.read_text() for kind in _KINDS}
    anything = [{"group": "*", "kind": "*"}]
    project = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": anything}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": _NAMESPACE, "name": "argocd-cm", "labels": labels}, "data": health},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": _NAMESPACE, "name": "argocd-secret", "labels": labels}},
        {
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"namespace": _NAMESPACE, "name": "default"}, "spec": project
        },
    ]  # fmt: skip


class Application:
    """A Delivery: Argo CD with self-heal, pruning and these options of a sync."""

    def __init__(self, argo: ArgoCD, *options: str) -> None:
        self._api = argo.api
        self._options = options

    def follow(self, repository: Repository, revision: str, namespace: str) -> None:
        self._api.apply("applications", {
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": _NAMESPACE, "name": repository.name, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {
                "project": "default", "source": {"repoURL": repository.url, "targetRevision": BRANCH, "path": "."},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
                "syncPolicy": {"automated": {"selfHeal": True, "prune": True}, "syncOptions": list(self._options)},
            },
        })  # fmt: skip
        self._wait("synced", lambda: self._has_applied(self._get(repository.name), revision), repository.name)

    def spare(self, name: str) -> None:
        ignored = {"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["certroll"]}
        policy = {"syncOptions": [*self._options, "RespectIgnoreDifferences=true"]}
        self._api.merge("applications", _NAMESPACE, name, {"spec": {"ignoreDifferences": [ignored], "syncPolicy": policy}})

    def forget(self, repository: Repository) -> None:
        if self._api.find("applications", _NAMESPACE, repository.name):
            self._api.delete("applications", _NAMESPACE, repository.name)
            gone = lambda: not self._api.find("applications", _NAMESPACE, repository.name)  # noqa: E731
            wait_until(f"the Application {repository.name} to be gone", gone, _DEADLINE_S)

    def look_again(self, name: str, revision: str) -> None:
        self._api.merge("applications", _NAMESPACE, name, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})

        def has_looked() -> bool:
            found = self._get(name)
            return "argocd.argoproj.io/refresh" not in found["metadata"].get("annotations", {}) and self._has_applied(found, revision)

        self._wait("refreshed", has_looked, name)

    def say(self, name: str) -> Said:
        status = self._get(name).get("status", {})
        health = status.get("health", {}).get("status", "Missing")
        drift = [f"{each['kind']} {each['name']}" for each in status.get("resources", []) if each.get("status") != "Synced"]
        return Said({"Healthy": HEALTHY, "Progressing": PROGRESSING, "Degraded": DEGRADED}.get(health, health), ", ".join(drift), _words(status))

    def changes(self, name: str) -> Collection[str]:
        """The last operation, of which there is one for each sync and each repair."""
        operation = self._get(name).get("status", {}).get("operationState", {})
        return [f"{operation.get('startedAt')} {operation.get('operation')}"]

    def _get(self, name: str) -> Object:
        return patiently(lambda: self._api.get("applications", _NAMESPACE, name))

    def _wait(self, what: str, condition: Any, name: str) -> None:
        try:
            wait_until(f"{name} to be {what}", condition, _DEADLINE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self._get(name).get('status')}") from None

    @staticmethod
    def _has_applied(found: Mapping[str, Any], revision: str) -> bool:
        status = found.get("status", {})
        operation = status.get("operationState", {})
        is_over = "operation" not in found and operation.get("phase") == "Succeeded"
        return is_over and status.get("sync", {}).get("revision") == revision == operation.get("syncResult", {}).get("revision")


def _words(status: Mapping[str, Any]) -> str:
    conditions = [each.get("message", "") for each in status.get("conditions", [])]
    return " ".join([*conditions, status.get("operationState", {}).get("message", "")])
