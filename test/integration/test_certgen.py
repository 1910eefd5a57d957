"""certgen against a real API server: what it makes, what it leaves alone, what a rotation does, killed at each write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from control_plane import ROOT, ControlPlane, wait_until
from operators import RULES, Operator, account

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import manifests  # noqa: E402
from certgen_set import PROGRAM, Certgen, Facts, certificates, data_of, untrusted, write_set  # noqa: E402
from certroll_dev import tools  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from fake_api import FakeApi, writes  # noqa: E402
from fake_api.faults import LoseAnswer  # noqa: E402
from write_proxy import Trap, WriteProxy  # noqa: E402

LEAVES = ("a", "b")
# Small keys, so that each run takes a moment.
SET = {
    "commonName": "shop",
    "labels": {"team": "shop"},
    "secrets": [
        {"name": "a", "dnsNames": ["a.${namespace}.svc.${clusterDomain}"]},
        {"name": "b", "dnsNames": ["b.${namespace}.svc"], "ipAddresses": ["10.0.0.1"], "uris": ["spiffe://shop/b"]},
        {"name": "hmac", "opaque": {"key": "k", "bytes": 32}},
    ],
    "restart": ["web"],
}


@pytest.fixture
def certgen(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Certgen:
    return Certgen(control_plane, namespace, ("--config", str(write_set(tmp_path, SET))))


# --- what it makes


def test_contours_secrets_are_those_of_contours_own_job(control_plane: ControlPlane, namespace: str) -> None:
    """`contour certgen` itself, in another namespace."""
    other = f"{namespace}-contour"
    control_plane.kubectl("create", "namespace", other)
    contour = tools.ensure(["contour"])["contour"]
    own = Certgen(control_plane, namespace, ("--profile", "contour"))
    own.run("--secrets-name-suffix=-v1", "--certificate-lifetime=365")
    control_plane.run(
        contour, "certgen", "--kube", f"--kubeconfig={control_plane.kubeconfig}", f"--namespace={other}",
        "--secrets-format=compact", "--secrets-name-suffix=-v1",
    )  # fmt: skip
    found = {name: Facts.of(each, namespace) for name, each in own.secrets().items()}
    wanted = Certgen(control_plane, other, ()).secrets()
    assert found == {name: Facts.of(each, other) for name, each in wanted.items()}
    assert sorted(found) == ["contourcert-v1", "envoycert-v1"]
    control_plane.kubectl("delete", "namespace", other, "--wait=false")


def test_envoy_gateways_secrets(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """As `envoy-gateway certgen` v1.9.1 made them, compared once with its own."""
    account_of = _account_of_manifests(control_plane, "envoy-gateway", namespace, tmp_path)
    own = Certgen(control_plane, namespace, ("--profile", "envoy-gateway"), account_of)
    own.run()
    found = {name: Facts.of(each, namespace) for name, each in own.secrets().items()}
    labels = {"control-plane": "envoy-gateway"}
    entries = frozenset({"ca.crt", "tls.crt", "tls.key"})
    year = str(int(subprocess.run(["date", "-u", "-d", "1825 days", "+%Y"], capture_output=True, text=True).stdout))
    rest = f"Public-Key: (2048 bit)\n{year}"
    names = ("envoy-gateway", "envoy-gateway.NAMESPACE", "envoy-gateway.NAMESPACE.svc", "envoy-gateway.NAMESPACE.svc.cluster.local")
    gateway = f"subject=CN = envoy-gateway\nX509v3 Subject Alternative Name: \n    {', '.join(f'DNS:{name}' for name in names)}\n{rest}"
    proxy = f"subject=CN = *\nX509v3 Subject Alternative Name: \n    DNS:*.NAMESPACE\n{rest}"
    assert found == {
        "envoy-gateway": Facts("kubernetes.io/tls", entries, labels, gateway),
        "envoy": Facts("kubernetes.io/tls", entries, labels, proxy),
        "envoy-rate-limit": Facts("kubernetes.io/tls", entries, labels, proxy),
        "envoy-oidc-hmac": Facts("Opaque", frozenset({"hmac-secret"}), labels),
    }
    assert len(own.data()["envoy-oidc-hmac"]["hmac-secret"]) == 32
    assert not untrusted(own.data(), tmp_path)


def _account_of_manifests(plane: ControlPlane, profile: str, namespace: str, folder: Path, *components: str) -> Path:
    """A service account with the rights that the manifests give, and no others."""
    own = folder / "kustomization"
    own.mkdir()
    base = os.path.relpath(ROOT / "manifests" / "certgen", own.resolve())  # kustomize takes no absolute paths
    kustomization = {"resources": [f"{base}/{profile}"], "components": [f"{base}/{name}" for name in components]}
    (own / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    text = plane.kubectl("kustomize", str(own)).stdout
    objects = [each for each in yaml.safe_load_all(text) if each]
    [role] = [each for each in objects if each["kind"] == "Role"]
    kubeconfig = account(plane, namespace, "certgen", role["rules"], folder)
    for each in objects:
        if each["kind"] == "ClusterRole":
            name = f"certgen-{namespace}"
            rules = json.loads(json.dumps(each["rules"]).replace("envoy-gateway-system", namespace))
            meta = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
            subject = {"kind": "ServiceAccount", "name": "certgen", "namespace": namespace}
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            plane.create(
                {**meta, "kind": "ClusterRole", "rules": rules},
                {**meta, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]},
            )
    return kubeconfig


# --- what it leaves alone, and what it rotates


def test_what_is_there_is_left_alone(certgen: Certgen) -> None:
    certgen.run()
    before = certgen.secrets()
    assert "left alone" in certgen.run()
    assert certgen.secrets() == before
    assert before["a"]["metadata"]["labels"] == {"team": "shop"}


def test_overwrite_has_the_new_ca_and_the_previous_one(certgen: Certgen, tmp_path: Path) -> None:
    """The rule of envoyproxy/gateway#8534: at most two, however often; opaque entries stay."""
    certgen.run()
    certcheck = tools.ensure(["certcheck"])["certcheck"]
    made = certgen.data()
    bundle = certificates(made["a"]["ca.crt"])
    assert len(bundle) == 1
    for _ in range(3):
        before = certgen.data()
        certgen.run("--overwrite")
        after = certgen.data()
        assert after["hmac"] == made["hmac"]
        for name in LEAVES:
            assert after[name]["tls.crt"] != before[name]["tls.crt"] and after[name]["tls.key"] != before[name]["tls.key"]
            found = certificates(after[name]["ca.crt"])
            assert found[1:] == bundle[:1] and found[0] not in bundle
        bundle = certificates(after["a"]["ca.crt"])
        assert not untrusted(after, tmp_path)
        _go_accepts(str(certcheck), after, certgen.namespace, tmp_path)


