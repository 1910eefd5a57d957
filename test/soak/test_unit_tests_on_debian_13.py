"""Our unit tests on the packages of the images: as they are built there, and for another processor.

With the machine to themselves: in an emulator a handshake takes a good part of the time that a program gives it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from architectures import EMULATOR, FOREIGN
from certroll_dev import debian_root, release_build
from certroll_dev.debian_root import Mount, Root

pytestmark = pytest.mark.timeout(5400)  # they are built

# They ask what the emulator answers: which files are programs, how much memory a process has, which signals it takes, what it is called.
_SEE_THE_EMULATOR = ("test_instance_lock", "test_metrics", "test_proc", "test_process", "test_processes", "test_trigger_signal")
# For the tests that trust the system's CAs.
_SYSTEM_CAS = Mount(Path("/etc/ssl/certs"), "/etc/ssl/certs")


def _ctest(root: Root, folder: Path, *options: str) -> None:
    words = ["ctest", "--test-dir", "/build", "--parallel", "4", "--output-on-failure", *options]
    done = subprocess.run(root.command(words, [*release_build.mounts(folder), _SYSTEM_CAS]), capture_output=True, text=True)
    assert done.returncode == 0 and "100% tests passed" in done.stdout, done.stdout[-20000:] + done.stderr


def test_they_pass_with_sanitizers() -> None:
    with debian_root.locked(debian_root.native(), any_day=True) as root:
        _ctest(root, release_build.build(root, "dev", []).folder)


def test_they_pass_in_an_emulator() -> None:
    """Compiled as the images' programs are, but for their optimization while linking: ten minutes."""
    emulator = Path(shutil.which(EMULATOR) or pytest.fail("run hack/deps image"))
    variables = ["CERTROLL_TESTS=ON", "CMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF", f"CMAKE_CROSSCOMPILING_EMULATOR=/build/{emulator.name}"]
    with debian_root.locked(FOREIGN, any_day=True) as root:
        built = release_build.build(root, "release", [], variables)
        shutil.copy(emulator, built.folder)
        _ctest(root, built.folder, "--exclude-regex", f"^({'|'.join(_SEE_THE_EMULATOR)})$")
