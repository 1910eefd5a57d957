"""Secrets that cost who reads them."""

from __future__ import annotations

import base64
import secrets as dice
from collections.abc import Sequence
from pathlib import Path

from rotations import Lane

from .material import bundle, crossed, encoded
from .tenant import Object, Tenant, Way, names

_EXPENSIVE, _KEYS, _STUCK, _FANS, _CROWD = 12, 12_000, 60, 60, 400
_LARGE = 700_000  # bytes; base64 makes them a third more, and etcd takes 1.5 MiB
_TYPES = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"), "Opaque": ("tls.crt",), "kubernetes.io/basic-auth": ("username",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",), "helm.sh/release.v1": ("release",), "bootstrap.kubernetes.io/token": ("token-id",),
    "example.com/any": ("tls.crt",),
}  # fmt: skip


class Secrets:
    def __init__(self, tenant: Tenant, good: Sequence[Object], folder: Path) -> None:
        self._tenant, self._good = tenant, good
        self._crossed = crossed(folder / "crossed")
        self._crowd = bundle(folder / "crowd", _CROWD)
        self._types = list(_TYPES.items())

    def prepare(self) -> None:
        for name in names("expensive", _EXPENSIVE):
            self._tenant.secret(name, self._crossed)
            self._tenant.watch(name, name)
        self._tenant.secret("wide", {f"k{number}": "" for number in range(_KEYS)}, "Opaque")
        self._tenant.watch("wide", "wide")
        for name in ("large", "crowd", "changeling"):
            self._tenant.watch(name, name)
        for name in names("stuck", _STUCK):
            Lane(self._tenant.api, self._tenant.namespace, name, list(self._good)).create()
        self._tenant.secret("fan", self._good[0])
        for name in names("fan", _FANS):
            self._tenant.watch(name, "fan")

    def ways(self) -> list[Way]:
        return [
            Way(self.dear_chains), Way(self.good_and_dear_in_turn), Way(self.many_keys, 5), Way(self.a_megabyte, 2), Way(self.a_crowd_of_CAs, 1),
            Way(self.rollouts_without_end), Way(self.one_Secret_of_many_policies, 0.5), Way(self.another_type_each_time),
        ]  # fmt: skip

    def dear_chains(self, turn: int) -> None:
        """Each version has its chains built and verified anew, with a hundred signatures of P-521."""
        name = f"expensive-{turn % _EXPENSIVE}"
        self._tenant.merge("secrets", name, {"data": encoded({"extra": str(turn).encode()})})

    def good_and_dear_in_turn(self, turn: int) -> None:
        """A problem that comes and goes has the policy's status written each time."""
        self._tenant.merge("secrets", "expensive-0", {"data": (self._good[0], self._crossed)[turn % 2]})

    def many_keys(self, turn: int) -> None:
        """A reader that looks for each key among all others takes seconds."""
        self._tenant.touch("secrets", "wide")

    def a_megabyte(self, turn: int) -> None:
        """Material that waits to be read is held in memory, and is hashed when it is."""
        self._tenant.secret("large", encoded({"tls.crt": b"", "tls.key": b"", "noise": dice.token_bytes(_LARGE)}))

    def a_crowd_of_CAs(self, turn: int) -> None:
        """A bundle in another order is other bytes; each certificate is decoded to see that it is the same set."""
        self._tenant.dice.shuffle(self._crowd)
        good = {key: base64.b64decode(value) for key, value in self._good[turn % len(self._good)].items()}
        self._tenant.secret("crowd", encoded(good | {"ca.crt": b"".join(self._crowd)}))

    def rollouts_without_end(self, turn: int) -> None:
        """Nobody makes these pods ready: each restart would keep its place for ever."""
        name = f"stuck-{turn % _STUCK}"
        self._tenant.merge("secrets", name, {"data": self._good[turn % len(self._good)]})

    def one_Secret_of_many_policies(self, turn: int) -> None:
        """One write, and dozens of policies have to be reconciled."""
        self._tenant.merge("secrets", "fan", {"data": self._good[turn % len(self._good)]})

    def another_type_each_time(self, turn: int) -> None:
        """A Secret's type cannot be changed, so it is deleted and made anew: it leaves one watch and comes by another."""
        kind, keys = self._types[turn % len(self._types)]
        self._tenant.delete("secrets", "changeling")
        self._tenant.secret("changeling", {key: self._good[0]["tls.crt"] for key in keys}, kind)