def _go_accepts(certcheck: str, secrets: dict, namespace: str, folder: Path) -> None:
    names = {"a": f"a.{namespace}.svc.cluster.local", "b": f"b.{namespace}.svc,[10.0.0.1]"}
    roots, chain = folder / "roots.pem", folder / "chain.pem"
    for name in LEAVES:
        roots.write_bytes(secrets["a"]["ca.crt"])
        chain.write_bytes(secrets[name]["tls.crt"])
        for usage in ("server", "client"):
            words = [certcheck, "verify", "-roots", roots, "-chain", chain, "-usage", usage, "-names", names[name]]
            done = subprocess.run(words, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("flags", [(), ("--staged", "--settle=100ms")], ids=["at-once", "staged"])
def test_a_half_made_set_is_completed(certgen: Certgen, flags: tuple[str, ...], tmp_path: Path) -> None:
    """Leaves that are there stay; what is missing is of another CA, which all must trust, also who reads CAs at its start."""
    certgen.plane.create(manifests.deployment(certgen.namespace, "web", "a"))
    certgen.run()
    before = certgen.data()
    assert _generation(certgen) == 1
    certgen.plane.kubectl("delete", "secret", "b", "-n", certgen.namespace)
    certgen.run(*flags)
    after = certgen.data()
    assert after["a"]["tls.crt"] == before["a"]["tls.crt"] and after["hmac"] == before["hmac"]
    assert len(certificates(after["a"]["ca.crt"])) == 2
    assert not untrusted(after, tmp_path)
    assert _generation(certgen) == 2


def _generation(certgen: Certgen) -> int:
    return certgen.plane.get("deployment", "web", "-n", certgen.namespace)["metadata"]["generation"]


def test_a_rotation_that_is_run_again_goes_on(certgen: Certgen, tmp_path: Path) -> None:
    """As the pods of a Job do: another rotation would take away the CA that pods still present."""
    plane, namespace = certgen.plane, certgen.namespace
    certgen.run()
    plane.create(manifests.deployment(namespace, "web", "a"))
    old = certificates(certgen.data()["a"]["ca.crt"])
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch"]}
    admin, certgen.kubeconfig = certgen.kubeconfig, account(plane, namespace, "rotator", [secrets], tmp_path)
    assert "restarting Deployment" in certgen.run("--overwrite", "--rotation-id=one", status=1)
    rotated = certgen.data()
    assert certificates(rotated["a"]["ca.crt"])[1:] == old
    certgen.run("--overwrite", "--rotation-id=one", status=1)
    certgen.kubeconfig = admin
    for _ in range(2):
        said = certgen.run("--overwrite", "--rotation-id=one")
        assert "this rotation has issued it" in said and f"Deployment {namespace}/web: restarted" in said
        assert _generation(certgen) == 2 and certgen.data() == rotated
    certgen.run("--overwrite", "--rotation-id=two")
    assert _generation(certgen) == 3 and certgen.data()["b"]["tls.crt"] != rotated["b"]["tls.crt"]


def test_who_reads_it_at_the_start_is_restarted_after_a_rotation_only(certgen: Certgen) -> None:
    plane, namespace = certgen.plane, certgen.namespace
    certgen.run()
    assert f"Deployment {namespace}/web: not there, so not restarted" in certgen.run("--overwrite")
    plane.create(manifests.deployment(namespace, "web", "a"))
    certgen.run()
    certgen.run("--overwrite", "--no-restart")
    assert _generation(certgen) == 1
    said = certgen.run("--overwrite")
    assert _generation(certgen) == 2
    assert f"Deployment {namespace}/web: restarted" in said and "web has one replica" in said


def test_a_restart_is_not_forgotten_when_the_answer_of_the_last_write_is_lost(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    flags = ("--config", str(write_set(tmp_path, {**SET, "secrets": SET["secrets"][:1]})))
    with LocalCluster(control_plane.name).network(), FakeApi(tmp_path, config) as fake:
        certgen = Certgen(control_plane, namespace, flags, fake.kubeconfig(tmp_path / "fake.kubeconfig"))
        certgen.run()
        control_plane.create(manifests.deployment(namespace, "web", "a"))
        before = certgen.data()
        # Trust, then the leaf, and what repeats them; each is seen to be there when the Secret is read again.
        lost = fake.fault(writes("secrets"), LoseAnswer("drop"), times=4)
        said = certgen.run("--overwrite")
        assert lost.struck >= 2 and certgen.data()["a"]["tls.crt"] != before["a"]["tls.crt"]
        assert f"Deployment {namespace}/web: restarted" in said and "nothing to do" not in said


def test_the_webhook_trusts_before_the_leaf_changes(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """With no more rights than the manifests give."""
    name = f"envoy-gateway-topology-injector.{namespace}"
    kubeconfig = _account_of_manifests(control_plane, "envoy-gateway", namespace, tmp_path)
    client = {"service": {"name": "envoy-gateway", "namespace": namespace, "path": "/inject"}}
    hook = {"name": "a.example.org", "clientConfig": client, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore"}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    control_plane.create({**kind, "metadata": {"name": name}, "webhooks": [hook]})
    control_plane.create(manifests.deployment(namespace, "envoy-ratelimit", "envoy-rate-limit"))
    own = Certgen(control_plane, namespace, ("--profile", "envoy-gateway"), kubeconfig)
    # A Secret that is made again has a CA of its own: the rotation after that publishes three, until each leaf is replaced.
    for flags, lost in (((), ""), (("--overwrite",), ""), ((), "envoy"), (("--overwrite",), "")):
        if lost:
            control_plane.kubectl("delete", "secret", lost, "-n", namespace)
        said = own.run(*flags)
        [found] = control_plane.get("mutatingwebhookconfiguration", name)["webhooks"]
        assert data_of({"data": {"x": found["clientConfig"]["caBundle"]}})["x"] == own.data()["envoy-gateway"]["ca.crt"]
        assert said.index("caBundle written") < said.index("until 20")
    assert "envoy-ratelimit: restarted" in said
    assert len(certificates(own.data()["envoy-gateway"]["ca.crt"])) == 3
    control_plane.kubectl("delete", "mutatingwebhookconfiguration", name)


# --- in stages


def test_no_leaf_before_its_trust_has_arrived(certgen: Certgen, tmp_path: Path) -> None:
    """The operator itself says so, by a policy; --settle is for what none covers, and who is covered is not restarted by certgen."""
    plane, namespace = certgen.plane, certgen.namespace
    certgen.run()
    assert "no CertRotationPolicy with consumers covers Secret a" in certgen.run("--staged", status=1)
    kubeconfig = account(plane, namespace, "operator", RULES, tmp_path)
    policy = manifests.policy(namespace, "p", {"secrets": [{"name": name} for name in LEAVES], "discover": {"enabled": True}})
    plane.create(policy)
    before = certgen.data()
    operator = Operator(plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}")
    try:
        log = tmp_path / "certgen.log"
        suspend = lambda value: plane.kubectl("patch", "crp", "p", "-n", namespace, "--type=merge", "-p", json.dumps({"spec": {"suspend": value}}))  # noqa: E731
        settled = lambda: {each["name"] for each in plane.get("crp", "p", "-n", namespace).get("status", {}).get("secrets", []) if "settled" in each}  # noqa: E731
        wait_until("the policy knows the Secrets", lambda: settled() == set(LEAVES))
        suspend(True)
        process = certgen.start(log, "--staged", "--settle=100ms", "--timeout=3m")
        wait_until("it waits", lambda: "waiting for" in log.read_text(), 60)
        assert {name: each["tls.crt"] for name, each in certgen.data().items() if name in LEAVES} == {
            name: before[name]["tls.crt"] for name in LEAVES
        }
        suspend(False)
        assert process.wait(timeout=180) == 0, log.read_text()
    finally:
        operator.end()
    said = log.read_text()
    order = ["trusts 2 CAs", "the new CA is trusted everywhere", "a new leaf", "the new leaves are used everywhere"]
    assert [said.index(words) for words in order] == sorted(said.index(words) for words in order), said
    assert "Deployment" not in said
    after = certgen.data()
    assert all(after[name]["tls.crt"] != before[name]["tls.crt"] for name in LEAVES) and not untrusted(after, tmp_path)
    assert not [name for name in certgen.secrets() if name.startswith("certroll-staging-")]


@pytest.mark.parametrize("profile", ["contour", "envoy-gateway"])
def test_stages_need_no_more_than_the_manifests_give(control_plane: ControlPlane, namespace: str, profile: str, tmp_path: Path) -> None:
    """The component has the name of the Secret with the next CA, which is made of the profile's names."""
    own = Certgen(control_plane, namespace, ("--profile", profile))
    own.run()
    before = own.data()
    own.kubeconfig = _account_of_manifests(control_plane, profile, namespace, tmp_path, "staged")
    own.run("--staged", "--settle=100ms")
    after = own.data()
    for name in (each for each in before if "tls.crt" in before[each]):
        assert after[name]["tls.crt"] != before[name]["tls.crt"]
        assert certificates(after[name]["ca.crt"])[1:] == certificates(before[name]["ca.crt"])
    assert sorted(own.secrets()) == sorted(before)


def test_a_set_without_leaves_is_not_rotated(certgen: Certgen, tmp_path: Path) -> None:
    certgen.flags = ("--config", str(write_set(tmp_path, {"secrets": [{"name": "hmac", "opaque": {"key": "k"}}], "restart": ["web"]})))
    certgen.run()
    before = certgen.secrets()
    said = certgen.run("--staged", "--settle=100ms")
    assert "the set has no leaf" in said and "Deployment" not in said
    assert certgen.secrets() == before


# --- killed


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["create", "overwrite", "staged"])
def test_killed_at_each_write(certgen: Certgen, mode: str, tmp_path: Path) -> None:
    """SIGKILL before the first write and after each: at each moment all that is published fits together, and a second run ends well."""
    plane, namespace = certgen.plane, certgen.namespace
    flags = {"create": [], "overwrite": ["--overwrite"], "staged": ["--staged", "--settle=100ms"]}[mode]
    plane.create(manifests.deployment(namespace, "web", "a"))
    config = json.loads(plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    wrong: list[str] = []
    with LocalCluster(plane.name).network(), WriteProxy(config, tmp_path) as proxy:
        victim = Certgen(plane, namespace, certgen.flags, proxy.kubeconfig(tmp_path / "kubeconfig"))
        assert _kill(victim, certgen, proxy, flags, mode, 1, "before", tmp_path, wrong)
        number = 1
        while _kill(victim, certgen, proxy, flags, mode, number, "after", tmp_path, wrong):
            number += 1
        assert not proxy.errors
    writes = {"create": 3, "overwrite": 5, "staged": 8}[mode]  # of staged: the next CA, made and deleted; two restarts
    assert number == writes + 1, f"{number - 1} writes, not {writes}"
    assert not wrong, "\n".join(wrong)


def _kill(victim: Certgen, certgen: Certgen, proxy: WriteProxy, flags: list[str], mode: str, number: int, when: str, folder: Path, wrong: list[str]) -> bool:
    plane, namespace = certgen.plane, certgen.namespace
    plane.kubectl("delete", "secrets", "-n", namespace, "--all")
    if mode != "create":
        certgen.run()
    before = certgen.data()
    process: list[subprocess.Popen[bytes]] = []
    trap = Trap(number, when, lambda _: process[0].kill())  # type: ignore[arg-type]
    proxy.begin(trap)
    process.append(victim.start(folder / "victim.log", *flags))
    status = process[0].wait(timeout=180)
    struck = trap.sprung(30 if status else 0)  # it says so a moment after the kill
    title = f"killed {when} write {number}"
    if not struck:
        assert status == 0, (folder / "victim.log").read_text()
    wrong += [f"{title}: {text}" for text in untrusted(certgen.data(), folder)]
    certgen.run(*flags)
    after = certgen.data()
    wrong += [f"{title}, run again: {text}" for text in untrusted(after, folder)]
    wrong += [f"{title}: {name} is missing" for name in (*LEAVES, "hmac") if name not in after]
    if mode != "create":
        wrong += [f"{title}: {name} was not rotated" for name in LEAVES if after[name]["tls.crt"] == before[name]["tls.crt"]]
        wrong += [] if after["hmac"] == before["hmac"] else [f"{title}: hmac has changed"]
    wrong += [f"{title}: {name} is left" for name in certgen.secrets() if name.startswith("certroll-staging-")]
    return struck


# --- files, and what cannot be done


def test_files(tmp_path: Path) -> None:
    """Without a cluster; a rotation is one rename for each Secret, and keys are for their owner only."""
    folder = tmp_path / "certs"
    config = write_set(tmp_path, SET)

    def run(*flags: str) -> str:
        words = [PROGRAM, "--config", config, "--namespace=shop", "--local", folder, *flags]
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stderr

    read = lambda: {each.name: {file.name: file.read_bytes() for file in each.iterdir() if file.is_file()} for each in folder.iterdir()}  # noqa: E731
    run()
    made = read()
    assert {name: sorted(files) for name, files in made.items()} == {
        "a": ["ca.crt", "tls.crt", "tls.key"], "b": ["ca.crt", "tls.crt", "tls.key"], "hmac": ["k"],
    }  # fmt: skip
    assert not untrusted(made, tmp_path)
    assert "left alone" in run() and read() == made
    run("--overwrite")
    rotated = read()
    assert rotated["hmac"] == made["hmac"] and rotated["a"]["tls.crt"] != made["a"]["tls.crt"]
    assert certificates(rotated["b"]["ca.crt"])[1:] == certificates(made["b"]["ca.crt"])
    assert not untrusted(rotated, tmp_path)
    for name in ("a/tls.key", "hmac/k"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    for each in folder.iterdir():  # nothing of earlier writes is left
        assert len([path for path in each.iterdir() if path.is_dir() and not path.is_symlink()]) == 1


def test_what_belongs_to_another_is_not_written(certgen: Certgen) -> None:
    certgen.run()
    before = certgen.data()
    certgen.plane.kubectl("annotate", "secret", "a", "-n", certgen.namespace, "cert-manager.io/certificate-name=a")
    assert "left alone" in certgen.run()
    assert "Secret a is not written: it belongs to cert-manager's Certificate a" in certgen.run("--overwrite", status=1)
    assert certgen.data() == before


def test_what_cannot_be_issued_is_found_before_anything_is_written(certgen: Certgen, tmp_path: Path) -> None:
    """Or each try would publish a CA of which no leaf can follow, and leave half of the set rotated."""
    certgen.run()
    before = certgen.secrets()
    wrong = {**SET, "secrets": [*SET["secrets"], {"name": "c", "commonName": "c"}]}  # type: ignore[misc]
    certgen.flags = ("--config", str(write_set(tmp_path, wrong)))
    for flags in ((), ("--overwrite",), ("--staged", "--settle=100ms")):
        assert "a leaf for Secret c: a server's certificate needs a DNS name" in certgen.run(*flags, status=1)
        assert certgen.secrets() == before


def test_a_right_that_is_missing_is_named(certgen: Certgen, tmp_path: Path) -> None:
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    certgen.kubeconfig = account(certgen.plane, certgen.namespace, "reader", rules, tmp_path)
    said = certgen.run(status=1)
    assert 'cannot create resource "secrets"' in said and f"creating Secret {certgen.namespace}/hmac" in said


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "give either --profile or --config"),
        (("--profile", "istio"), "neither envoy-gateway nor contour"),
        (("--profile", "contour", "--secrets-format=legacy"), "only compact is made"),
        (("--profile", "contour", "--pem"), "--local DIR writes files"),
        (("--profile", "contour", "--staged", "--local", "x"), "--staged needs a cluster"),
        (("--profile", "contour", "--settle", "5s"), "with --staged only"),
        (("--profile", "contour", "--rotation-id", "x"), "with --overwrite alone"),
        (("--profile", "contour", "--rotation-id", "x", "--overwrite", "--local", "x"), "--rotation-id needs a cluster"),
        (("--profile", "contour", "--certificate-lifetime", "0"), "a number of days"),
        (("--profile", "contour", "--lifetime", "forever"), "--lifetime"),
        (("--profile", "contour", "--lifetime", "5m"), "from 1h to 876000h"),
        (("--profile", "envoy-gateway", "--local", "--overwrite"), "--local needs a folder"),
        (("--config", "/nonexistent"), "/nonexistent: No such file"),
    ],
)
def test_wrong_usage_is_explained(flags: tuple[str, ...], words: str) -> None:
    done = subprocess.run([PROGRAM, "--namespace", "shop", *flags], capture_output=True, text=True)
    assert done.returncode == 2 and words in done.stderr, done.stderr
