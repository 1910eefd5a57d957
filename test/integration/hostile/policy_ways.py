"""Policies that cost who reconciles them."""

from __future__ import annotations

from contextlib import suppress

import largest_policy
from rotations import APIError

from .tenant import Object, Tenant, Way, names

_SELECTED, _NAMED, _COMING, _LABELS = 150, 64, 20, 16
_SELECTING, _LABELLED, _ALL_LABELS = 100, 50, 2_000
# Once in four years, by a clock that is set forward by two hours.
_WINDOWS = [{"schedule": f"{minute} 2 29 2 *", "duration": "1m", "timeZone": "Antarctica/Troll"} for minute in range(16)]


class Policies:
    def __init__(self, tenant: Tenant, good: Object) -> None:
        self._tenant, self._good = tenant, good

    def prepare(self) -> None:
        self._tenant.policy("largest", largest_policy.listed())
        self._tenant.watch("lying", "lied-about")
        self._tenant.watch("undying", "undying", restart={"windows": _WINDOWS})
        self._tenant.merge("certrotationpolicies", "undying", {"metadata": {"finalizers": ["example.com/never"]}})
        self._tenant.delete("certrotationpolicies", "undying")
        for name in names("selected", _SELECTED):
            self._tenant.secret(name, self._good, labels=dict.fromkeys(names("l", _LABELS), name))
        wanted = [{"key": f"l-{at}", "operator": "NotIn", "values": [str(value) for value in range(32)]} for at in range(_LABELS - 1)]
        wanted.append({"key": f"l-{_LABELS - 1}", "operator": "Exists"})  # without a label that must be there it is refused
        self._tenant.policy("selecting", {"secretSelector": {"matchExpressions": wanted}, "discover": {"enabled": True}})
        self._prepare_labels()

    def _prepare_labels(self) -> None:
        """Kubernetes allows 256 KiB of them. None of these policies takes one of these Secrets."""
        for name in names("labelled", _LABELLED):
            self._tenant.secret(name, self._good, labels=dict.fromkeys(names("label", _ALL_LABELS), "x"))
        wanted = [{"key": f"no-{at}", "operator": "DoesNotExist"} for at in range(_LABELS - 1)] + [{"key": "last", "operator": "Exists"}]
        for name in names("choosy", _SELECTING):
            self._tenant.policy(name, {"secretSelector": {"matchExpressions": wanted}, "discover": {"enabled": True}})
        volumes = [{"name": f"v{at}", "secret": {"secretName": name}} for at, name in enumerate(names("labelled", _LABELLED))]
        self._tenant.deployment("labelled", {"volumes": volumes}, paused=True)

    def ways(self) -> list[Way]:
        return [
            Way(self.the_largest_policy, 20), Way(self.selected_and_not), Way(self.many_names_and_few, 0.5), Way(self.they_come_and_go, 0.2),
            Way(self.the_status_is_another, 0.5), Way(self.the_largest_status, 20), Way(self.it_is_deleted_and_stays, 0.2),
            Way(self.many_labels_for_many_selectors),
        ]  # fmt: skip

    def leave(self) -> None:
        """So that the namespace can be deleted."""
        with suppress(APIError):  # it never came to that
            self._tenant.merge("certrotationpolicies", "undying", {"metadata": {"finalizers": []}})

    def the_largest_policy(self, turn: int) -> None:
        """64 Secrets, 128 consumers and names as long as they may be, decoded and planned at each version."""
        self._tenant.merge("certrotationpolicies", "largest", {"spec": {"suspend": turn % 2 == 0}})

    def selected_and_not(self, turn: int) -> None:
        """A policy has 64 Secrets at most: which of 150, is decided with each label."""
        name = f"selected-{self._tenant.dice.randrange(_SELECTED)}"
        self._tenant.merge("secrets", name, {"metadata": {"labels": {"l-0": str(turn % 64)}}})

    def many_labels_for_many_selectors(self, turn: int) -> None:
        """Each event of one that uses the Secrets may concern each policy that selects by their labels."""
        self._tenant.touch("deployments", "labelled")

    def many_names_and_few(self, turn: int) -> None:
        """What is watched follows what is named: watches begin and end, and each lists anew."""
        self._tenant.watch("swinging", *names(f"nowhere-{turn}", _NAMED if turn % 2 else 1))

    def they_come_and_go(self, turn: int) -> None:
        """A policy that is gone is forgotten in all indexes, and one that comes takes a first sight of all that it names."""
        name = f"coming-{turn % _COMING}"
        self._tenant.delete("certrotationpolicies", name)
        self._tenant.policy(name, {"secrets": [{"name": f"selected-{turn % _SELECTED}"}], "discover": {"enabled": True}})

    def the_status_is_another(self, turn: int) -> None:
        """The status is certroll's memory: whoever may write it takes it away, and what was forgotten is written again."""
        self._tenant.merge("certrotationpolicies", "lying", {"status": None if turn % 2 else largest_policy.status(1)}, "status")

    def the_largest_status(self, turn: int) -> None:
        """More than 500 consumers that never were are remembered, and have to be forgotten."""
        self._tenant.merge("certrotationpolicies", "lying", {"status": largest_policy.status(largest_policy.IN_FORCE)}, "status")

    def it_is_deleted_and_stays(self, turn: int) -> None:
        """With a finalizer of its owner's it has a deletionTimestamp for ever, and goes on changing."""
        self._tenant.touch("certrotationpolicies", "undying")
