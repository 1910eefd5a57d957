"""containerd, kubelet and kube-proxy: what makes a machine a node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from . import addresses, certificates, commands, files, images, kubeadm, kubeconfig, layout, machines, restart_kubelet
from .controlplane import arguments, holds, listens
from .daemons import Daemon
from .layout import Machine, Spec
from .ui import DevError

PROGRAMS = ("kubelet", "kube-proxy", "pause")
PAUSE_IMAGE = "certroll.dev/pause:1"
_CNI_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")  # Debian's folder, upstream's folder
# The machine has a /run of its own, so containerd's usual paths are free.
_SOCKET = "/run/containerd/containerd.sock"
_KUBELET_PORT = 10250
_PROXY_METRICS_PORT = 10249

_KUBEADM_FILES = {
    "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{kubeadm.PKI}/ca.crt"}},
    # kubeadm leaves it to the kubelet to sign its own, which no API server can verify.
    "tlsCertFile": "/var/lib/kubelet/pki/kubelet.crt",
    "tlsPrivateKeyFile": "/var/lib/kubelet/pki/kubelet.key",
    "rotateCertificates": True,
    "staticPodPath": f"{kubeadm.FOLDER}/manifests",
}

_CONTAINERD = """\
version = 2
root = "{root}"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE runc may not lower oom_score_adj, and says so as "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  # Its profile would stay loaded in the kernel.
  disable_apparmor = true

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "{snapshotter}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{cni_plugins}"
  conf_dir = "{cni_conf}"
"""


def start_containerd(machine: Machine, inside: int) -> Daemon:
    """Start it unless it runs; `wait_for_containerd` is the other half, for which there is time later."""
    daemon = _containerd(machine)
    daemon.start(inside)
    return daemon


def wait_for_containerd(machine: Machine, daemon: Daemon) -> None:
    daemon.wait(lambda: machines.succeeds(machine, _ctr("version")), 60)


def load_image(machine: Machine, archive: Path) -> None:
    """Import a Docker or OCI archive; it goes in by stdin, since the machine sees other folders than we do."""
    with archive.open("rb") as file:
        machines.run(machine, _ctr("images", "import", "--no-unpack", "-"), stdin=file, timeout=300)


def load_pause(machine: Machine, pause: Path) -> None:
    archive = images.cached_image(PAUSE_IMAGE, {"/pause": pause}, entrypoint=["/pause"], user="65535:65535", libs=False)
    ensure_image(machine, PAUSE_IMAGE, archive)


def ensure_image(machine: Machine, name: str, archive: Path) -> None:
    """Import the archive unless the machine has the image of that name from this very archive."""
    mark = machine.root / "images" / name.replace("/", "_")
    if not (mark.exists() and mark.read_text() == str(archive) and _has_image(machine, name)):
        load_image(machine, archive)
        files.put(mark, str(archive))


def start_kubelet(machine: Machine, spec: Spec, programs: Mapping[str, Path], inside: int) -> Daemon:
    daemon = _kubelet(machine, spec, programs)
    if daemon.start(inside):
        daemon.wait(lambda: listens(inside, _KUBELET_PORT), 120, "listening")
    return daemon


def wait_for_ready(machine: Machine, kubelet: Daemon, kubectl: Path) -> None:
    question = ("wait", "--for=condition=Ready", f"node/{machine.name}", "--timeout=2s")
    kubelet.wait(lambda: holds(machine.cluster, kubectl, *question), 120, "Ready")


def restart_kubelet_of(machine: Machine) -> None:
    """By the node's own command; returns when it listens again."""
    restart_kubelet.run(machine, _record(machine, "kubelet"), _KUBELET_PORT)


def start_proxy(machine: Machine, programs: Mapping[str, Path], inside: int) -> None:
    daemon = _proxy(machine, programs)
    if daemon.start(inside):
        daemon.wait(lambda: listens(inside, _PROXY_METRICS_PORT), 120, "listening")


def _containerd(machine: Machine) -> Daemon:
    plugins = next((folder for folder in _CNI_PLUGINS if Path(folder, "ptp").exists()), None)
    if plugins is None:
        raise DevError(f"no CNI plugins in {' or '.join(_CNI_PLUGINS)}: run hack/deps cluster")
    cni = files.put(machine.etc / "cni" / "10-certroll.conflist", json.dumps(_cni(machine), indent=1) + "\n")
    text = _CONTAINERD.format(
        root=machine.root / "containerd",
        socket=_SOCKET,
        pause=PAUSE_IMAGE,
        snapshotter=_snapshotter(machine),
        cni_plugins=plugins,
        cni_conf=cni.parent,
    )
    config = files.put(machine.etc / "containerd.toml", text)
    return Daemon(
        name="containerd",
        argv=[_program("containerd"), "--config", config, "--log-level", "warn"],
        log=machine.logs / "containerd.log",
        record=_record(machine, "containerd"),
        files=[config, cni],
    )


