"""certroll as it is installed: each overlay of manifests/, what it may do and what not, and how it goes again."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certroll_dev import install, paths
from certroll_dev.demo import pki, pods, workloads
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Authority
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY, NGINX
from certroll_dev.install import Operator
from certroll_dev.install_overlay import MANIFESTS
from certroll_dev.operator_image import Image
from certroll_dev.ui import DevError

import sanitizers

_OVERLAYS = sorted(path.name for path in (MANIFESTS / "overlays").iterdir())
# The end-to-end tests as a whole look for refused requests, but not in namespaces with this beginning (test_rights.py).
_SHOP = "certroll-withdrawn-shop"
_USER = f"system:serviceaccount:{install.NAMESPACE}:certroll-operator"
_OTHER_USER = f"system:serviceaccount:{_SHOP}:somebody"
_POLICY = "shop"


@pytest.fixture(scope="module")
def installer(cluster: LocalCluster, image: Image) -> Iterator[Installer]:
    found = Installer(cluster, image)
    yield found
    found.end()


class Installer:
    """Keeps the operator as long as tests ask for the same one; their order is that of few installations."""

    def __init__(self, cluster: LocalCluster, image: Image) -> None:
        self._cluster = cluster
        self._image = image
        self._now: tuple[str | None, Operator] | None = None

    def __call__(self, overlay: str | None, *components: str) -> Operator:
        """None: of no overlay, but with _SHOP as its only namespace."""
        if self._now is None or self._now[0] != overlay:
            where: dict[str, Any] = {"overlay": overlay} if overlay else {"namespaces": [_SHOP]}
            operator = Operator(self._cluster.layout, self._image, components=components, env=sanitizers.ENVIRONMENT, **where)
            if self._now is None:
                operator.forget_logs()  # of other tests
            operator.install()
            self._now = (overlay, operator)
        return self._now[1]

    def end(self) -> None:
        if self._now:
            operator = self._now[1]
            self._now = None
            operator.uninstall()
            found = sanitizers.reports(operator.logs())
            assert not found, found


@pytest.fixture(scope="module")
def authority(cluster: LocalCluster, api: API) -> Iterator[Authority]:
    """Of a namespace with Envoy, which reloads, and nginx, which does not; both serve leaves of this CA."""
    made = pki.new_authority(1)
    cluster.kubectl("create", "namespace", _SHOP)
    _write_leaves(api, made)
    for manifest in ("30-envoy.yaml", "40-nginx.yaml"):
        text = (workloads.MANIFESTS / manifest).read_text()
        cluster.kubectl("apply", "-f", "-", stdin=text.replace(pki.NAMESPACE, _SHOP))
    for workload in (ENVOY, NGINX):
        cluster.kubectl("-n", _SHOP, "rollout", "status", "--timeout=120s", f"deployment/{workload.deployment}")
    yield made
    cluster.kubectl("delete", "namespace", _SHOP)


def _write_leaves(api: API, authority: Authority) -> dict[str, str]:
    written = {}
    for workload in (ENVOY, NGINX):
        material = authority.issue(workload.deployment, namespace=_SHOP)
        written[workload.secret] = api.apply("secrets", material.secret(workload.secret, _SHOP))["metadata"]["resourceVersion"]
    return written


def _install_policy(api: API) -> None:
    consumers = [
        {"name": w.consumer, "targetRef": {"kind": "Deployment", "name": w.deployment}, "verify": {"port": w.port}}
        for w in (ENVOY, NGINX)
    ]
    api.apply("certrotationpolicies", {
        "apiVersion": "certroll.dev/v1alpha1",
        "kind": "CertRotationPolicy",
        "metadata": {"name": _POLICY, "namespace": _SHOP},
        "spec": {"secrets": [{"name": w.secret} for w in (ENVOY, NGINX)], "consumers": consumers, "restart": {"coalesce": "1s"}},
    })
    wait_for("the policy to be Ready", lambda: _status(api).holds("Ready"), deadline=60)


def _status(api: API) -> Status:
    return Status.of(api.get("certrotationpolicies", _SHOP, _POLICY))


# --- the manifests as they stand there


@pytest.mark.parametrize("kustomization", ["base", "namespace", *(f"overlays/{name}" for name in _OVERLAYS)])
def test_no_right_lets_it_get_others(cluster: LocalCluster, kustomization: str) -> None:
    for obj in _objects(cluster, MANIFESTS / kustomization):
        for rule in obj.get("rules", []):
            words = [*rule.get("apiGroups", []), *rule.get("resources", []), *rule["verbs"]]
            assert not {"*", "escalate", "bind", "impersonate", "pods/exec", "serviceaccounts/token"} & set(words), rule


def test_the_manifests_name_the_version_that_is_built(cluster: LocalCluster, image: Image) -> None:
    [deployment] = [obj for obj in _objects(cluster, MANIFESTS / "base") if obj["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image.reference.removesuffix("-dev")


def _objects(cluster: LocalCluster, folder: Path) -> list[dict[str, Any]]:
    """Of a kustomization, without asking the API server: kubectl makes JSON of the YAML."""
    text = cluster.kubectl("kustomize", str(folder))
    items = cluster.kubectl("patch", "--local", "--type=merge", "-p", "{}", "-o", "json", "-f", "-", stdin=text)
    decoder, found, position = json.JSONDecoder(), [], 0
    while position < len(items):
        obj, position = decoder.raw_decode(items, position)
        position += len(items[position:]) - len(items[position:].lstrip())
        found.append(obj)
    return found


# --- all namespaces


def test_the_cluster_wide_overlay_is_ready(cluster: LocalCluster, installer: Installer) -> None:
    _assert_ready(cluster, installer("cluster-wide"), "cluster-wide")


def _assert_ready(cluster: LocalCluster, operator: Operator, overlay: str) -> None:
    """Two replicas; and the folder itself, as a user applies it, is accepted (what runs here is patched for the tests)."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", str(MANIFESTS / "overlays" / overlay))
    pods = operator.pods()
    assert len(pods) == 2 and all(pod.ready for pod in pods)
    assert operator.leader_pod().name in [pod.name for pod in pods]


