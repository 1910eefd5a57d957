"""The CRD as a real API server takes it: accepted, defaulted, refused with words that help, explained, printed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane

CRD = "certrotationpolicies.certroll.dev"
FULL_STATUS = ROOT / "test" / "testdata" / "status-full.json"  # as pkg/api encodes it: test/unit/test_status.c
DEMO_POLICY = ROOT / "hack" / "demo.d" / "50-policy.yaml"

FULL_SPEC = json.loads((ROOT / "test" / "testdata" / "policy-full.json").read_text())  # every field; read by pkg/api, too
MINIMAL_SPEC = {"secrets": [{"name": "web-tls"}]}


def policy(namespace: str, spec: Any, name: str = "p") -> dict[str, Any]:
    return {
        "apiVersion": "certroll.dev/v1alpha1",
        "kind": "CertRotationPolicy",
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    }


def consumer(**more: Any) -> dict[str, Any]:
    """A spec with one consumer that has these members, too."""
    one = {"name": "web", "targetRef": {"kind": "Deployment", "name": "nginx"}, **more}
    return {**MINIMAL_SPEC, "consumers": [{key: value for key, value in one.items() if value is not None}]}


def target(**members: str) -> dict[str, Any]:
    return consumer(targetRef={"kind": "Deployment", "name": "nginx", **members})


def verify(**members: Any) -> dict[str, Any]:
    return consumer(verify={"port": 8443, **members})


def endpoints(*each: dict[str, Any]) -> dict[str, Any]:
    return consumer(verify={"endpoints": list(each)})


def restart(**members: Any) -> dict[str, Any]:
    return {**MINIMAL_SPEC, "restart": members}


def window(**members: Any) -> dict[str, Any]:
    return restart(windows=[{"schedule": "0 2 * * *", "duration": "4h", **members}])


def two_consumers(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {**MINIMAL_SPEC, "consumers": [first, second]}


def test_established_without_violations(control_plane: ControlPlane) -> None:
    conditions = {each["type"]: each for each in control_plane.get("crd", CRD)["status"]["conditions"]}
    assert conditions["NamesAccepted"]["status"] == "True"
    assert conditions["Established"]["status"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert "KubernetesAPIApprovalPolicyConformant" not in conditions


def test_defaults_land(control_plane: ControlPlane, namespace: str) -> None:
    spec = {**consumer(verify={"port": 8443}), "discover": {}, "trust": {"targets": [{"kind": "Secret", "name": "t"}]}}
    spec["restart"] = {"windows": [{"schedule": "0 2 * * *", "duration": "4h"}]}
    control_plane.create(policy(namespace, MINIMAL_SPEC, "minimal"), policy(namespace, spec, "more"))
    keys = {"certificate": "tls.crt", "privateKey": "tls.key", "trust": "ca.crt"}
    restarts = {"method": "Auto", "maxConcurrent": 1, "coalesce": "10s", "singleReplica": "Surge", "breaker": {"restarts": 3, "within": "1h"}}
    base = {"suspend": False, "mode": "Enforce", "secrets": [{"name": "web-tls", "keys": keys}]}
    assert control_plane.get("crp", "-n", namespace, "minimal")["spec"] == {**base, "restart": restarts}
    assert control_plane.get("crp", "-n", namespace, "more")["spec"] == {
        **base,
        "consumers": [
            {
                "name": "web",
                "targetRef": {"kind": "Deployment", "name": "nginx"},
                "optional": False,
                "verify": {"protocol": "TLS", "port": 8443, "timeout": "60s", "onTimeout": "Restart", "onUnreachable": "Wait",
                           "onMissingName": "Hold"},
            }
        ],
        "discover": {"enabled": False, "unknown": "Restart"},
        "trust": {"retainPrevious": 1, "targets": [{"kind": "Secret", "name": "t", "key": "ca.crt"}]},
        "restart": {**restarts, "windows": [{"schedule": "0 2 * * *", "duration": "4h", "timeZone": "UTC"}]},
    }


def test_every_field_is_kept(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create(policy(namespace, FULL_SPEC))
    stored = control_plane.get("crp", "-n", namespace, "p")["spec"]
    expected = copy.deepcopy(FULL_SPEC)
    for each in expected["consumers"]:
        each.setdefault("optional", False)
    assert stored == expected


REFUSED = {
    # what: (spec, a part of the message)
    "no-secret": ({}, "name at least one Secret in spec.secrets, or select some with spec.secretSelector"),
    "empty-secrets": ({"secrets": []}, "name at least one Secret"),
    "secret-twice": ({"secrets": [{"name": "a"}, {"name": "a"}]}, "Duplicate value"),
    "secret-elsewhere": (
        {"secrets": [{"name": "other/web-tls"}]},
        "a policy refers to its own namespace only: write the name without a namespace",
    ),
    "secret-name": ({"secrets": [{"name": "Web_TLS"}]}, "must be the name of an object: lower-case letters, digits"),
    "same-keys": (
        {"secrets": [{"name": "a", "keys": {"certificate": "pem", "privateKey": "pem"}}]},
        "certificate, privateKey and trust must be different keys of the Secret",
    ),
    "key-name": ({"secrets": [{"name": "a", "keys": {"trust": "../ca"}}]}, "spec.secrets[0].keys.trust"),
    "too-many-secrets": ({"secrets": [{"name": f"s{i}"} for i in range(65)]}, "must have at most 64 items"),
    "empty-selector": ({"secretSelector": {}}, "an empty selector would take every Secret of the namespace"),
    "negative-selector": (
        {"secretSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}, {"key": "b", "operator": "NotIn", "values": ["c"]}]}},
        "NotIn and DoesNotExist alone are met by nearly every Secret of the namespace",
    ),
    "selector-values": (
        {"secretSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
        "In and NotIn need values; Exists and DoesNotExist take none",
    ),
    "mode": ({**MINIMAL_SPEC, "mode": "DryRun"}, 'supported values: "Enforce", "Plan"'),
    "no-target": (consumer(targetRef=None), "spec.consumers[0].targetRef: Required value"),
    "no-target-discover": (
        {**consumer(targetRef=None), "discover": {"enabled": True}},
        "spec.consumers[0].targetRef: Required value",
    ),
    "rollout-version": (target(kind="Rollout", apiVersion="apps/v1"), "a Rollout has the apiVersion argoproj.io/v1alpha1"),
    "replica-set-version": (target(kind="ReplicaSet", apiVersion="v1"), "DaemonSet and ReplicaSet have the apiVersion apps/v1"),
    "ingress-version": (target(kind="Ingress", apiVersion="apps/v1"), "an Ingress has the apiVersion networking.k8s.io/v1"),
    "gateway-version": (
        target(kind="Gateway", apiVersion="gateway.networking.k8s.io/v1beta1"),
        "a Gateway gateway.networking.k8s.io/v1",
    ),
    "ingress-verify": (
        consumer(targetRef={"kind": "Ingress", "name": "i"}, verify={"port": 443}),
        "an Ingress or a Gateway has no pods that could be asked: remove verify",
    ),
    "ingress-component": (
        consumer(targetRef={"kind": "Ingress", "name": "i"}, component="nginx"),
        "an Ingress or a Gateway has no pods: remove component",
    ),
    "gateway-restart": (
        consumer(targetRef={"kind": "Gateway", "name": "g"}, reload={"serverLeaf": {"method": "Restart"}}),
        "watches Secrets by the API: only method ApiWatch is allowed",
    ),
    "job-version": (target(kind="CronJob", apiVersion="apps/v1"), "Job and CronJob have the apiVersion batch/v1"),
    "job-verify": (
        consumer(targetRef={"kind": "Job", "name": "j"}, verify={"port": 443}),
        "nothing is done for a Job or a CronJob, whose next run has the new material: remove verify, component and reload",
    ),
    "job-after": (
        two_consumers(
            {"name": "a", "targetRef": {"kind": "Deployment", "name": "d"}},
            {"name": "b", "targetRef": {"kind": "Job", "name": "j"}, "after": ["a"]},
        ),
        "a Job or a CronJob is never restarted: remove after",
    ),
    "target-twice": (
        two_consumers(
            {"name": "a", "targetRef": {"kind": "Deployment", "name": "d"}},
            {"name": "b", "targetRef": {"kind": "Deployment", "name": "d"}},
        ),
        "two consumers have the same targetRef; one consumer covers all Secrets that its workload uses",
    ),
    "consumer-twice": (
        two_consumers(
            {"name": "a", "targetRef": {"kind": "Deployment", "name": "d"}},
            {"name": "a", "targetRef": {"kind": "DaemonSet", "name": "d"}},
        ),
        "Duplicate value",
    ),
    "consumer-name": (consumer(name="Web"), "must be lower-case letters, digits and '-'"),
    "target-elsewhere": (target(name="other/nginx"), "a policy refers to its own namespace only"),
    "target-name": (target(name="Nginx"), "must be the name of an object"),
    "target-kind": (consumer(targetRef={"name": "nginx"}), "spec.consumers[0].targetRef.kind: Required value"),
    "target-version": (target(apiVersion="v1"), "Deployment, StatefulSet, DaemonSet and ReplicaSet have the apiVersion apps/v1"),
    "reload-method": (consumer(reload={"serverLeaf": {"method": "Hope"}}), 'supported values: "Watch", "PerHandshake"'),
    "reload-no-method": (consumer(reload={"serverLeaf": {}}), "reload.serverLeaf.method: Required value"),
    "reload-delay": (
        consumer(reload={"clientCA": {"method": "Poll", "maxDelay": "25h"}}),
        "must be a duration from 0s to 24h, such as 5s or 1m30s",
    ),
    "reload-delay-of-restart": (
        consumer(reload={"clientCA": {"method": "Restart", "maxDelay": "5s"}}),
        "maxDelay has no meaning with method Restart: remove it",
    ),
    "no-port": (consumer(verify={}), "give a port, a list of endpoints, or a certsPage"),
    "page-no-port": (consumer(verify={"certsPage": {}}), "verify.certsPage.port: Required value"),
    "page-path": (consumer(verify={"certsPage": {"port": 1, "path": "http://other/certs"}}), "must be a path as in a URL"),
    "name-beside-page": (
        consumer(verify={"serverName": "a", "certsPage": {"port": 1}}),
        "serverName is asked for at a port: give one",
    ),
    "port-and-endpoints": (verify(endpoints=[{"port": 1}]), "give either a port or endpoints, not both"),
    "no-endpoint": (consumer(verify={"endpoints": []}), "should have at least 1 items"),
    "endpoints-9": (endpoints(*({"port": 8000 + i} for i in range(9))), "must have at most 8 items"),
    "endpoint-without-port": (endpoints({"serverName": "web"}), "verify.endpoints[0].port: Required value"),
    "endpoint-port-0": (endpoints({"port": 0}), "should be greater than or equal to 1"),
    "endpoint-protocol": (endpoints({"port": 25, "protocol": "SMTP"}), 'supported values: "TLS", "PostgreSQL", "MySQL"'),
    "endpoint-server-name": (endpoints({"port": 1, "serverName": "https://web"}), "must be a DNS name"),
    "endpoint-secret-elsewhere": (endpoints({"port": 1, "secretName": "a/b"}), "a policy refers to its own namespace"),
    "endpoint-twice": (endpoints({"port": 1}, {"port": 1, "protocol": "MySQL"}), "the same port and serverName"),
    "endpoint-name-twice": (
        endpoints({"port": 1, "serverName": "a"}, {"port": 1, "serverName": "a", "secretName": "web-tls"}),
        "two endpoints have the same port and serverName",
    ),
    "name-beside-endpoints": (
        consumer(verify={"endpoints": [{"port": 1}], "serverName": "a"}),
        "serverName and protocol belong to each of the endpoints",
    ),
    "protocol-beside-endpoints": (
        consumer(verify={"endpoints": [{"port": 1}], "protocol": "MySQL"}),
        "serverName and protocol belong to each of the endpoints",
    ),
    "after-itself": (consumer(after=["web"]), "a consumer cannot come after itself"),
    "after-twice": (consumer(after=["db", "db"]), "Duplicate value"),
    "port-0": (verify(port=0), "should be greater than or equal to 1"),
    "port-65536": (verify(port=65536), "should be less than or equal to 65535"),
    "protocol": (verify(protocol="SMTP"), 'supported values: "TLS", "PostgreSQL", "MySQL"'),
    "on-timeout": (verify(onTimeout="Panic"), 'supported values: "Restart", "Report"'),
    "on-unreachable": (verify(onUnreachable="Hope"), 'supported values: "Wait", "Infer"'),
    "on-missing-name": (verify(onMissingName="Pray"), 'supported values: "Hold", "Report"'),
    "timeout-0": (verify(timeout="0s"), "must be a duration from 1s to 1h, such as 60s or 5m"),
    "timeout-day": (verify(timeout="1d"), "must be a duration from 1s to 1h, such as 60s or 5m"),
    "server-name": (verify(serverName="https://web"), "must be a DNS name"),
    "client-secret-elsewhere": (verify(clientSecretName="other/probe"), "a policy refers to its own namespace only"),
    "discover-unknown": ({**MINIMAL_SPEC, "discover": {"unknown": "Guess"}}, 'supported values: "Restart", "Report"'),
    "trust-no-target": ({**MINIMAL_SPEC, "trust": {}}, "spec.trust.targets: Required value"),
    "trust-target-twice": (
        {**MINIMAL_SPEC, "trust": {"targets": [{"kind": "Secret", "name": "a"}, {"kind": "Secret", "name": "a", "key": "b"}]}},
        "Duplicate value",
    ),
    "trust-elsewhere": (
        {**MINIMAL_SPEC, "trust": {"targets": [{"kind": "Secret", "name": "b/a"}]}},
        "a policy refers to its own namespace only",
    ),
    "trust-target-is-source": (
        {**MINIMAL_SPEC, "trust": {"targets": [{"kind": "Secret", "name": "web-tls"}]}},
        "a target of spec.trust is one of spec.secrets: whoever writes that Secret would overwrite the bundle",
    ),
    "restart-method": (restart(method="Kill"), 'supported values: "Auto", "Rollout", "Evict", "Never"'),
    "max-concurrent": (restart(maxConcurrent=0), "should be greater than or equal to 1"),
    "coalesce": (restart(coalesce="11m"), "must be a duration from 0s to 10m, such as 10s or 1m30s"),
    "coalesce-number": (restart(coalesce=10), "must be of type string"),
    "breaker-restarts": (restart(breaker={"restarts": 6}), "should be less than or equal to 5"),
    "breaker-within": (restart(breaker={"within": "25h"}), "must be a duration from 0s to 24h, such as 1h or 30m"),
    "window-no-duration": (restart(windows=[{"schedule": "0 2 * * *"}]), "windows[0].duration: Required value"),
    "window-no-schedule": (restart(windows=[{"duration": "4h"}]), "windows[0].schedule: Required value"),
    "window-schedule": (window(schedule="every night"), "must be five fields as cron has them"),
    "window-duration": (window(duration="30s"), "must be a duration from 1m to 168h"),
    "override-without-window": (
        restart(overrideWindowBeforeExpiry="48h"),
        "overrideWindowBeforeExpiry needs windows: without them nothing holds a restart back",
    ),
    "single-replica": (restart(singleReplica="Pray"), 'supported values: "Surge", "Warn", "Block"'),
    # kubectl itself, and any client that asks for strict field validation
    "unknown-field": (target(namespace="other"), 'unknown field "spec.consumers[0].targetRef.namespace"'),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_message_that_helps(control_plane: ControlPlane, what: str) -> None:
    spec, message = REFUSED[what]
    done = control_plane.kubectl("create", "-f", "-", input=json.dumps(policy("default", spec)), check=False)
    assert done.returncode != 0
    assert message in done.stderr


ACCEPTED = {
    "selector-only": {"secretSelector": {"matchLabels": {"a": "b"}}},
    "selector-with-one-positive": {"secretSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist"}]}},
    "discovery-only": {**MINIMAL_SPEC, "discover": {"enabled": True, "unknown": "Report"}},
    "ingress": consumer(
        targetRef={"kind": "Ingress", "name": "i"}, reload={"serverLeaf": {"method": "ApiWatch", "maxDelay": "10s"}}
    ),
    "gateway": target(kind="Gateway", apiVersion="gateway.networking.k8s.io/v1"),
    "replica-set": target(kind="ReplicaSet"),
    "rollout": target(kind="Rollout", apiVersion="argoproj.io/v1alpha1"),
    "job": target(kind="Job"),
    "cron-job": target(kind="CronJob", apiVersion="batch/v1"),
    "same-name-other-kind": two_consumers(
        {"name": "a", "targetRef": {"kind": "Deployment", "name": "d"}},
        {"name": "b", "targetRef": {"kind": "StatefulSet", "name": "d"}},
    ),
    "most-secrets": {"secrets": [{"name": f"s{i}"} for i in range(64)]},
    # The unique-target rule compares each with each: within the budget of CEL at the most that the list takes.
    "most-consumers": {
        **MINIMAL_SPEC,
        "consumers": [
            {"name": f"c{i}", "targetRef": {"kind": "Deployment", "name": f"{'d' * 240}{i}"}} for i in range(128)
        ],
    },
    "port-and-name-twice": endpoints({"port": 1}, {"port": 1, "serverName": "a"}, {"port": 2, "serverName": "a"}),
    # Within the budget of CEL at the most that both lists take.
    "most-endpoints": {
        **MINIMAL_SPEC,
        "consumers": [
            {
                "name": f"c{i}",
                "targetRef": {"kind": "Deployment", "name": f"d{i}"},
                "verify": {"endpoints": [{"port": 1, "serverName": f"{'n' * 250}{j}"} for j in range(8)]},
            }
            for i in range(128)
        ],
    },
    "page-alone": consumer(verify={"certsPage": {"port": 9902}}),
    "trust-config-map-like-source": {**MINIMAL_SPEC, "trust": {"targets": [{"kind": "ConfigMap", "name": "web-tls"}]}},
    # Within the budget of CEL at the most that both lists take.
    "most-trust-targets": {
        "secrets": [{"name": f"{'s' * 250}{i:02}"} for i in range(64)],
        "trust": {"targets": [{"kind": "Secret", "name": f"{'t' * 250}{i:02}"} for i in range(16)]},
    },
    "dotted-name": {"secrets": [{"name": "web.example.org-tls"}]},
    "zero-coalesce": restart(coalesce="0s"),
    "no-breaker": restart(breaker={"within": "0s"}),
    "empty-windows": restart(windows=[]),
    "restart-windows": window(timeZone="America/Argentina/Buenos_Aires"),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_accepted(control_plane: ControlPlane, what: str) -> None:
    control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(policy("default", ACCEPTED[what])))


def test_the_demo_policy_is_accepted(control_plane: ControlPlane) -> None:
    found = control_plane.kubectl("create", "namespace", "certroll-demo", check=False)
    assert found.returncode == 0 or "AlreadyExists" in found.stderr
    control_plane.kubectl("create", "--dry-run=server", "-f", str(DEMO_POLICY))


def properties(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property below, with its path."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
        yield from properties(each, f"{path}.{name}")
    if "items" in schema:
        yield from properties(schema["items"], path)


def schema_of(control_plane: ControlPlane) -> dict[str, Any]:
    return control_plane.get("crd", CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_is_described_and_bounded(control_plane: ControlPlane, part: str) -> None:
    bad = []
    for path, each in properties(schema_of(control_plane)[part], part):
        bounds = {"string": ["maxLength", "enum"], "array": ["maxItems"]}.get(each["type"], [])
        if not each.get("description"):
            bad.append(f"{path} has no description")
        if bounds and not any(bound in each for bound in bounds):
            bad.append(f"{path} has no {' or '.join(bounds)}")
        if each["type"] == "object" and "properties" not in each and "maxProperties" not in each:
            bad.append(f"{path} has no maxProperties")
        if "default" in each and each["type"] != "object" and "Default: " not in each["description"]:
            bad.append(f"{path} does not tell its default")
    assert not bad


NOT_ACTED_ON = [
    "consumers.targetRef",
]


@pytest.mark.parametrize("field", NOT_ACTED_ON)
def test_explain_says_what_is_not_acted_on(control_plane: ControlPlane, field: str) -> None:
    text = " ".join(control_plane.kubectl("explain", f"crp.spec.{field}").stdout.split())
    assert "ot acted on yet" in text


def test_explain_is_a_manual(control_plane: ControlPlane) -> None:
    text = control_plane.kubectl("explain", "crp.spec").stdout
    for field in ("suspend", "mode", "secrets", "consumers", "restart"):
        assert f"  {field}\t<" in text
    assert "enum: Enforce, Plan" in text
    assert "Default: Enforce." in text
    assert "targetRef: {kind: Deployment, name: envoy-ratelimit}" in text


def patch_status(control_plane: ControlPlane, namespace: str, status: Any, check: bool = True):
    return control_plane.kubectl(
        "patch", "crp", "-n", namespace, "p", "--subresource=status", "--type=merge", "--patch-file=/dev/stdin",
        input=json.dumps({"status": status}), check=check,
    )  # fmt: skip


def test_a_status_as_we_write_it_is_kept_whole(control_plane: ControlPlane, namespace: str) -> None:
    status = json.loads(FULL_STATUS.read_text())
    control_plane.create(policy(namespace, MINIMAL_SPEC))
    patch_status(control_plane, namespace, status)
    assert control_plane.get("crp", "-n", namespace, "p")["status"] == status


def test_a_null_in_the_patch_takes_expires_away(control_plane: ControlPlane, namespace: str) -> None:
    status = json.loads(FULL_STATUS.read_text())
    control_plane.create(policy(namespace, MINIMAL_SPEC))
    patch_status(control_plane, namespace, status)
    patch_status(control_plane, namespace, {**status, "secrets": [], "expires": None})
    stored = control_plane.get("crp", "-n", namespace, "p")["status"]
    assert "expires" not in stored
    assert stored["secrets"] == []


def test_the_longest_status_that_we_write_fits(control_plane: ControlPlane, namespace: str) -> None:
    status = json.loads(FULL_STATUS.read_text())
    one = {**status["consumers"][0], "reason": "r" * 1024, "blockedBy": "b" * 1024, "examples": ["e" * 256] * 5}
    brief = {key: one[key] for key in ("name", "targetRef", "state")} | {"restartedFor": "0123456789ab", "blockedReason": "OtherRolloutFailed"}
    status["consumers"] = [{**(one if i < 100 else brief), "name": f"{'c' * 60}{i}"} for i in range(512)]
    ca = status["secrets"][0]["settled"]["trust"][0]
    status["secrets"][0]["settled"]["trust"] = [ca] * 1000
    status["history"] = status["history"][:1] * 10
    status["conditions"][0]["message"] = "m" * 4096
    control_plane.create(policy(namespace, MINIMAL_SPEC))
    patch_status(control_plane, namespace, status)
    refused = patch_status(control_plane, namespace, {"consumers": [{"name": f"c{i}"} for i in range(513)]}, check=False)
    assert "must have at most 512 items" in refused.stderr


def test_the_spec_is_not_written_through_status(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create(policy(namespace, MINIMAL_SPEC))
    control_plane.kubectl(
        "patch", "crp", "-n", namespace, "p", "--subresource=status", "--type=merge",
        "-p", '{"spec":{"suspend":true},"status":{"stage":"Held"}}',
    )  # fmt: skip
    stored = control_plane.get("crp", "-n", namespace, "p")
    assert stored["spec"]["suspend"] is False
    assert stored["status"]["stage"] == "Held"
    assert stored["metadata"]["generation"] == 1


def test_printer_columns(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create(policy(namespace, MINIMAL_SPEC))
    patch_status(control_plane, namespace, json.loads(FULL_STATUS.read_text()))
    head, row = control_plane.kubectl("get", "crp", "-n", namespace).stdout.splitlines()
    assert head.split() == ["NAME", "STAGE", "CONVERGED", "CONSUMERS", "EXPIRES", "PROBLEM", "AGE"]
    assert row.split()[:6] == ["p", "Switching", "0/1", "1", "2026-11-21T06:10:21Z", "KeyMismatch"]
    wide = control_plane.kubectl("get", "certroll", "-n", namespace, "-o", "wide").stdout
    assert wide.splitlines()[0].split()[7:] == ["READY", "MESSAGE"]
    assert "all is watched" in wide
