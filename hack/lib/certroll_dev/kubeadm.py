"""What kubeadm writes on a control-plane node, by kubeadm itself: certificates, kubeconfigs, manifests of static pods.

Its phases are run in the machine, where /etc/kubernetes is a folder of the node's own. Each runs once: what a test or a
tool does to the files afterwards stays. Where the configuration differs from what `kubeadm init` has without one, the
comment beside it says why.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import addresses, certificates, controlplane, files, kubeconfig, layout, machines, restart_kubelet, tools
from .layout import Machine, Spec

FOLDER = "/etc/kubernetes"
PKI = f"{FOLDER}/pki"
AUDIT_FOLDER = "/var/log/kubernetes"
# Of the cluster's own names for its CAs and keys, and kubeadm's.
_GIVEN = {
    "ca.crt": "ca.crt",
    "ca.key": "ca.key",
    "front-proxy-ca.crt": "front-proxy-ca.crt",
    "front-proxy-ca.key": "front-proxy-ca.key",
    "etcd-ca.crt": "etcd/ca.crt",
    "etcd-ca.key": "etcd/ca.key",
    "service-account.pub": "sa.pub",
    "service-account.key": "sa.key",
}


def write_certificates(machine: Machine, spec: Spec, program: Path) -> None:
    """All of /etc/kubernetes but the manifests."""
    if _is_done(machine, "certificates"):
        return
    pki = machine.kubernetes / "pki"
    for ours, theirs in _GIVEN.items():
        (pki / theirs).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(machine.cluster.pki / ours, pki / theirs)
    config = _configuration(machine, spec)
    _phase(machine, program, config, "certs", "all")
    _phase(machine, program, config, "kubeconfig", "all")
    (machine.kubernetes / "kubelet.conf").unlink()  # see write_kubelet_conf
    if machine.number > 1:
        (machine.kubernetes / "super-admin.conf").unlink()  # `kubeadm join` makes none
    if spec.kubeconfig_files:
        for name in ("controller-manager", "scheduler"):
            path = machine.kubernetes / f"{name}.conf"
            kubeconfig.move_into_files(path, pki / name, f"{PKI}/{name}", f"{PKI}/ca.crt")
    _done(machine, "certificates")


def write_kubelet_conf(machine: Machine, spec: Spec) -> Path:
    """As kubeadm leaves it behind: the kubelet's own certificate is a file, which it renews itself."""
    certificates.ensure_kubelet(machine)
    path = machine.kubernetes / "kubelet.conf"
    if not path.exists():
        current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
        authority = f"{PKI}/ca.crt" if spec.kubeconfig_files else machine.cluster.pki / "ca.crt"
        text = kubeconfig.with_files(
            machine.cluster.server, f"system:node:{machine.name}", authority, current, current
        )
        files.put(path, text, mode=0o600)
    authority = machine.kubernetes / "pki" / "ca.crt"  # of a worker, the only thing in there
    if not authority.exists():
        authority.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(machine.cluster.pki / "ca.crt", authority)
    return path


def write_proxy_conf(machine: Machine) -> Path:
    """Of --kubeconfig-files; kubeadm's own kube-proxy is a pod with a token."""
    pki, path = machine.kubernetes / "pki", machine.kubernetes / "kube-proxy.conf"
    if not path.exists():
        for suffix in (".crt", ".key"):
            shutil.copy(machine.cluster.pki / f"proxy{suffix}", pki / f"kube-proxy{suffix}")
        names = (f"{PKI}/ca.crt", f"{PKI}/kube-proxy.crt", f"{PKI}/kube-proxy.key")
        files.put(path, kubeconfig.with_files(machine.cluster.server, "system:kube-proxy", *names), mode=0o600)
    return path


def write_manifests(machine: Machine, spec: Spec, program: Path, components: Sequence[str]) -> None:
    """Of these static pods: etcd, kube-apiserver, kube-controller-manager, kube-scheduler."""
    for component in components:
        if not _is_done(machine, component):
            phase = ("etcd", "local") if component == "etcd" else ("control-plane", component.removeprefix("kube-"))
            _phase(machine, program, _configuration(machine, spec), *phase)
            _done(machine, component)


