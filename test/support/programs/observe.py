"""When a program takes up new files, seen by handshakes, and whether that is what the catalogue says.

One observation: the program runs with one generation of material; the next is written as a kubelet would; then each of
its roles is looked at until it shows the new generation or the time is up. What was not taken up by itself is tried with
the triggers that the catalogue names, and in the end with a restart.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalogue import Answer
from programs.material import Generations
from programs.peer import Peer
from programs.program import SECRET, Program
from programs.sandbox import Sandbox

CLASSES = {"leaf": frozenset({"serverLeaf", "clientLeaf"}), "trust": frozenset({"clientCA", "serverCA"})}

BY_ITSELF = frozenset({"Watch", "PerHandshake", "Poll", "ApiWatch"})
_BY_TRIGGER = frozenset({"Signal", "HTTP", "Command"})
# What the program answers is seen at once; for what it calls it must be made to call.
_QUICKEST_FIRST = ("serverLeaf", "clientCA", "clientLeaf", "serverCA")
_START = 60.0
_WINDOW = 10.0  # in which nothing may show without a reason; the polls of these programs are shorter
_SLACK = 5.0  # of a busy machine
_TRIGGERED = 10.0  # after a trigger


@dataclass
class Seen:
    """Of one role, seconds until the new generation was in use; None: it was not."""

    by_itself: float | None = None
    triggered: dict[str, float | None] = field(default_factory=dict)
    restarted: float | None = None


Entry = Mapping[str, Any]  # of one role, what is said: method, maxDelayMs, trigger, verified
Observation = dict[str, Seen]  # by role


def observe(program: Program, answers: Mapping[str, Answer], generations: Generations, folder: Path) -> Observation:
    """`answers` say which triggers are to be tried, and how long the native reload may take."""
    said = _said(answers, program)
    peer = Peer(generations, program.peer_port) if program.peer_port else None
    try:
        with program.running(folder, generations[1].secret()) as sandbox:
            look = _Look(program, generations, sandbox, peer)
            _wait_works(look)
            return _observe(look, _triggers(said), _longest_delay(said))
    finally:
        if peer:
            peer.close()


def _wait_works(look: _Look) -> None:
    found = look.until_at(1, set(look.program.roles), _START)
    missing = sorted(look.program.roles - found.keys())
    if missing:
        raise AssertionError(f"{look.program.name} does not work as {', '.join(missing)}; its log says:\n{look.sandbox.log_tail()}")


def _observe(look: _Look, triggers: list[str], longest_delay: float) -> Observation:
    seen = {role: Seen() for role in look.program.roles}
    number = 2
    look.write(number)
    for role, seconds in look.until_at(number, set(seen), max(_WINDOW, longest_delay + _SLACK)).items():
        seen[role].by_itself = seconds
    passive = {role for role in seen if seen[role].by_itself is None}
    for trigger in triggers:
        number += 1
        look.write(number)
        look.pull(trigger)
        found = look.until_at(number, passive, _TRIGGERED)
        for role in passive:
            seen[role].triggered[trigger] = found.get(role)
    number += 1
    look.write(number)
    look.sandbox.restart()
    for role, seconds in look.until_at(number, set(seen), _START).items():
        seen[role].restarted = seconds
    return seen


class _Look:
    """What is in use at the moment."""

    def __init__(self, program: Program, generations: Generations, sandbox: Sandbox, peer: Peer | None) -> None:
        self.program, self.sandbox = program, sandbox
        self._generations, self._peer = generations, peer

    def write(self, number: int) -> None:
        self.sandbox.write_secret(SECRET, self._generations[number].secret())

    def pull(self, trigger: str) -> None:
        """Just what the catalogue says."""
        if trigger.startswith("SIG"):
            self.sandbox.signal(trigger)
        elif self.program.commands:
            self.program.commands(self.sandbox, trigger)
        else:
            raise AssertionError(f"{self.program.name} takes no commands, but the catalogue says {trigger!r}")

    def until_at(self, number: int, roles: set[str], deadline: float) -> dict[str, float]:
        """Seconds until each of the roles was at that generation; those that were not are left out."""
        found: dict[str, float] = {}
        start = time.monotonic()
        while len(found) < len(roles) and time.monotonic() - start < deadline:
            self.sandbox.check()
            for role in (role for role in _QUICKEST_FIRST if role in roles - found.keys()):
                looked = time.monotonic() - start
                if self._is_at(role, number):
                    found[role] = looked
            time.sleep(0.2)
        return found

    def _is_at(self, role: str, number: int) -> bool:
        """Trust is at a generation when it is accepted and the one before is refused."""
        generation, before = self._generations[number], self._generations[number - 1]
        server = self.program.server
        if role == "serverLeaf":
            return server.leaf() == generation.program_leaf
        if role == "clientCA":
            return server.accepts(generation.client) and not server.accepts(before.client)
        if role == "serverCA":
            return self._is_trusted(number) is True and self._is_trusted(number - 1) is False
        if role == "clientLeaf":
            return self._presented(number) == generation.program_leaf
        raise AssertionError(f"no way to see the role {role}")

    def _is_trusted(self, number: int) -> bool | None:
        assert self._peer
        call = self._peer.meet(number, self.program.provoke)
        return call.trusted if call else None

    def _presented(self, newest: int) -> str | None:
        """It presents its leaf only to whom it trusts, and that may be any generation until now."""
        assert self._peer
        for number in range(newest, 0, -1):
            call = self._peer.meet(number, self.program.provoke)
            if call and call.trusted:
                return call.leaf
        return None


# --- what was said, and what was seen ---------------------------------------------------------------------------


def differences(answers: Mapping[str, Answer], observation: Observation) -> list[str]:
    """Sentences, each about one thing in which the program is not as the catalogue says; none: it is.

    `answers` has one for a change of the leaf and one for a change of the trust, by the names of CLASSES.
    """
    found: list[str] = []
    for name, roles in CLASSES.items():
        seen = {role: observation[role] for role in sorted(roles & observation.keys())}
        if seen:
            found += [text for role in seen for text in _role_differs(answers[name], role, seen[role])]
            found += _decision_differs(answers[name], roles, seen)
    return found


def _role_differs(answer: Answer, role: str, seen: Seen) -> list[str]:
    said = [entry for entry in answer["roles"] if entry["role"] == role]
    if not said:
        return [f"{role}: the catalogue does not know that it plays this role"]
    found = [text for entry in said if (text := differs(entry, seen))]
    if seen.restarted is None:
        found.append("not even a restart takes it up")
    return [f"{role}: {text}" for text in dict.fromkeys(found)]


def differs(entry: Entry, seen: Seen, slack: float = _SLACK) -> str | None:
    """How the program was not as it was said to be, in words."""
    method, verified = entry["method"], entry["verified"]
    if not verified or method == "Unknown":
        return f"the catalogue says {method} without having it verified; {_words(seen)}"
    if method in BY_ITSELF:
        limit = entry["maxDelayMs"] / 1000 + slack
        late = seen.by_itself is None or seen.by_itself > limit
        return f"the catalogue says {method} within {entry['maxDelayMs'] / 1000:g} s; {_words(seen)}" if late else None
    if seen.by_itself is not None:
        return f"the catalogue says {method}; {_words(seen)}"
    if method in _BY_TRIGGER and seen.triggered.get(entry.get("trigger", "")) is None:
        return f"the catalogue says {method} by {entry.get('trigger')}; {_words(seen)}"
    return None


def _words(seen: Seen) -> str:
    if seen.by_itself is not None:
        return f"it was taken up by itself in {seen.by_itself:.1f} s"
    pulled = [
        f"{'taken up' if seconds is not None else 'not taken up'} after {trigger}" for trigger, seconds in seen.triggered.items()
    ]
    return ", ".join(["it was not taken up by itself", *pulled])


def _decision_differs(answer: Answer, roles: frozenset[str], observation: Observation) -> list[str]:
    """No restart where everything reloads, and one where something does not."""
    decision = answer["decision"]
    passive = sorted(role for role, seen in observation.items() if seen.by_itself is None)
    if decision == "HotReload" and passive:
        return [f"the decision is HotReload, but these do not reload by themselves: {', '.join(passive)}"]
    unseen = {entry["role"] for entry in answer["roles"]} & roles - observation.keys()
    if decision == "Restart" and not passive and not unseen:
        return ["the decision is Restart, but everything reloads by itself"]
    return [] if decision in ("HotReload", "Restart") else [f"the decision is {decision}, but there is new material"]


def _said(answers: Mapping[str, Answer], program: Program) -> list[Mapping[str, Any]]:
    """About the roles that can be seen."""
    return [entry for answer in answers.values() for entry in answer["roles"] if entry["role"] in program.roles]


def _triggers(said: list[Mapping[str, Any]]) -> list[str]:
    named = (entry.get("trigger") for entry in said if entry["method"] in _BY_TRIGGER)
    return list(dict.fromkeys(trigger for trigger in named if trigger))


def _longest_delay(said: list[Mapping[str, Any]]) -> float:
    return max((entry["maxDelayMs"] / 1000 for entry in said if entry["method"] in BY_ITSELF), default=0.0)
