"""The node agent's image: its program, nsenter, their libraries, and nothing else that could run. Needs no cluster."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from certroll_dev import node_agent_image
from certroll_dev.paths import REPOSITORY


@pytest.fixture(scope="module")
def archive(operator_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("image") / "node-agent.tar"
    program = operator_program.with_name("certroll-node-agent")
    words = [REPOSITORY / "hack" / "image", "node-agent", "--quiet", "--program", program, "--tag", "1", "--output", out]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return out


@pytest.fixture(scope="module")
def root(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a container sees."""
    folder = tmp_path_factory.mktemp("root")
    with tarfile.open(archive) as outer:
        [image] = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
        assert image["RepoTags"] == [f"{node_agent_image.REPOSITORY}:1"]
        [layer] = image["Layers"]
        with tarfile.open(fileobj=io.BytesIO(outer.extractfile(layer).read())) as tar:  # type: ignore[union-attr]
            tar.extractall(folder, filter="fully_trusted")
    return folder


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """With a /proc, from which sanitizers read their options."""
    (root / "proc").mkdir(exist_ok=True)
    script = 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
    return subprocess.run(["unshare", "--mount", "sh", "-c", script, root, *words], capture_output=True, text=True, timeout=60)


def test_there_are_two_programs(root: Path) -> None:
    runs = {path.name for path in (root / "usr" / "bin").iterdir()}
    assert runs == {"certroll-node-agent", "nsenter"}


def test_both_run_with_what_is_there(root: Path) -> None:
    assert run(root, "/usr/bin/certroll-node-agent", "--version").stdout.startswith("certroll-node-agent ")
    assert run(root, "nsenter", "--version").stdout.startswith("nsenter ")


@pytest.mark.parametrize("nodes", ["control-plane", "workers"])
def test_the_manifests_name_it(nodes: str) -> None:
    text = (REPOSITORY / "manifests" / "node-agent" / nodes / "daemonset.yaml").read_text()
    [container] = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith(f"{node_agent_image.REPOSITORY}:")
