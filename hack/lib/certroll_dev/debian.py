"""hack/deps: the Debian packages that building, testing and the local cluster need, by group."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import commands, locks, paths, ui
from .ui import DevError, Step

GROUPS: dict[str, tuple[str, ...]] = {
    "build": (
        "ccache",  # hack/build
        "clang-format",
        "clang-tidy",
        "cmake",
        "gcc",
        "libc6-dev",
        "libcjson-dev",
        "libcmocka-dev",
        "libcurl4-openssl-dev",
        "libevent-dev",
        "libgnutls28-dev",  # a client in tests
        "libssl-dev",
        "libyaml-dev",
        "ninja-build",
        "pkg-config",
        "tzdata",  # into the image, and for the tests
        "zlib1g-dev",
    ),
    "cluster": (
        "ca-certificates",
        "conntrack",
        "containerd",
        "containernetworking-plugins",
        "gcc",  # the sandbox image's one program is built here
        "iproute2",
        "iptables",  # the portmap plugin, for hostPort
        "libc6-dev",
        "mount",
        "nftables",
        "openssl",
        "python3-venv",  # Go comes from PyPI where there is none
        "runc",
        "util-linux",
    ),
    "image": (
        "binutils",  # readelf
        "debian-archive-keyring",
        "git",
        "iproute2",
        "mmdebstrap",
        "qemu-user-static",  # runs what was built for another architecture, in tests
        "skopeo",  # into a registry
        "util-linux",
    ),
    "test": (
        "buildah",
        "clang",  # hack/fuzz
        "curl",
        "git",
        "libclang-rt-dev",  # libFuzzer and the sanitizers of clang
        "llvm",  # names the functions of findings and of coverage
        "openssl",
        "python3-venv",
    ),
}

# Asked by Debian's maintainer scripts whether a service may be started; 101 is "no".
_POLICY = Path("/usr/sbin/policy-rc.d")
_POLICY_TEXT = "#!/bin/sh\n# Put here by certroll's hack/deps for the time of one installation.\nexit 101\n"


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="hack/deps", description="Installs the Debian packages that are missing. It starts no service."
    )
    parser.add_argument("groups", metavar="GROUP", nargs="*", help=f"{', '.join(GROUPS)}, or all (the default)")
    parser.add_argument(
        "--check", action="store_true", help="install nothing; print what is missing, exit 1 if anything is"
    )
    parser.add_argument("--list", action="store_true", help="print the packages of the groups")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    ui.be_quiet(options.quiet)
    wanted = _packages(options.groups or ["all"])
    if options.list:
        print("\n".join(wanted))
        return 0
    missing = _missing(wanted)
    if options.check:
        print("\n".join(missing), end="\n" if missing else "")
        return 1 if missing else 0
    if missing:
        _install(missing)
    return 0


def versions(group: str, patterns: Sequence[str] = ()) -> str:
    """A line for each installed package of the group and of these names, with its version."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${Version}\n", *GROUPS[group], *patterns]
    return subprocess.run(query, capture_output=True, text=True).stdout


def _packages(groups: Sequence[str]) -> list[str]:
    unknown = set(groups) - {*GROUPS, "all"}
    if unknown:
        raise DevError(f"no group is called {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)} and all")
    chosen = GROUPS if "all" in groups else groups
    return sorted({package for group in chosen for package in GROUPS[group]})


def _missing(packages: Sequence[str]) -> list[str]:
    if shutil.which("dpkg-query") is None:
        raise DevError("this is no Debian: install yourself what provides " + ", ".join(packages))
    query = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *packages]
    # It ends with 1 when it has never heard of one of them, which is just what we ask.
    lines = subprocess.run(query, capture_output=True, text=True).stdout.splitlines()
    installed = {line.split()[0] for line in lines if line.endswith(" installed")}
    return [package for package in packages if package not in installed]


def _install(packages: Sequence[str]) -> None:
    if os.geteuid() != 0:
        raise DevError("missing: " + " ".join(packages) + "\nInstall them, or run hack/deps as root")
    log = paths.cache_dir() / "logs" / "apt.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with locks.locked(paths.cache_dir() / "locks" / "apt.lock", "another hack/deps"), _no_services():
        with Step("apt-get update"):
            _apt(["update"], log, "w")
        with Step(f"installing {' '.join(packages)}"):
            _apt(["install", "--yes", "--no-install-recommends", *packages], log, "a")


def _apt(words: Sequence[str], log: Path, mode: str) -> None:
    # Another apt may be at work, such as the one of a machine that has just booted.
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "--quiet", *words]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    with log.open(mode) as file:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)
    if done.returncode != 0:
        raise DevError(f"apt-get {words[0]} failed, see {log}:\n{commands.tail_of(log)}")


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """No package may start a service: the cluster has a containerd of its own. A policy of the user's stays."""
    if _POLICY.exists() and _POLICY.read_text() != _POLICY_TEXT:
        yield
        return
    _POLICY.write_text(_POLICY_TEXT)
    _POLICY.chmod(0o755)
    # A polite kill must take it away again; after a SIGKILL the next run does, by its text.
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
        _POLICY.unlink(missing_ok=True)


if __name__ == "__main__":
    ui.main(run)
