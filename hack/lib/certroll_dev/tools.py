"""The programs the cluster and the tests are made of: found, taken from the cache, or built from pinned sources.

Each Go program belongs to a module in hack/tools/, whose go.mod and go.sum pin everything that goes into it. What is
built is kept in the cache under a key of those pins, so that a changed pin is a new program and an old one stays.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from . import commands, gotoolchain, locks, paths
from .ui import DevError, Step

_KUBERNETES_VERSION = "k8s.io/component-base/version"


class Source(Protocol):
    """Where programs come from that are built together."""

    @property
    def name(self) -> str: ...

    def programs(self) -> Iterable[str]: ...

    def key(self, program: str) -> str:
        """Changes whenever the program would be another one."""

    def build(self, program: str, out: Path, log: Path) -> None: ...


@dataclass(frozen=True)
class GoModule:
    """A module in hack/tools/<name>, the module it pins, and each program's package ("." for a main.go of ours)."""

    name: str
    pins: str
    packages: Mapping[str, str]
    # Linker variables; {version}, {major} and {minor} are those of the pinned module.
    variables: Mapping[str, str] = field(default_factory=dict)

    def programs(self) -> Iterable[str]:
        return self.packages

    def key(self, program: str) -> str:
        digest = hashlib.sha256()
        for file in [self._folder / "go.mod", self._folder / "go.sum", *sorted(self._folder.glob("*.go"))]:
            digest.update(file.read_bytes())
        digest.update(" ".join([self.packages[program], self._linker_flags()]).encode())
        return f"{self.version}-{digest.hexdigest()[:12]}"

    def build(self, program: str, out: Path, log: Path) -> None:
        command: list[str | Path] = [gotoolchain.go_for(self._folder), "build", "-trimpath", "-buildvcs=false"]
        command += ["-ldflags", self._linker_flags(), "-o", out, self.packages[program]]
        _run_logged(command, log, cwd=self._folder, env=gotoolchain.environment())

    def folder_of(self, module: str) -> Path:
        """In Go's module cache; read-only."""
        go, environment = gotoolchain.go_for(self._folder), gotoolchain.environment()
        commands.run([go, "mod", "download", module], cwd=self._folder, env=environment)
        return Path(commands.run([go, "list", "-m", "-f", "{{.Dir}}", module], cwd=self._folder, env=environment).strip())

    @property
    def version(self) -> str:
        """The version that go.mod pins; nothing else names it."""
        match = re.search(rf"^(?:require)?\s+{re.escape(self.pins)} (v\S+)", self._go_mod, re.MULTILINE)
        if not match:
            raise DevError(f"{self._folder}/go.mod does not require {self.pins}")
        return match[1]

    @property
    def _folder(self) -> Path:
        return paths.HACK / "tools" / self.name

    @property
    def _go_mod(self) -> str:
        return (self._folder / "go.mod").read_text()

    def _linker_flags(self) -> str:
        major, minor, *_ = self.version.removeprefix("v").split(".")
        flags = ["-s", "-w"]
        for variable, value in self.variables.items():
            flags += ["-X", f"{variable}=" + value.format(version=self.version, major=major, minor=minor)]
        return " ".join(flags)


