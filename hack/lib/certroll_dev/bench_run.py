"""What is measured: the floor and certroll by turns, then what only certroll is asked."""

from __future__ import annotations

import json
import math
import platform
import re
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import bench_client, bench_world, commands, namespaces
from .bench_client import Client
from .bench_world import World
from .ui import DevError, Step

Figures = dict[str, Any]
_BURST = 900.0  # seconds, on a busy machine
_REST = 3.0  # seconds in which nothing is asked but for the Lease; for the API server and etcd to come to rest, too
_REST_WITHIN = 120.0
_EVENT_TO_PATCH = "certroll_watch_to_write_seconds"
_OWN_COST = {
    "restarts": ("count", 'resource="deployments"'),
    "sum_s": ("sum", 'resource="deployments"'),
    "within_1ms": ("bucket", 'resource="deployments",le="0.001"'),
}


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    secrets: int
    policies: int
    pairs: int
    changes: int  # one at a time, per turn
    pause_ms: int  # between them
    idle_s: float
    large: bool = True  # one Secret of 1 MB among them


def prepare(world: World, program: Path, plan: Plan) -> Figures:
    """All is there, and every policy has been seen; figures without a pair."""
    bench_world.fill(world, plan.secrets, plan.policies, plan.large)
    _settle(world, program, plan)
    return {"machine": machine(), "plan": vars(plan), "versions": bench_world.versions(), "pairs": []}


def run(world: World, program: Path, plan: Plan, figures: Figures) -> None:
    """Adds all pairs to what `prepare` has begun, and what only certroll is asked, as plain values."""
    for number in range(1, plan.pairs + 1):
        with Step(f"pair {number} of {plan.pairs}") as step:
            step.note("floor")
            floor = _turn(world, plan, lambda: bench_client.floor(world, plan.policies), None)
            step.note("certroll")
            certroll = _turn(world, plan, lambda: bench_client.certroll(world, program), program)
            figures["pairs"].append({"floor": floor, "certroll": certroll})
    figures["idle"] = {
        "floor": _idle(lambda: bench_client.floor(world, plan.policies), plan),
        "certroll": _idle(lambda: bench_client.certroll(world, program), plan),
    }
    if plan.large:
        with Step("once more, without the large Secret"):
            bench_world.shrink_large(world)
            _settle(world, program, plan)
            figures["without_large"] = _turn(world, plan, lambda: bench_client.certroll(world, program), program)


def _turn(world: World, plan: Plan, start: Callable[[], Client], program: Path | None) -> Figures:
    """One process from its start to its end; `program` when it is certroll, of whom statuses are awaited."""
    policies = str(plan.policies)
    with start() as client:
        figures: Figures = {"in_sync_s": client.wait_in_sync()}
        figures["received_in_sync"] = client.use().received
        _rest(world, client, plan, bool(program))  # also from what changed while the floor had its turn
        figures["memory_in_sync"] = bench_client.as_dict(client.memory())
        cost = _own_cost(world, client) if program else None
        figures["latency"] = drive(world, "latency", policies, str(plan.changes), str(plan.pause_ms))
        if cost:
            figures["event_to_patch"] = _difference(cost, _own_cost(world, client))
        _rest(world, client, plan, bool(program))
        before = client.use()
        figures["burst"] = drive(world, "burst-status" if program else "burst", policies)
        after = client.use()
        figures["burst"] |= {"cpu_s": (after.cpu_ns - before.cpu_ns) / 1e9, "received": after.received - before.received}
        figures["memory"] = bench_client.as_dict(client.memory())
        if program:
            drive(world, "settle", policies)
    return figures


def _rest(world: World, client: Client, plan: Plan, certroll: bool) -> None:
    """Waits until nothing is under way that would be measured with what comes: statuses of what changed before, and Events,
    which certroll sends last. The floor rests as long, at least."""
    if not certroll:
        time.sleep(_REST)
        return
    drive(world, "settle", str(plan.policies))
    deadline = time.monotonic() + _REST_WITHIN
    before, now = -math.inf, _requests(world, client)
    while now - before > 1:  # the Lease's
        if time.monotonic() > deadline:
            raise DevError(f"certroll has not come to rest within {_REST_WITHIN:g} s")
        time.sleep(_REST)
        before, now = now, _requests(world, client)


def _requests(world: World, client: Client) -> float:
    """How many requests it has made."""
    text = metrics_of(world, client)
    return sum(float(count) for count in re.findall(r"^rest_client_requests_total{[^}]*} (\S+)$", text, re.MULTILINE))


def _settle(world: World, program: Path, plan: Plan) -> None:
    """Every policy knows its Secret and has nothing to do."""
    with Step("first sight of all policies"), bench_client.certroll(world, program) as client:
        client.wait_in_sync()
        drive(world, "settle", str(plan.policies))


def _idle(start: Callable[[], Client], plan: Plan) -> Figures:
    """A process that has nothing to do, from its start on."""
    with start() as client, Step(f"{client.name}, {plan.idle_s:g} s with nothing to do"):
        figures: Figures = {"in_sync_s": client.wait_in_sync()}
        time.sleep(min(5.0, plan.idle_s))  # what a start brings with it is over
        figures["cpu"] = bench_client.cpu_over(client, plan.idle_s)
        figures["memory"] = bench_client.as_dict(client.memory())
    return figures


def _own_cost(world: World, client: Client) -> Figures:
    """certroll's own histogram, from a frame of the watch to the restart patch in libcurl's hands, since its start."""
    text = metrics_of(world, client)
    return {name: _sample(text, *sample) for name, sample in _OWN_COST.items()}


def _sample(text: str, suffix: str, labels: str) -> float:
    """0 before the first restart."""
    match = re.search(rf"^{_EVENT_TO_PATCH}_{suffix}{{{re.escape(labels)}}} (\S+)$", text, re.MULTILINE)
    return float(match[1]) if match else 0.0


def _difference(before: Figures, after: Figures) -> Figures:
    """Of what came in between: how many restarts, the part of them within 1 ms, the mean."""
    restarts, fast, total = (after[name] - before[name] for name in ("restarts", "within_1ms", "sum_s"))
    return {"restarts": restarts, "within_1ms": fast / restarts, "mean_s": total / restarts} if restarts else {}


def metrics_of(world: World, client: Client) -> str:
    """Its page of metrics."""
    return namespaces.in_network(world.cluster.netns_path, lambda: _metrics(client))


def _metrics(client: Client) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{client.port()}/metrics", timeout=10) as response:
        text: str = response.read().decode()
        return text


def drive(world: World, what: str, *words: str) -> Figures:
    """Run bench-driver; what it printed."""
    argv = world.inside([world.bin / "bench-driver", what, world.namespace, *words])
    out = commands.run(argv, env=world.as_administrator(), timeout=_BURST)
    try:
        figures: Figures = json.loads(out)
    except json.JSONDecodeError as error:
        raise DevError(f"bench-driver {what} printed no JSON: {out[:200]!r}") from error
    return figures


def machine() -> Figures:
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "cores": bench_client.cores(),
        "cpu": model[1] if model else platform.machine(),
        "kernel": platform.release(),
        "load": Path("/proc/loadavg").read_text().split()[0],
    }
