"""hack/demo: certroll at work on a real cluster, from nothing to a verdict."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from certroll_dev import commands, operator_image, paths, tools, ui
from certroll_dev.demo import component_images
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.component_images import Image
from certroll_dev.demo.logs import collect
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.processes import end_left_over
from certroll_dev.demo.show import Show, heading, shortened
from certroll_dev.install import Operator
from certroll_dev.ui import DevError, Step

_NAME = "certroll-demo"
_DESCRIPTION = """\
Shows certroll at its job, on a real Kubernetes cluster that this command sets up on this machine: Envoy in front of its
Rate Limit service, and nginx, are called all the time; their certificates are renewed, then their CA is changed. What
certroll decides for each of them and why, which pods were restarted, and which calls failed, is printed as it happens.
At last the CA is changed once more, trust first, and no call fails.

Needs root on Debian 12. The first run builds Kubernetes from source and keeps it in the cache: count on ten minutes;
later runs take about two."""


@dataclass(frozen=True)
class Options:
    name: str
    keep: bool
    rate: float
    logs: Path
    program: Path | None
    ipv6: bool


def main() -> None:
    ui.main(_main)


def _main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("hack/demo", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default=_NAME, help="name of the cluster (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave cluster and operator running when the demo is over")
    parser.add_argument(
        "--rotate", choices=("leaves", "ca"), help="make one more change in what a run with --keep left running, and watch it"
    )
    parser.add_argument("--down", action="store_true", help="end what a run with --keep left running, and do nothing else")
    parser.add_argument("--rate", type=float, default=20.0, help="calls a second to each of Envoy and nginx (default: %(default)s)")
    parser.add_argument("--logs", type=Path, help="folder for logs (default: build/demo/NAME)")
    parser.add_argument("--program", type=Path, metavar="FILE", help="take this certroll-operator, and build none")
    parser.add_argument("--ipv6", action="store_true", help="on a cluster whose addresses are IPv6 alone (default: IPv4 alone)")
    parsed = parser.parse_args(arguments)
    if parsed.rate <= 0:
        parser.error("--rate must be above 0: without calls there is nothing to lose")
    logs = (parsed.logs or paths.REPOSITORY / "build" / "demo" / parsed.name).absolute()
    options = Options(parsed.name, parsed.keep, parsed.rate, logs, parsed.program, parsed.ipv6)
    if os.geteuid() != 0:
        raise DevError("namespaces and cgroups are set up, which takes root: sudo hack/demo")
    # `kill` is answered as Ctrl-C is: with a clean-up.
    signal.signal(signal.SIGTERM, _interrupt)
    if parsed.down:
        _end_earlier_run(options)
        return 0
    return _rotate(options, parsed.rotate) if parsed.rotate else _demo(options)


def _demo(options: Options) -> int:
    heading("1. Programs and images")
    commands.show([paths.HACK / "deps"])
    program = options.program or operator_image.built("release")
    operator = operator_image.cached("release", program)
    images = _build_images()
    _end_earlier_run(options)
    options.logs.mkdir(parents=True)
    cluster = LocalCluster(options.name)
    with _taken_down(cluster, options):
        heading("2. The cluster")
        cluster.up(*(["--ipv6"] if options.ipv6 else []))
        _load_images(cluster, images)
        with cluster.network():
            installed = Operator(cluster.layout, operator, namespaces=[NAMESPACE], components=["trust-domains"])
            passed = _judged(cluster, options, lambda show: show.run(images, installed))
    if passed:
        print("\nEverything was seen that should have been.")
        _say_what_next(cluster, options)
    return 0 if passed else 1


def _rotate(options: Options, what: str) -> int:
    cluster = LocalCluster(options.name)
    if not (cluster.exists() and (options.logs / "pki").exists()):
        raise DevError(f"no demo of the name {options.name} is running: start one with hack/demo --keep")
    with cluster.network():
        return 0 if _judged(cluster, options, lambda show: show.again(what)) else 1


def _judged(cluster: LocalCluster, options: Options, run: Callable[[Show], bool]) -> bool:
    """Run it, and keep the logs of a run that went wrong before the cluster is taken down."""
    api = cluster.api()
    error: DevError | None = None
    passed = False
    try:
        passed = run(Show(cluster, api, options.logs, options.rate))
    except DevError as raised:
        error = raised
    if not passed:
        with Step("collecting logs"):
            collect(cluster, api, options.logs)
        said = f"{error}\n" if error else "not what was expected: see the lines marked ✗. "
        raise DevError(f"{said}The logs are in {shortened(options.logs)}")
    return passed


@contextlib.contextmanager
def _taken_down(cluster: LocalCluster, options: Options) -> Iterator[None]:
    try:
        yield
    finally:
        if not options.keep:
            # A second Ctrl-C would leave half of a cluster behind.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            heading("Cleaning up")
            cluster.down()


def _build_images() -> list[Image]:
    programs = tools.ensure(["ratelimit"])
    images = []
    with Step("images of Envoy, Rate Limit, Redis and nginx") as step:
        for image in component_images.build_all(programs["ratelimit"]):
            step.note(f"{image.reference} is ready")
            images.append(image)
    return images


def _load_images(cluster: LocalCluster, images: list[Image]) -> None:
    with Step("loading images into the node") as step:
        for image in images:
            step.note(image.reference)
            cluster.load_image(image.archive)


def _end_earlier_run(options: Options) -> None:
    """A run with --keep, or one that was killed, left a load generator and a cluster."""
    for file in options.logs.glob("*.pid"):
        if end_left_over(file):
            ui.say(f"ended the {file.stem} that an earlier run left")
    shutil.rmtree(options.logs, ignore_errors=True)
    cluster = LocalCluster(options.name)
    if cluster.exists():
        cluster.down()


def _say_what_next(cluster: LocalCluster, options: Options) -> None:
    heading("What to try next")
    name = f" --name {options.name}"
    demo = "" if options.name == _NAME else name
    kubectl = f"hack/cluster{name} kubectl -n certroll-demo"
    if not options.keep:
        print(
            "  hack/demo --keep                  the same, and leaves cluster and operator running for you\n"
            "  hack/test                         the tests: unit, integration, end to end\n"
            "  less docs/design.md               how it decides"
        )
        return
    print(
        f"  # The policy in one line; what was decided, why, and the last rotations:\n"
        f"  {kubectl} get crp\n"
        f"  {kubectl} describe crp demo\n"
        f"  {kubectl} get td demo\n"
        f"  # One more renewal, or one more CA:\n"
        f"  hack/demo{demo} --rotate leaves\n"
        f"  hack/demo{demo} --rotate ca\n"
        f"  # A key that is none: said in the domain's conditions, and nothing is published:\n"
        f"  {kubectl} patch secret envoy-issued -p '{{\"data\": {{\"tls.key\": \"bm8ga2V5\"}}}}'\n"
        f"  # What the operator does; a shell from which Pods and Services can be reached; the end of it all:\n"
        f"  hack/cluster{name} kubectl -n certroll-system logs -f -l app.kubernetes.io/name=certroll\n"
        f"  hack/cluster{name} shell\n"
        f"  hack/demo{demo} --down"
    )


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