@dataclass(frozen=True)
class CProgram:
    """A program of one C file in hack/images/<name>: static, or with these shared libraries."""

    name: str
    libraries: tuple[str, ...] = ()

    def programs(self) -> Iterable[str]:
        return [self.name]

    def key(self, program: str) -> str:
        return hashlib.sha256(self._source.read_bytes() + " ".join(self.libraries).encode()).hexdigest()[:12]

    def build(self, program: str, out: Path, log: Path) -> None:
        how = [f"-l{library}" for library in self.libraries] or ["-static"]
        _run_logged(["cc", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-o", out, self._source, *how], log)

    @property
    def _source(self) -> Path:
        return paths.HACK / "images" / self.name / f"{self.name}.c"


_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet")
_KUBERNETES_VARIABLES = {
    f"{_KUBERNETES_VERSION}.gitVersion": "{version}",
    f"{_KUBERNETES_VERSION}.gitMajor": "{major}",
    f"{_KUBERNETES_VERSION}.gitMinor": "{minor}",
}


def _kubernetes(name: str) -> GoModule:
    packages = {program: f"k8s.io/kubernetes/cmd/{program}" for program in _KUBERNETES}
    return GoModule(name, "k8s.io/kubernetes", packages, _KUBERNETES_VARIABLES)


# Minor versions beside the one that clusters have unless told.
OTHER_KUBERNETES = {minor: _kubernetes(f"kubernetes-{minor}") for minor in ("1.35", "1.36")}
# Large, and wanted by a few tests of `hack/test all` only, and by who signs our images.
_RARE = (
    GoModule("bettertls", "github.com/Netflix/bettertls", {"bettertls": "github.com/Netflix/bettertls/test-suites/cmd/bettertls"}),
    GoModule("cosign", "github.com/sigstore/cosign/v2", {"cosign": "github.com/sigstore/cosign/v2/cmd/cosign"}),
    GoModule("crane", "github.com/google/go-containerregistry", {"crane": "github.com/google/go-containerregistry/cmd/crane"}),
    GoModule("syft", "github.com/anchore/syft", {"syft": "github.com/anchore/syft/cmd/syft"}, {"main.version": "{version}"}),
    GoModule("helm-4", "helm.sh/helm/v4", {"helm-4": "helm.sh/helm/v4/cmd/helm"}),
    # These two have the `replace` lines of their modules, as argo-rollouts has.
    GoModule(
        "flux",
        "github.com/fluxcd/kustomize-controller",
        {name: f"github.com/fluxcd/{name}" for name in ("kustomize-controller", "source-controller")},
    ),
    GoModule("argo-cd", "github.com/argoproj/argo-cd/v3", {"argo-cd": "."}),
)
SOURCES: tuple[Source, ...] = (
    _kubernetes("kubernetes"),
    # A module of its own: what it needs beyond the others would be in the key of all of them.
    GoModule("kubeadm", "k8s.io/kubernetes", {"kubeadm": "k8s.io/kubernetes/cmd/kubeadm"}, _KUBERNETES_VARIABLES),
    GoModule("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"}),
    GoModule("etcdctl", "go.etcd.io/etcd/etcdctl/v3", {"etcdctl": "go.etcd.io/etcd/etcdctl/v3"}),
    GoModule("coredns", "github.com/coredns/coredns", {"coredns": "."}),
    GoModule(
        "ratelimit", "github.com/envoyproxy/ratelimit", {"ratelimit": "github.com/envoyproxy/ratelimit/src/service_cmd"}
    ),
    GoModule("contour", "github.com/projectcontour/contour", {"contour": "github.com/projectcontour/contour/cmd/contour"}),
    GoModule(
        "toxiproxy", "github.com/Shopify/toxiproxy/v2", {"toxiproxy-server": "github.com/Shopify/toxiproxy/v2/cmd/server"}
    ),
    GoModule("certcheck", "software.sslmate.com/src/go-pkcs12", {"certcheck": "."}),
    GoModule(
        "helm", "helm.sh/helm/v3", {"helm": "helm.sh/helm/v3/cmd/helm"}, {"helm.sh/helm/v3/internal/version.version": "{version}"}
    ),
    GoModule("health", "sigs.k8s.io/cli-utils", {"health": "."}),
    GoModule("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
    # Its go.mod has the `replace` lines of its own: without them its Kubernetes modules have no versions.
    GoModule(
        "argo-rollouts",
        "github.com/argoproj/argo-rollouts",
        {"argo-rollouts": "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"},
    ),
    CProgram("pause"),
    CProgram("mtls-client", ("ssl", "crypto", "pthread")),
    CProgram("rereading-client", ("ssl", "crypto", "gnutls")),
    *_RARE,
)


def known() -> list[str]:
    """Every program that `ensure` can get."""
    return sorted(program for source in SOURCES for program in source.programs())


def usual() -> list[str]:
    """Those that are built ahead unless told otherwise."""
    return sorted(program for source in SOURCES if source not in _RARE for program in source.programs())


def version_of(name: str) -> str:
    """The version that is pinned, such as v1.36.3. Only of what comes from a Go module."""
    source = _source_of(name)
    if not isinstance(source, GoModule):
        raise DevError(f"{name} has no version: it is built from a file here")
    return source.version


def module_folder(name: str, module: str) -> Path:
    """The source of a Go module that the program is built from, as hack/tools pins it: for files beside the code, such as CRDs."""
    source = _source_of(name)
    assert isinstance(source, GoModule), name
    return source.folder_of(module)


def ensure(names: Iterable[str], assets: Path | None = None) -> dict[str, Path]:
    """The programs, each from the folder `assets` or KUBEBUILDER_ASSETS, from the cache, or built now.

    Callers at the same time wait for one another's builds. Raises DevError for an unknown name and for a build that
    fails; its log is then named and kept.
    """
    folders = _asset_folders(assets)
    return {name: _from_folders(name, folders) or _from_cache(name, _source_of(name)) for name in names}


def _asset_folders(assets: Path | None) -> list[Path]:
    if assets is not None and not assets.is_dir():
        raise DevError(f"{assets} is no folder: --assets takes one that holds kube-apiserver, etcd and so on")
    from_environment = os.environ.get("KUBEBUILDER_ASSETS")
    return [folder for folder in (assets, Path(from_environment) if from_environment else None) if folder]


def _from_folders(name: str, folders: Iterable[Path]) -> Path | None:
    for folder in folders:
        program = folder.absolute() / name
        if os.access(program, os.X_OK):
            return program
    return None


def kubernetes_folder(minor: str) -> Path:
    """Kubernetes' programs of another minor version, in a folder for --assets and KUBEBUILDER_ASSETS."""
    if minor not in OTHER_KUBERNETES:
        raise DevError(f"there is no Kubernetes {minor} here; there are: {' '.join(OTHER_KUBERNETES)}")
    source = OTHER_KUBERNETES[minor]
    programs = {name: _from_cache(name, source) for name in source.programs()}
    folder = paths.cache_dir() / "kubernetes" / source.version
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in programs.items():
        (folder / f".{name}.{os.getpid()}").symlink_to(program)
        os.replace(folder / f".{name}.{os.getpid()}", folder / name)
    return folder


def _from_cache(name: str, source: Source) -> Path:
    program = paths.cache_dir() / "bin" / f"{name}-{source.key(name)}" / name
    if not program.exists():
        lock = paths.cache_dir() / "locks" / f"{source.name}.lock"
        with locks.locked(lock, f"another build of {source.name}"):
            if not program.exists():
                _build(source, name, program)
    return program


@functools.cache
def _source_of(name: str) -> Source:
    for source in SOURCES:
        if name in source.programs():
            return source
    raise DevError(f"no program is called {name}; there are: {' '.join(known())}")


def _build(source: Source, name: str, program: Path) -> None:
    """Into a folder beside, then renamed: a killed build leaves no half program under a good name."""
    log = paths.cache_dir() / "logs" / f"build-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    cached = program.parent
    cached.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{name}-"
    for leftover in cached.parent.glob(prefix + "*"):
        shutil.rmtree(leftover)  # of a killed build; we hold the lock, so it is nobody's now
    with Step(f"building {cached.name}"), tempfile.TemporaryDirectory(dir=cached.parent, prefix=prefix) as scratch:
        half = Path(scratch) / "half"
        half.mkdir()
        source.build(name, half / name, log)
        shutil.rmtree(cached, ignore_errors=True)
        os.replace(half, cached)


def _run_logged(
    command: list[str | Path], log: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    with log.open("w") as file:
        file.write(" ".join(str(word) for word in command) + "\n")
        file.flush()
        try:
            done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        except FileNotFoundError as error:
            raise DevError(f"{command[0]} is not installed: run hack/deps") from error
    if done.returncode != 0:
        raise DevError(f"the build failed, see {log}:\n{commands.tail_of(log)}")
