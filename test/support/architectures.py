"""The processors for which images are made: this machine's, and one that an emulator has."""

from __future__ import annotations

from certroll_dev import debian_root
from certroll_dev.images import ARCHITECTURES

ARCHES = tuple(ARCHITECTURES.values())
FOREIGN = next(arch for arch in ARCHES if arch != debian_root.native())
EMULATOR = {"arm64": "qemu-aarch64-static", "amd64": "qemu-x86_64-static"}[FOREIGN]
