"""Container images without a registry and without a container engine.

An image here is one layer: the files asked for, the shared libraries they need, and the few files that
every C or Go program expects (/etc/passwd, /tmp, …). It is written as a Docker archive, which
`ctr -n k8s.io images import` and `docker load` both read. The same inputs give the same bytes, so an image
can be cached by its content and imported again without a new digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .ui import DevError

__all__ = ["ImageError", "build_image", "cached_image", "cache_dir", "shared_libraries"]

# Debian and everything like it have these at the root as links into /usr. The loader's path in an ELF file is
# /lib64/ld-linux-x86-64.so.2, so the links must be in the image, and nothing may be put *behind* them by name:
# a tar entry lib/x would turn the link into a folder.
_MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_WRITABLE_BY_ALL = {"tmp", "var/tmp", "run"}
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_DEFAULT_DIRS = ("/tmp", "/run", "/var/tmp", "/proc", "/sys", "/dev", "/etc")


class ImageError(DevError):
    """An image cannot be built; the text says what to do about it."""


@dataclass(frozen=True)
class _Entry:
    """One entry of the layer. `source` is a file to copy, bytes, a link's target (str), or None for a folder."""

    path: str
    mode: int
    source: Path | bytes | str | None
    uid: int = 0
    gid: int = 0


def cache_dir() -> Path:
    """Where images that can be built again are kept."""
    return paths.cache_dir() / "images"


