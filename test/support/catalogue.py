"""What the catalogue and the rules say about a pod template (test/integration/drivers/catalogue_driver.c)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BUILD = Path(os.environ.get("CERTROLL_BUILD", Path(__file__).resolve().parents[2] / "build" / "dev"))
_DRIVER = _BUILD / "test" / "catalogue_driver"

LEAF_CHANGED = ("LeafRenewed", "KeyChanged", "IssuerChanged")
TRUST_CHANGED = ("TrustAdded", "TrustRemoved", "TrustReplaced")

Answer = Mapping[str, Any]


def ask(pod: Mapping[str, Any], secret: str, changes: tuple[str, ...], overrides: Path | None = None) -> Answer:
    """The decision for a change of the Secret, and per role that it plays in this PodSpec the capability.

    `overrides` is a file in the catalogue's format, laid over the built-in one.
    """
    option: list[str | Path] = ["--catalogue", overrides] if overrides else []
    words = [_DRIVER, *option, secret, "tls.crt", "tls.key", "ca.crt", *changes]
    done = subprocess.run(words, input=json.dumps(pod), capture_output=True, text=True)
    assert done.returncode == 0, f"catalogue_driver ended with {done.returncode}: {done.stderr}"
    answer: Answer = json.loads(done.stdout)
    return answer
