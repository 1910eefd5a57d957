"""hack/bench: what certroll costs, beside the least that any program must do."""

from __future__ import annotations

import argparse
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from types import FrameType

from . import bench_handshakes, bench_large, bench_report, bench_run, bench_waiting, bench_world, cluster as clusters, commands, paths, ui
from .bench_run import Figures, Plan
from .layout import Cluster
from .ui import DevError

_NAME = "certroll-bench"
_DESCRIPTION = """\
Measures certroll against a floor: a bare watch and one PATCH per change, over one connection, in C with libcurl. Both run
by turns against a real API server with 10,000 TLS Secrets and 500 Deployments without replicas, a policy each, limits
off; as a service account with the rights that are installed. Printed are latency, a burst of all policies at once,
memory, CPU, bytes from the API server, and the time from start to in sync.

Needs root, and some ten minutes on a machine that does nothing else: other work shows in every figure.

--waiting goes on with 500 policies whose restarts a PodDisruptionBudget holds: CPU once they have waited for ten
minutes; twenty minutes more.

--large goes on from there: the namespace is filled up to 100,000 Secrets, most of which nobody refers to, and peak memory
compared; then come 5,000 Secrets, Deployments and policies in a namespace of their own, with 20,000 pods on nodes of kwok: time
until all are at rest, memory, CPU with nothing to do, 500 changes at once. Half an hour more, on a machine that does nothing else. With --only-large nothing
else is measured."""
_STANDARD = Plan(secrets=10_000, policies=500, pairs=5, changes=100, pause_ms=50, idle_s=60.0)
_QUICK = Plan(secrets=300, policies=20, pairs=1, changes=10, pause_ms=20, idle_s=2.0)
_DOCS = paths.REPOSITORY / "docs" / "benchmarks"


def run(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    ui.be_quiet(options.quiet)
    if options.handshakes:
        return _handshakes(options)
    if os.geteuid() != 0:
        raise DevError("a network namespace and cgroups are set up, which takes root: sudo hack/bench")
    # `kill` is answered as Ctrl-C is: with a clean-up.
    signal.signal(signal.SIGTERM, _interrupt)
    figures = json.loads(options.render.read_text()) if options.render else _measure(options)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.write_docs:
        _write_docs(figures)
    print(bench_report.text(figures))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("hack/bench", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default=_NAME, help="name of the cluster (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the cluster; hack/cluster --name NAME down takes it away")
    parser.add_argument("--pairs", type=_positive, metavar="N", help="turns of each program (default: 5)")
    parser.add_argument("--secrets", type=_positive, metavar="N", help="TLS Secrets in all (default: 10000)")
    parser.add_argument("--policies", type=_positive, metavar="N", help="of them with a Deployment and a policy (default: 500)")
    parser.add_argument("--changes", type=_positive, metavar="N", help="changes one at a time, per turn (default: 100)")
    parser.add_argument("--no-large-secret", action="store_true", help="without the Secret of 1 MB")
    parser.add_argument("--quick", action="store_true", help="few of everything: to see that it runs, not for figures")
    parser.add_argument("--waiting", action="store_true", help="also 500 policies that wait for a budget: see above")
    parser.add_argument("--large", action="store_true", help="also 100,000 Secrets, then 5,000 policies with 20,000 pods: see above")
    parser.add_argument("--only-large", action="store_true", help="nothing but what --large adds")
    parser.add_argument("--handshakes", action="store_true", help="nothing but what reloads cost a handshake; no cluster, no root")
    parser.add_argument("--build", type=Path, metavar="DIR", help="take the programs of this build folder, and build none")
    parser.add_argument("--program", type=Path, metavar="FILE", help="measure this certroll-operator")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured, each change included")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing; print what an earlier --json wrote")
    parser.add_argument("--write-docs", action="store_true", help="write tables and plot of docs/benchmarks, of what was measured")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _handshakes(options: argparse.Namespace) -> int:
    if options.render:
        figures = json.loads(options.render.read_text())
    else:
        program = (options.build or _built()) / "bin" / "bench-handshakes"
        figures = bench_handshakes.measure(program, *((1, 2) if options.quick else (options.pairs or 9, 10)))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    table = bench_handshakes.text(figures)
    if options.write_docs:
        page = _DOCS / "README.md"
        page.write_text(_replaced(page.read_text(), "handshakes", table))
    print(table)
    return 0


def _measure(options: argparse.Namespace) -> Figures:
    build = options.build or _built()
    program = options.program or build / "bin" / "certroll-operator"
    plan = _plan(options)
    cluster = Cluster(options.name)
    if cluster.spec():
        raise DevError(f"there is a cluster {cluster.name}: hack/cluster --name {cluster.name} down, or give --name")
    try:
        world = bench_world.up(options.name, build / "bin")
        figures = bench_run.prepare(world, program, plan)
        if not options.only_large:
            bench_run.run(world, program, plan, figures)
        if options.large or options.only_large:
            bench_large.run(world, program, plan, bench_large.QUICK if options.quick else bench_large.STANDARD, figures)
        if options.waiting and not options.only_large:  # last: it leaves policies behind that go on to wait
            bench_waiting.run(world, program, bench_waiting.QUICK if options.quick else bench_waiting.STANDARD, figures)
    finally:
        if not options.keep:
            clusters.down(cluster)
    return figures


def _plan(options: argparse.Namespace) -> Plan:
    plan = _QUICK if options.quick else _STANDARD
    given = {name: getattr(options, name) for name in ("pairs", "secrets", "policies", "changes")}
    plan = replace(plan, **{name: value for name, value in given.items() if value is not None})
    if options.no_large_secret:
        plan = replace(plan, large=False)
    if plan.policies > plan.secrets:
        raise DevError(f"{plan.policies} policies need as many Secrets: --secrets {plan.policies}")
    return plan


def _built() -> Path:
    commands.show([paths.HACK / "build", "--preset", "release", "certroll-operator", "bench"])
    return paths.REPOSITORY / "build" / "release"


def _write_docs(figures: Figures) -> None:
    _DOCS.mkdir(parents=True, exist_ok=True)
    page = _DOCS / "README.md"
    text = page.read_text()
    if figures["pairs"]:
        text = _replaced(text, "measured", bench_report.markdown(figures))
        (_DOCS / "bench.svg").write_text(bench_report.svg(figures))
    if "scale" in figures:
        text = _replaced(text, "scale", bench_report.markdown_of_scale(figures))
    page.write_text(text)


def _replaced(page: str, part: str, text: str) -> str:
    """The page with another text from <!-- part --> to the next <!-- end -->."""
    head, begin, rest = page.partition(f"<!-- {part} -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    if not end:
        raise DevError(f"{_DOCS}/README.md has no place for {part}: a line <!-- {part} --> and, below, one <!-- end -->")
    return f"{head}{begin}{text}{end}{tail}"


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
