"""Ports, flags and configuration of the programs beside the cluster's own. Data; nothing is started here."""

from __future__ import annotations

import json
from pathlib import Path

from rows.folder import Folder

NODE = "192.168.96.1"
ETCD, KUBELET, AGGREGATED, OIDC = range(20001, 20005)
CLUSTERS_ETCD = 2379
MANAGER, SIGNER, SCHEDULER, COREDNS, ETCD_PEER, ETCDCTL = range(20011, 20017)
BOOTSTRAP, KUBELET_1, KUBELET_2, PROXY_2 = range(20021, 20025)  # taps of the cluster's own
A, B = 20101, 20102
MANAGER_OWN, SIGNER_OWN, SIGNERS_OWN, SCHEDULER_OWN = range(20111, 20115)
ETCD_OWN, ETCD_OWN_PEER, MEMBER_OWN, MEMBER_PLAIN, DNS, METRICS, HEALTH, GATEWAY_OWN, GATEWAY_PEER = range(20121, 20130)
SNI = "sni.rows.test"

FRONT_PROXY = "front-proxy"  # the one name that may say in headers who somebody is
_FRONT_PROXY = {
    "requestheader-allowed-names": FRONT_PROXY,
    "requestheader-username-headers": "X-Remote-User",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
}


def flags(values: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def _serving(files: Folder) -> dict[str, object]:
    """What API server, controller manager and scheduler take of one library."""
    return {
        "tls-cert-file": files / "tls.crt",
        "tls-private-key-file": files / "tls.key",
        "tls-sni-cert-key": f"{files / 'sni.crt'},{files / 'sni.key'}:{SNI}",
        "client-ca-file": files / "client-ca.crt",
        "requestheader-client-ca-file": files / "front-proxy-ca.crt",
        **_FRONT_PROXY,
    }


def api_server(files: Folder, port: int, etcd: int, prefix: str) -> dict[str, object]:
    """On the cluster's etcd, below a prefix of its own: another cluster, of nobody's nodes."""
    return {
        "etcd-servers": f"https://127.0.0.1:{etcd}",
        "etcd-prefix": prefix,
        "etcd-cafile": files / "etcd-ca.crt",
        "etcd-certfile": files / "etcd.crt",
        "etcd-keyfile": files / "etcd.key",
        "secure-port": port,
        "advertise-address": NODE,
        "service-cluster-ip-range": "10.97.0.0/16",
        "authorization-mode": "RBAC",
        "enable-aggregator-routing": "true",
        **_serving(files),
        "kubelet-certificate-authority": files / "kubelet-ca.crt",
        "kubelet-client-certificate": files / "kubelet.crt",
        "kubelet-client-key": files / "kubelet.key",
        "kubelet-preferred-address-types": "InternalIP",
        "peer-ca-file": files / "peer-ca.crt",
        "proxy-client-cert-file": files / "proxy.crt",
        "proxy-client-key-file": files / "proxy.key",
        "service-account-issuer": "https://rows.test",
        "service-account-key-file": files / "sa.pub",
        "service-account-signing-key-file": files / "sa.key",
    }


def second_api_server(files: Folder, prefix: str) -> dict[str, object]:
    """The peer of the first, by a tap; and the one whose keys and OIDC provider are tried."""
    return {
        **api_server(files, B, ETCD, prefix),
        "bind-address": "127.0.0.1",  # at the address that its peer is told, a tap listens
        "oidc-issuer-url": f"https://localhost:{OIDC}",
        "oidc-client-id": "rows",
        "oidc-ca-file": files / "oidc-ca.crt",
    }


def manager(files: Folder, port: int, *controllers: str) -> dict[str, object]:
    return {
        **_component(files, port),
        "controllers": ",".join(controllers),
        "use-service-account-credentials": "false",
    }


def scheduler(files: Folder) -> dict[str, object]:
    return _component(files, SCHEDULER_OWN)


def _component(files: Folder, port: int) -> dict[str, object]:
    return {
        "kubeconfig": files / "kubeconfig",
        "authentication-kubeconfig": files / "kubeconfig",
        "authorization-kubeconfig": files / "kubeconfig",
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": port,
        **_serving(files),
    }


def etcd(files: Folder, data: Path, port: int, peers: int) -> dict[str, object]:
    """One member, of which the clients' side is tried."""
    url = f"https://127.0.0.1:{port}"
    return {
        "data-dir": data,
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "listen-peer-urls": f"http://127.0.0.1:{peers}",
        "initial-advertise-peer-urls": f"http://127.0.0.1:{peers}",
        "initial-cluster": f"default=http://127.0.0.1:{peers}",
        "cert-file": files / "tls.crt",
        "key-file": files / "tls.key",
        "trusted-ca-file": files / "ca.crt",
        "client-cert-auth": "true",
        "client-cert-file": files / "client.crt",
        "client-key-file": files / "client.key",
        "unsafe-no-fsync": "true",
        "log-level": "error",
    }


def etcd_member(files: Folder, place: Path) -> dict[str, object]:
    """One of two members; the other is a tap."""
    own = f"https://localhost:{MEMBER_OWN}"
    plain = f"http://127.0.0.1:{MEMBER_PLAIN}"
    return {
        "name": "a",
        "data-dir": place / "member-data",
        "listen-client-urls": plain,
        "advertise-client-urls": plain,
        "listen-peer-urls": own.replace("localhost", "127.0.0.1"),
        "initial-advertise-peer-urls": own,
        "initial-cluster": f"a={own},b=https://localhost:{ETCD_PEER}",
        "peer-cert-file": files / "tls.crt",
        "peer-key-file": files / "tls.key",
        "peer-trusted-ca-file": files / "ca.crt",
        "peer-client-cert-auth": "true",
        "peer-client-cert-file": files / "client.crt",
        "peer-client-key-file": files / "client.key",
        "unsafe-no-fsync": "true",
        "log-level": "error",
    }


def bootstrapping_kubelet(files: Folder, place: Path) -> dict[str, object]:
    """One that has no kubeconfig yet, and waits for the certificate that it has asked for: it starts nothing before."""
    return {
        "bootstrap-kubeconfig": files / "kubeconfig",
        "kubeconfig": place / "bootstrap-root/kubelet.conf",
        "config": files / "config.json",
        "root-dir": place / "bootstrap-root",
        "cert-dir": place / "bootstrap-root/pki",
        "hostname-override": "rows-node",
    }


def bootstrapping_config() -> bytes:
    kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    runtime = {"containerRuntimeEndpoint": "unix:///nobody.sock", "failSwapOn": False, "failCgroupV1": False}
    return (json.dumps({**kind, **runtime, "rotateCertificates": False}) + "\n").encode()


def kubeconfig(server: str, files: Folder) -> bytes:
    """That names its files."""
    return node_kubeconfig(server, *(str(files / name) for name in ("server-ca.crt", "api.crt", "api.key")))


def node_kubeconfig(server: str, authority: str, certificate: str, key: str) -> bytes:
    return _kubeconfig(
        {"server": server, "certificate-authority": authority}, {"client-certificate": certificate, "client-key": key}
    )


def embedded(server: str, authority: str, certificate: str, key: str) -> bytes:
    """With all in it, in base64."""
    return _kubeconfig(
        {"server": server, "certificate-authority-data": authority},
        {"client-certificate-data": certificate, "client-key-data": key},
    )


def _kubeconfig(cluster: dict[str, str], user: dict[str, str]) -> bytes:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "rows", "cluster": cluster}],
        "users": [{"name": "rows", "user": user}],
        "contexts": [{"name": "rows", "context": {"cluster": "rows", "user": "rows"}}],
        "current-context": "rows",
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def corefile(files: Folder) -> bytes:
    return f"""\
cluster.local:{DNS} {{
    kubernetes cluster.local {{
        endpoint https://127.0.0.1:{COREDNS}
        tls {files / "api.crt"} {files / "api.key"} {files / "server-ca.crt"}
    }}
    prometheus 127.0.0.1:{METRICS} {{
        tls {files / "web.yaml"}
    }}
    health 127.0.0.1:{HEALTH}
    errors
}}
""".encode()


def web_config(files: Folder) -> bytes:
    """Of CoreDNS's metrics (github.com/prometheus/exporter-toolkit)."""
    settings = {
        "cert_file": str(files / "tls.crt"),
        "key_file": str(files / "tls.key"),
        "client_ca_file": str(files / "client-ca.crt"),
        "client_auth_type": "RequireAndVerifyClientCert",
    }
    return (json.dumps({"tls_server_config": settings}) + "\n").encode()