def test_the_process_can_do_nothing_on_its_node(installer: Installer) -> None:
    """As the kernel has it, not as the manifest says it."""
    operator = installer("cluster-wide")
    [process] = operator.processes(operator.leader_pod())
    status = dict(re.findall(r"^(\w+):\t(.*)$", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE))
    assert status["Uid"].split() == ["65532"] * 4 and status["Gid"].split() == ["65532"] * 4
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    root = next(line.split() for line in Path(f"/proc/{process.pid}/mountinfo").read_text().splitlines() if line.split()[4] == "/")
    assert "ro" in root[5].split(",")


def test_its_namespace_admits_nothing_that_is_not_restricted(cluster: LocalCluster, installer: Installer) -> None:
    installer("cluster-wide")
    words = ("-n", install.NAMESPACE, "run", "intruder", "--image=certroll.dev/pause:1", "--privileged", "--dry-run=server")
    with pytest.raises(DevError, match='violates PodSecurity "restricted'):
        cluster.kubectl(*words)


def test_a_killed_leader_is_followed_by_another(api: API, installer: Installer) -> None:
    """Mostly by the one that stood by; the killed one's container is back before its Lease has run out, and may win."""
    operator = installer("cluster-wide")
    before = _holder(api)
    killed = operator.kill_leader()
    wait_for("another leader", lambda: _holder(api) not in ("", before), deadline=60)
    operator.wait_ready()
    assert [pod.restarts for pod in operator.pods() if pod.name == killed.name] == [1]
    assert len(operator.pods()) == 2


def _holder(api: API) -> str:
    holder: str = api.get("leases", install.NAMESPACE, install.NAME)["spec"].get("holderIdentity", "")
    return holder


def test_cluster_wide_is_everywhere(cluster: LocalCluster, authority: Authority, installer: Installer) -> None:
    installer("cluster-wide")
    for right in ("get secrets", "patch deployments.apps", "create pods/eviction", "list ingresses.networking.k8s.io"):
        assert _allowed(cluster, right) == [_SHOP, "default"], right


