"""Which libraries our programs load. Needs no cluster."""

from __future__ import annotations

import subprocess

import pytest
from operators import PROGRAM

# Of protocols that nothing here speaks. libcurl's shared library loads them, and what they need: 3 MiB in each process.
_FOREIGN = ("libcurl", "libssh2", "libldap", "librtmp", "libgssapi", "libkrb5", "libgnutls", "libsasl", "libpsl", "libidn2", "libbrotli")


@pytest.mark.parametrize("name", ["certroll-operator", "certroll-certgen", "certroll-sidecar"])
def test_none_is_of_a_protocol_that_is_not_spoken(name: str) -> None:
    """A libcurl whose archive does not link any more is taken as the shared one, which nothing else would tell."""
    program = PROGRAM.with_name(name)
    if "CERTROLL_CURL_ARCHIVE:BOOL=OFF" in (PROGRAM.parents[1] / "CMakeCache.txt").read_text():
        pytest.skip("built with -DCERTROLL_CURL_ARCHIVE=OFF")
    loaded = subprocess.run(["ldd", program], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "libc.so" in loaded
    assert [line.strip() for line in loaded.splitlines() if line.strip().startswith(_FOREIGN)] == []
