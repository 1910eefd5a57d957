"""Where things are: this checkout, the cache, the state of running clusters."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
HACK = REPOSITORY / "hack"
CRDS = REPOSITORY / "crds"


def crd_names() -> list[str]:
    """As kubectl takes them: "crd/certrotationpolicies.certroll.dev"."""
    return sorted(f"crd/{'.'.join(reversed(each.stem.split('_')))}" for each in CRDS.glob("certroll.dev_*.yaml"))


def cache_dir() -> Path:
    """What can be downloaded or built again, shared by all checkouts of a user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "certroll"


def state_dir() -> Path:
    """State of the clusters that run. On a disk and not in /run, which Debian mounts small and noexec."""
    return Path(os.environ.get("CERTROLL_STATE_DIR") or "/var/lib/certroll")
