"""hack/bench --waiting: what policies cost whose restarts wait for a PodDisruptionBudget."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from . import bench_client, bench_run, bench_world
from .bench_client import Client
from .bench_run import Figures
from .bench_world import World
from .ui import DevError, Step

_NAMESPACE = "bench-waiting"
_WAIT_WITHIN = 300.0  # seconds; at first what may still be in a kubelet's cache is waited for, a minute and a half
_BLOCKED = re.compile(rf'^certroll_consumers_blocked{{namespace="{_NAMESPACE}",.*reason="BudgetWait"}} (\S+)$', re.MULTILINE)


@dataclass(frozen=True)
class Size:
    """How many wait, and for how long."""

    policies: int
    replicas: int  # of each Deployment; of 4 a rollout takes one away by default, of 3 none
    before_s: float  # from when all wait until looks are as rare as they get (pkg/policy/rules/look_again.h)
    over_s: float  # from one to the next


STANDARD = Size(policies=500, replicas=4, before_s=630.0, over_s=600.0)
QUICK = Size(policies=20, replicas=4, before_s=10.0, over_s=2.0)


def run(world: World, program: Path, size: Size, figures: Figures) -> None:
    """Adds to the figures. The namespace stays."""
    world = replace(world, namespace=_NAMESPACE)
    _fill(world, size)
    with bench_client.certroll(world, program) as client, Step(f"{size.policies} policies that wait for a budget") as step:
        client.wait_in_sync()
        bench_run.drive(world, "rest", str(size.policies))
        bench_run.drive(world, "change", str(size.policies))
        _wait_until_all_wait(world, client, size)
        step.note(f"for {size.before_s:g} s")
        time.sleep(size.before_s)
        step.note(f"and another {size.over_s:g} s")
        cpu = bench_client.cpu_over(client, size.over_s)
        _check(world, client, size)
    figures["waiting"] = {"policies": size.policies, "over_s": size.over_s, "cpu": cpu}


def _fill(world: World, size: Size) -> None:
    """What controllers would have made is made here: they do not run. All pods are Ready, and no budget lets one go."""
    replicas, pods = str(size.replicas), size.policies * size.replicas
    with Step(f"{size.policies} Secrets, Deployments, budgets and policies, {pods:,} pods"):
        world.make_namespace()
        world.fill("secrets", 0, size.policies)
        world.fill("deployments", 0, size.policies, replicas)
        world.fill("replicasets", 0, size.policies, replicas)
        world.fill("pods", 0, pods, replicas, "1")
        world.fill("podstatuses", 0, pods, replicas)
        world.fill("statuses", 0, size.policies, replicas)
        world.fill("budgets", 0, size.policies, replicas)
        world.fill("budgetstatuses", 0, size.policies, replicas)
        world.fill("policies", 0, size.policies)


def _wait_until_all_wait(world: World, client: Client, size: Size) -> None:
    deadline = time.monotonic() + _WAIT_WITHIN
    while time.monotonic() < deadline:
        if _waiting(world, client) == size.policies:
            return
        time.sleep(1.0)
    _check(world, client, size)


def _check(world: World, client: Client, size: Size) -> None:
    waiting = _waiting(world, client)
    if waiting != size.policies:
        raise DevError(f"{waiting:g} of {size.policies} policies wait for a budget")


def _waiting(world: World, client: Client) -> float:
    return sum(float(count) for count in _BLOCKED.findall(bench_run.metrics_of(world, client)))