def _allowed(cluster: LocalCluster, right: str) -> list[str]:
    """Where the operator has it, of two namespaces."""
    verb, resource = right.split()
    resource, _, subresource = resource.partition("/")
    words = ["auth", "can-i", verb, resource, f"--subresource={subresource}", f"--as={_USER}"]
    return [namespace for namespace in (_SHOP, "default") if _can(cluster, *words, "-n", namespace)]


def _can(cluster: LocalCluster, *words: str) -> bool:
    try:
        return cluster.kubectl(*words).strip() == "yes"
    except DevError as error:
        assert str(error).rstrip().endswith("no")
        return False


# --- what it may not do, whatever its rights


@pytest.fixture
def all_rights(cluster: LocalCluster, authority: Authority, installer: Installer) -> Iterator[None]:
    """For the operator's user, so that only admission stands in its way; not even a Secret that is there already."""
    installer("cluster-wide")
    cluster.kubectl("-n", install.NAMESPACE, "delete", "secret", "certroll-digest-key", "--ignore-not-found")
    accounts = [f"--serviceaccount={user.removeprefix('system:serviceaccount:')}" for user in (_USER, _OTHER_USER)]
    cluster.kubectl("create", "clusterrolebinding", "certroll-test", "--clusterrole=cluster-admin", *accounts)
    yield
    cluster.kubectl("delete", "clusterrolebinding", "certroll-test")


def _template(field: dict[str, Any]) -> str:
    return json.dumps({"spec": {"template": field}})


def _patch(patch: str, target: str = "deployment/nginx", *words: str) -> tuple[str, ...]:
    return ("patch", target, *words, "--type=merge", "-p", patch)


_ANNOTATE = _template({"metadata": {"annotations": {"certroll.dev/0123456789abcdef": "x", "kubectl.kubernetes.io/restartedAt": "x"}}})
_REFRESH = json.dumps({"metadata": {"annotations": {"certroll.dev/refresh": "x"}}})


@pytest.fixture
def other_workloads(cluster: LocalCluster, authority: Authority) -> Iterator[list[str]]:
    """One of each kind beside Deployments, without pods."""
    spec = {"nodeSelector": {"certroll.dev/nowhere": ""}, "containers": [{"name": "main", "image": "certroll.dev/pause:1"}]}
    template = {"metadata": {"labels": {"app": "other"}}, "spec": spec}
    fields: dict[str, dict[str, Any]] = {"DaemonSet": {}, "StatefulSet": {"serviceName": "other", "replicas": 0}}
    for kind, more in fields.items():
        obj = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "other"}}
        obj["spec"] = {"selector": {"matchLabels": {"app": "other"}}, "template": template, **more}
        cluster.kubectl("-n", _SHOP, "create", "-f", "-", stdin=json.dumps(obj))
    yield [f"{kind.lower()}/other" for kind in fields]
    cluster.kubectl("-n", _SHOP, "delete", "daemonset,statefulset", "other")


def test_admission_lets_the_operator_do_its_work(
    cluster: LocalCluster, all_rights: None, other_workloads: list[str]
) -> None:
    pod = _nginx_pod(cluster)
    for words in (
        *(_patch(_ANNOTATE, workload) for workload in other_workloads),
        _patch(_ANNOTATE),
        _patch(_ANNOTATE.replace('"x"', "null")),
        _patch(_REFRESH, pod, "--subresource=status"),
        ("create", "secret", "generic", "certroll-digest-key", f"--namespace={install.NAMESPACE}"),
    ):
        _as(cluster, _USER, *words)


