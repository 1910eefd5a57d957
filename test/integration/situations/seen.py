"""What is said of a policy in a situation, and what is true of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .place import Place

Object = dict[str, Any]
# Conditions as they are when there is nothing to tell; Converged is always told.
_AT_REST = {
    "Ready": "True", "Rotating": "False", "Blocked": "False", "Held": "False", "Degraded": "False", "ExpiringSoon": "False", "Conflict": "False",
    "Distrusted": "-",
}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """`truth`: by handshakes with each pod. `waited`: the command of docs/operations.md comes to an end."""

    truth: str
    columns: str
    conditions: tuple[str, ...]
    waited: bool
    alerts: tuple[str, ...]
    events: tuple[str, ...]

    @staticmethod
    def of(line: Mapping[str, Any]) -> Seen:
        """As line() has written it."""
        return Seen(**{key: tuple(value) if isinstance(value, list) else value for key, value in line.items()})

    @property
    def is_green(self) -> bool:
        return any(each.startswith(("Converged=True", "Distrusted=True")) for each in self.conditions)

    @property
    def is_true(self) -> bool:
        return self.truth in (ALL, NOBODY, RETIRED)

    def line(self) -> Object:
        return {
            "truth": self.truth, "columns": self.columns, "conditions": list(self.conditions), "waited": self.waited,
            "alerts": list(self.alerts), "events": list(self.events),
        }  # fmt: skip


ALL, NOBODY = "every pod serves what the Secret holds", "no pod uses the Secret"
NOTHING = "the Secret does not exist"
RETIRED = f"{ALL}; none takes clients of the CA of before"


def look(place: Place, told: Object, alerts: Collection[tuple[str, str]], events: Collection[Object]) -> Seen:
    """`told`: the policy, or what else the place has."""
    status: Object = told.get("status") or {}
    conditions = {each["type"]: f"{each['status']} {each['reason']}" for each in status.get("conditions", [])}
    shown = [f"{kind}={conditions[kind]}" for kind in ("Converged", *_AT_REST) if kind in conditions and not conditions[kind].startswith(_AT_REST.get(kind, "-"))]
    columns = [str(status.get(key, "-")) for key in place.columns]
    names = {place.name, *place.apps}
    warnings = {each["reason"] for each in events if each.get("type") == "Warning" and each["involvedObject"]["name"] in names}
    return Seen(
        truth=place.truth(truth(place)),
        columns=" ".join(columns),
        conditions=tuple(shown) or ("none",),
        waited=place.is_waited_for(told) and conditions.get("Converged", "").startswith("True"),
        alerts=tuple(sorted(alert for alert, of in alerts if of == place.name or alert == "NoLeader")),
        events=tuple(sorted((warnings & {each["reason"] for each in events if _is_ours(each)}) - place.passing)),
    )  # fmt: skip


def _is_ours(event: Object) -> bool:
    return "certroll" in event.get("reportingComponent", "") + event.get("source", {}).get("component", "")


def truth(place: Place) -> str:
    leaves = [leaf for app in place.apps for leaf in place.ground.pods.leaves(app)]
    if not leaves:
        return NOBODY
    if place.written is None:
        return NOTHING
    new = sum(leaf is not None and leaf == place.leaf() for leaf in leaves)
    silent = sum(leaf is None for leaf in leaves)
    if new == len(leaves):
        return ALL
    words = [f"{silent} cannot be asked"] if silent else []
    other = len(leaves) - new - silent
    words += [f"{other} serves another leaf" if other == 1 else f"{other} serve another leaf"] if other else []
    return f"of {len(leaves)} {_plural(len(leaves))}, " + ", ".join(words)


def _plural(count: int) -> str:
    return "pod" if count == 1 else "pods"
