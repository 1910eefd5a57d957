"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on the first machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import addresses, files, kubeconfig, layout, machines
from .daemons import Daemon
from .layout import Cluster
from .ui import DevError

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

# Cheap, and enough to tell every verb that a client used; the health checks of kubelets and probes would drown it.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/metrics"]},
        {"level": "Metadata"},
    ],
}

# Controllers for which there is nothing here: no cloud, no volumes to attach, no devices, no bootstrap tokens.
_NO_CONTROLLERS = (
    "bootstrap-signer-controller",
    "token-cleaner-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "node-ipam-controller",
)


def start(cluster: Cluster, programs: Mapping[str, Path], inside: int) -> None:
    """Start what is not running, in the order of need; returns when the API server answers that it is ready."""
    etcd, api_server = _etcd(cluster, programs), _api_server(cluster, programs)
    if etcd.start(inside):
        etcd.wait(lambda: listens(inside, 2379), 60, "listening")
    api_server.start(inside)
    api_server.wait(lambda: listens(inside, layout.API_PORT), 120, "listening")
    api_server.wait(lambda: _ready(cluster, programs["kubectl"]), 120)
    for daemon in (_controller_manager(cluster, programs), _scheduler(cluster, programs)):
        daemon.start(inside)


def kubectl(cluster: Cluster, program: Path, *words: str, stdin: str | None = None, timeout: float = 60) -> str:
    """Run kubectl as the administrator, on the first machine."""
    command = [str(program), f"--kubeconfig={cluster.kubeconfig}", *words]
    return machines.run(cluster.machine(1), command, stdin=stdin, timeout=timeout)


def holds(cluster: Cluster, program: Path, *words: str) -> bool:
    """Whether kubectl ends well. A `wait` among the words should be short, for the caller to look around between."""
    try:
        kubectl(cluster, program, *words, timeout=15)
    except DevError:
        return False
    return True


def wait_for_crds(cluster: Cluster, *names: str) -> None:
    """`names`: crd/certrotationpolicies.certroll.dev. kubectl fails at once while there are no conditions at all."""
    words = ("wait", "--for=condition=Established", "--timeout=5s", *names)
    end = time.monotonic() + 60
    while not holds(cluster, cluster.bin / "kubectl", *words):
        if time.monotonic() > end:
            raise DevError(f"not established within 60 s: {' '.join(names)}; see hack/cluster logs-dir")
        time.sleep(0.2)


def wait_for_controllers(cluster: Cluster, programs: Mapping[str, Path]) -> None:
    """Until the default service account is there, without which no pod can be created."""
    question = ("get", "serviceaccount/default", "--namespace=default")
    manager = _controller_manager(cluster, programs)
    manager.wait(lambda: holds(cluster, programs["kubectl"], *question), 120)


def listens(pid: int, port: int) -> bool:
    """Whether something listens on the TCP port in the network namespace of the process."""
    wanted = f":{port:04X}"
    for table in ("tcp", "tcp6"):
        rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        if any(row.split()[1].endswith(wanted) and row.split()[3] == "0A" for row in rows):
            return True
    return False


def _ready(cluster: Cluster, program: Path) -> bool:
    try:
        return kubectl(cluster, program, "get", "--raw=/readyz", timeout=10).strip() == "ok"
    except DevError:
        return False


def _on_loopback(cluster: Cluster, port: int) -> str:
    """Of etcd: only what runs on the first machine gets to its loopback device."""
    return f"http://{addresses.with_port(cluster.family.loopback, port)}"


def _etcd(cluster: Cluster, programs: Mapping[str, Path]) -> Daemon:
    clients, peers = _on_loopback(cluster, 2379), _on_loopback(cluster, 2380)
    flags = {
        "name": cluster.name,
        "data-dir": cluster.root / "etcd",
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"{cluster.name}={peers}",
        "log-level": "warn",
        # A cluster to try things on outlives a crash of its programs, but need not outlive one of the machine.
        "unsafe-no-fsync": True,
    }
    return _daemon(cluster, "etcd", programs, flags)


def _api_server(cluster: Cluster, programs: Mapping[str, Path]) -> Daemon:
    pki = cluster.pki
    policy = files.put(cluster.root / "etc" / "audit-policy.json", json.dumps(AUDIT_POLICY, indent=1) + "\n")
    cluster.logs.mkdir(parents=True, exist_ok=True)
    flags = {
        "etcd-servers": _on_loopback(cluster, 2379),
        "advertise-address": cluster.machine(1).address,
        "secure-port": layout.API_PORT,
        "service-cluster-ip-range": addresses.listed(tuple(family.services for family in cluster.families)),
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": True,
        "client-ca-file": pki / "ca.crt",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "kubelet-certificate-authority": pki / "ca.crt",
        "kubelet-client-certificate": pki / "apiserver-kubelet-client.crt",
        "kubelet-client-key": pki / "apiserver-kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-issuer": f"https://kubernetes.default.svc.{layout.CLUSTER_DOMAIN}",
        "service-account-key-file": pki / "service-account.pub",
        "service-account-signing-key-file": pki / "service-account.key",
        "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "proxy-client-cert-file": pki / "front-proxy-client.crt",
        "proxy-client-key-file": pki / "front-proxy-client.key",
        "enable-aggregator-routing": True,
        "audit-policy-file": policy,
        "audit-log-path": cluster.audit_log,
        # Each event is in the file when the request's answer goes out, so a test may read it at once.
        "audit-log-mode": "blocking",
        "audit-log-maxsize": 4096,  # megabytes: no rotation under a reader's feet
    }
    return _daemon(cluster, "kube-apiserver", programs, flags, [policy, pki / "apiserver.crt"])


def _controller_manager(cluster: Cluster, programs: Mapping[str, Path]) -> Daemon:
    pki = cluster.pki
    config = kubeconfig.write(
        cluster, cluster.root / "etc" / "controller-manager.kubeconfig", pki / "controller-manager.crt"
    )
    flags = {
        "kubeconfig": config,
        "leader-elect": False,
        "controllers": ",".join(["*", *(f"-{name}" for name in _NO_CONTROLLERS)]),
        "use-service-account-credentials": True,
        "service-account-private-key-file": pki / "service-account.key",
        "root-ca-file": pki / "ca.crt",
        "cluster-signing-cert-file": pki / "ca.crt",
        "cluster-signing-key-file": pki / "ca.key",
        "bind-address": cluster.family.loopback,
        # The default of 20 a second makes it take 5 s to set up its own service accounts.
        "kube-api-qps": 500,
        "kube-api-burst": 1000,
    }
    return _daemon(cluster, "kube-controller-manager", programs, flags, [config])


def _scheduler(cluster: Cluster, programs: Mapping[str, Path]) -> Daemon:
    config = kubeconfig.write(cluster, cluster.root / "etc" / "scheduler.kubeconfig", cluster.pki / "scheduler.crt")
    flags = {"kubeconfig": config, "leader-elect": False, "bind-address": cluster.family.loopback}
    return _daemon(cluster, "kube-scheduler", programs, flags, [config])


def _daemon(
    cluster: Cluster, name: str, programs: Mapping[str, Path], flags: Mapping[str, object], files: Sequence[Path] = ()
) -> Daemon:
    return Daemon(
        name=name,
        argv=[programs[name], *arguments(flags)],
        log=cluster.logs / f"{name}.log",
        record=cluster.daemons / cluster.machine(1).name / f"{name}.json",
        files=files,
    )


def arguments(flags: Mapping[str, object]) -> list[str]:
    """--name=value words; Go's flag packages write booleans in lower case."""
    return [f"--{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in flags.items()]
