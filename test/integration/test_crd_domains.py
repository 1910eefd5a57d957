"""The CRDs of TrustDomain and ClusterTrustDomain as a real API server takes them: defaulted, refused with words that help,
explained, printed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane
from test_crd import properties

TESTDATA = ROOT / "test" / "testdata"
# Every field; read by pkg/api, too: test/unit/test_domain.c, test_domain_status.c.
FULL = json.loads((TESTDATA / "domain-full.json").read_text())
FULL_CLUSTER = json.loads((TESTDATA / "cluster-domain-full.json").read_text())
FULL_STATUS = json.loads((TESTDATA / "domain-status-full.json").read_text())

CA = {"type": "Issue", "issue": {"caSecretName": "ca"}}
MIRROR = {"type": "Mirror", "mirror": {"secretName": "issued"}}
KINDS = {"td": "trustdomains.certroll.dev", "ctd": "clustertrustdomains.certroll.dev"}


def domain(spec: Any, namespace: str | None = None, name: str = "d") -> dict[str, Any]:
    """Of the cluster kind when it has no namespace."""
    return {
        "apiVersion": "certroll.dev/v1alpha1",
        "kind": "TrustDomain" if namespace else "ClusterTrustDomain",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": spec,
    }


def leaf(**members: Any) -> dict[str, Any]:
    return {"name": "tls", "source": MIRROR, **members}


def leaves(*each: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"authority": CA, "leaves": list(each), **more}


def issued(**members: Any) -> dict[str, Any]:
    return leaves(leaf(source={"type": "Issue", "issue": {"dnsNames": ["a.b"], **members}}))


def authority(**members: Any) -> dict[str, Any]:
    return {"authority": {"type": "Issue", "issue": {"caSecretName": "ca", **members}}, "leaves": [leaf()]}


def targets(*each: dict[str, Any]) -> dict[str, Any]:
    return {"authority": CA, "trustTargets": list(each)}


@pytest.fixture
def cluster_domain(control_plane: ControlPlane) -> Iterator[None]:
    yield
    control_plane.kubectl("delete", "ctd", "--all", "--wait=false")


@pytest.mark.parametrize("crd", KINDS.values())
def test_established_without_violations(control_plane: ControlPlane, crd: str) -> None:
    conditions = {each["type"]: each["status"] for each in control_plane.get("crd", crd)["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_defaults_land(control_plane: ControlPlane, namespace: str) -> None:
    issue = {"type": "Issue", "issue": {"dnsNames": ["a.b"]}}
    spec = leaves(leaf(source=issue, keystore={"passwordSecretRef": {"name": "p"}}))
    control_plane.create(domain({"leaves": [leaf()]}, namespace, "external"), domain(spec, namespace, "issue"))
    base = {
        "suspend": False,
        "retainPrevious": 1,
        "retire": "NextRotation",
        "evidence": {"trust": "Inferred", "leaf": "Inferred", "uncovered": "Wait", "stageDeadline": "1h"},
    }
    assert control_plane.get("td", "-n", namespace, "external")["spec"] == {
        **base, "authority": {"type": "External"}, "leaves": [leaf()]
    }  # fmt: skip
    key = {"algorithm": "ECDSA"}
    ca = {"caSecretName": "ca", "privateKey": key, "duration": "8760h", "crossSign": False}
    of_leaf = {"dnsNames": ["a.b"], "usages": ["server"], "privateKey": key, "duration": "2160h"}
    assert control_plane.get("td", "-n", namespace, "issue")["spec"] == {
        **base,
        "authority": {"type": "Issue", "issue": ca},
        "leaves": [leaf(source={"type": "Issue", "issue": of_leaf}, keystore={"passwordSecretRef": {"name": "p", "key": "password"}})],
    }


def test_every_field_is_kept(control_plane: ControlPlane, namespace: str, cluster_domain: None) -> None:
    control_plane.create(domain(FULL, namespace), domain(FULL_CLUSTER))
    assert control_plane.get("td", "-n", namespace, "d")["spec"] == FULL
    assert control_plane.get("ctd", "d")["spec"] == FULL_CLUSTER


REFUSED = {
    # what: (spec, a part of the message)
    "nothing": ({}, "list at least one leaf: with an External authority the CAs are those of the leaves' sources"),
    "external-targets": ({"trustTargets": [{"kind": "ConfigMap", "name": "t"}]}, "list at least one leaf"),
    "nothing-to-publish": ({"authority": CA}, "there is nothing to publish: give leaves or trustTargets"),
    "authority": ({"authority": {"type": "Vault"}, "leaves": [leaf()]}, 'supported values: "External", "Issue"'),
    "issue-missing": ({"authority": {"type": "Issue"}, "leaves": [leaf()]}, "authority.issue belongs to type Issue, which needs it"),
    "issue-of-external": ({"authority": {"issue": {"caSecretName": "a"}}, "leaves": [leaf()]}, "authority.issue belongs to type Issue"),
    "ca-elsewhere": (authority(caSecretName="b/a"), "write the name without a namespace"),
    "ca-name": (authority(caSecretName="CA"), "must be the name of an object: lower-case letters"),
    "ca-duration": (authority(duration="59m"), "must be a duration from 1h to 87600h, such as 8760h"),
    "ca-renewal": (authority(duration="10h", renewBefore="9h1m"), "renewBefore must be at most nine tenths of the duration"),
    "common-name": (authority(commonName="n" * 65), "may not be more than 64"),
    "key-size": (authority(privateKey={"size": 521}), "size must be 2048, 3072 or 4096 with RSA, 256 or 384 with ECDSA"),
    "ed25519-size": (authority(privateKey={"algorithm": "Ed25519", "size": 384}), "and left out with Ed25519"),
    "algorithm": (authority(privateKey={"algorithm": "DSA"}), 'supported values: "ECDSA", "RSA", "Ed25519"'),
    "leaf-twice": (leaves(leaf(), leaf(secretName="b")), "Duplicate value"),
    "leaf-secret-twice": (leaves(leaf(), leaf(name="b", secretName="tls")), "two leaves have the same Secret"),
    "leaf-name": (leaves(leaf(name="Web")), "must be lower-case letters, digits, '-' and '.'"),
    "leaf-namespace": (leaves(leaf(namespace="b")), 'unknown field "spec.leaves[0].namespace"'),
    "no-source": (leaves({"name": "a"}), "spec.leaves[0].source: Required value"),
    "source-both": (
        leaves(leaf(source={**MIRROR, "issue": {"dnsNames": ["a"]}})),
        "type Issue needs source.issue, type Mirror needs source.mirror, and neither takes the other",
    ),
    "source-none": (leaves(leaf(source={"type": "Issue"})), "type Issue needs source.issue"),
    "mirror-of-itself": (leaves(leaf(name="issued")), "the source of a mirrored leaf is a Secret that this domain writes itself"),
    "mirror-of-another": (leaves(leaf(), leaf(name="b", secretName="issued", source={"type": "Mirror", "mirror": {"secretName": "x"}})), "a Secret that this domain writes itself"),
    "issued-by-nobody": (
        {"leaves": [leaf(source={"type": "Issue", "issue": {"dnsNames": ["a"]}})]},
        "leaves are issued by a CA of the domain's own: authority.type must be Issue",
    ),
    "leaf-in-ca-secret": (leaves(leaf(secretName="ca")), "a leaf has the CA's own Secret, whose key no workload should mount"),
    "server-without-name": (issued(dnsNames=[]), "a server's certificate needs a name in dnsNames, ipAddresses or uris"),
    "client-without-name": (issued(dnsNames=[], usages=["client"]), "a certificate needs a name: give commonName"),
    "no-usage": (issued(usages=[]), "should have at least 1 items"),
    "usage": (issued(usages=["ocsp"]), 'supported values: "server", "client"'),
    "dns-name": (issued(dnsNames=["https://a"]), "must be a DNS name, such as server.shop.svc or *.shop.svc"),
    "ip-address": (issued(ipAddresses=["a.b"]), "must be an IP address"),
    "uri": (issued(uris=["spiffe:a"]), "spec.leaves[0].source.issue.uris[0]"),
    "email": (issued(emailAddresses=["a"]), "must be an e-mail address"),
    "leaf-duration": (issued(duration="9m"), "must be a duration from 10m to 87600h, such as 2160h"),
    "leaf-duration-days": (issued(duration="90d"), "must be a duration from 10m to 87600h, such as 2160h"),
    "leaf-renewal": (issued(duration="1h", renewBefore="55m"), "renewBefore must be at most nine tenths of the duration"),
    "too-many-names": (
        issued(**{key: [f"{name}{i}" for i in range(26)] for key, name in (
            ("dnsNames", "n"), ("ipAddresses", "10.0.0."), ("uris", "spiffe://a/"), ("emailAddresses", "a@b"))}),
        "at most 100 alternative names are allowed in all",
    ),  # fmt: skip
    "keystore-no-password": (leaves(leaf(keystore={})), "keystore.passwordSecretRef: Required value"),
    "target-kind": (targets({"kind": "APIService", "name": "a"}), 'supported values: "ConfigMap", "Secret"'),
    "target-twice": (targets({"kind": "Secret", "name": "a"}, {"kind": "Secret", "name": "a", "key": "b"}), "two trustTargets are the same object"),
    "target-elsewhere": (targets({"kind": "Secret", "name": "b/a"}), "write the name without a namespace"),
    "target-of-leaf": (
        leaves(leaf(), trustTargets=[{"kind": "Secret", "name": "tls"}]),
        "a trust target is the Secret of a leaf, which has the bundle in ca.crt already",
    ),
    "target-of-ca": (targets({"kind": "Secret", "name": "ca"}), "a trust target is the CA's own Secret"),
    "retain": (leaves(leaf(), retainPrevious=9), "should be less than or equal to 8"),
    "retire": (leaves(leaf(), retire="Soon"), 'supported values: "NextRotation", "Converged", "Never"'),
    "evidence": (leaves(leaf(), evidence={"trust": "Hoped"}), 'supported values: "Inferred", "Verified"'),
    "deadline": (leaves(leaf(), evidence={"stageDeadline": "0s"}), "must be a duration from 1s to 168h, such as 1h or 30m"),
    "rotate-no-token": (leaves(leaf(), rotate={"what": "CA"}), "spec.rotate.token: Required value"),
    "rotate-what": (leaves(leaf(), rotate={"token": "1"}), "spec.rotate.what: Required value"),
    "rotate-token": (leaves(leaf(), rotate={"token": "a b", "what": "CA"}), "must be letters, digits, and - . _ : +"),
    "rotate-external": (
        {"leaves": [leaf()], "rotate": {"token": "1", "what": "Leaves"}},
        "CAs and leaves are made anew only by a domain that issues",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_message_that_helps(control_plane: ControlPlane, what: str) -> None:
    spec, message = REFUSED[what]
    expect_refusal(control_plane, domain(spec, "default"), message)


def expect_refusal(control_plane: ControlPlane, what: dict[str, Any], message: str) -> None:
    done = control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(what), check=False)
    assert done.returncode != 0
    assert message in done.stderr


BACKEND = {"namespace": "backend"}
SELECTOR = {"matchLabels": {"a": "b"}}
CLUSTER_REFUSED = {
    "leaf-nowhere": (leaves(leaf()), "spec.leaves[0].namespace: Required value"),
    "leaf-namespace": (leaves(leaf(namespace="a/b")), "must be the name of a namespace: lower-case letters, digits and '-'"),
    "leaf-secret-twice": (leaves(leaf(**BACKEND), leaf(name="b", secretName="tls", **BACKEND)), "two leaves have the same Secret"),
    "mirror-of-itself": (leaves(leaf(name="issued", **BACKEND)), "a Secret that this domain writes itself"),
    "target-nowhere": (targets({"kind": "ConfigMap", "name": "a"}), "a ConfigMap or Secret needs either a namespace or a namespaceSelector"),
    "target-in-both": (
        targets({"kind": "ConfigMap", "name": "a", "namespace": "b", "namespaceSelector": SELECTOR}),
        "a ConfigMap or Secret needs either a namespace or a namespaceSelector",
    ),
    "empty-selector": (targets({"kind": "Secret", "name": "a", "namespaceSelector": {}}), "an empty selector would take every namespace"),
    "ca-bundle-namespace": (targets({"kind": "APIService", "name": "a", "namespace": "b"}), "of other objects the caBundle is set"),
    "ca-bundle-key": (targets({"kind": "APIService", "name": "a", "key": "b"}), "only a ConfigMap or Secret has a namespace and a key"),
    "webhook-of-crd": (targets({"kind": "CustomResourceDefinition", "name": "a", "webhook": "b"}), "webhook belongs to webhook configurations only"),
    "ca-bundle-twice": (
        targets(*({"kind": "MutatingWebhookConfiguration", "name": "a", "webhook": each} for each in "bc")),
        "two trustTargets are the same object; without a webhook's name all webhooks of a configuration are set",
    ),
    "target-of-leaf": (
        leaves(leaf(**BACKEND), trustTargets=[{"kind": "Secret", "name": "tls", **BACKEND}]),
        "a trust target is the Secret of a leaf",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CLUSTER_REFUSED)
def test_the_cluster_kind_refuses_with_a_message_that_helps(control_plane: ControlPlane, what: str) -> None:
    spec, message = CLUSTER_REFUSED[what]
    expect_refusal(control_plane, domain(spec), message)


def longest(prefix: str, index: int, length: int = 253) -> str:
    return f"{prefix * (length - 3)}{index:03}"


# Within the budget of CEL at the most that all lists take: each name as long as can be, and different only at its end.
MOST = {
    "authority": CA,
    "leaves": [
        leaf(name=longest("l", i, 63), secretName=longest("s", i), source={"type": "Mirror", "mirror": {"secretName": longest("i", i)}})
        for i in range(64)
    ],
    "trustTargets": [{"kind": "Secret", "name": longest("t", i)} for i in range(32)],
}
MOST_CLUSTER = {
    **MOST,
    "leaves": [{**each, "namespace": longest("n", 0, 63)} for each in MOST["leaves"]],
    "trustTargets": [{**each, "namespace": longest("n", 0, 63)} for each in MOST["trustTargets"]],
}
ACCEPTED = {
    "mirror": ({"leaves": [leaf()]}, True),
    "ca-alone": (targets({"kind": "ConfigMap", "name": "trust"}), True),
    "both-sources": (leaves(leaf(), leaf(name="b", source={"type": "Issue", "issue": {"dnsNames": ["*.a.b"]}})), True),
    "client": (issued(dnsNames=[], commonName="c", usages=["client"]), True),
    "ed25519": (authority(privateKey={"algorithm": "Ed25519"}), True),
    "previous-leaves": ({"leaves": [leaf()], "rotate": {"token": "1", "what": "PreviousLeaves"}}, True),
    "same-name-other-kind": (targets({"kind": "Secret", "name": "a"}, {"kind": "ConfigMap", "name": "a"}), True),
    "same-secret-elsewhere": (leaves(leaf(**BACKEND), leaf(name="b", secretName="tls", namespace="frontend")), False),
    "same-target-elsewhere": (targets(*({"kind": "Secret", "name": "a", "namespace": each} for each in "bc")), False),
    "most": (MOST, True),
    "most-cluster": (MOST_CLUSTER, False),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_accepted(control_plane: ControlPlane, what: str) -> None:
    spec, namespaced = ACCEPTED[what]
    control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(domain(spec, "default" if namespaced else None)))


def schema_of(control_plane: ControlPlane, crd: str) -> dict[str, Any]:
    return control_plane.get("crd", crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("part", ["spec", "status"])
@pytest.mark.parametrize("crd", KINDS.values())
def test_every_field_is_described_and_bounded(control_plane: ControlPlane, crd: str, part: str) -> None:
    bad = []
    for path, each in properties(schema_of(control_plane, crd)["properties"][part], part):
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


def test_the_examples_are_accepted(control_plane: ControlPlane) -> None:
    """Those of `kubectl explain trustdomain` and `clustertrustdomain`, word for word."""
    for crd, kind, metadata in ((KINDS["td"], "TrustDomain", "{name: d, namespace: default}"), (KINDS["ctd"], "ClusterTrustDomain", "{name: d}")):
        words = schema_of(control_plane, crd)["description"]
        example = re.sub(r"(?m)^  ", "", words.split("Example:\n")[1])
        control_plane.kubectl("create", "--dry-run=server", "-f", "-", input=f"apiVersion: certroll.dev/v1alpha1\nkind: {kind}\nmetadata: {metadata}\n{example}")


def patch_status(control_plane: ControlPlane, where: list[str], status: Any) -> None:
    control_plane.kubectl(
        "patch", *where, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin",
        input=json.dumps({"status": status}),
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_status_as_we_write_it_is_kept_whole(control_plane: ControlPlane, namespace: str, cluster_domain: None, kind: str) -> None:
    where = [kind, "d"] + (["-n", namespace] if kind == "td" else [])
    control_plane.create(domain({"leaves": [leaf()]}, namespace) if kind == "td" else domain({"leaves": [leaf(**BACKEND)]}))
    patch_status(control_plane, where, FULL_STATUS)
    assert control_plane.get(*where)["status"] == FULL_STATUS


def test_nulls_in_the_patch_take_away_what_is_over(control_plane: ControlPlane, namespace: str) -> None:
    where = ["td", "d", "-n", namespace]
    control_plane.create(domain({"leaves": [leaf()]}, namespace))
    patch_status(control_plane, where, FULL_STATUS)
    gone = {"heldStage": None, "stageSince": None, "rotation": None, "lastHandledToken": None, "expires": None}
    patch_status(control_plane, where, {**FULL_STATUS, **gone, "stage": "Idle"})
    assert control_plane.get(*where)["status"] == {**{k: v for k, v in FULL_STATUS.items() if k not in gone}, "stage": "Idle"}


def test_the_longest_status_that_we_write_fits(control_plane: ControlPlane, namespace: str) -> None:
    status = copy.deepcopy(FULL_STATUS)
    one = {**status["objects"][0], "namespace": "n" * 63, "waitsFor": "w" * 1024, "problem": {"reason": "r" * 256, "message": "m" * 1024}}
    brief = {key: one[key] for key in ("kind", "namespace", "writtenVersion", "written")}
    status["objects"] = [{**(one if i < 100 else brief), "name": longest("o", i)} for i in range(512)]
    status["cas"] = [{**status["cas"][0], "subject": "s" * 256}] * 16
    status["rejected"] = [{**status["rejected"][0], "leaf": longest("l", i, 63)} for i in range(64)]
    status["history"] = status["history"][:1] * 10
    status["conditions"][0]["message"] = "m" * 4096
    control_plane.create(domain(MOST, namespace))
    patch_status(control_plane, ["td", "d", "-n", namespace], status)


def test_printer_columns(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create(domain({"leaves": [leaf()]}, namespace))
    patch_status(control_plane, ["td", "d", "-n", namespace], FULL_STATUS)
    head, row = control_plane.kubectl("get", "td", "-n", namespace).stdout.splitlines()
    assert head.split() == ["NAME", "STAGE", "CONVERGED", "EXPIRES", "PROBLEM", "AGE"]
    assert row.split()[:5] == ["d", "Held", FULL_STATUS["converged"], FULL_STATUS["expires"], FULL_STATUS["problem"]]
    assert control_plane.kubectl("get", "td", "-n", namespace, "-o", "wide").stdout.split()[6:8] == ["READY", "MESSAGE"]
