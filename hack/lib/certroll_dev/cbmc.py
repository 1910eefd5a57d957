"""CBMC, the bounded model checker, fetched without installing anything on this machine.

Debian has it from release 13 on. Its package and the libraries that it needs are unpacked into the cache, and it runs with the
dynamic linker that is among them, so that the release of this machine does not matter. It reads C with this machine's gcc and
headers, as our builds do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from . import locks, paths
from .commands import run
from .ui import DevError, Step

SUITE = "trixie"
_PACKAGES = ("cbmc", "libc6", "libgcc-s1", "libstdc++6", "minisat")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def fetch() -> list[str]:
    """The command line that it begins with, where it is unpacked; downloaded before, if need be."""
    key = hashlib.sha256(" ".join((SUITE, *_PACKAGES)).encode()).hexdigest()[:12]
    root = paths.cache_dir() / "programs" / f"cbmc-{key}"
    root.parent.mkdir(parents=True, exist_ok=True)
    with locks.locked(paths.cache_dir() / "locks" / f"{root.name}.lock", "another download of CBMC"):
        if not root.is_dir():
            with Step(f"CBMC from Debian {SUITE}"), tempfile.TemporaryDirectory(dir=root.parent) as scratch:
                _unpack(Path(scratch), root)
    return _command(root)


def _command(root: Path) -> list[str]:
    libraries = root / "usr" / "lib"
    linker = next((each for folder in ("lib64", "lib") for each in (root / "usr" / folder).glob("ld-linux-*.so.*")), None)
    libc = next(libraries.glob("*/libc.so.6"), None)
    if linker is None or libc is None:
        raise DevError(f"{root} is not as the packages of Debian {SUITE} were: remove it, and run this again")
    return [str(linker), "--library-path", f"{libc.parent}:{libraries}", str(root / "usr" / "bin" / "cbmc")]


def _unpack(scratch: Path, root: Path) -> None:
    config = _configure_apt(scratch)
    environment = {**os.environ, "APT_CONFIG": str(config), "LC_ALL": "C.UTF-8"}
    debs = scratch / "debs"
    debs.mkdir()
    run(["apt-get", "update", "--quiet"], env=environment)
    run(["apt-get", "download", "--quiet", *_PACKAGES], env=environment, cwd=debs)
    half = scratch / "root"
    for deb in sorted(debs.glob("*.deb")):
        run(["dpkg-deb", "-x", deb, half])
    run([*_command(half), "--version"])
    shutil.rmtree(root, ignore_errors=True)
    os.replace(half, root)


def _configure_apt(scratch: Path) -> Path:
    """An apt of its own, which leaves the machine's package lists alone and knows one suite of the machine's mirror."""
    (scratch / "lists" / "partial").mkdir(parents=True)
    (scratch / "sources").mkdir()
    (scratch / "status").touch()
    source = f"Types: deb\nURIs: {_mirror()}\nSuites: {SUITE}\nComponents: main\nSigned-By: {_KEYRING}\n"
    (scratch / "sources" / "debian.sources").write_text(source)
    settings = {
        "Dir::State::lists": scratch / "lists",
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": scratch / "sources",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",  # another user cannot write into the folder
    }
    config = scratch / "apt.conf"
    config.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    return config


def _mirror() -> str:
    """Of Debian itself, as this machine's apt has it."""
    site = _configured_mirror()
    if not site:  # a fresh machine has no package lists, and without them no targets
        run(["apt-get", "update", "--quiet", "-o", "DPkg::Lock::Timeout=300"])
        site = _configured_mirror()
    if not site:
        raise DevError("apt knows no mirror of Debian: its sources must have one, from which CBMC comes")
    return site


def _configured_mirror() -> str:
    targets = run(["apt-get", "indextargets", "--format", "$(LABEL)|$(COMPONENT)|$(SITE)", "Identifier: Packages"])
    fields = (line.split("|") for line in targets.splitlines())
    return next((site for label, component, site in fields if (label, component) == ("Debian", "main")), "")
