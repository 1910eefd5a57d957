"""The modules in parts that take about the same time, for runs side by side on a cluster each (hack/test)."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass

# Seconds of the long ones in the gate, as once measured; they need not be right, since they only say who runs beside whom.
_SECONDS = {
    # integration
    "test_node_agent": 190,
    "test_control_plane_policy": 145,
    "test_domains": 115,
    "test_crash_points": 170,
    "test_certgen": 100,
    "test_client": 100,
    "test_credentials": 65,
    "test_faults": 60,
    "test_certgen_programs": 60,
    "test_breaker": 55,
    "test_leader_election": 65,
    "test_domain_crashes": 75,
    "test_probe": 45,
    # e2e
    "test_install": 265,
    "test_local_cluster": 185,
    "test_shutdown_manager": 150,
    "test_leader": 145,
    "test_policy": 135,
    "test_mesh": 115,
    "test_control_plane_cluster": 115,
    "test_budgets": 85,
    "test_control_plane_rows": 85,
    "test_leaf_renewal": 80,
    "test_kinds": 80,
    "test_middle": 75,
    "test_sidecar_examples": 70,
    "test_trouble": 70,
    "test_ca_change": 50,
    "test_discover": 50,
    "test_control_plane_rights": 45,
    "test_withdrawn": 40,
    "test_bad_material": 40,
    "test_shutdown_examples": 40,
    "test_pages": 35,
    "test_material": 35,
    "test_trust_rights": 30,
    "test_metrics_tls": 25,
    "test_usages": 25,
    "test_verify": 20,
}
# Where `hack/test all` has more of a module than the gate, or all of it.
_SECONDS_OF_ALL = {
    # integration
    "test_bundle_game": 500,
    "test_bundle_bettertls": 120,
    "test_situations": 690,
    "test_hostile_namespace": 660,
    "test_alerts": 610,
    "test_storm": 390,
    "test_gitops": 250,
    "test_evictions": 220,
    "test_faults": 200,
    "test_control_plane_crashes": 170,
    "test_tlsreload_storm": 160,
    "test_restart_storm": 130,
    "test_sidecar_evidence": 130,
    "test_alerts_own": 120,
    # e2e
    "test_control_plane_rotation": 1900,
    "test_release_image": 2400,
    "test_ml_dsa": 120,
    "test_mesh": 1300,
    "test_cross_signed": 600,
    "test_kubernetes_versions": 300,
    "test_ipv6": 160,
    "test_control_plane_rows": 480,
    "test_crash_matrix": 390,
    "test_flapping": 320,
    "test_budgets": 200,
    "test_chart": 190,
    "test_chart_life": 200,
}
_USUAL = 12


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

    def modules(self, all_modules: Collection[str], everything: bool) -> set[str]:
        """Those of this part. Each module is in one, whatever it is called: the longest first, where there is least so far."""
        seconds = {name: _seconds(name, everything) for name in all_modules}
        parts: list[list[str]] = [[] for _ in range(self.count)]
        for module in sorted(all_modules, key=lambda name: (-seconds[name], name)):
            min(parts, key=lambda part: sum(seconds[name] for name in part)).append(module)
        return set(parts[self.number - 1])


def _seconds(module: str, everything: bool) -> int:
    usual = _SECONDS.get(module, _USUAL)
    return _SECONDS_OF_ALL.get(module, usual) if everything else usual