def _cni(machine: Machine) -> dict[str, object]:
    address_management = {
        "type": "host-local",
        "ranges": [[{"subnet": str(network)}] for network in machine.pod_networks],
        "routes": [{"dst": family.everywhere} for family in machine.cluster.families],
        "dataDir": "/run/cni-addresses",  # a pod does not outlive its machine, nor should its address
    }
    return {
        "cniVersion": "0.4.0",
        "name": "certroll",
        "plugins": [
            {"type": "ptp", "mtu": 1500, "ipMasq": False, "ipam": address_management},
            {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
        ],
    }


def _snapshotter(machine: Machine) -> str:
    """overlayfs does not stack on itself, as in a container whose root it is."""
    below = commands.run(["stat", "--file-system", "--format=%T", machine.root]).strip()
    return "native" if below == "overlayfs" else "overlayfs"


def _kubelet(machine: Machine, spec: Spec, programs: Mapping[str, Path]) -> Daemon:
    if spec.control_plane_nodes:
        return _kubeadm_kubelet(machine, spec, programs["kubelet"])
    pki = certificates.ensure_node(machine)
    access = kubeconfig.write(machine.cluster, machine.etc / "kubelet.kubeconfig", pki / "kubelet-client.crt")
    settings = _kubelet_configuration(machine, spec, _own_files(machine, pki))
    config = files.put(machine.etc / "kubelet.json", json.dumps(settings, indent=1) + "\n")
    flags = {
        "config": config,
        "kubeconfig": access,
        "hostname-override": machine.name,
        "node-ip": addresses.listed(machine.addresses),
        "root-dir": machine.kubelet,
        "cert-dir": pki,
    }
    return Daemon(
        name="kubelet",
        argv=[programs["kubelet"], *arguments(flags)],
        log=machine.logs / "kubelet.log",
        record=_record(machine, "kubelet"),
        files=[config, access],
    )


def _kubeadm_kubelet(machine: Machine, spec: Spec, program: Path) -> Daemon:
    """By the paths that kubeadm gives it, which only the machine sees."""
    access = kubeadm.write_kubelet_conf(machine, spec)
    settings = _kubelet_configuration(machine, spec, _KUBEADM_FILES)
    config = files.put(machine.kubelet / "config.yaml", json.dumps(settings, indent=1) + "\n")
    flags = {
        "kubeconfig": f"{kubeadm.FOLDER}/kubelet.conf",
        "config": "/var/lib/kubelet/config.yaml",
        "hostname-override": machine.name,
        "node-ip": addresses.listed(machine.addresses),
        # Other clusters' kubelets have all of the above, too: by this one it is found (daemons.processes_running).
        "volume-plugin-dir": machine.root / "volume-plugins",
    }
    argv = [program, *arguments(flags)]
    log = machine.logs / "kubelet.log"
    restart_kubelet.write_command(machine, argv, log)
    return Daemon(
        name="kubelet", argv=argv, log=log, record=_record(machine, "kubelet"), files=[config, access], restartable=True
    )


def _own_files(machine: Machine, pki: Path) -> dict[str, object]:
    return {
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(pki / "ca.crt")}},
        "tlsCertFile": str(pki / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet-server.key"),
        "staticPodPath": str(machine.static_pods),
        "volumePluginDir": str(machine.root / "volume-plugins"),
    }


def _kubelet_configuration(machine: Machine, spec: Spec, own_files: Mapping[str, object]) -> dict[str, object]:
    machine.static_pods.mkdir(parents=True, exist_ok=True)
    settings: dict[str, object] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": _KUBELET_PORT,
        "readOnlyPort": 0,
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{machine.cgroup}",
        "failCgroupV1": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "oomScoreAdj": 0,  # less would need CAP_SYS_RESOURCE
        "clusterDNS": [str(machine.cluster.family.dns_service)],
        "clusterDomain": layout.CLUSTER_DOMAIN,
        "resolvConf": "",  # the host's name servers cannot be reached from here
        "maxPods": 500,
        **own_files,
        # Somebody's nearly full disk is no reason to evict pods, and no registry could bring an image back.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }
    if spec.sync_frequency is not None:
        settings["syncFrequency"] = spec.sync_frequency
    return settings


def _proxy(machine: Machine, programs: Mapping[str, Path]) -> Daemon:
    access = _proxy_access(machine)
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(access)},
        "hostnameOverride": machine.name,
        "clusterCIDR": addresses.listed(tuple(family.pods for family in machine.cluster.families)),
        "conntrack": {"maxPerCore": 0, "min": 0},  # the table belongs to the whole host
        "oomScoreAdj": 0,
        "metricsBindAddress": f"127.0.0.1:{_PROXY_METRICS_PORT}",
        "healthzBindAddress": "127.0.0.1:10256",
    }
    config = files.put(machine.etc / "proxy.json", json.dumps(settings, indent=1) + "\n")
    return Daemon(
        name="kube-proxy",
        argv=[programs["kube-proxy"], f"--config={config}"],
        log=machine.logs / "kube-proxy.log",
        record=_record(machine, "kube-proxy"),
        files=[config, access],
    )


def _proxy_access(machine: Machine) -> Path:
    cluster = machine.cluster
    spec = cluster.spec()
    if spec is not None and spec.kubeconfig_files:
        return kubeadm.write_proxy_conf(machine)
    return kubeconfig.write(cluster, machine.etc / "proxy.kubeconfig", cluster.pki / "proxy.crt")


def _has_image(machine: Machine, name: str) -> bool:
    return machines.run(machine, _ctr("images", "list", "--quiet", f"name=={name}")).strip() == name


def _ctr(*words: str) -> list[str | Path]:
    return [_program("ctr"), "--address", _SOCKET, "--namespace", "k8s.io", *words]


def _program(name: str) -> Path:
    for folder in ("/usr/local/bin", "/usr/bin", "/usr/sbin"):
        if Path(folder, name).exists():
            return Path(folder, name)
    raise DevError(f"{name} is not installed: run hack/deps cluster")


def _record(machine: Machine, name: str) -> Path:
    return machine.cluster.daemons / machine.name / f"{name}.json"