_ENV = {"spec": {"containers": [{"name": "nginx", "image": "docker.io/library/nginx:1.22.1", "env": [{"name": "A", "value": "b"}]}]}}


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (_patch('{"spec": {"replicas": 3}}'), "spec.replicas"),
        (_patch('{"spec": {"paused": true}}'), "spec.paused"),
        (_patch('{"metadata": {"labels": {"a": "b"}}}'), "metadata.labels"),
        (_patch('{"metadata": {"annotations": {"certroll.dev/a": "b"}}}'), "metadata.annotations"),
        (_patch('{"metadata": {"finalizers": ["a.b/c"]}}'), "metadata.finalizers"),
        (_patch(_template({"metadata": {"labels": {"a": "b"}}})), "spec.template.metadata.labels"),
        (_patch(_template({"metadata": {"annotations": {"a": "b"}}})), "spec.template.metadata.annotations.a"),
        (_patch(_template({"metadata": {"annotations": {"certroll.dev.evil/a": "b"}}})), "annotations.certroll.dev.evil/a"),
        (_patch(_template({"spec": {"serviceAccountName": "admin"}})), "spec.template.spec"),
        (_patch(_template({"spec": {"terminationGracePeriodSeconds": 60}})), "spec.template.spec"),
        (_patch(_template(_ENV)), "spec.template.spec"),
        (("set", "image", "deployment/nginx", "nginx=evil:1"), "spec.template.spec"),
        (("scale", "deployment/nginx", "--replicas=0"), "UPDATE apps/deployments/scale"),
        (("delete", "deployment", "nginx"), "DELETE apps/deployments"),
        (("create", "deployment", "evil", "--image=evil:1"), "CREATE apps/deployments"),
        (("delete", "pod", "--all"), "DELETE pods"),
        (("run", "evil", "--image=evil:1"), "CREATE pods"),
        (("create", "job", "evil", "--image=evil:1"), "CREATE batch/jobs"),
        (("create", "cronjob", "evil", "--image=evil:1", "--schedule=0 0 * * *"), "CREATE batch/cronjobs"),
        (_patch(_REFRESH, "POD"), "UPDATE pods"),
        (_patch('{"status": {"phase": "Failed"}}', "POD", "--subresource=status"), "status"),
        (_patch('{"metadata": {"labels": {"a": "b"}}}', "POD", "--subresource=status"), "metadata.labels"),
        (_patch('{"metadata": {"annotations": {"a": "b"}}}', "POD", "--subresource=status"), "metadata.annotations.a"),
        (_patch('{"data": {"tls.key": "eA=="}}', "secret/nginx-tls"), "UPDATE secrets"),
        (("delete", "secret", "nginx-tls"), "DELETE secrets"),
        (("create", "secret", "generic", "certroll-digest-key"), "CREATE secrets"),
        (("create", "secret", "generic", "a", f"--namespace={install.NAMESPACE}"), "CREATE secrets"),
        (("create", "secret", "generic", "certroll-digest-key", "--type=a.b/c", f"--namespace={install.NAMESPACE}"), "CREATE secrets"),
    ],
)
def test_admission_pins_the_operator_and_nobody_else(
    cluster: LocalCluster, all_rights: None, words: tuple[str, ...], changes: str
) -> None:
    words = tuple(_nginx_pod(cluster) if word == "POD" else word for word in words)
    with pytest.raises(DevError, match=rf"the certroll operator may .*{re.escape(changes)}"):
        _as(cluster, _USER, *words)
    _as(cluster, _OTHER_USER, *words)


def _as(cluster: LocalCluster, user: str, *words: str) -> str:
    """Tried only: admission is asked, and nothing is written."""
    return cluster.kubectl("-n", _SHOP, *words, f"--as={user}", "--dry-run=server")


def _nginx_pod(cluster: LocalCluster) -> str:
    return cluster.kubectl("-n", _SHOP, "get", "pods", "-l", "app=nginx", "-o", "name").split()[0]


# --- no right to change a workload


def test_the_evict_only_overlay_is_ready(cluster: LocalCluster, authority: Authority, installer: Installer) -> None:
    _assert_ready(cluster, installer("evict-only"), "evict-only")
    for right in ("get secrets", "create pods/eviction", "patch pods/status", "watch deployments.apps"):
        assert _allowed(cluster, right) == [_SHOP, "default"], right
    for kind in ("deployments", "statefulsets", "daemonsets"):
        for verb in ("patch", "update", "create", "delete"):
            assert _allowed(cluster, f"{verb} {kind}.apps") == []


