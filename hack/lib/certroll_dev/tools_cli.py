"""hack/tools/ensure: build programs ahead of their use."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import tools, ui
from .demo import programs


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="hack/tools/ensure",
        description="Finds programs, or builds them into the cache, and prints their paths.",
        epilog="Programs: " + " ".join(tools.known()),
    )
    others = sorted(set(tools.known()) - set(tools.usual()))
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"default: all of them but {', '.join(others)}, and what the demo and the tests run of Debian's packages and Envoy's")
    parser.add_argument("--all", action="store_true", help="those as well, and Kubernetes of the other minor versions: what hack/test all runs")
    parser.add_argument("--assets", type=Path, metavar="DIR", help="look here first, then in KUBEBUILDER_ASSETS")
    parser.add_argument(
        "--kubernetes", choices=tools.OTHER_KUBERNETES, metavar="MINOR",
        help="instead, the folder with Kubernetes' programs of that minor version, to try it: "
        "KUBEBUILDER_ASSETS=$(hack/tools/ensure --kubernetes 1.35) hack/demo",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    ui.be_quiet(options.quiet)
    if options.kubernetes:
        print(tools.kubernetes_folder(options.kubernetes))
        return 0
    if not options.names:
        programs.fetch_all()
    for path in tools.ensure(options.names or (tools.known() if options.all else tools.usual()), options.assets).values():
        print(path)
    for path in map(tools.kubernetes_folder, tools.OTHER_KUBERNETES if options.all else ()):
        print(path)
    return 0
