"""hack/bench --large: that what nobody refers to costs nothing; then what thousands of policies and their pods cost."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from . import bench_client, bench_run, bench_world
from .bench_client import Client
from .bench_run import Figures, Plan
from .bench_world import World
from .kwok import Kwok
from .ui import DevError, Step

_NAMESPACE = "bench-pods"
_QUIET, _QUIET_WITHIN = 0.01, 600.0  # of a core; seconds
_RUNNING_WITHIN = 1800.0  # seconds, on a busy machine


@dataclass(frozen=True)
class Size:
    """How much there is to be."""

    secrets: int  # in the namespace of the benchmark, as many referenced as before
    policies: int  # in a namespace of their own, each with a Secret and a Deployment
    replicas: int  # of each Deployment
    nodes: int
    burst: int  # of these Secrets, changed at once


STANDARD = Size(secrets=100_000, policies=5_000, replicas=4, nodes=20, burst=500)
QUICK = Size(secrets=1_000, policies=50, replicas=4, nodes=2, burst=20)


def run(world: World, program: Path, plan: Plan, size: Size, figures: Figures) -> None:
    """Adds to the figures. The cluster is filled further; nothing of it is put back."""
    figures["scale"] = {
        "measured": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": bench_run.machine(),
        "size": vars(size),
        "secrets": _secrets(world, program, plan, size),
        "pods": _pods(replace(world, namespace=_NAMESPACE), program, plan, size),
    }


# --- many Secrets


def _secrets(world: World, program: Path, plan: Plan, size: Size) -> Figures:
    before = _weigh(world, program, plan)
    with Step(f"{size.secrets:,} TLS Secrets"):
        world.fill("secrets", plan.secrets, size.secrets - plan.secrets)
    return {"before": before, "after": _weigh(world, program, plan)}


def _weigh(world: World, program: Path, plan: Plan) -> Figures:
    """After its first list and a burst."""
    with Step("certroll: in sync and a burst"), bench_client.certroll(world, program) as client:
        in_sync = client.wait_in_sync()
        bench_run.drive(world, "settle", str(plan.policies))
        bench_run.drive(world, "burst-status", str(plan.policies))
        memory = bench_client.as_dict(client.memory())
        bench_run.drive(world, "settle", str(plan.policies))
    return {"in_sync_s": in_sync, "memory": memory}


# --- many policies and pods


def _pods(world: World, program: Path, plan: Plan, size: Size) -> Figures:
    _fill(world, size)
    return {"first": _first_sight(world, program, size), "again": _again(world, program, plan, size)}


def _fill(world: World, size: Size) -> None:
    """What controllers and a scheduler would have made is made here: they do not run."""
    replicas, pods = str(size.replicas), size.policies * size.replicas
    with Step(f"{size.policies:,} Secrets, Deployments, ReplicaSets"):
        world.make_namespace()
        world.fill("secrets", 0, size.policies)
        world.fill("deployments", 0, size.policies, replicas)
        world.fill("replicasets", 0, size.policies, replicas)
    with Step(f"{pods:,} pods on {size.nodes} nodes of kwok"), Kwok(world.cluster, size.nodes) as kwok:
        world.fill("pods", 0, pods, replicas, str(size.nodes))
        kwok.wait_running(world.namespace, _RUNNING_WITHIN)
    with Step(f"{size.policies:,} policies"):
        world.fill("statuses", 0, size.policies, replicas)
        world.fill("policies", 0, size.policies)


def _first_sight(world: World, program: Path, size: Size) -> Figures:
    """No policy has a status: each is looked at, and written once."""
    with Step(f"first sight of {size.policies:,} policies"), bench_client.certroll(world, program) as client:
        begun = time.monotonic()
        in_sync = client.wait_in_sync()
        bench_run.drive(world, "rest", str(size.policies))
        return {"in_sync_s": in_sync, "at_rest_s": time.monotonic() - begun, **_used(client)}


def _again(world: World, program: Path, plan: Plan, size: Size) -> Figures:
    """A start at which nothing is new, a while of nothing, and changes."""
    with Step("once more, at rest, and a burst") as step, bench_client.certroll(world, program) as client:
        begun = time.monotonic()
        figures: Figures = {"in_sync_s": client.wait_in_sync()}
        _wait_quiet(client)
        figures |= {"at_rest_s": time.monotonic() - begun, **_used(client)}
        step.note(f"{plan.idle_s:g} s with nothing to do")
        figures["idle"] = bench_client.cpu_over(client, plan.idle_s)
        step.note(f"{size.burst} changes at once")
        before = client.use().cpu_ns
        figures["burst"] = bench_run.drive(world, "burst-status", str(size.burst))
        figures["burst"] |= {"cpu_s": (client.use().cpu_ns - before) / 1e9, "memory": bench_client.as_dict(client.memory())}
    return figures


def _used(client: Client) -> Figures:
    return {"cpu_s": client.use().cpu_ns / 1e9, "memory": bench_client.as_dict(client.memory())}


def _wait_quiet(client: Client) -> None:
    end = time.monotonic() + _QUIET_WITHIN
    while bench_client.cpu_over(client, 1.0) > _QUIET:
        if time.monotonic() > end:
            raise DevError(f"{client.name} is not at rest within {_QUIET_WITHIN:g} s after its start")
