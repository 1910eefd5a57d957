"""The shutdown manager's image: one program by three names, which takes the place of Contour's and Envoy Gateway's. Needs no cluster."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from certroll_dev import shutdown_manager_image
from certroll_dev.image_recipe import HOST, Image
from certroll_dev.ui import DevError

_PROGRAM = "usr/bin/certroll-shutdown-manager"
_CONTOUR = "bin/contour"  # the command of Contour's manifests
_GATEWAY = "envoy-gateway"  # that of Envoy Gateway's, found by PATH


@pytest.fixture(scope="module")
def layer(shutdown_manager_image: Image) -> bytes:
    with tarfile.open(shutdown_manager_image.archive) as outer:
        [image] = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
        [layer] = image["Layers"]
        return outer.extractfile(layer).read()  # type: ignore[union-attr]


@pytest.fixture
def root(layer: bytes, tmp_path: Path) -> Path:
    """What a container sees."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        tar.extractall(tmp_path / "root", filter="fully_trusted")
    return tmp_path / "root"


def _run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """As the image's user, with the PATH of its configuration."""
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    command = ["chroot", "--userspec=65532:65532", root, *words]
    return subprocess.run(command, env=path, capture_output=True, text=True, timeout=60)


def test_there_is_one_program_and_nothing_beside_it(layer: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        entries = {entry.name.strip("/"): entry for entry in tar}
    files = {name for name, entry in entries.items() if entry.isfile()}
    assert files == {_PROGRAM, "etc/passwd", "etc/group", "etc/nsswitch.conf"}
    links = {name for name, entry in entries.items() if entry.issym() and entry.linkname == f"/{_PROGRAM}"}
    assert links == {"usr/bin/contour", "usr/local/bin/envoy-gateway"}
    assert entries["tmp"].mode == 0o1777  # Envoy Gateway's ready file is there
    assert len(layer) < 3 << 20


def test_it_runs_as_any_of_the_three(root: Path) -> None:
    for name in (f"/{_PROGRAM}", f"/{_CONTOUR}", _GATEWAY):
        assert _run(root, name, "--version").stdout.startswith("certroll-shutdown-manager ")


@pytest.mark.parametrize(
    ("words", "address", "ready"),
    [
        ((f"/{_CONTOUR}", "envoy", "shutdown", "--drain-timeout=300ms"), "/admin/admin.sock", None),
        ((_GATEWAY, "envoy", "shutdown", "--drain-timeout=300ms", "--min-drain-duration=0s"), "localhost:19000", "tmp/shutdown-ready"),
        ((f"/{_PROGRAM}", "shutdown", "--drain-timeout=300ms"), "127.0.0.1:9901", None),
    ],
)
def test_each_name_has_its_projects_defaults(root: Path, words: tuple[str, ...], address: str, ready: str | None) -> None:
    """There is no Envoy here: it says which one it looked for."""
    done = _run(root, *words)
    assert done.returncode == 1
    assert json.loads(done.stderr.splitlines()[0])["address"] == address
    if ready:
        assert (root / ready).read_text() == "TimedOut"


def test_a_program_that_needs_libraries_is_refused() -> None:
    with pytest.raises(DevError, match="not linked statically"):
        shutdown_manager_image.RECIPE.files(Path("/bin/ls"), HOST)
