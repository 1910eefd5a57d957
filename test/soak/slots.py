"""What the soak changes: a slot is a policy with its Secret and its Deployment, and knows what must come of each change.

A slot is changed only when all that was done to it before has come to its end. So the count of its restarts is exact, whatever
happened to the operator's connections meanwhile: its Deployment's generation is one, and one more for each restart.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import manifests
from certroll_dev.demo.api import API, APIError
from certroll_dev.demo.pki import Material
from control_plane import wait_until
from patience import persistently
from manifests import Object

LABEL = "soak"
_RELOAD: Object = {"reload": {role: {"method": "Watch", "maxDelay": "1s"} for role in ("serverLeaf", "clientLeaf", "clientCA", "serverCA")}}


@dataclass(frozen=True)
class Kind:
    """How a slot's policy finds what belongs to it, and what its Deployment runs."""

    name: str
    by_label: bool = False  # the Secret is found by its label, else by name
    discovered: bool = False  # the Deployment is found by its pod template, else by name
    opaque: bool = False  # a key in the environment instead of a certificate
    reloads: bool = False  # by its own watch, as the policy says; else it is not known, and restarted

KINDS = (
    Kind("named"),
    Kind("labelled", by_label=True),
    Kind("discovered", discovered=True),
    Kind("opaque", opaque=True),
    Kind("reloads", reloads=True),
)


class Supply:
    """Leaves of two CAs, made once: what is changed to what costs the soak nothing."""

    def __init__(self, materials: Sequence[Material]) -> None:
        self._data = [{"tls.crt": m.certificate, "tls.key": m.key, "ca.crt": m.trust} for m in materials]
        self._next = itertools.cycle(range(len(self._data)))
        self._numbers = itertools.count(1)

    def next(self, kind: Kind, but: dict[str, bytes]) -> dict[str, bytes]:
        """Another than that one."""
        if kind.opaque:
            return {"key": f"number {next(self._numbers)}".encode()}
        return next(data for data in (self._data[number] for number in self._next) if data != but)


@dataclass
class Slot:
    namespace: str
    name: str
    kind: Kind
    data: dict[str, bytes] = field(default_factory=dict)
    labelled: bool = True
    edits: int = 0
    generation: int = 1  # of the Deployment, as it must be in the end
    restarted_for: dict[str, bytes] | None = None  # the material that its template is marked with
    version: str = ""  # of the Secret, when its material was last changed
    busy_with: str = ""
    since: float = 0.0

    # --- as it is to be

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    def secret(self) -> Object:
        labels = {LABEL: self.name} if self.labelled else {}
        return manifests.secret(self.namespace, self.name, self.data, type="Opaque" if self.kind.opaque else "kubernetes.io/tls", **labels)

    def deployment(self) -> Object:
        if self.kind.opaque:
            return manifests.deployment(self.namespace, self.name, env=self.name)
        return manifests.deployment(self.namespace, self.name, self.name)

    def policy(self) -> Object:
        spec: Object = {"restart": {"coalesce": f"{self.edits % 2}s", "breaker": {"within": "0s"}}}
        if self.kind.by_label:
            spec["secretSelector"] = {"matchLabels": {LABEL: self.name}}
        else:
            spec["secrets"] = [{"name": self.name}]
        if self.kind.discovered:
            spec["discover"] = {"enabled": True}
        else:
            spec["consumers"] = [entry | _RELOAD if self.kind.reloads else entry for entry in manifests.listed(self.name)]
        return manifests.policy(self.namespace, self.name, spec)

    # --- what is wrong with it

    def wrong(self, policy: Object | None, deployment: Object | None) -> str:
        """Empty when everything has become of it that must."""
        if not policy or not deployment:
            return "the policy or the Deployment is not there"
        generation = deployment["metadata"]["generation"]
        if generation != self.generation:
            return f"the Deployment is at generation {generation}, not {self.generation}"
        memory = manifests.settled(policy)
        if self.kind.by_label and not self.labelled:
            if memory:
                return "the Secret without the label is remembered"
            return "" if manifests.has_no_secret(policy) else "the policy does not say that it has no Secret"
        if not manifests.converged(policy):
            return "the policy has not converged"
        settled = memory.get(self.name, {})
        if self.kind.opaque:
            found = next(each for each in policy["status"]["secrets"] if each["name"] == self.name) if settled else {}
            if not settled.get("opaque") or int(found.get("observedResourceVersion", "0")) < int(self.version):
                return "the new key is not settled"
        elif settled.get("leaf") != manifests.fingerprint(self.data["tls.crt"]):
            return "the new leaf is not settled"
        return ""

    def restarted_too_often(self, deployment: Object | None) -> bool:
        """That is seen at once, and does not pass."""
        return deployment is not None and deployment["metadata"]["generation"] > self.generation