def status(machine: Machine) -> dict[str, object]:
    """Where the files are, for a test that swaps them: the node's own folders, as this machine sees them."""
    conf = sorted(machine.kubernetes.glob("*.conf"))
    return {
        "kubernetes": str(machine.kubernetes),
        "pki": str(machine.kubernetes / "pki"),
        "kubeconfigs": {path.stem: str(path) for path in conf},
        "kubelet": str(machine.kubelet),
        "kubeletPki": str(machine.kubelet / "pki"),
        "kubeadmConfig": str(machine.etc / "kubeadm.yaml"),
        "restartKubelet": restart_kubelet.COMMAND,
        "auditLog": str(machine.audit_log) if machine.audit_log.exists() else None,
    }


def _phase(machine: Machine, program: Path, config: Path, *words: str) -> None:
    machines.run(machine, [program, "init", "phase", *words, f"--config={config}"], timeout=120)


def _configuration(machine: Machine, spec: Spec) -> Path:
    """Outside of /etc/kubernetes, and seen by the same path from within and without."""
    policy = machine.kubernetes / "audit-policy.json"
    files.put(policy, json.dumps(controlplane.AUDIT_POLICY, indent=1) + "\n")
    documents = [_init_configuration(machine), _cluster_configuration(machine, spec)]
    text = "---\n".join(json.dumps(document, indent=1) + "\n" for document in documents)
    return files.put(machine.etc / "kubeadm.yaml", text)


def _init_configuration(machine: Machine) -> dict[str, object]:
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": str(machine.address), "bindPort": layout.API_PORT},
        "nodeRegistration": {
            "name": machine.name,
            "criSocket": "unix:///run/containerd/containerd.sock",
            "taints": [],  # there is nowhere else for workloads
        },
    }


def _cluster_configuration(machine: Machine, spec: Spec) -> dict[str, object]:
    services = tuple(family.services for family in machine.cluster.families)
    members = [machine.cluster.machine(number) for number in range(1, spec.control_plane_nodes + 1)]
    peers = ",".join(f"{member.name}=https://{addresses.with_port(member.address, 2380)}" for member in members)
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": tools.version_of("kubeadm"),
        "controlPlaneEndpoint": addresses.with_port(machine.cluster.family.balancer, layout.BALANCER_PORT),
        "networking": {"serviceSubnet": addresses.listed(services), "dnsDomain": layout.CLUSTER_DOMAIN},
        "encryptionAlgorithm": "ECDSA-P256",  # a dozen keys a node: RSA takes seconds
        "etcd": {
            "local": {
                "dataDir": "/var/lib/etcd",
                "imageTag": f"{tools.version_of('etcd').removeprefix('v')}-0",
                "extraArgs": _arguments(
                    {
                        # All members at once, where `kubeadm join` adds one after the other.
                        "initial-cluster": peers,
                        "initial-cluster-state": "new",
                        "unsafe-no-fsync": "true",
                    }
                ),
            }
        },
        "apiServer": {
            "extraArgs": _arguments(_api_server_arguments()),
            "extraVolumes": [
                _volume("audit-policy", f"{FOLDER}/audit-policy.json", "File", read_only=True),
                _volume("audit-log", AUDIT_FOLDER, "DirectoryOrCreate", read_only=False),
            ],
        },
        # The default of 20 a second makes it take 5 s to set up its own service accounts.
        "controllerManager": {"extraArgs": _arguments({"kube-api-qps": "500", "kube-api-burst": "1000"})},
        "scheduler": {"extraVolumes": [_volume("k8s-certs", PKI, "Directory", read_only=True)]}
        if spec.kubeconfig_files
        else {},
    }


def _api_server_arguments() -> dict[str, str]:
    return {
        # kubeadm's kubelets have self-signed certificates, which its API servers do not verify.
        "kubelet-certificate-authority": f"{PKI}/ca.crt",
        "enable-aggregator-routing": "true",
        "audit-policy-file": f"{FOLDER}/audit-policy.json",
        "audit-log-path": f"{AUDIT_FOLDER}/audit.log",
        "audit-log-mode": "blocking",
        "audit-log-maxsize": "4096",
    }


def _arguments(flags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in flags.items()]


def _volume(name: str, path: str, kind: str, *, read_only: bool) -> dict[str, object]:
    return {"name": name, "hostPath": path, "mountPath": path, "readOnly": read_only, "pathType": kind}


def _is_done(machine: Machine, what: str) -> bool:
    return _mark(machine, what).exists()


def _done(machine: Machine, what: str) -> None:
    files.put(_mark(machine, what), "")


def _mark(machine: Machine, what: str) -> Path:
    return machine.root / "kubeadm" / what
