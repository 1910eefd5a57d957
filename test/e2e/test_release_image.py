"""Images on Debian 13's packages: two checkouts give the same, Syft finds what is recorded, cosign signs and refuses. Needs no
cluster. What is committed is tested: the images are made in clones of this checkout."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from architectures import ARCHES, EMULATOR, FOREIGN
from certroll_dev import commands, debian_root, elf, paths, tools
from certroll_dev.demo.waiting import wait_for
from e2e.release_images import IMAGES, Built, Checkout, ours

pytestmark = [pytest.mark.usefixtures("polite"), pytest.mark.timeout(5400)]  # programs are built, ours for two architectures and cosign and Syft

_MACHINES = {"arm64": "AArch64", "amd64": "Advanced Micro Devices X86-64"}


@pytest.fixture(scope="module")
def first() -> Checkout:
    return Checkout("first")


@pytest.fixture(scope="module")
def second() -> Checkout:
    return Checkout("a-second-one-in-a-folder-of-another-length")


@pytest.fixture(scope="module")
def images(first: Checkout) -> dict[tuple[str, str], Built]:
    return {(image, arch): first.build(image, "--arch", arch) for arch in ARCHES for image in IMAGES}


# --- what is in them ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("image", IMAGES)
def test_another_checkout_gives_the_same_bytes(image: str, arch: str, images: dict[tuple[str, str], Built], second: Checkout) -> None:
    again = second.build(image, "--arch", arch)
    for here, there in zip(images[image, arch].files(), again.files(), strict=True):
        assert here != there
        assert hashlib.sha256(here.read_bytes()).digest() == hashlib.sha256(there.read_bytes()).digest(), here.name


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("image", IMAGES)
def test_every_file_is_ours_or_of_a_recorded_package(image: str, arch: str, images: dict[tuple[str, str], Built], tmp_path: Path) -> None:
    root = images[image, arch].extract(tmp_path)
    records = root / "var/lib/dpkg/status.d"
    sums = dict(reversed(line.split(maxsplit=1)) for file in records.glob("*.md5sums") for line in file.read_text().splitlines())
    packages = {file.name for file in records.iterdir() if file.suffix != ".md5sums"}
    assert packages == {name for name, _, _ in images[image, arch].packages()}
    made = {"etc/passwd", "etc/group", "etc/nsswitch.conf", *ours(image)}
    for name in packages:
        made |= {f"var/lib/dpkg/status.d/{name}", f"var/lib/dpkg/status.d/{name}.md5sums", f"usr/share/doc/{name}/copyright"}
    files = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file() and not path.is_symlink()}
    assert files.keys() == made | sums.keys()
    for path, digest in sums.items():
        assert hashlib.md5(files[path].read_bytes()).hexdigest() == digest
    for path in files.values():
        if elf.is_elf(path):
            assert elf.machine(path) == _MACHINES[arch]


def test_they_say_what_they_were_built_from(first: Checkout, images: dict[tuple[str, str], Built]) -> None:
    for (image, arch), built in images.items():
        assert built.config()["architecture"] == arch
        assert built.label("revision") == first.head()
        assert built.label("title") == f"certroll-{image}"
        assert built.label("created") == built.config()["created"]
        predicate = json.loads(built.provenance.read_text())
        source, *packages = predicate["buildDefinition"]["resolvedDependencies"]
        assert source["digest"] == {"gitCommit": first.head()}
        assert any(each["uri"].startswith("pkg:deb/debian/gcc") for each in packages)


def test_a_changed_checkout_is_not_taken_for_its_commit(second: Checkout) -> None:
    """Nor what is no repository for a commit; and where the source is, is said when it is asked for."""
    changed = second.folder / "cmd" / "shutdown-manager" / "unknown.h"
    changed.write_text("/* Of no commit. */\n")
    built = second.build("shutdown-manager", "--source", "https://git.example.org/certroll")
    assert built.label("revision") == f"{second.head()}-dirty"
    assert built.label("source") == "https://git.example.org/certroll"
    assert "digest" not in json.loads(built.provenance.read_text())["buildDefinition"]["resolvedDependencies"][0]
    changed.unlink()
    hidden = second.folder / ".git"
    hidden.rename(second.folder / "build" / "git")
    try:
        # The folder is in a repository all the same: in this one's.
        assert second.build("shutdown-manager").label("revision") == "none"
    finally:
        (second.folder / "build" / "git").rename(hidden)


def test_old_names_of_time_zones_are_there(images: dict[tuple[str, str], Built], tmp_path: Path) -> None:
    zones = images["operator", debian_root.native()].extract(tmp_path) / "usr/share/zoneinfo"
    for name in ("Europe/Paris", "US/Pacific", "Asia/Calcutta", "Etc/GMT+5"):
        assert (zones / name).read_bytes()[:4] == b"TZif"


def test_an_image_of_another_kind_leaves_no_statements_beside_it(first: Checkout, tmp_path: Path) -> None:
    built = Built(tmp_path / "image.tar")
    first.build("shutdown-manager", "--output", str(built.archive))
    assert all(file.is_file() for file in built.files())
    first.build("shutdown-manager", "--rootfs", str(tmp_path / "rootfs"))
    program = tmp_path / "rootfs/usr/bin/certroll-shutdown-manager"
    first.build("shutdown-manager", "--program", str(program), "--output", str(built.archive))
    assert [file.is_file() for file in built.files()] == [True, False, False]


# --- they run -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("image", IMAGES)
def test_their_programs_run(image: str, images: dict[tuple[str, str], Built], tmp_path: Path) -> None:
    """With nothing but what is in the image."""
    root = images[image, debian_root.native()].extract(tmp_path)
    for program in [*ours(image), *(["usr/bin/nsenter"] if image == "node-agent" else [])]:
        assert commands.run(["chroot", root, f"/{program}", "--version"]).startswith(f"{Path(program).name} ")


@pytest.mark.parametrize("image", IMAGES)
def test_those_for_another_architecture_run_in_an_emulator(image: str, images: dict[tuple[str, str], Built], tmp_path: Path) -> None:
    root = images[image, FOREIGN].extract(tmp_path)
    for program in [*ours(image), *(["usr/bin/nsenter"] if image == "node-agent" else [])]:
        assert commands.run([EMULATOR, "-L", root, root / program, "--version"]).startswith(f"{Path(program).name} ")


# --- scanners -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def syft() -> Path:
    return tools.ensure(["syft"])["syft"]


def _syft(syft: Path, *words: str | Path) -> dict[str, Any]:
    environment = {**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false"}
    found: dict[str, Any] = json.loads(commands.run([syft, *words, "--quiet", "--output", "syft-json"], env=environment))
    return found


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("image", IMAGES)
def test_syft_finds_the_recorded_packages(image: str, arch: str, images: dict[tuple[str, str], Built], syft: Path) -> None:
    found = _syft(syft, "scan", f"oci-archive:{images[image, arch].archive}")
    debian = {(each["name"], each["version"], each["purl"]) for each in found["artifacts"] if each["type"] == "deb"}
    assert debian == images[image, arch].packages()
    assert (found["distro"]["id"], found["distro"]["versionID"]) == ("debian", "13")


def test_syft_reads_the_sbom(images: dict[tuple[str, str], Built], syft: Path) -> None:
    built = images["operator", "amd64"]
    found = _syft(syft, "convert", built.sbom)
    debian = {(each["name"], each["version"], each["purl"]) for each in found["artifacts"] if each["type"] == "deb"}
    assert debian == built.packages()


# --- signatures ---------------------------------------------------------------------------------------------------------------


class Registry:
    """On loopback, with an image of ours under a user's key: pushed, signed and attested as SECURITY.md says."""

    def __init__(self, port: int, folder: Path, checkout: Checkout) -> None:
        self.host = f"127.0.0.1:{port}"
        self.checkout = checkout
        self.folder = folder
        programs = tools.ensure(["cosign", "crane"])
        self.crane, cosign = programs["crane"], programs["cosign"]
        registries = folder / ".config" / "containers" / "registries.conf"
        registries.parent.mkdir(parents=True)
        registries.write_text(f'[[registry]]\nlocation = "{self.host}"\ninsecure = true\n')
        self._env = {
            **os.environ, "PATH": f"{cosign.parent}:{os.environ['PATH']}", "COSIGN_PASSWORD": "of-a-test",
            "DOCKER_CONFIG": str(folder), "HOME": str(folder), "XDG_CACHE_HOME": str(paths.cache_dir().parent),
        }  # fmt: skip

    def bash(self, script: str) -> subprocess.CompletedProcess[str]:
        """In the checkout, with the keys of the folder."""
        lines = script.replace("registry.example.org", self.host)
        for name in ("cosign.key", "cosign.pub"):
            lines = lines.replace(f"--key {name}", f"--key {self.folder / name}")
        lines = re.sub(r"^cosign generate-key-pair$", f"(cd {self.folder} && cosign generate-key-pair)", lines, flags=re.MULTILINE)
        return subprocess.run(["bash", "-euo", "pipefail", "-c", lines], capture_output=True, text=True, cwd=self.checkout.folder, env=self._env)


