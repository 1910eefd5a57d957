"""Container images without a registry and without a container engine.

An image here is one layer: the files asked for, the shared libraries they need, and the few files that
every C or Go program expects (/etc/passwd, /tmp, …). It is written as an archive that is OCI's and Docker's at once,
for `ctr -n k8s.io images import`, `docker load` and the like. The same inputs give the same bytes, so an image can be
cached by its content and imported again without a new digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import stat
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import archives, elf, layers, paths
from .layers import Entry
from .ui import DevError

__all__ = ["ARCHITECTURES", "About", "ImageError", "Source", "build_image", "build_rootfs", "cached_image", "cache_dir", "shared_libraries"]

# Debian and everything like it have these at the root as links into /usr. The loader's path in an ELF file is
# /lib64/ld-linux-x86-64.so.2, so the links must be in the image, and nothing may be put *behind* them by name:
# a tar entry lib/x would turn the link into a folder.
_MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_WRITABLE_BY_ALL = {"tmp", "var/tmp", "run"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as images and Debian call machines
_DEFAULT_DIRS = ("/tmp", "/run", "/var/tmp", "/proc", "/sys", "/dev", "/etc")


Source = Path | bytes | str


class ImageError(DevError):
    """An image cannot be built; the text says what to do about it."""


@dataclass(frozen=True)
class About:
    """What an image says of itself, where it is not of this machine and of no time."""

    arch: str
    created: str  # as in RFC 3339
    labels: Mapping[str, str] = field(default_factory=dict)


def cache_dir() -> Path:
    """Where images that can be built again are kept."""
    return paths.cache_dir() / "images"


def build_image(
    out: Path,
    name: str,
    files: Mapping[str, Source],
    *,
    entrypoint: list[str],
    cmd: list[str] | None = None,
    env: Mapping[str, str] | None = None,
    user: str = "65532:65532",
    workdir: str = "/",
    libs: bool = True,
    dirs: Iterable[str] = (),
    sysroot: Path | None = None,
    about: About | None = None,
) -> Path:
    """Write the image `name` (with its tag) as an archive to `out`, and return `out`.

    `files` maps a path in the image to a file or folder of this machine, to its content, or, as str, to what it is a link
    to. `libs` adds the shared
    libraries and the dynamic loader of every ELF file among them. `dirs` are further empty folders, owned by `user`.
    `sysroot` is a folder into which Debian packages were unpacked: libraries are looked for there before this machine.
    """
    entries = _plan(files, libs=libs, dirs=dirs, user=user, sysroot=sysroot)
    config = _config(entrypoint, cmd, env, user, workdir, about)
    archives.write(out, name, entries, config)
    return out


def cached_image(
    name: str,
    files: Mapping[str, Source],
    *,
    entrypoint: list[str],
    cmd: list[str] | None = None,
    env: Mapping[str, str] | None = None,
    user: str = "65532:65532",
    workdir: str = "/",
    libs: bool = True,
    dirs: Iterable[str] = (),
    sysroot: Path | None = None,
) -> Path:
    """Like build_image, but into the cache, and only when no image of the same content is there yet."""
    entries = _plan(files, libs=libs, dirs=dirs, user=user, sysroot=sysroot)
    config = _config(entrypoint, cmd, env, user, workdir)
    short = re.sub(r"[^A-Za-z0-9._-]+", "_", name.split("/")[-1])
    out = cache_dir() / f"{short}-{_content_key(name, entries, config)[:16]}.tar"
    if not out.exists():
        archives.write(out, name, entries, config)
    return out


def build_rootfs(folder: Path, files: Mapping[str, Source], *, user: str = "65532:65532", libs: bool = True) -> Path:
    """The files of such an image as a new folder, which `COPY` of a `FROM scratch` Dockerfile turns into the same image."""
    entries = _plan(files, libs=libs, dirs=(), user=user, sysroot=None)
    folder.mkdir(parents=True)
    layers.write_folder(folder, entries)
    return folder


# --- what goes into the layer ----------------------------------------------------------------------------------


def _plan(
    files: Mapping[str, Source], *, libs: bool, dirs: Iterable[str], user: str, sysroot: Path | None
) -> list[Entry]:
    """All entries of the layer, sorted by path, parents before children."""
    uid, gid = _ids(user)
    entries: dict[str, Entry] = {}
    for link, target in _MERGED.items():
        _add(entries, Entry(target, 0o755, None))
        _add(entries, Entry(link, 0o777, target))
    for path in (*_DEFAULT_DIRS, *dirs):
        _add(entries, _folder(_normal(path), uid, gid, owned=path not in _DEFAULT_DIRS))
    for path, content in _base_files(uid, gid).items():
        _add(entries, Entry(path, 0o644, content))
    for path, source in files.items():
        for entry in _expand(_normal(path), source):
            _add(entries, entry)
    if libs:
        elfs = [e.source for e in entries.values() if isinstance(e.source, Path) and elf.is_elf(e.source)]
        for library in shared_libraries(elfs, sysroot):
            _add(entries, _library(library, sysroot), replace=False)
    return [entries[path] for path in sorted(entries, key=lambda p: p.split("/"))]


def _ids(user: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?::(\d+))?", user)
    if not match:
        raise ImageError(f"user {user!r}: give numeric ids such as 65532:65532, so that runAsNonRoot can be checked")
    return int(match[1]), int(match[2] or match[1])


def _normal(path: str) -> str:
    """The path in the layer: relative, without '.' and '..', and past the links of _MERGED."""
    clean = os.path.normpath("/" + path).lstrip("/")
    head, _, rest = clean.partition("/")
    if head in _MERGED and rest:
        return f"{_MERGED[head]}/{rest}"
    return clean


def _add(entries: dict[str, Entry], entry: Entry, *, replace: bool = True) -> None:
    if not entry.path or (entry.path in entries and not replace):
        return
    parent = os.path.dirname(entry.path)
    if parent and parent not in entries:
        _add(entries, _folder(parent, 0, 0, owned=False))
    known = entries.get(entry.path)
    if known is not None and known.source is None and entry.source is not None:
        raise ImageError(f"/{entry.path} would be a folder and a file at once")
    entries[entry.path] = entry


def _folder(path: str, uid: int, gid: int, *, owned: bool) -> Entry:
    mode = 0o1777 if path in _WRITABLE_BY_ALL else 0o755
    return Entry(path, mode, None, uid if owned else 0, gid if owned else 0)


def _base_files(uid: int, gid: int) -> dict[str, bytes]:
    passwd = "root:x:0:0:root:/root:/sbin/nologin\n"
    group = "root:x:0:\n"
    if uid != 0:
        passwd += f"nonroot:x:{uid}:{gid}:nonroot:/tmp:/sbin/nologin\n"
    if gid != 0:
        group += f"nonroot:x:{gid}:\n"
    return {
        "etc/passwd": passwd.encode(),
        "etc/group": group.encode(),
        # Both sources are built into glibc since 2.34, so no libnss_*.so has to be copied.
        "etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
    }


def _expand(path: str, source: Source) -> Iterable[Entry]:
    """One file, or every file, folder and link of a tree (links stay links)."""
    if isinstance(source, str):
        yield Entry(path, 0o777, source)
    elif isinstance(source, bytes):
        yield Entry(path, 0o755 if source.startswith(b"#!") else 0o644, source)
    elif source.is_dir():
        yield Entry(path, 0o755, None)
        for child in sorted(source.iterdir()):
            inside = _normal(f"{path}/{child.name}")
            if child.is_symlink():
                yield Entry(inside, 0o777, os.readlink(child))
            else:
                yield from _expand(inside, child)
    elif source.is_file():
        real = source.resolve()
        yield Entry(path, 0o755 if real.stat().st_mode & stat.S_IXUSR else 0o644, real)
    else:
        raise ImageError(f"{source}: no such file (it was to become /{path} of the image)")


# --- shared libraries ------------------------------------------------------------------------------------------


def shared_libraries(programs: Iterable[Path], sysroot: Path | None = None) -> list[Path]:
    """What ldd names for the programs, the loader among it, as paths by which the loader will look for them."""
    found: set[Path] = set()
    for program in programs:
        found.update(_ldd(program, sysroot))
    return sorted(found)


def _ldd(program: Path, sysroot: Path | None) -> set[Path]:
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    if sysroot is not None:
        folders = {str(library.parent) for library in sysroot.glob("**/*.so*")}
        env["LD_LIBRARY_PATH"] = ":".join(sorted(folders))
    run = subprocess.run(["ldd", str(program)], capture_output=True, text=True, env=env)
    text = run.stdout + run.stderr
    if "not a dynamic executable" in text or "statically linked" in text:
        return set()
    if run.returncode != 0:
        raise ImageError(f"ldd {program} failed: {text.strip()}")
    libraries = set()
    for line in run.stdout.splitlines():
        if "not found" in line:
            raise ImageError(f"{program} needs {line.strip()}: install the package that holds it (hack/deps)")
        # "libc.so.6 => /lib/…/libc.so.6 (0x…)" or, for the loader, "/lib64/ld-linux-x86-64.so.2 (0x…)".
        match = re.search(r"(?:=> )?(/\S+) \(0x", line)
        if match:
            libraries.add(Path(match[1]))
    return libraries


def _library(path: Path, sysroot: Path | None) -> Entry:
    """A library keeps the name the loader asks for; what it links to on this machine is copied as its content."""
    inside = path.relative_to(sysroot) if sysroot is not None and path.is_relative_to(sysroot) else path
    return Entry(_normal(str(inside)), 0o755, path.resolve())


# --- configuration --------------------------------------------------------------------------------------------


def _config(
    entrypoint: list[str], cmd: list[str] | None, env: Mapping[str, str] | None, user: str, workdir: str,
    about: About | None = None,
) -> dict[str, object]:
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", **(env or {})}
    machine = platform.machine()
    run: dict[str, object] = {
        "Entrypoint": entrypoint,
        "Env": [f"{key}={value}" for key, value in sorted(variables.items())],
        "User": user,
        "WorkingDir": workdir,
    }
    if cmd:
        run["Cmd"] = cmd
    if about:
        run["Labels"] = dict(about.labels)
        return {"architecture": about.arch, "os": "linux", "created": about.created, "config": run}
    return {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": run,
    }


def _content_key(name: str, entries: list[Entry], config: Mapping[str, object]) -> str:
    digest = hashlib.sha256()
    digest.update(json.dumps([name, config], sort_keys=True).encode())
    for entry in entries:
        digest.update(repr((entry.path, entry.mode, entry.uid, entry.gid)).encode())
        if isinstance(entry.source, Path):
            with entry.source.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        else:
            digest.update(repr(entry.source).encode())
    return digest.hexdigest()
