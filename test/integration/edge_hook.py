"""certroll-shutdown-manager as a container's preStop hook, and single attempts of its strategies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from control_plane import ROOT

sys.path.insert(0, str(ROOT / "test" / "support"))

import sanitizers  # noqa: E402

_BUILD = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")).resolve()  # seen from other folders, too
_PROGRAM, _DRIVER = _BUILD / "bin" / "certroll-shutdown-manager", _BUILD / "test" / "drain_driver"
PATIENCE_S = 60.0


class Hook:
    """`shutdown`, begun when the container is to be stopped; `prefix` is what runs it elsewhere or as somebody else."""

    def __init__(self, *flags: str, prefix: Sequence[str] = ()) -> None:
        words = [*prefix, str(_PROGRAM), "shutdown", "--log-file", "none", *flags]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, **sanitizers.ENVIRONMENT})
        self._began = time.monotonic()
        self.seconds = 0.0

    def wait_line(self, words: str) -> None:
        """Until its log says so, or it has ended, which its own time-out bounds. Lines up to there are not in wait()'s log."""
        assert self.process.stderr
        assert any(words in line for line in self.process.stderr), words

    def wait(self) -> tuple[int, str]:
        """Its exit status and its log."""
        _, log = self.process.communicate(timeout=PATIENCE_S)
        self.seconds = time.monotonic() - self._began
        print(log)
        return self.process.returncode, log


def attempts(operations: str, *flags: str, prefix: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Of one drain, one after the other: "begin,count" (drivers/drain_driver.c)."""
    words = [*prefix, str(_DRIVER), operations, *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, **sanitizers.ENVIRONMENT})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def attempt(operation: str, *flags: str, prefix: Sequence[str] = ()) -> dict[str, Any]:
    (result,) = attempts(operation, *flags, prefix=prefix)
    return result