def build_image(
    out: Path,
    name: str,
    files: Mapping[str, Path | bytes],
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
    """Write the image `name` (with its tag) as a Docker archive to `out`, and return `out`.

    `files` maps a path in the image to a file or folder of this machine, or to its content. `libs` adds the shared
    libraries and the dynamic loader of every ELF file among them. `dirs` are further empty folders, owned by `user`.
    `sysroot` is a folder into which Debian packages were unpacked: libraries are looked for there before this machine.
    """
    entries = _plan(files, libs=libs, dirs=dirs, user=user, sysroot=sysroot)
    config = _config(entrypoint, cmd, env, user, workdir)
    _write_archive(out, name, entries, config)
    return out


def cached_image(
    name: str,
    files: Mapping[str, Path | bytes],
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
        _write_archive(out, name, entries, config)
    return out


# --- what goes into the layer ----------------------------------------------------------------------------------


def _plan(
    files: Mapping[str, Path | bytes], *, libs: bool, dirs: Iterable[str], user: str, sysroot: Path | None
) -> list[_Entry]:
    """All entries of the layer, sorted by path, parents before children."""
    uid, gid = _ids(user)
    entries: dict[str, _Entry] = {}
    for link, target in _MERGED.items():
        _add(entries, _Entry(target, 0o755, None))
        _add(entries, _Entry(link, 0o777, target))
    for path in (*_DEFAULT_DIRS, *dirs):
        _add(entries, _folder(_normal(path), uid, gid, owned=path not in _DEFAULT_DIRS))
    for path, content in _base_files(uid, gid).items():
        _add(entries, _Entry(path, 0o644, content))
    for path, source in files.items():
        for entry in _expand(_normal(path), source):
            _add(entries, entry)
    if libs:
        elfs = [e.source for e in entries.values() if isinstance(e.source, Path) and _is_elf(e.source)]
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


def _add(entries: dict[str, _Entry], entry: _Entry, *, replace: bool = True) -> None:
    if not entry.path or (entry.path in entries and not replace):
        return
    parent = os.path.dirname(entry.path)
    if parent and parent not in entries:
        _add(entries, _folder(parent, 0, 0, owned=False))
    known = entries.get(entry.path)
    if known is not None and known.source is None and entry.source is not None:
        raise ImageError(f"/{entry.path} would be a folder and a file at once")
    entries[entry.path] = entry


def _folder(path: str, uid: int, gid: int, *, owned: bool) -> _Entry:
    mode = 0o1777 if path in _WRITABLE_BY_ALL else 0o755
    return _Entry(path, mode, None, uid if owned else 0, gid if owned else 0)


def _base_files(uid: int, gid: int) -> dict[str, bytes]:
    passwd = "root:x:0:0:root:/root:/sbin/nologin\n"
    group = "root:x:0:\n"
    if uid != 0:
        passwd += f"app:x:{uid}:{gid}:app:/tmp:/sbin/nologin\n"
    if gid != 0:
        group += f"app:x:{gid}:\n"
    return {
        "etc/passwd": passwd.encode(),
        "etc/group": group.encode(),
        # Both sources are built into glibc since 2.34, so no libnss_*.so has to be copied.
        "etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
    }


def _expand(path: str, source: Path | bytes) -> Iterable[_Entry]:
    """One file, or every file, folder and link of a tree (links stay links)."""
    if isinstance(source, bytes):
        yield _Entry(path, 0o755 if source.startswith(b"#!") else 0o644, source)
    elif source.is_dir():
        yield _Entry(path, 0o755, None)
        for child in sorted(source.iterdir()):
            inside = _normal(f"{path}/{child.name}")
            if child.is_symlink():
                yield _Entry(inside, 0o777, os.readlink(child))
            else:
                yield from _expand(inside, child)
    elif source.is_file():
        real = source.resolve()
        yield _Entry(path, 0o755 if real.stat().st_mode & stat.S_IXUSR else 0o644, real)
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


def _library(path: Path, sysroot: Path | None) -> _Entry:
    """A library keeps the name the loader asks for; what it links to on this machine is copied as its content."""
    inside = path.relative_to(sysroot) if sysroot is not None and path.is_relative_to(sysroot) else path
    return _Entry(_normal(str(inside)), 0o755, path.resolve())


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


# --- writing ---------------------------------------------------------------------------------------------------


def _config(
    entrypoint: list[str], cmd: list[str] | None, env: Mapping[str, str] | None, user: str, workdir: str
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
    return {
        "architecture": _MACHINES.get(machine, machine),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": run,
    }


def _content_key(name: str, entries: list[_Entry], config: Mapping[str, object]) -> str:
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


def _write_archive(out: Path, name: str, entries: list[_Entry], config: dict[str, object]) -> None:
    """Next to `out`, then renamed: a killed build leaves no half image under a good name."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".image-", dir=out.parent) as scratch:
        layer = Path(scratch) / "layer.tar"
        _write_layer(layer, entries)
        with layer.open("rb") as file:
            diff_id = hashlib.file_digest(file, "sha256").hexdigest()
        full = {
            **config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "certroll hack/images"}],
        }
        config_bytes = json.dumps(full, sort_keys=True).encode()
        config_name = hashlib.sha256(config_bytes).hexdigest() + ".json"
        manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [f"{diff_id}/layer.tar"]}]
        archive = Path(scratch) / "image.tar"
        with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
            _put_file(tar, f"{diff_id}/layer.tar", layer)
            _put_bytes(tar, config_name, config_bytes)
            _put_bytes(tar, "manifest.json", json.dumps(manifest).encode())
        os.replace(archive, out)


def _write_layer(layer: Path, entries: list[_Entry]) -> None:
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)  # mtime 0 and no names of users: nothing of this machine
            info.mode, info.uid, info.gid = entry.mode, entry.uid, entry.gid
            if entry.source is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif isinstance(entry.source, str):
                info.type, info.linkname = tarfile.SYMTYPE, entry.source
                tar.addfile(info)
            elif isinstance(entry.source, bytes):
                info.size = len(entry.source)
                tar.addfile(info, io.BytesIO(entry.source))
            else:
                info.size = entry.source.stat().st_size
                with entry.source.open("rb") as file:
                    tar.addfile(info, file)


def _put_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    info = tarfile.TarInfo(name)
    info.size = path.stat().st_size
    with path.open("rb") as file:
        tar.addfile(info, file)


def _put_bytes(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
