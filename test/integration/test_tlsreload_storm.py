"""A server on tlsreload whose Secret's volume is swapped all the time while clients connect: nobody notices."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from operators import PROGRAM

LONG = os.environ.get("CERTROLL_LONG") == "1"
BUILD = PROGRAM.parents[1]
SWAPS = 10_000 if LONG else 320
SWAPS_OF_A_RELOAD = 20  # at most: a burst of 16 is one reload, sometimes two
RATE = 200 if LONG else 50  # handshakes a second that are asked for; a busy machine has fewer
GROWTH_KIB = 32 * 1024  # AddressSanitizer's own book-keeping; what leaks for good, its end report says


def test_no_handshake_fails_and_none_is_mixed_while_the_material_is_swapped(tmp_path: Path) -> None:
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench-handshakes"], check=True, capture_output=True)
    words = [BUILD / "bin" / "bench-handshakes", "--rate", RATE, "--swaps", SWAPS, tmp_path]
    # What is freed shall be free: AddressSanitizer keeps 256 MiB of it otherwise.
    environment = os.environ | {"ASAN_OPTIONS": "quarantine_size_mb=1:detect_leaks=1", "TSAN_OPTIONS": "exitcode=66"}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=1800, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stdout)
    seen = json.loads(done.stdout)
    assert seen["swaps"] == SWAPS and seen["reloads"] >= SWAPS / SWAPS_OF_A_RELOAD, seen
    assert seen["handshakes"] >= seen["reloads"], seen
    assert (seen["failed"], seen["refused"], seen["mixed"], seen["failures"]) == (0, 0, 0, 0), seen
    assert seen["settled"], seen
    assert seen["end"]["descriptors"] <= seen["start"]["descriptors"], seen  # at the start the files may be open
    assert seen["end"]["anonymous_kib"] <= seen["quarter"]["anonymous_kib"] + GROWTH_KIB, seen
