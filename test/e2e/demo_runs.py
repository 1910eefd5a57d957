"""The demo, run as a test: all of its scenario was seen, and its cluster can be looked at for as long as that takes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from certroll_dev import paths

DEMO_WITHIN = 900.0  # seconds
_DEMO = paths.HACK / "demo"


@contextmanager
def demo(name: str, folder: Path, *options: str, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """What it printed. `folder` gets its logs; None in the place of `env`: this process's."""
    words = [_DEMO, "--name", name, "--logs", folder / "demo"]
    try:
        done = subprocess.run(
            [*words, "--keep", *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEMO_WITHIN
        )
        assert done.returncode == 0, done.stdout
        assert "Everything was seen that should have been." in done.stdout
        yield done.stdout
    finally:
        subprocess.run([*words, "--down"], check=True, stdout=subprocess.DEVNULL)
