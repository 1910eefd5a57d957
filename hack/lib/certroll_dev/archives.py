"""An image as one file that every tool takes: an OCI archive that is a Docker archive, too.

Both are tar files with the same blobs: OCI has index.json and oci-layout beside them, Docker manifest.json. `docker save`
writes such files itself since version 25. Sources: the OCI image specification (image-layout.md), and Docker's image
specification v1.2 for manifest.json.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import layers
from .layers import Entry
from .ui import DevError

_MEDIA = "application/vnd.oci.image"
_EPOCH = "1970-01-01T00:00:00Z"


def write(out: Path, name: str, entries: Sequence[Entry], config: Mapping[str, Any]) -> None:
    """Next to `out`, then renamed: a killed build leaves no half image under a good name."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".image-", dir=out.parent) as scratch:
        layer = Path(scratch) / "layer.tar"
        layers.write_tar(layer, entries)
        archive = Path(scratch) / "image.tar"
        with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
            _put(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
            _put_image(tar, name, layer, config)
        os.replace(archive, out)


def digest(archive: Path) -> str:
    """sha256:… of the image's manifest: what a registry calls it by when it is copied there as it is."""
    with tarfile.open(archive) as tar:
        index = tar.extractfile("index.json")
        assert index, archive
        [manifest] = json.load(index)["manifests"]
    found: str = manifest["digest"]
    return found


def reference(archive: Path) -> str:
    """The name of the one image in there, with its tag, from what `docker load` and `ctr images import` read."""
    try:
        with tarfile.open(archive) as tar:
            manifest = tar.extractfile("manifest.json")
            assert manifest, archive
            images = json.load(manifest)
    except (OSError, KeyError, tarfile.TarError, ValueError) as error:
        raise DevError(f"{archive} is no archive of an image with a manifest.json: {error}") from error
    names = [name for image in images for name in image["RepoTags"] or ()]
    if len(names) != 1:
        raise DevError(f"{archive} has {len(names)} names of images, and should have one: {' '.join(names)}")
    found: str = names[0]
    return found


def _put_image(tar: tarfile.TarFile, name: str, layer: Path, config: Mapping[str, Any]) -> None:
    with layer.open("rb") as file:
        layer_digest = hashlib.file_digest(file, "sha256").hexdigest()
    _put_file(tar, _blob(layer_digest), layer)
    created = config.get("created", _EPOCH)
    history = [{"created": created, "created_by": "certroll hack/image"}]
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]}
    config_digest, config_descriptor = _put_blob(
        tar, f"{_MEDIA}.config.v1+json", {**config, "created": created, "rootfs": rootfs, "history": history}
    )
    layer_descriptor = {
        "mediaType": f"{_MEDIA}.layer.v1.tar",
        "digest": f"sha256:{layer_digest}",
        "size": layer.stat().st_size,
    }
    manifest = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.manifest.v1+json"}
    manifest |= {"config": config_descriptor, "layers": [layer_descriptor]}
    _, descriptor = _put_blob(tar, f"{_MEDIA}.manifest.v1+json", manifest)
    # The whole name for containerd and Docker, which otherwise would know the image by its tag alone.
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    platform = {"architecture": config["architecture"], "os": config["os"]}
    index = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.index.v1+json"}
    _put(tar, "index.json", _json(index | {"manifests": [{**descriptor, "annotations": names, "platform": platform}]}))
    docker = [{"Config": _blob(config_digest), "RepoTags": [name], "Layers": [_blob(layer_digest)]}]
    _put(tar, "manifest.json", _json(docker))


def _put_blob(tar: tarfile.TarFile, media_type: str, content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Its digest, and the descriptor by which others refer to it."""
    data = _json(content)
    digest = hashlib.sha256(data).hexdigest()
    _put(tar, _blob(digest), data)
    return digest, {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest}"


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _put_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    info = tarfile.TarInfo(name)
    info.size = path.stat().st_size
    with path.open("rb") as file:
        tar.addfile(info, file)


def _put(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
