"""hack/bench --large: that what nobody refers to costs nothing."""

from __future__ import annotations

from pathlib import Path

from . import bench_client, bench_run, bench_world
from .bench_run import Figures, Plan
from .bench_world import World
from .ui import Step

_SECRETS = 100_000


def run(world: World, program: Path, plan: Plan, figures: Figures) -> None:
    """Adds to the figures. The namespace is filled further; nothing of it is put back."""
    before = _peak(world, program, plan)
    with Step(f"{_SECRETS:,} TLS Secrets"):
        world.fill("secrets", plan.secrets, _SECRETS - plan.secrets)
    after = _peak(world, program, plan)
    figures["scaled"] = {"secrets": _SECRETS, "peak_before_kib": before, "peak_kib": after, "difference_kib": after - before}


def _peak(world: World, program: Path, plan: Plan) -> int:
    """After its first list and a burst."""
    with Step("certroll: in sync and a burst"), bench_client.certroll(world, program) as client:
        client.wait_in_sync()
        bench_run.drive(world, "settle", str(plan.policies))
        bench_run.drive(world, "burst-status", str(plan.policies))
        return client.memory().peak