def test_evict_only_reloads_and_says_what_it_may_not_restart(
    cluster: LocalCluster, api: API, authority: Authority, installer: Installer
) -> None:
    installer("evict-only")
    _install_policy(api)
    before = api.get("deployments", _SHOP, NGINX.deployment)["metadata"]["generation"]
    versions = _write_leaves(api, authority)

    def look() -> Status | None:
        status = _status(api)
        envoy, nginx = status.consumers[ENVOY.consumer], status.consumers[NGINX.consumer]
        seen = status.is_settled(ENVOY.secret, versions[ENVOY.secret]) and envoy.state == "Converged"
        return status if seen and nginx.state == "Blocked" else None

    status = wait_for("Envoy to converge and nginx to be blocked", look, deadline=60, missing=lambda: str(_status(api).consumers))
    assert status.consumers[NGINX.consumer].blocked_reason == "Refused"
    assert "cannot patch resource" in status.consumers[NGINX.consumer].blocked_by
    assert status.conditions["Blocked"].status and NGINX.consumer in status.conditions["Blocked"].message
    assert api.get("deployments", _SHOP, NGINX.deployment)["metadata"]["generation"] == before


def test_evict_only_restarts_by_evictions(cluster: LocalCluster, api: API, authority: Authority, installer: Installer) -> None:
    """What it might not restart by a rollout, which it leaves so for the next test."""
    installer("evict-only")
    before = api.get("deployments", _SHOP, NGINX.deployment)["metadata"]["generation"]
    old = {pod.uid for pod in pods.of_app(api, _SHOP, NGINX.deployment)}
    _set_method(api, "Evict")
    try:
        versions = _write_leaves(api, authority)
        wait_for("the rotation to be settled", lambda: _status(api).settled(versions), deadline=120, missing=lambda: str(_status(api)))
        found = pods.of_app(api, _SHOP, NGINX.deployment)
        assert len(found) == 2 and not old & {pod.uid for pod in found}, "a pod was not replaced"
        assert api.get("deployments", _SHOP, NGINX.deployment)["metadata"]["generation"] == before
    finally:
        _set_method(api, "Auto")
    _write_leaves(api, authority)
    wait_for("nginx to be blocked", lambda: _status(api).consumers[NGINX.consumer].state == "Blocked", deadline=60)


def _set_method(api: API, method: str) -> None:
    api.merge("certrotationpolicies", _SHOP, _POLICY, {"spec": {"restart": {"method": method}}})


# --- one namespace


def test_a_role_is_for_its_namespace(cluster: LocalCluster, authority: Authority, installer: Installer) -> None:
    installer(None)
    for right in ("get secrets", "patch deployments.apps", "create pods/eviction"):
        assert _allowed(cluster, right) == [_SHOP], right


def test_with_rights_again_what_was_blocked_goes_on(cluster: LocalCluster, api: API, authority: Authority, installer: Installer) -> None:
    """After another setup of the operator, which resumes by what the API server remembers."""
    installer(None)
    _install_policy(api)
    versions = _write_leaves(api, authority)
    wait_for("the rotation to be settled", lambda: _status(api).settled(versions), deadline=120, missing=lambda: str(_status(api)))


def test_the_namespaced_overlay_is_ready(cluster: LocalCluster, installer: Installer) -> None:
    _assert_ready(cluster, installer("namespaced"), "namespaced")


def test_without_the_right_to_ask_there_are_no_metrics(installer: Installer) -> None:
    operator = installer("namespaced")
    with pytest.raises(urllib.error.URLError) as refused:
        operator.page(operator.leader_pod(), "/metrics")
    assert isinstance(refused.value.reason, ConnectionRefusedError)


# --- metrics for whom they are meant, and the end


def test_metrics_want_a_token_that_lets_get_them(
    cluster: LocalCluster, api: API, authority: Authority, installer: Installer
) -> None:
    installer("cluster-wide")
    cluster.kubectl("create", "clusterrole", "certroll-test", "--verb=get", "--non-resource-url=/metrics")
    cluster.kubectl("create", "clusterrolebinding", "certroll-test", "--clusterrole=certroll-test", f"--serviceaccount={_SHOP}:default")
    cluster.kubectl("-n", _SHOP, "create", "serviceaccount", "curious")
    try:
        assert _metrics(api) == 401
        assert _metrics(api, cluster.kubectl("-n", _SHOP, "create", "token", "curious").strip()) == 403
        assert _metrics(api, cluster.kubectl("-n", _SHOP, "create", "token", "default").strip()) == 200
    finally:
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", "certroll-test")


