"""The situations: in what state a policy is brought, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from certroll_dev.demo import pki
from domains import dated

from .place import Place, encrypted
from .serving_pods import Serves
from .trust import DomainPlace

Do = Callable[[Any], Any]  # of the place that the situation has
ENDS_IN_PLACE_S = 40
_CLOSED = [{"schedule": "0 0 29 2 *", "duration": "1m"}]
_WATCH: dict[str, Any] = {
    "reload": {role: {"method": "Watch", "maxDelay": "1s"} for role in ("serverLeaf", "clientLeaf", "clientCA", "serverCA")},
}


@dataclass(frozen=True)
class Situation:
    """`begin` makes it; when that has settled, `then` brings it about. `settles`: false where there is nothing to settle."""

    what: str
    then: Do = lambda place: None
    begin: Do = lambda place: _usual(place)
    settles: bool = True
    inferred: str = ""  # why what is claimed of its pods was not seen, where the policy has it so
    place: type[Place] = Place


def _usual(place: Place, **spec: Any) -> None:
    place.rotate()
    place.deploy()
    place.govern(**spec)


def _with(**spec: Any) -> Do:
    return lambda place: _usual(place, **spec)


def _asked(**fields: Any) -> Do:
    """Its consumer has these fields."""
    return lambda place: _usual(place, consumers=[place.consumer(**fields)])


def _not_asked(**fields: Any) -> Do:
    def begin(place: Place) -> None:
        _usual(place, consumers=[place.consumer(**fields, verify=None)])

    return begin


def _workload(kind: str = "deployments", **spec: Any) -> Do:
    """Its workload is of another kind, or has these fields in its spec."""

    def begin(place: Place) -> None:
        place.rotate()
        place.deploy(kind=kind, **spec)
        target = {"apiVersion": "apps/v1", "kind": {"deployments": "Deployment", "statefulsets": "StatefulSet", "replicasets": "ReplicaSet"}[kind]}
        place.govern(consumers=[place.consumer(targetRef=target | {"name": place.name})])

    return begin


def _serves(serves: Serves) -> Do:
    """What its pods do from then on, and then a new leaf."""

    def then(place: Place) -> None:
        place.serve(serves)
        place.rotate()

    return then


def _rotate(place: Place) -> None:
    place.rotate()


def _patch(kind: str, **spec: Any) -> Do:
    def then(place: Place) -> None:
        place.merge(kind, {"spec": spec})
        place.rotate()

    return then


# --- material


def _written_again(place: Place) -> None:
    assert place.written
    place.put(place.written, metadata={"name": place.name, "namespace": place.ground.namespace, "labels": {"touched": "yes"}})


def _dated(begins: float, ends: float) -> Do:
    return lambda place: place.put(dated(place.ground.authority, begins, ends))


def _anew(place: Place) -> None:
    place.take_away()
    place.wait_missed()
    place.rotate()


def _immutable(place: Place) -> None:
    place.put(place.good(), immutable=True)
    place.deploy()
    place.govern()


def _old_ca_beside(place: Place) -> None:
    good = place.good()
    place.put(good | {"ca.crt": good["ca.crt"] + dated(place.ground.authority, -9, -2)["tls.crt"]})


def _ca_beside(place: Place) -> None:
    assert place.written
    place.put(place.written | {"ca.crt": place.written["ca.crt"] + place.ground.other.certificate})


def _same_key(place: Place) -> None:
    assert place.written
    place.put(place.good(key=place.written["tls.key"]))


def _password(place: Place) -> None:
    assert place.written
    place.put(place.written | {"password": b"another"})


def _with_password(place: Place) -> None:
    place.put(place.good() | {"password": b"one"})
    place.deploy()
    place.govern()


def _named(**fields: Any) -> Do:
    """Its pods are asked for the name that its leaf is for."""
    return lambda place: _usual(place, consumers=[place.consumer(verify={"port": 8443, "serverName": place.name} | fields)])


def _shown_by_ingress(place: Place) -> None:
    """Nobody wrote the host into the policy, and the Ingress is no consumer of it."""
    _usual(place)
    place.ground.plane.create({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"namespace": place.ground.namespace, "name": place.name},
        "spec": {"tls": [{"secretName": place.name, "hosts": [place.name]}], "defaultBackend": {"service": {"name": place.name, "port": {"number": 443}}}},
    })  # fmt: skip


def _annotated(word: str) -> Do:
    """And its Secret says what becomes of a leaf without a name."""

    def begin(place: Place) -> None:
        _shown_by_ingress(place)
        place.merge("secrets", {"metadata": {"annotations": {"certroll.dev/on-missing-name": word}}})

    return begin


def _other_name_patched(place: Place) -> None:
    """The Secret keeps its annotations."""
    made = place.ground.authority.issue("another")
    place.patch({"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.trust})


def _other_name(place: Place) -> None:
    made = place.ground.authority.issue("another")
    place.put({"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.trust})


_MATERIAL = {
    "renewed": Situation("The Secret gets a new leaf.", _rotate),
    "written-again": Situation("The Secret is written again with what it holds.", _written_again),
    "same-key": Situation("The Secret gets a new leaf of the same key.", _same_key),
    "other-ca": Situation("The Secret gets a leaf of another CA, and that CA.", lambda place: place.put(place.good(place.ground.other))),
    "ca-added": Situation("The Secret gets one more CA; the leaf stays.", _ca_beside),
    "password": Situation("Another key of the Secret changes, which the pods mount.", _password, _with_password),
    "made-anew": Situation("The Secret is deleted and created with a new leaf.", _anew),
    "immutable-anew": Situation("An immutable Secret is deleted and created with a new leaf.", _anew, _immutable),
    "expired": Situation("The Secret gets a leaf that has ended.", _dated(-2, -1)),
    "ends-in-place": Situation("The leaf that is rolled out ends; nobody writes anything.", _dated(-1, ENDS_IN_PLACE_S / 86400)),
    "ends-soon": Situation("The new leaf has 1 of its 81 days left.", _dated(-80, 1)),
    "not-yet": Situation("The new leaf is valid from tomorrow.", _dated(1, 90)),
    "mismatched": Situation("The key does not belong to the certificate.", lambda place: place.spoil(tls_key=pki.new_key())),
    "garbage": Situation("The certificate is no PEM.", lambda place: place.spoil(tls_crt=b"no certificate")),
    "empty": Situation("The certificate is empty.", lambda place: place.spoil(tls_crt=b"")),
    "no-key": Situation("The key is missing.", lambda place: place.spoil(tls_key=None)),
    "encrypted-key": Situation("The key is encrypted.", lambda place: place.spoil(tls_key=encrypted(pki.new_key()))),
    "ca-gone": Situation("The CA is missing, which was there.", lambda place: place.spoil(ca_crt=None)),
    "ca-garbage": Situation("The CA is no PEM.", lambda place: place.spoil(ca_crt=b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")),
    "old-ca-beside": Situation("Beside the CA there is one that has ended.", _old_ca_beside),
    "no-name": Situation("The new leaf is not for the name that verify asks for.", _other_name, _named()),
    "no-name-report": Situation("The same with onMissingName: Report.", _other_name, _named(onMissingName="Report")),
    "no-name-ingress": Situation("The same by a host of an Ingress, with the component hosts-in-use.", _other_name, _shown_by_ingress),
    "no-name-annotated": Situation("The same, and the Secret says on-missing-name: Report.", _other_name_patched, _annotated("Report")),
    "no-name-misspelt": Situation("The same, and it says on-missing-name: report.", _other_name_patched, _annotated("report")),
    "other-name": Situation("The new leaf is for another name, and nobody asks for one.", _other_name),
    "deleted": Situation("The Secret is deleted.", Place.take_away),
}


# --- workloads


def _no_workload(**fields: Any) -> Do:
    def begin(place: Place) -> None:
        place.rotate()
        place.govern(consumers=[place.consumer(**fields)])

    return begin


def _delete_workload(place: Place) -> None:
    place.ground.api.delete("deployments", place.ground.namespace, place.name)


def _uses_nothing(place: Place) -> None:
    place.rotate()
    place.deploy()
    place.merge("deployments", {"spec": {"template": {"spec": {"volumes": None, "containers": [{"name": "main", "image": "example.org/other:1"}]}}}})
    place.govern()


def _hold_back(place: Place) -> None:
    place.ground.pods.hold_back(place.name)
    place.rotate()


def _undo(place: Place) -> None:
    place.rotate()
    place.wait_settled()
    template = place.ground.api.get("deployments", place.ground.namespace, place.name)["spec"]["template"]
    gone = {key: None for key in template["metadata"].get("annotations", {})}
    place.merge("deployments", {"spec": {"template": {"metadata": {"annotations": gone}}}})


def _budget(place: Place) -> None:
    place.rotate()
    place.deploy()
    place.ground.plane.create({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": place.ground.namespace, "name": place.name},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": place.name}}},
    })  # fmt: skip
    place.govern(restart={"method": "Evict"})


def _two(place: Place, **fields: Any) -> None:
    """The second is called -b."""
    place.rotate()
    second = f"{place.name}-b"
    place.deploy()
    place.deploy(second)
    place.govern(consumers=[place.consumer(), place.consumer(second, **fields)], restart={"maxConcurrent": 2})


def _bare_pod(place: Place) -> None:
    place.rotate()
    place.deploy()
    container = {"name": "main", "image": "example.org/by/hand:1", "volumeMounts": [{"name": "tls", "mountPath": "/tls"}]}
    spec = {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": place.name}}], "terminationGracePeriodSeconds": 0}
    name = f"{place.name}-by-hand"
    metadata = {"namespace": place.ground.namespace, "name": name, "labels": {"app": name}}
    place.ground.plane.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    place.apps.append(name)
    place.govern(discover={"enabled": True})


def _second_stays(place: Place) -> None:
    place.serve(Serves.COPY, f"{place.name}-b")
    place.rotate()


def _first_is_silent(place: Place) -> None:
    place.serve(Serves.NOTHING)
    place.rotate()


_WORKLOADS = {
    "missing": Situation("The Deployment does not exist.", begin=_no_workload(), settles=False),
    "deleted-workload": Situation("The Deployment is deleted.", _delete_workload),
    "optional": Situation("The Deployment does not exist, and is optional.", begin=_no_workload(optional=True), settles=False),
    "cronjob-missing": Situation(
        "The CronJob does not exist.", begin=_no_workload(targetRef={"kind": "CronJob", "name": "none"}, verify=None), settles=False
    ),
    "uses-nothing": Situation("The Deployment mounts none of the Secrets.", begin=_uses_nothing, settles=False),
    "scaled-to-0": Situation("The Deployment has no replicas.", _patch("deployments", replicas=0)),
    "paused": Situation("The Deployment is paused.", _patch("deployments", paused=True)),
    "rollout-stuck": Situation("The new pod does not become ready.", _hold_back),
    "rollout-failed": Situation("The new pod does not become ready within the Deployment's deadline.", _hold_back, _workload(progressDeadlineSeconds=5)),
    "undone": Situation("After the restart its annotation is taken away, as kubectl rollout undo does.", _undo),
    "on-delete": Situation("A StatefulSet with OnDelete.", _rotate, _workload("statefulsets", updateStrategy={"type": "OnDelete"})),
    "partition": Situation(
        "A StatefulSet with a partition.", _rotate,
        _workload("statefulsets", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
    ),
    "statefulset": Situation("A StatefulSet.", _rotate, _workload("statefulsets")),
    "replicaset": Situation("A ReplicaSet of its own.", _rotate, _workload("replicasets")),
    "bare-pod": Situation("Beside a Deployment, a pod of no workload uses the Secret, with discover.", _rotate, _bare_pod),
    "follows": Situation("It reloads, as the policy says.", _serves(Serves.FOLLOWS), _asked(**_WATCH)),
    "does-not-follow": Situation("It does not reload, although the policy says so: it is restarted past the deadline.", _rotate, _asked(**_WATCH)),
    "does-not-follow-report": Situation(
        "The same with onTimeout: Report.", _rotate, lambda place: _usual(place, consumers=[
            place.consumer(**_WATCH, verify={"port": 8443, "timeout": "1s", "onTimeout": "Report"})]),
    ),
    "does-not-follow-not-asked": Situation(
        "The same without verify.", _rotate, _not_asked(**_WATCH), inferred="reload of the policy says that it reloads",
    ),
    "not-asked": Situation("It is restarted, without verify.", _rotate, _not_asked(), inferred="the pod was started after the change"),
    "keeps-a-copy": Situation("New pods go on serving the old leaf.", _serves(Serves.COPY)),
    "keeps-a-copy-not-asked": Situation(
        "The same without verify.", _serves(Serves.COPY), _not_asked(), inferred="the pod was started after the change",
    ),
    "other-certificate": Situation("Pods serve a certificate that is not the Secret's.", _serves(Serves.OTHER)),
    "no-tls": Situation("The port speaks no TLS.", _serves(Serves.PLAIN)),
    "refused": Situation("The port refuses connections.", _serves(Serves.NOTHING)),
    "refused-infer": Situation(
        "The same with onUnreachable: Infer.", _serves(Serves.NOTHING), _asked(verify={"port": 8443, "onUnreachable": "Infer"}),
        inferred="onUnreachable: Infer",
    ),
    "one-of-two": Situation("Of two consumers one goes on serving the old leaf.", _second_stays, _two),
    "behind": Situation(
        "The second consumer comes after the first, which cannot be asked.", _first_is_silent,
        lambda place: _two(place, after=[place.name]),
    ),
    "budget": Situation("A PodDisruptionBudget allows no eviction.", _rotate, _budget),
    "only-pod": Situation(
        "singleReplica: Block, and a strategy that takes the only pod away.", _rotate,
        lambda place: (place.rotate(), place.deploy(strategy={"type": "Recreate"}), place.govern(restart={"singleReplica": "Block"})),
    ),
}  # fmt: skip


# --- policies


def _spec(**spec: Any) -> Do:
    """Changed so before the Secret is."""

    def then(place: Place) -> None:
        place.merge("certrotationpolicies", {"spec": spec})
        place.rotate()

    return then


def _twice(place: Place) -> None:
    place.rotate()
    place.wait_settled()
    place.rotate()


def _older_policy(place: Place) -> None:
    place.rotate()
    place.deploy()
    place.govern(f"a-{place.name}", suspend=True)  # of two of one second the name decides
    place.govern()


def _foreign_target(place: Place) -> None:
    metadata = {"namespace": place.ground.namespace, "name": place.name}
    place.ground.plane.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": "somebody's"}})
    _usual(place, trust={"targets": [{"kind": "ConfigMap", "name": place.name}]})


def _seen_late(place: Place, *, asked: bool = True) -> None:
    """Its pod has read the Secret of before when the policy is made."""
    place.rotate()
    place.deploy()
    place.wait_served()
    place.rotate()
    place.govern(consumers=[place.consumer() if asked else place.consumer(verify=None)])


_POLICIES = {
    "suspended": Situation("suspend: true.", _spec(suspend=True)),
    "plan": Situation("mode: Plan.", _spec(mode="Plan")),
    "never": Situation("restart.method: Never.", _spec(restart={"method": "Never"})),
    "window": Situation("No window is open.", _spec(restart={"windows": _CLOSED})),
    "breaker": Situation("The second change within an hour, and one restart is allowed.", _twice, _with(restart={"breaker": {"restarts": 1, "within": "1h"}})),
    "coalesce": Situation("coalesce: 10m.", _spec(restart={"coalesce": "10m"})),
    "unknown-report": Situation("Unknown software, with discover.unknown: Report.", _spec(discover={"enabled": True, "unknown": "Report"})),
    "wrong-secret": Situation("The name of the Secret is wrong.", begin=_with(secrets=[{"name": "misspelled"}]), settles=False),
    "selects-nothing": Situation(
        "No Secret has the labels.", begin=_with(secrets=None, secretSelector={"matchLabels": {"none": "has"}}), settles=False
    ),
    "other-policy": Situation("An older policy has the pair, and is suspended.", _rotate, _older_policy),
    "unknown-kind": Situation("targetRef names a kind that is not acted on.", begin=_asked(targetRef={"kind": "Fleet", "name": "x"}), settles=False),
    "no-such-zone": Situation("A window in a time zone that there is not.", _spec(restart={"windows": [_CLOSED[0] | {"timeZone": "Mars/Base"}]})),
    "trust": Situation("spec.trust publishes the CA.", _rotate, lambda place: _usual(place, trust={"targets": [{"kind": "ConfigMap", "name": place.name}]})),
    "trust-foreign": Situation("The target of spec.trust is somebody's.", _rotate, _foreign_target),
    "seen-late": Situation("The policy is made after a change; the pod serves the leaf of before.", begin=_seen_late, settles=False),
    "seen-late-not-asked": Situation(
        "The same without verify.", begin=lambda place: _seen_late(place, asked=False), settles=False, inferred="first sight: nothing has changed since",
    ),
}  # fmt: skip

# --- trust domains

_HELD_SOON: dict[str, Any] = {"evidence": {"stageDeadline": "5s"}}


def _domain(what: str, then: Callable[[DomainPlace], Any], inferred: str = "", **spec: Any) -> Situation:
    return Situation(what, then, lambda place: place.establish(**spec), inferred=inferred, place=DomainPlace)


def _refused_and_asked(place: DomainPlace) -> None:
    place.refuse_writes()
    place.replace_ca()


def _written_twice(place: DomainPlace) -> None:
    place.overwrite()
    place.wait_published()
    place.overwrite()


def _not_restarted(place: DomainPlace) -> None:
    place.merge("certrotationpolicies", {"spec": {"restart": {"method": "Never"}}})
    place.replace_ca()


def _distrusted(serves: Serves) -> Callable[[DomainPlace], Any]:
    """By the domain, while its pods go on so."""

    def then(place: DomainPlace) -> None:
        place.serve(serves)
        place.distrust()

    return then


def _not_restarted_any_more(place: DomainPlace) -> None:
    """For the new CA, and for the new leaf, it was; for the CA that goes it may not be."""
    before = place.restarts()
    place.replace_ca()
    place.wait_restarts(before + 2)
    place.merge("certrotationpolicies", {"spec": {"restart": {"method": "Never"}}})


def _twice_within_the_hour(place: DomainPlace) -> None:
    place.replace_ca("one")
    place.wait_settled()
    place.replace_ca("two")


def _serve_another(place: DomainPlace) -> None:
    place.serve(Serves.OTHER)
    place.replace_ca()


_DOMAINS = {
    "domain": _domain("A trust domain's CA is replaced.", DomainPlace.replace_ca),
    "domain-forbidden": _domain("The same, and it may not write its leaf's Secret.", _refused_and_asked),
    "domain-other-writer": _domain("Another program writes into its leaf's Secret, twice.", _written_twice),
    "domain-held": _domain("Its CA is replaced, and the consumer may not be restarted: past the stage's deadline.", _not_restarted, **_HELD_SOON),
    "domain-breaker": _domain(
        "Its CA is replaced twice within an hour, and one restart is allowed: past the stage's deadline.", _twice_within_the_hour,
        restart={"breaker": {"restarts": 1, "within": "1h"}}, **_HELD_SOON,
    ),
    "domain-other-certificate": _domain("Its CA is replaced, and the pods serve a certificate that is not the Secret's.", _serve_another),
    "domain-retiring": _domain("The CA of before goes, and the consumer may not be restarted any more.", _not_restarted_any_more),
    "domain-distrust": _domain("A CA is distrusted.", _distrusted(Serves.AT_START)),
    "domain-distrust-copy": _domain("The same, and new pods go on with the old leaf and CAs.", _distrusted(Serves.COPY)),
    "domain-distrust-old-trust": _domain(
        "The same, and new pods have the new leaf and the old CAs.", _distrusted(Serves.OLD_TRUST),
        inferred="the pod was started after the change, and evidence.trust is Inferred",
    ),
}  # fmt: skip

# While no operator runs.
_ALONE = {
    "changed-alone": Situation("The Secret gets a new leaf while no operator runs.", _rotate),
    "expired-alone": Situation("The Secret gets a leaf that has ended while no operator runs.", _dated(-2, -1)),
    "deleted-alone": Situation("The Secret is deleted while no operator runs.", Place.take_away),
    "domain-alone": _domain("A trust domain's CA is to be replaced while no operator runs.", DomainPlace.replace_ca),
    "made-alone": Situation("The policy is made while no operator runs.", _usual, begin=lambda place: None, settles=False),
}

GROUPS = {"Material": _MATERIAL, "Workloads": _WORKLOADS, "Policies": _POLICIES, "Trust domains": _DOMAINS}
ALONE = _ALONE
