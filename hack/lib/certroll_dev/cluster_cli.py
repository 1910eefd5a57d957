"""hack/cluster: the command line of the local cluster."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import cluster, control_plane_pods, install, layout, operator_image, ui
from .install import Operator
from .layout import Cluster
from .ui import DevError, Step

_STATUS_EXIT = {"running": 0, "degraded": 3, "stopped": 3, "absent": 4}
_OVERLAY = "cluster-wide"
_DEFAULT_NAME = os.environ.get("CERTROLL_CLUSTER") or layout.DEFAULT_NAME


def run(arguments: list[str]) -> int:
    options = _parser().parse_args(_protect_foreign_words(arguments))
    handler: Callable[[Cluster, argparse.Namespace], int] = options.handler
    return handler(Cluster(options.name), options)


def _protect_foreign_words(arguments: list[str]) -> list[str]:
    """Put `--` before what belongs to kubectl or to the command of exec, whose options are not ours to read."""
    position = _after_name_option(arguments, 0)
    if arguments[position : position + 1] not in (["kubectl"], ["exec"]):
        return arguments
    position = _after_name_option(arguments, position + 1)
    if arguments[position : position + 1] in (["--"], ["-h"], ["--help"]):
        return arguments
    return [*arguments[:position], "--", *arguments[position:]]


def _after_name_option(arguments: list[str], position: int) -> int:
    if arguments[position : position + 1] == ["--name"]:
        return position + 2
    if position < len(arguments) and arguments[position].startswith("--name="):
        return position + 1
    return position


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/cluster",
        description="A real Kubernetes cluster in a network namespace of this machine. See docs/local-cluster.md.",
    )
    _add_name(parser, _DEFAULT_NAME)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, handler: Callable[[Cluster, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        _add_name(sub, argparse.SUPPRESS)  # before the command or after it
        sub.set_defaults(handler=handler)
        return sub

    up = command("up", _up, "start the cluster, or whatever of it does not run")
    size = up.add_mutually_exclusive_group()
    size.add_argument(
        "--nodes", type=_count, metavar="N", help="how many kubelets (default: as many as there are, or 1)"
    )
    size.add_argument("--control-plane-only", action="store_true", help="API server and controllers, no node")
    up.add_argument(
        "--control-plane-nodes", type=int, choices=control_plane_pods.COUNTS, metavar="N",
        help="the control plane as kubeadm has it, static pods of the first N nodes (1 or 3) behind a load balancer",
    )
    up.add_argument(
        "--kubeconfig-files", action="store_true", default=None,
        help="with --control-plane-nodes: kubeconfigs that name files; kubeadm embeds certificates",
    )
    families = up.add_mutually_exclusive_group()
    families.add_argument(
        "--ipv6", dest="ip_families", action="store_const", const=("IPv6",),
        help="addresses of nodes, pods and Services are IPv6 alone (default: IPv4 alone)",
    )
    families.add_argument(
        "--dual-stack", dest="ip_families", action="store_const", const=("IPv4", "IPv6"),
        help="nodes and pods have addresses of both, Services one of IPv4 unless they ask for IPv6",
    )
    up.add_argument("--sync-frequency", metavar="DUR", help="the kubelet's syncFrequency (default: its own)")
    up.add_argument("--assets", type=Path, metavar="DIR", help="take programs from here, then from KUBEBUILDER_ASSETS")
    up.add_argument("--quiet", action="store_true", help="no progress")
    restart = command("restart-kubelet", _restart_kubelet, "restart one node's kubelet, as systemctl would elsewhere")
    restart.add_argument("--node", required=True, metavar="NAME", help="such as node-2")
    restart.add_argument("--quiet", action="store_true", help="no progress")
    down = command("down", _down, "take the cluster away with all it has left on this machine")
    down.add_argument("--all", action="store_true", help="every cluster of this machine")
    down.add_argument("--quiet", action="store_true", help="no progress")
    status = command(
        "status", _status, "what runs; exit 0 when all does, 3 when some of it, 4 when there is no cluster"
    )
    status.add_argument("--json", action="store_true", help="names, paths, addresses and pids, for programs")
    kubeconfig = command("kubeconfig", _kubeconfig, "print the path of the administrator's kubeconfig")
    kubeconfig.add_argument("--raw", action="store_true", help="print its content")
    command("logs-dir", _logs_dir, "print the folder with the logs of all components")
    load = command("load-image", _load_image, "import Docker or OCI archives into every node")
    load.add_argument("files", metavar="FILE", nargs="+", type=Path)
    load.add_argument("--quiet", action="store_true", help="no progress")
    _add_install(command("install", _install, "build the operator's image and install it by the manifests"))
    command("uninstall", _uninstall, "take the operator away; policies stay, and the namespace with what was put there")
    for name, handler, text in (
        ("kubectl", _kubectl, "run kubectl as the administrator"),
        ("exec", _exec, "run a command in the cluster's network, with KUBECONFIG set: exec -- CMD"),
    ):
        command(name, handler, text).add_argument("words", metavar="…", nargs=argparse.REMAINDER)
    command("shell", _shell, "a shell in the cluster's network, with KUBECONFIG set")
    return parser


def _add_install(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--overlay", metavar="NAME", help=f"a folder of manifests/overlays (default: {_OVERLAY})")
    where.add_argument(
        "--namespace", "-n", action="append", default=[], metavar="NS", help="watch this one only, with a Role in it; repeatable"
    )
    parser.add_argument(
        "--component", action="append", default=[], metavar="NAME", help="a folder of manifests/components; repeatable"
    )
    parser.add_argument(
        "--arg", action="append", default=[], metavar="FLAG", help="one more flag for the operator: --arg=--log-level=debug"
    )
    parser.add_argument("--replicas", type=int, metavar="N", help="default: as the manifest says")
    parser.add_argument(
        "--preset", choices=operator_image.PRESETS, default="release", help="how the operator is built (default: %(default)s)"
    )
    parser.add_argument("--program", type=Path, metavar="FILE", help="take this certroll-operator, and build none")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _add_name(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--name",
        default=default,
        metavar="NAME",
        help=f"which cluster (default: CERTROLL_CLUSTER or {layout.DEFAULT_NAME})",
    )


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= layout.MAX_NODES:
        raise argparse.ArgumentTypeError(f"between 1 and {layout.MAX_NODES}")
    return number


def _up(target: Cluster, options: argparse.Namespace) -> int:
    ui.be_quiet(options.quiet)
    nodes = 0 if options.control_plane_only else options.nodes
    if options.control_plane_nodes and options.control_plane_only:
        raise DevError("--control-plane-nodes are nodes, and --control-plane-only means none: choose one")
    if options.kubeconfig_files and not (options.control_plane_nodes or target.has_control_plane_pods):
        raise DevError("--kubeconfig-files is about the control plane as pods: add --control-plane-nodes")
    wish = cluster.Wish(
        nodes, options.sync_frequency, options.control_plane_nodes, options.kubeconfig_files, options.ip_families
    )
    cluster.up(target, wish, options.assets)
    ui.say(f"cluster {target.name} is up; try: hack/cluster{_name_words(target)} kubectl get pods --all-namespaces")
    return 0


def _restart_kubelet(target: Cluster, options: argparse.Namespace) -> int:
    ui.be_quiet(options.quiet)
    cluster.restart_kubelet_of(target, options.node)
    return 0


def _down(target: Cluster, options: argparse.Namespace) -> int:
    ui.be_quiet(options.quiet)
    for each in layout.all_clusters() if options.all else [target]:
        if not cluster.down(each):
            ui.say(f"there is no cluster {each.name}")
    return 0


def _status(target: Cluster, options: argparse.Namespace) -> int:
    facts = cluster.status(target)
    if options.json:
        print(json.dumps(facts, indent=1))
    else:
        _print_status(facts)
    return _STATUS_EXIT[facts["state"]]


def _print_status(facts: dict[str, Any]) -> None:
    print(f"cluster {facts['name']}: {facts['state']}")
    if facts["state"] == "absent":
        return
    for key in ("kubeconfig", "server", "netns", "logs"):
        print(f"  {key:<12}{facts[key]}")
    for daemon in facts["daemons"]:
        print(f"  {daemon['machine']:<12}{daemon['name']:<26}{daemon['pid'] or 'not running'}")


def _kubeconfig(target: Cluster, options: argparse.Namespace) -> int:
    cluster.need_spec(target)
    print(target.kubeconfig.read_text().rstrip() if options.raw else target.kubeconfig)
    return 0


def _logs_dir(target: Cluster, options: argparse.Namespace) -> int:
    cluster.need_spec(target)
    print(target.logs)
    return 0


def _load_image(target: Cluster, options: argparse.Namespace) -> int:
    ui.be_quiet(options.quiet)
    for file in options.files:
        cluster.load_image(target, file)
    return 0


def _install(target: Cluster, options: argparse.Namespace) -> int:
    ui.be_quiet(options.quiet)
    cluster.need_spec(target)
    program = options.program or operator_image.built(options.preset)
    with Step("image of the operator"):
        image = operator_image.cached(options.preset, program)
    operator = Operator(
        target,
        image,
        overlay=options.overlay or (None if options.namespace else _OVERLAY),
        namespaces=options.namespace,
        components=options.component,
        args=options.arg,
        replicas=options.replicas,
    )
    with Step(f"installing {image.reference}"):
        operator.install()
    ui.say(f"installed; its log: hack/cluster{_name_words(target)} kubectl -n {install.NAMESPACE} logs deployment/{install.NAME}")
    return 0


def _uninstall(target: Cluster, options: argparse.Namespace) -> int:
    cluster.need_spec(target)
    with Step("uninstalling the operator"):
        install.uninstall(target)
    return 0


def _kubectl(target: Cluster, options: argparse.Namespace) -> int:
    cluster.exec_in_network(target, ["kubectl", *_without_dashes(options.words)])
    return 0


def _exec(target: Cluster, options: argparse.Namespace) -> int:
    words = _without_dashes(options.words)
    if not words:
        raise DevError("exec needs a command: hack/cluster exec -- CMD")
    cluster.exec_in_network(target, words)
    return 0


def _shell(target: Cluster, options: argparse.Namespace) -> int:
    shell = os.environ.get("SHELL") or "/bin/sh"
    if sys.stderr.isatty():
        ui.say(f"{shell} in the network of cluster {target.name}; exit leaves it")
    cluster.exec_in_network(target, [shell])
    return 0


def _without_dashes(words: list[str]) -> list[str]:
    return words[1:] if words[:1] == ["--"] else words


def _name_words(target: Cluster) -> str:
    return "" if target.name == _DEFAULT_NAME else f" --name {target.name}"
