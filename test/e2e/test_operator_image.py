"""The operator's image: hack/image makes it alone, buildah by the Dockerfile, and both are the same. Needs no cluster."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]
_HACK_IMAGE = _REPOSITORY / "hack" / "image"
_PROGRAMS = ("certroll-certgen", "certroll-operator", "certroll-sidecar")


@pytest.fixture(scope="module")
def archive(operator_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("image") / "operator.tar"
    _run(_HACK_IMAGE, "--quiet", "--program", operator_program, "--tag", "1", "--output", out)
    return out


class Buildah:
    def __init__(self, folder: Path) -> None:
        self._options = ["--root", folder / "root", "--runroot", folder / "run", "--storage-driver", "vfs"]

    def __call__(self, *words: str | Path) -> str:
        return _run("buildah", *self._options, *words).strip()


@pytest.fixture
def buildah(tmp_path: Path) -> Iterator[Buildah]:
    """With a storage of its own, which is emptied: vfs keeps a copy of every layer."""
    found = Buildah(tmp_path)
    yield found
    found("rm", "--all")
    found("rmi", "--all", "--force")


def _run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words[0]} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def _docker(archive: Path) -> tuple[dict[str, object], list[tuple[object, ...]]]:
    """The configuration, and each file of the one layer with all that decides what a container sees."""
    with tarfile.open(archive) as outer:
        [image] = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
        config = json.load(outer.extractfile(image["Config"]))["config"]  # type: ignore[arg-type]
        [layer] = image["Layers"]
        content = outer.extractfile(layer).read()  # type: ignore[union-attr]
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        files = [(e.name.strip("/"), e.type, oct(e.mode & 0o7777), e.size, e.uid, e.gid, e.linkname) for e in tar]
    return config, sorted(file for file in files if file[0])


def test_the_dockerfile_makes_the_same_image(archive: Path, buildah: Buildah, operator_program: Path, tmp_path: Path) -> None:
    rootfs, theirs = tmp_path / "rootfs", tmp_path / "buildah.tar"
    _run(_HACK_IMAGE, "--quiet", "--program", operator_program, "--rootfs", rootfs)
    buildah("bud", "--isolation", "chroot", "--tag", "certroll.dev/operator:1", "--file", _REPOSITORY / "Dockerfile", rootfs)
    buildah("push", "certroll.dev/operator:1", f"docker-archive:{theirs}")
    our_config, our_files = _docker(archive)
    their_config, their_files = _docker(theirs)
    assert our_files == their_files
    assert {f"usr/bin/{name}" for name in _PROGRAMS} <= {str(file[0]) for file in our_files}
    for key in ("Entrypoint", "User", "WorkingDir"):
        assert our_config[key] == their_config[key]


def test_the_programs_run_in_it(archive: Path, buildah: Buildah, operator_program: Path) -> None:
    """From the OCI side of the archive, as its user, with nothing but what is in the image and a /proc.

    Not by `buildah run`, which passes on what a program says without waiting for the last of it.
    """
    container = buildah("from", f"oci-archive:{archive}")
    root = Path(buildah("mount", container))
    user = buildah("inspect", "--format", "{{.OCIv1.Config.User}}", container)
    assert user and not user.startswith("0")
    (root / "proc").mkdir(exist_ok=True)
    inside = ("unshare", "--mount", "--pid", "--fork", f"--mount-proc={root / 'proc'}", "chroot", f"--userspec={user}", root)
    for name in _PROGRAMS:
        assert _run(*inside, f"/usr/bin/{name}", "--version") == _run(operator_program.with_name(name), "--version")


def test_its_digest_is_the_one_that_other_tools_find(archive: Path, buildah: Buildah, operator_program: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.tar"
    told = _run(_HACK_IMAGE, "--quiet", "--digest", "--program", operator_program, "--tag", "1", "--output", same).strip()
    container = buildah("from", f"oci-archive:{archive}")
    assert buildah("inspect", "--format", "{{.FromImageDigest}}", container) == told


def test_nothing_else_in_it_could_be_run(archive: Path) -> None:
    """No shell and no tools: the programs, and libraries."""
    _, files = _docker(archive)
    folders = ("usr/bin/", "usr/sbin/", "usr/local/")
    programs = [str(file[0]) for file in files if str(file[0]).startswith(folders)]
    assert programs == [f"usr/bin/{name}" for name in _PROGRAMS]


def test_all_time_zones_are_in_it(archive: Path) -> None:
    """By their old names, too, and each as a file that can be read; not the ones with leap seconds."""
    _, files = _docker(archive)
    folder = "usr/share/zoneinfo/"
    sizes = {str(file[0]).removeprefix(folder): int(str(file[3])) for file in files if str(file[0]).startswith(folder)}
    for name in ("Europe/Paris", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "US/Pacific", "Asia/Calcutta"):
        assert sizes[name] > 100
    assert not [name for name in sizes if name.startswith(("posix", "right")) or "." in name]
    assert sum(sizes.values()) < 1_000_000


def test_the_same_program_gives_the_same_bytes(archive: Path, operator_program: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar"
    _run(_HACK_IMAGE, "--quiet", "--program", operator_program, "--tag", "1", "--output", again)
    assert again.read_bytes() == archive.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--program", "/nonexistent"), "is not there"),
        (("--program", "/bin/ls"), "is no certroll-operator"),
        (("--tag", ".x"), "no tag"),
        (("--rootfs", "/usr"), "is there already"),
    ],
)
def test_what_cannot_be_built_is_said(operator_program: Path, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    defaults = ("--quiet", "--program", str(operator_program))
    done = subprocess.run([_HACK_IMAGE, *defaults, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and says in done.stderr, done.stderr