class Churn:
    """One action at a time on a slot that is at rest."""

    def __init__(self, api: API, supply: Supply, slots: Sequence[Slot], chance: random.Random) -> None:
        self._api = api
        self._supply = supply
        self._chance = chance
        self.slots = slots
        self.done: dict[str, int] = {}  # how often each action
        self.restarts = 0
        self._actions: Sequence[tuple[int, Callable[[Slot], None]]] = (
            (8, self.renew), (2, self.rewrite), (2, self.edit_policy), (1, self.recreate_policy), (1, self.replace_policy_and_change),
            (2, self.recreate_deployment), (1, self.recreate_secret), (2, self.relabel),
        )  # fmt: skip

    def create(self) -> None:
        for slot in self.slots:
            self._renew_material(slot)
            self._apply("deployments", slot.deployment())
            self._apply("certrotationpolicies", slot.policy())
            self._begun(slot, "creation")

    def step(self) -> None:
        """Does something to one that has nothing under way, if there is one."""
        idle = [slot for slot in self.slots if not slot.busy_with]
        if not idle:
            return
        slot = self._chance.choice(idle)
        weights, actions = zip(*self._actions, strict=True)
        action = self._chance.choices(actions, weights)[0]
        action(slot)
        name = action.__name__
        self.done[name] = self.done.get(name, 0) + 1
        self._begun(slot, name)

    def look(self) -> None:
        """Takes note of those that have come to their end. A restart too many is an error at once."""
        policies, deployments = self._all("certrotationpolicies"), self._all("deployments")
        for slot in self.slots:
            deployment = deployments.get(slot.key)
            assert not slot.restarted_too_often(deployment), f"{self.describe(slot)}: restarted without need"
            if slot.busy_with and not slot.wrong(policies.get(slot.key), deployment):
                slot.busy_with = ""

    def busy(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.busy_with]

    def describe(self, slot: Slot) -> str:
        """With all that is known of it, for whoever must find out why."""
        policy = self._api.find("certrotationpolicies", *slot.key)
        deployment = self._api.find("deployments", *slot.key)
        age = time.monotonic() - slot.since
        what = f"{slot.namespace}/{slot.name} ({slot.kind.name}, {slot.busy_with or 'at rest'}, {age:.0f} s ago)"
        return f"{what}: {slot.wrong(policy, deployment)}; its status: {(policy or {}).get('status')}"

    # --- actions; each leaves in the slot what must come of it

    def renew(self, slot: Slot) -> None:
        self._renew_material(slot)
        self._expect_restart(slot)

    def rewrite(self, slot: Slot) -> None:
        """The same material: no change."""
        self._merge(slot, "secrets", {"metadata": {"annotations": {"soak": str(self._chance.random())}}})

    def edit_policy(self, slot: Slot) -> None:
        slot.edits += 1
        self._apply("certrotationpolicies", slot.policy())

    def recreate_policy(self, slot: Slot) -> None:
        """Its memory is gone: what is there is a first sight."""
        self._delete("certrotationpolicies", slot)
        self._apply("certrotationpolicies", slot.policy())
        self._expect_first_sight(slot)

    def replace_policy_and_change(self, slot: Slot) -> None:
        """Its memory is gone, but a template that was restarted tells of what material: one restart, be it by the old policy.

        Where none tells, it would be one or none: the operator may hear of the change before it hears that the policy is gone.
        """
        if slot.restarted_for is None:
            return self.recreate_policy(slot)
        self._delete("certrotationpolicies", slot)
        self._renew_material(slot)
        self._apply("certrotationpolicies", slot.policy())
        self._expect_first_sight(slot)

    def recreate_deployment(self, slot: Slot) -> None:
        # In the foreground: on a busy machine the garbage collector was seen to leave a ReplicaSet behind that was deleted in the
        # background, and with it a pod of that name which has old material for good.
        self._delete("deployments", slot, foreground=True)
        wait_until("the Deployment to be gone", lambda: persistently(lambda: self._api.find("deployments", *slot.key)) is None, 120)
        self._apply("deployments", slot.deployment())
        slot.generation, slot.restarted_for = 1, None

    def recreate_secret(self, slot: Slot) -> None:
        """With other material: a change, whatever its UID."""
        self._delete("secrets", slot)
        self._renew_material(slot)
        self._expect_restart(slot)

    def relabel(self, slot: Slot) -> None:
        """By its label it leaves its policy, and comes back as a first sight."""
        slot.labelled = not slot.labelled
        self._apply("secrets", slot.secret())
        if slot.kind.by_label:
            self._expect_first_sight(slot)

    def _renew_material(self, slot: Slot) -> None:
        slot.data = self._supply.next(slot.kind, but=slot.data)
        slot.version = self._apply("secrets", slot.secret())["metadata"]["resourceVersion"]

    def _expect_restart(self, slot: Slot) -> None:
        """Its material has changed before the policy's eyes."""
        in_force = slot.labelled or not slot.kind.by_label
        if not slot.kind.reloads and in_force and slot.restarted_for != slot.data:
            slot.generation += 1
            slot.restarted_for = slot.data
            self.restarts += 1

    def _expect_first_sight(self, slot: Slot) -> None:
        """A restart only where the template is marked with other material."""
        if slot.restarted_for is not None:
            self._expect_restart(slot)

    @staticmethod
    def _begun(slot: Slot, what: str) -> None:
        slot.busy_with, slot.since = what, time.monotonic()

    # --- the API server, which may be away at any time

    def _all(self, kind: str) -> Mapping[tuple[str, str], Object]:
        found: dict[tuple[str, str], Object] = {}
        for namespace in sorted({slot.namespace for slot in self.slots}):
            for each in persistently(lambda: self._api.list(kind, namespace)):  # noqa: B023
                found[(namespace, each["metadata"]["name"])] = each
        return found

    def _apply(self, kind: str, obj: Object) -> Object:
        return persistently(lambda: self._api.apply(kind, obj))

    def _merge(self, slot: Slot, kind: str, patch: Object) -> None:
        persistently(lambda: self._api.merge(kind, *slot.key, patch))

    def _delete(self, kind: str, slot: Slot, *, foreground: bool = False) -> None:
        def delete() -> bool:
            try:
                self._api.delete(kind, *slot.key, foreground=foreground)
            except APIError as error:
                if error.code != 404:
                    raise
            return True

        persistently(delete)
