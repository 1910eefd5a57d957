"""The operator as a process beside the control plane, several at a time if need be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from control_plane import ROOT, ControlPlane, Object, daemon_pid, wait_until

PROGRAM = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")) / "bin" / "certroll-operator"

# Most tests are about something else, and some users here are no service account of that name.
UNGUARDED = ("--require-admission-policy=false",)

Line = dict[str, Any]

RULES: list[Object] = [
    {"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["", "apps", "policy"], "resources": ["*"], "verbs": ["*"]},
]
# What discover looks for beside the workloads of RULES.
OTHER_CONSUMERS: Object = {"apiGroups": ["networking.k8s.io", "gateway.networking.k8s.io", "argoproj.io"], "resources": ["*"], "verbs": ["*"]}
LEASES: Object = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}


def account(plane: ControlPlane, namespace: str, name: str, rules: list[Object], folder: Path) -> Path:
    """A service account with these rights in its namespace; its kubeconfig."""
    plane.kubectl("create", "serviceaccount", name, "-n", namespace)
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name, "namespace": namespace}}
    role = {**kind, "kind": "Role", "rules": rules}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    plane.create(role, {**kind, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
    config = json.loads(plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    config["users"][0]["user"] = {"token": plane.kubectl("create", "token", name, "-n", namespace).stdout.strip()}
    path = folder / f"{name}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


class Operator:
    """One process. Its user is the service account of its kubeconfig."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        name: str,
        kubeconfig: Path,
        folder: Path,
        *flags: str,
        program: Path = PROGRAM,
        extra_environment: Mapping[str, str] | None = None,
        everywhere: bool = False,
        guarded: bool = False,
        open_metrics: bool = True,
    ) -> None:
        """`everywhere`: it watches all namespaces, not just that of its user. `guarded`: only by an admission policy does it write.
        `open_metrics`: one address has all its pages, by plain HTTP and for whoever asks; otherwise /metrics is as by default, and
        the probes have an address of their own."""
        self.name = name
        self.user = f"system:serviceaccount:{namespace}:{name}"
        self._plane = plane
        self.log = folder / f"{name}.log"
        own = ["--kubeconfig", kubeconfig, "--metrics-bind-address", "127.0.0.1:0", *(() if guarded else UNGUARDED)]
        own += ["--metrics-open", "--health-probe-bind-address="] if open_metrics else ["--health-probe-bind-address=127.0.0.1:0"]
        watched = [] if everywhere else ["--namespace", namespace]
        words = [program, *own, *watched, *flags]
        environment = {key: value for key, value in plane.environment().items() if key != "POD_NAMESPACE"}
        environment |= extra_environment or {}
        with self.log.open("w") as log:
            self.process = plane.popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    # --- what it says

    def lines(self, message: str) -> list[Line]:
        whole = [line for line in self.log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in map(json.loads, whole) if line["msg"].startswith(message)]

    def wait_line(self, message: str, timeout: float = 30.0) -> Line:
        wait_until(f"{self.name} to say '{message}'; its log: {self.log}", lambda: self.lines(message), timeout)
        return self.lines(message)[0]

    def leads(self) -> bool:
        return bool(self.lines("became leader"))

    def serving(self, page: str = "/metrics") -> Line:
        """What it says of its HTTP server that has the page: `port`, `scheme`."""
        return next(line for line in self.lines("serving") if page in line["pages"])

    def get(self, path: str, *words: str, page: str = "/metrics") -> tuple[int, str]:
        """Status and body of a page of its HTTP server that serves `page`. Whose certificate it has is not looked at."""
        serving = self.serving(page)
        url = f"{serving['scheme']}://127.0.0.1:{serving['port']}{path}"
        done = self._plane.run("curl", "-sSk", "--max-time", "20", "-w", "\n%{http_code}", *words, url)
        body, _, status = done.stdout.rpartition("\n")
        return int(status), body

    # --- its life

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 30.0) -> int:
        return self.process.wait(timeout)

    def end(self) -> None:
        """However it is."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def api_server_stopped(plane: ControlPlane) -> Iterator[None]:
    """It neither answers nor hangs up."""
    pid = daemon_pid(plane, "kube-apiserver")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def writes_of(plane: ControlPlane, user: str, since: float) -> list[str]:
    """What that user wrote, by the API server's audit log, from that time (Unix) on."""
    writes = []
    for line in plane.audit_lines():
        event: Mapping[str, Any] = json.loads(line)
        reads = event["verb"] in ("get", "list", "watch")
        # Whoever was refused by 401 has no name.
        if event["user"].get("username") != user or reads or event["stage"] != "ResponseComplete":
            continue
        at = event["requestReceivedTimestamp"]
        if _seconds(at) > since:
            reference = event.get("objectRef", {})
            status = event.get("responseStatus", {}).get("code")
            writes.append(f"{at} {event['verb']} {reference.get('resource')}/{reference.get('name')}: {status}")
    return writes


def _seconds(text: str) -> float:
    whole, _, rest = text.partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0." + rest.rstrip("Z"))
