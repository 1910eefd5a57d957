"""Putting the demo's workloads into a cluster, and knowing when they are up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from certroll_dev import controlplane, paths
from certroll_dev.addresses import with_port
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.component_images import Image
from certroll_dev.demo.pki import NAMESPACE, Authority, Material
from certroll_dev.demo.waiting import wait_for

MANIFESTS = paths.HACK / "demo.d"
POLICY = "demo"
_START_DEADLINE = 120.0


@dataclass(frozen=True)
class Workload:
    """A consumer of the demo and where its certificate can be seen."""

    consumer: str  # its name in the policy
    deployment: str  # also its Service, and the value of its pods' label app
    secret: str
    port: int

    @property
    def server_name(self) -> str:
        return f"{self.deployment}.{NAMESPACE}.svc"


ENVOY = Workload("envoy", "envoy", "envoy", 10443)
RATE_LIMIT = Workload("rate-limit", "envoy-ratelimit", "envoy-rate-limit", 8081)
NGINX = Workload("nginx", "nginx", "nginx-tls", 8443)
WORKLOADS = (ENVOY, RATE_LIMIT, NGINX)


def issue_all(authority: Authority) -> dict[str, Material]:
    """A new leaf for each workload, by the name of its Secret."""
    return {workload.secret: authority.issue(workload.deployment) for workload in WORKLOADS}


def write_secrets(api: API, materials: Mapping[str, Material]) -> dict[str, str]:
    """Write them as naive tools do, leaf, key and CA at once; returns their resourceVersions."""
    return {name: _version(api.apply("secrets", material.secret(name))) for name, material in materials.items()}


def install(cluster: LocalCluster, api: API, images: list[Image], materials: Mapping[str, Material]) -> None:
    """Everything but the policy, until every pod is ready. Rate Limit ends at once without Redis, so Redis goes first."""
    _apply(cluster, "00-namespace.yaml", images)
    write_secrets(api, materials)
    _apply(cluster, "10-redis.yaml", images)
    wait_rolled_out(api, "redis")
    for manifest in ("20-ratelimit.yaml", "30-envoy.yaml", "40-nginx.yaml"):
        _apply(cluster, manifest, images)
    for workload in WORKLOADS:
        wait_rolled_out(api, workload.deployment)


def install_crds(cluster: LocalCluster) -> None:
    cluster.kubectl("apply", "--server-side", "-k", str(paths.CRDS))
    controlplane.wait_for_crds(cluster.layout, *paths.crd_names())


def install_policy(cluster: LocalCluster) -> None:
    _apply(cluster, "50-policy.yaml", [])


def wait_rolled_out(api: API, deployment: str, deadline: float = _START_DEADLINE) -> None:
    wait_for(
        f"Deployment {deployment}",
        lambda: is_rolled_out(api.get("deployments", NAMESPACE, deployment)),
        deadline=deadline,
        missing=lambda: _why_not_up(api, deployment),
    )


def is_rolled_out(deployment: Object) -> bool:
    """What `kubectl rollout status` waits for."""
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    counts = [status.get(count, 0) for count in ("updatedReplicas", "replicas", "availableReplicas")]
    observed: bool = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return observed and counts == [wanted] * 3


def replica_sets(api: API, workload: Workload) -> set[str]:
    """The generations of its pod template that there ever were (Deployments keep ten): one more is one rollout."""
    return {obj["metadata"]["uid"] for obj in api.list("replicasets", NAMESPACE, f"app={workload.deployment}")}


def service_address(api: API, workload: Workload) -> str:
    spec = api.get("services", NAMESPACE, workload.deployment)["spec"]
    return with_port(spec["clusterIP"], spec["ports"][0]["port"])


def _version(obj: Object) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


def _apply(cluster: LocalCluster, manifest: str, images: list[Image]) -> None:
    text = (MANIFESTS / manifest).read_text()
    if cluster.layout.family.version == 6:
        text = _listening_on_ipv6(text)
    cluster.kubectl("apply", "-f", "-", stdin=_with_images(text, images))


def _listening_on_ipv6(manifest: str) -> str:
    """What the programs are told to listen at. Rate Limit takes both families unless told."""
    for ipv4, ipv6 in (("0.0.0.0", '"::"'), ("listen 8443 ssl", "listen [::]:8443 ssl")):
        manifest = manifest.replace(ipv4, ipv6)
    return manifest


def _with_images(manifest: str, images: list[Image]) -> str:
    """The manifests name the versions of Debian 12; another distribution has others, and they are called what they are."""
    for image in images:
        repository = image.reference.rsplit(":", 1)[0]
        lines = manifest.splitlines()
        manifest = "\n".join(
            line.split("image: ")[0] + f"image: {image.reference}" if f"image: {repository}:" in line else line for line in lines
        )
    return manifest


def _why_not_up(api: API, deployment: str) -> str:
    """The most telling thing about a Deployment that is not up: what its containers wait for, or how many are there."""
    for pod in api.list("pods", NAMESPACE, f"app={deployment}"):
        for container in pod.get("status", {}).get("containerStatuses", []):
            waiting = container.get("state", {}).get("waiting", {})
            if waiting:
                return f"{pod['metadata']['name']}: {waiting.get('reason')}: {waiting.get('message', '')}"
    status = api.get("deployments", NAMESPACE, deployment).get("status", {})
    return f"{status.get('availableReplicas', 0)} of {status.get('replicas', 0)} pods are available"

