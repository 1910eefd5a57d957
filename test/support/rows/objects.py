"""What is written into the API of the second control plane, and what servers behind taps answer. Data."""

from __future__ import annotations

import base64
import json

from rows import settings

_ISSUER = f"https://localhost:{settings.OIDC}"
# A node's own status is written apart.
NODE_STATUS = {
    "status": {
        "addresses": [{"type": "InternalIP", "address": settings.NODE}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.KUBELET}},
    }
}


def to_write(authority: bytes) -> list[tuple[str, dict[str, object]]]:
    """Paths, and what is posted there: a node, an API that is served elsewhere, a Lease of a peer."""
    group = {"group": "rows.test", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    service = {"namespace": "default", "name": "rows-api"}
    bundle = base64.b64encode(authority).decode()
    slice_of = {"name": "rows-api", "labels": {"kubernetes.io/service-name": "rows-api"}}
    lease = {"name": "rows-provoke", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}
    ports = [{"name": "https", "port": settings.AGGREGATED, "protocol": "TCP"}]
    registered = {"service": service, "caBundle": bundle, **group}
    return [
        ("/api/v1/nodes", {"metadata": {"name": "rows-node"}}),
        ("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "rows"}}),
        ("/api/v1/namespaces/default/services", {
            "metadata": {"name": "rows-api"}, "spec": {"ports": [{"name": "https", "port": 443, "targetPort": settings.AGGREGATED}]},
        }),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
            "metadata": slice_of, "addressType": "IPv4", "ports": ports,
            "endpoints": [{"addresses": [settings.NODE], "conditions": {"ready": True}}],
        }),
        ("/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.rows.test"}, "spec": registered}),
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", {
            "metadata": lease,
            "spec": {"holderIdentity": "rows-0", "leaseDurationSeconds": 86400, "renewTime": "2100-01-01T00:00:00.000000Z"},
        }),
    ]  # fmt: skip


def api_resources(_: str) -> bytes:
    return json.dumps({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "rows.test/v1", "resources": []}).encode()


def provider(path: str) -> bytes:
    """Of OpenID Connect, with no key that anybody could have: so it is asked for its keys with each token."""
    if path.startswith("/keys"):
        return b'{"keys": []}'
    found = {"issuer": _ISSUER, "jwks_uri": f"{_ISSUER}/keys", "authorization_endpoint": f"{_ISSUER}/auth"}
    more = {"response_types_supported": ["id_token"], "subject_types_supported": ["public"]}
    return json.dumps({**found, **more, "id_token_signing_alg_values_supported": ["RS256"]}).encode()
