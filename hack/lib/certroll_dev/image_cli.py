"""hack/image: our images, on Debian 13's packages or from programs that hack/build has made on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import archives, debian_root, node_agent_image, operator_image, paths, release_build, release_image, release_statements
from . import shutdown_manager_image, ui
from .image_recipe import HOST, PRESETS, Recipe
from .ui import DevError, Step

_RECIPES = {
    "operator": operator_image.RECIPE,
    "shutdown-manager": shutdown_manager_image.RECIPE,
    "node-agent": node_agent_image.RECIPE,
}
_HOST = "host"
_DESCRIPTION = """\
Builds an image without a registry and without a container engine. That of the operator has certroll-operator,
certroll-certgen, certroll-sidecar, the shared libraries that they need, time zones, and nothing else that could run; that of
the shutdown manager one static program; that of the node agent certroll-node-agent and nsenter. The archive is OCI's and
Docker's at once:

    ctr -n k8s.io images import FILE        docker load -i FILE        hack/cluster load-image FILE
    skopeo copy --preserve-digests oci-archive:FILE docker://registry.example.org/certroll/operator:TAG

It is built in a chroot with Debian 13's packages of the day, which takes root and `hack/deps image`; an SBOM (SPDX) and the
provenance (SLSA) are written beside it, as FILE without .tar and .spdx.json, .provenance.json. The same commit and the same
packages give the same bytes, and so the same digest. With --on host the programs are hack/build's, and libraries and time
zones those of this machine: for development.

The path of what was built is printed; with --digest that of its manifest, by which a registry has it when it was copied there
as it is:

    kustomize edit set image certroll.dev/operator=registry.example.org/certroll/operator@$(hack/image --digest)"""


def run(arguments: list[str]) -> int:
    options = _options(arguments)
    ui.be_quiet(options.quiet)
    recipe = _RECIPES[options.image]
    if options.rootfs and options.rootfs.exists():
        raise DevError(f"{options.rootfs} is there already: give a folder that is not, or remove it first")
    made = _on_host(recipe, options) if options.on == _HOST else _on_debian(recipe, options)
    print(archives.digest(made) if options.digest else made)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    options.on = options.on or (_HOST if options.program else debian_root.NAME)
    options.arch = options.arch or debian_root.native()
    if options.on == _HOST and (options.fresh or options.source or options.arch != debian_root.native()):
        parser.error("--arch, --fresh and --source are of images on Debian 13's packages, and --on host or --program makes another")
    if options.on != _HOST and options.program:
        parser.error("--program is a program of this machine: leave --on away")
    if options.rootfs and options.digest:
        parser.error("--digest is of an archive, and --rootfs makes none")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("hack/image", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", nargs="?", choices=sorted(_RECIPES), default="operator", help="which one (default: %(default)s)")
    parser.add_argument(
        "--on", choices=(debian_root.NAME, _HOST), help=f"whose packages it has (default: {debian_root.NAME}; with --program {_HOST})"
    )
    parser.add_argument("--arch", choices=sorted(debian_root.TRIPLETS), help="for which machines (default: as this one)")
    parser.add_argument("--fresh", action="store_true", help="with packages of now, in the place of today's; builds everything again")
    parser.add_argument(
        "--preset", choices=PRESETS, default="release",
        help="how to build it; dev and tsan have sanitizers, but not in the shutdown manager (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--program", type=Path, metavar="FILE", help="take this program, for the operator also those beside it, and build none"
    )
    parser.add_argument("--tag", help="the image's tag (default: the version; with another preset VERSION-PRESET)")
    parser.add_argument("--source", metavar="URL", help="where the source can be had, for the image's labels")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", "-o", type=Path, metavar="FILE", help="default: build/image/PROGRAM-TAG[-ARCH].tar")
    target.add_argument(
        "--rootfs", type=Path, metavar="DIR", help="write the files into this new folder instead, for the Dockerfile"
    )
    parser.add_argument("--digest", action="store_true", help="print the digest of the image in the place of its path")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _on_host(recipe: Recipe, options: argparse.Namespace) -> Path:
    program = options.program or recipe.built(options.preset)
    reference = recipe.reference(recipe.version(program), options.preset, options.tag)
    if options.rootfs:
        with Step(f"root file system in {options.rootfs}"):
            return recipe.write_rootfs(options.rootfs, recipe.files(program, HOST), libs=True)
    out = _output(recipe, reference, options)
    release_statements.remove(out)
    with Step(f"image {reference}"):
        recipe.write(out, reference, recipe.files(program, HOST))
    return _said(out, reference)


def _on_debian(recipe: Recipe, options: argparse.Namespace) -> Path:
    with debian_root.locked(options.arch, fresh=options.fresh) as root:
        built = release_build.build(root, recipe.preset(options.preset), recipe.targets)
        if built.revision.changed:
            ui.warn("the checkout differs from its commit, and the image's labels say so")
        reference = recipe.reference(built.version, options.preset, options.tag)
        plan = release_image.plan(recipe, built)
        if options.rootfs:
            with Step(f"root file system in {options.rootfs}"):
                return release_image.write_rootfs(options.rootfs, recipe, plan)
        out = _output(recipe, reference, options)
        with Step(f"image {reference} for {options.arch}"):
            release_image.write(out, recipe, built, reference, plan, options.source)
    return _said(out, reference)


def _output(recipe: Recipe, reference: str, options: argparse.Namespace) -> Path:
    suffix = "" if options.arch == debian_root.native() else f"-{options.arch}"
    return options.output or paths.REPOSITORY / "build" / "image" / f"{recipe.program}-{reference.rpartition(':')[2]}{suffix}.tar"


def _said(archive: Path, reference: str) -> Path:
    ui.say(f"{reference}: {archive.stat().st_size / 1e6:.1f} MB, {archives.digest(archive)}")
    return archive