def _commands(number: int) -> str:
    """The block of that number under "Signing images"."""
    section = (paths.REPOSITORY / "SECURITY.md").read_text().partition("## Signing images\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .+\n)+", section, re.MULTILINE)
    return textwrap.dedent(blocks[number])


_SIGN, _VERIFY = 0, 1


def _names() -> str:
    """The lines of the first block that name things, which the second goes on with."""
    return "".join(line + "\n" for line in _commands(_SIGN).splitlines() if re.match(r"\w+=", line))


@pytest.fixture(scope="module")
def registry(first: Checkout, images: dict[tuple[str, str], Built], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("registry")
    found = Registry(port, folder, first)
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([found.crane, "registry", "serve", "--address", found.host], stdout=log, stderr=log)
        try:
            wait_for("the registry to answer", lambda: _answers(port), deadline=60)
            signed = found.bash(_commands(_SIGN))
            assert signed.returncode == 0, signed.stderr
            yield found
        finally:
            server.terminate()
            server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_what_was_signed_verifies(registry: Registry, images: dict[tuple[str, str], Built]) -> None:
    """The registry has the image by the digest that hack/image tells, and what was attested is what lies beside the archive."""
    done = registry.bash(_names() + _commands(_VERIFY))
    assert done.returncode == 0, done.stderr
    built = images["operator", debian_root.native()]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    attested = [json.loads(base64.b64decode(line["payload"]))["predicate"] for line in lines]
    assert attested[1]["runDetails"].pop("metadata") == {}  # which cosign adds
    assert attested == [json.loads(built.sbom.read_text()), json.loads(built.provenance.read_text())]


def test_another_image_is_refused(registry: Registry) -> None:
    """The same name with another digest: that of the shutdown manager."""
    names = _names()
    put = "skopeo copy --preserve-digests oci-archive:build/image/certroll-shutdown-manager-0.1.0.tar docker://$repository:0.1.0\n"
    assert registry.bash(names + put).returncode == 0
    for verify in ["verify", "verify-attestation --type spdxjson"]:
        done = registry.bash(f"{names}cosign {verify} --key cosign.pub --insecure-ignore-tlog $repository:0.1.0")
        assert done.returncode != 0 and re.search(r"no (matching )?(signatures|attestations)", done.stderr), done.stderr
    assert registry.bash(names + _commands(_VERIFY)).returncode == 0


def test_another_key_is_refused(registry: Registry, tmp_path: Path) -> None:
    made = registry.bash(f"cd {tmp_path} && cosign generate-key-pair --output-key-prefix other")
    assert made.returncode == 0, made.stderr
    for line in _commands(_VERIFY).splitlines():
        done = registry.bash(_names() + line.replace("--key cosign.pub", f"--key {tmp_path}/other.pub"))
        why = "accepted signatures do not match threshold, Found: 0" if "verify-attestation" in line else "invalid signature"
        assert done.returncode != 0 and why in done.stderr, done.stderr
