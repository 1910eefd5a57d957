"""A real API server for the tests: the local cluster's control plane, without a node."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "hack" / "cluster"

sys.path.insert(0, str(ROOT / "hack" / "lib"))

from certroll_dev import paths  # noqa: E402

Object = Mapping[str, Any]


class ControlPlane:
    """What a test needs of it: its kubeconfig, commands in its network, kubectl."""

    def __init__(self, facts: Object) -> None:
        self.name: str = facts["name"]
        self.netns: str = facts["netns"]
        self.server: str = facts["server"]
        self.kubeconfig = Path(facts["kubeconfig"])
        self.logs = Path(facts["logs"])
        self.audit_log = Path(facts["auditLog"])
        self.bin = Path(facts["bin"])

    def environment(self) -> dict[str, str]:
        """kubectl keeps what it discovered by the server's address, which other clusters of this machine have, too."""
        return {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.kubeconfig.parent / "kubectl-cache"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """The words as a command in the network of the cluster, for subprocess with environment()."""
        return ["nsenter", f"--net=/run/netns/{self.netns}", "--", *map(str, words)]

    def popen(self, words: Sequence[str | Path], **options: Any) -> subprocess.Popen:
        """A program that runs beside the test, such as the operator."""
        return subprocess.Popen(self.command(words), **{"env": self.environment(), **options})

    def run(self, *words: str | Path, input: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(words), env=self.environment(), input=input, capture_output=True, text=True, timeout=120
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *words: str, input: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("kubectl", *words, input=input, check=check)

    def get(self, *words: str) -> Any:
        """`kubectl get … -o json`, parsed."""
        return json.loads(self.kubectl("get", *words, "-o", "json").stdout)

    def create(self, *objects: Object) -> None:
        self.kubectl("create", "-f", "-", input="".join(json.dumps(each) for each in objects))

    def apply_crds(self) -> None:
        self.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(paths.CRDS))  # a test may have changed them
        self.wait_for_crds(*paths.crd_names())

    def wait_for_crds(self, *names: str) -> None:
        """`names`: crd/certrotationpolicies.certroll.dev; none: all. kubectl fails at once while there are no conditions at all."""
        established = ("wait", "--for=condition=Established", "--timeout=30s", *(names or ("crd", "--all")))
        wait_until("the CRDs are established", lambda: self.kubectl(*established, check=False).returncode == 0, 60)

    def audit_lines(self) -> list[str]:
        """Of the API server's audit log; without the last, which may be being written."""
        return self.audit_log.read_text().rpartition("\n")[0].splitlines()


def reserve(name: str) -> tuple[str, socket.socket]:
    """A name that no other run of the tests uses now: this one or "<name>-2" and so on. Closing the socket gives it back;
    the kernel does so when the process dies."""
    for number in range(1, 10):
        candidate = name if number == 1 else f"{name}-{number}"
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            lock.bind(f"\0certroll-test/{candidate}")
        except OSError:
            lock.close()
            continue
        return candidate, lock
    raise AssertionError(f"{name} and eight further names are all in use by other runs")


def up(name: str) -> ControlPlane:
    subprocess.run([CLUSTER, "up", "--name", name, "--control-plane-only"], check=True)
    facts = subprocess.run([CLUSTER, "status", "--name", name, "--json"], check=True, capture_output=True, text=True)
    return ControlPlane(json.loads(facts.stdout))


def down(name: str) -> None:
    subprocess.run([CLUSTER, "down", "--name", name], check=True)


def daemon_pid(plane: ControlPlane, name: str) -> int:
    words = [CLUSTER, "status", "--name", plane.name, "--json"]
    facts = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    return next(daemon["pid"] for daemon in facts["daemons"] if daemon["name"] == name)


def kill_api_server(plane: ControlPlane) -> None:
    pid = daemon_pid(plane, "kube-apiserver")
    os.kill(pid, signal.SIGKILL)
    wait_until("the API server to be gone", lambda: not Path(f"/proc/{pid}/exe").exists())


def start_api_server(plane: ControlPlane) -> None:
    subprocess.run([CLUSTER, "up", "--name", plane.name, "--control-plane-only", "--quiet"], check=True)


def etcd(plane: ControlPlane, call: str, **body: Any) -> dict[str, Any]:
    """etcd's JSON gateway."""
    done = plane.run("curl", "-sSf", f"http://127.0.0.1:2379/v3/kv/{call}", "-d", json.dumps(body))
    return json.loads(done.stdout)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def wait_until(what: str, condition: Callable[[], Any], timeout: float = 30.0, pause: float = 0.1) -> Any:
    """The first true value of condition; fails with `what` otherwise."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(pause)


def collect_logs(folder: Path, sources: Sequence[Path]) -> None:
    """Copies of files and folders as they are now, in a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, folder / source.name, ignore_dangling_symlinks=True, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copy2(source, folder / source.name)
