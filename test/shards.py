"""The modules in parts that take about the same time, for runs side by side on a cluster each (hack/test)."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass

# Seconds of the long ones, as once measured; they need not be right, since they only say who runs beside whom.
_SECONDS = {
    "test_control_plane_rotation": 400,
    "test_mesh": 480,
    "test_control_plane_rows": 540,
    "test_crash_matrix": 390,
    "test_shutdown_manager": 270,
    "test_ca_change": 260,
    "test_budgets": 235,
    "test_trouble": 235,
    "test_bad_material": 215,
    "test_install": 205,
    "test_leaf_renewal": 195,
    "test_local_cluster": 185,
    "test_policy": 165,
    "test_withdrawn": 160,
    "test_reloader_examples": 150,
    "test_leader": 145,
    "test_kinds": 135,
    "test_control_plane_cluster": 115,
}
_USUAL = 50


@dataclass(frozen=True)
class Shard:
    number: int
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Of "1/2"."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
            raise argparse.ArgumentTypeError(f"'{text}' is no part of a whole, such as 1/2")
        return Shard(int(number), int(count))

    def modules(self, all_modules: Collection[str]) -> set[str]:
        """Those of this part. Each module is in one, whatever it is called: the longest first, where there is least so far."""
        parts: list[list[str]] = [[] for _ in range(self.count)]
        for module in sorted(all_modules, key=lambda name: (-_seconds(name), name)):
            min(parts, key=lambda part: sum(map(_seconds, part))).append(module)
        return set(parts[self.number - 1])


def _seconds(module: str) -> int:
    return _SECONDS.get(module, _USUAL)
