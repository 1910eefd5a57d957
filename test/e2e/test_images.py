"""Images written by hand. Needs no cluster."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from certroll_dev import archives, debian_root, elf
from certroll_dev.debian_records import Records
from certroll_dev.image_recipe import HOST, System
from certroll_dev.images import About, ImageError, build_image, shared_libraries
from certroll_dev.ui import DevError


def _build(folder: Path, files: dict[str, Path | bytes], **options: object) -> Path:
    return build_image(folder / "image.tar", "example/test:1", files, entrypoint=["/bin/ls"], **options)  # type: ignore[arg-type]


def _layer(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as outer:
        manifest = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
        assert manifest[0]["RepoTags"] == ["example/test:1"]
        content = outer.extractfile(manifest[0]["Layers"][0]).read()  # type: ignore[union-attr]
    with tarfile.open(fileobj=io.BytesIO(content)) as layer:
        return {entry.name: entry for entry in layer}


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    files: dict[str, Path | bytes] = {"/bin/ls": Path("/bin/ls"), "/etc/greeting": b"hello\n"}
    first, second = tmp_path / "a", tmp_path / "b"
    assert _build(first, files).read_bytes() == _build(second, dict(reversed(files.items()))).read_bytes()


def test_an_archive_says_what_its_image_is_called(tmp_path: Path) -> None:
    assert archives.reference(_build(tmp_path, {"/bin/ls": Path("/bin/ls")})) == "example/test:1"


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    other = tmp_path / "other.tar"
    with tarfile.open(other, "w") as tar:
        tar.add("/etc/hosts")
    for file in (other, tmp_path / "nothing", Path("/etc/hosts")):
        with pytest.raises(DevError, match=f"{file} is no archive of an image"):
            archives.reference(file)


def test_programs_come_with_their_libraries_and_loader(tmp_path: Path) -> None:
    layer = _layer(_build(tmp_path, {"/bin/ls": Path("/bin/ls")}))
    assert any(name.endswith("/libc.so.6") for name in layer)
    assert any("ld-linux" in name for name in layer)
    # A program names its loader below /lib or /lib64, which are links: nothing may be put in their place.
    assert layer["lib64"].issym() and layer["lib"].issym() and layer["bin"].issym()
    assert not [name for name in layer if name.startswith(("lib/", "lib64/", "bin/"))]
    assert layer["usr/bin/ls"].mode == 0o755


def test_parents_come_before_children(tmp_path: Path) -> None:
    names = list(_layer(_build(tmp_path, {"/a-b/c": b"", "/a/b/c": b""})))
    assert all(str(Path(name).parent) in [".", *names[:index]] for index, name in enumerate(names))


def test_a_tree_keeps_its_links(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "file").write_text("x")
    (tree / "link").symlink_to("sub/file")
    layer = _layer(_build(tmp_path, {"/opt/tree": tree}))
    assert layer["opt/tree/link"].linkname == "sub/file" and layer["opt/tree/sub/file"].isreg()


def test_extra_folders_belong_to_the_user(tmp_path: Path) -> None:
    layer = _layer(_build(tmp_path, {}, user="1000:2000", dirs=["/var/lib/data"]))
    assert (layer["var/lib/data"].uid, layer["var/lib/data"].gid) == (1000, 2000)
    assert layer["var/lib"].uid == 0


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        ({"/bin/x": Path("/nonexistent/x")}, {}, "no such file"),
        ({}, {"user": "nobody"}, "numeric"),
        ({"/etc": b""}, {}, "folder and a file"),
    ],
)
def test_what_cannot_be_built_is_said(
    tmp_path: Path, files: dict[str, Path | bytes], options: dict[str, object], says: str
) -> None:
    with pytest.raises(ImageError, match=says):
        _build(tmp_path, files, **options)


# --- of another Debian than this machine's -------------------------------------------------------------------------------------


def test_an_image_says_what_it_is_about(tmp_path: Path) -> None:
    about = About("arm64", "2026-11-29T00:00:00Z", {"org.opencontainers.image.version": "1"})
    with tarfile.open(_build(tmp_path, {}, libs=False, about=about)) as outer:
        [image] = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
        config = json.load(outer.extractfile(image["Config"]))  # type: ignore[arg-type]
        [manifest] = json.load(outer.extractfile("index.json"))["manifests"]  # type: ignore[arg-type]
    assert (config["architecture"], config["created"], config["config"]["Labels"]) == (about.arch, about.created, about.labels)
    assert manifest["platform"]["architecture"] == "arm64"


def test_the_headers_of_a_program_name_what_the_loader_takes() -> None:
    found = {path.name for path in shared_libraries([Path("/bin/ls")])}
    needed = elf.needed(Path("/bin/ls"))
    assert needed[0].startswith("/lib") and {Path(name).name for name in needed} <= found


def test_files_are_looked_for_in_the_system_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "usr/lib").mkdir(parents=True)
    (second / "usr/lib/a.so.1").write_text("second")
    (second / "usr/lib/absolute").symlink_to("/usr/lib/a.so.1")
    (second / "usr/lib/out").symlink_to("../../../first")
    system = System([first, second])
    assert system.find("/usr/lib/a.so.1") == system.find("/usr/lib/absolute") == second / "usr/lib/a.so.1"
    (first / "usr/lib/a.so.1").write_text("first")
    assert system.find("/usr/lib/a.so.1") == first / "usr/lib/a.so.1"
    assert system.find("/usr/lib/none") is None
    with pytest.raises(DevError, match="leads out of"):
        system.find("/usr/lib/out")


def test_a_file_is_of_the_package_that_has_it() -> None:
    """As this machine's dpkg has it, by either name of a folder."""
    records = Records(HOST, debian_root.native())
    libc = records.owner("/lib64/ld-linux-x86-64.so.2" if debian_root.native() == "amd64" else "/lib/ld-linux-aarch64.so.1")
    assert libc.name == "libc6" and libc.source == "glibc"
    assert records.owner("/usr/bin/ls").name == records.owner("/bin/ls").name == "coreutils"
    assert records.owner("/bin/ls").url.startswith("pkg:deb/debian/coreutils@")
    with pytest.raises(DevError, match="is of no Debian package"):
        records.owner("/usr/bin/nobody")