def _metrics(api: API, token: str | None = None) -> int:
    """The status of an answer of the Service's, whose certificate nobody can verify."""
    service = api.get("services", install.NAMESPACE, "certroll-operator-metrics")["spec"]
    url = f"https://{service['clusterIP']}:{service['ports'][0]['port']}/metrics"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            assert "leader_election_master_status" in answer.read().decode()
            return 200
    except urllib.error.HTTPError as error:
        return error.code


def test_an_uninstall_takes_nothing_that_is_the_users(
    cluster: LocalCluster, api: API, authority: Authority, installer: Installer
) -> None:
    operator = installer("cluster-wide")
    _install_policy(api)
    there = _user_data(cluster)
    installer.end()
    assert _user_data(cluster) == there
    left = cluster.kubectl("get", _KINDS, "-A", "-o", "name").split()
    assert not [name for name in left if "certroll-" in name and "certroll-test" not in name], left
    assert operator.pods() == []


def test_a_whole_uninstall_leaves_nothing_but_what_is_the_users(
    cluster: LocalCluster, api: API, authority: Authority, installer: Installer
) -> None:
    """docs/operations.md: the CRDs, with all policies, by a command of their own, and then the namespace, with Lease, key and CAs."""
    operator = installer("cluster-wide")
    _install_policy(api)
    there = {name: value for name, value in _user_data(cluster).items() if name != "namespace" and "Policy/" not in name}
    installer.end()
    operator.install()
    try:
        # The pods first, while they have the right to give up the Lease: test_rights counts what is refused.
        cluster.kubectl("-n", install.NAMESPACE, "delete", "deployment", install.NAME, "--cascade=foreground")
        where = ("-n", install.NAMESPACE)
        cluster.kubectl(*where, "create", "secret", "generic", "certroll-test-ca", "--from-literal=tls.key=a")  # as of a ClusterTrustDomain
        cluster.kubectl("delete", "--ignore-not-found", "-l", "app.kubernetes.io/name=certroll", "-k", str(operator.overlay))
        cluster.kubectl("delete", "-k", str(paths.CRDS))
        cluster.kubectl(*where, "get", "secret", "certroll-test-ca")
        cluster.kubectl("delete", "namespace", install.NAMESPACE)
        _assert_only_user_data_is_left(cluster, set(there))
    finally:
        workloads.install_crds(cluster)  # other tests have them from their first one on


def _assert_only_user_data_is_left(cluster: LocalCluster, there: set[str]) -> None:
    left = cluster.kubectl("get", f"{_KINDS},customresourcedefinitions,namespaces,leases,secrets", "-A", "-o", "name").split()
    others = (_SHOP, f"namespace/{pki.NAMESPACE}")
    assert not [name for name in left if "certroll" in name and not name.endswith(others)], left
    kept = json.loads(cluster.kubectl("-n", _SHOP, "get", "secrets,configmaps,deployments,services,poddisruptionbudgets", "-o", "json"))
    assert {f"{o['kind']}/{o['metadata']['name']}" for o in kept["items"]} == there


_KINDS = (
    "deployments,services,serviceaccounts,poddisruptionbudgets,networkpolicies,roles,rolebindings,clusterroles,clusterrolebindings,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings"
)


def _user_data(cluster: LocalCluster) -> dict[str, str]:
    """UID and specification of all that is in the namespace; the status moves on by itself."""
    kinds = "certrotationpolicies,secrets,configmaps,deployments,services,poddisruptionbudgets"
    items = json.loads(cluster.kubectl("-n", _SHOP, "get", kinds, "-o", "json"))["items"]
    kept = {f"{o['kind']}/{o['metadata']['name']}": json.dumps([o["metadata"]["uid"], o.get("spec"), o.get("data")]) for o in items}
    kept["namespace"] = cluster.kubectl("get", "namespace", install.NAMESPACE, "-o", "jsonpath={.metadata.uid}")
    return kept
