"""Write OCI image archives without Docker, for `ctr images import`.

The archive is a tar of an OCI image layout: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_MEDIA = "application/vnd.oci.image"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True)
class File:
    """A file of a layer, owned by root."""

    source: Path
    target: str
    """Absolute path inside the image; missing parents are created."""
    mode: int = 0o755


@dataclass(frozen=True)
class Folder:
    """An empty folder of a layer, owned by root."""

    target: str
    mode: int = 0o755


@dataclass(frozen=True)
class Tree:
    """Everything below a folder, with owners and modes as they are."""

    source: Path


Layer = Tree | Sequence[File | Folder]


@dataclass(frozen=True)
class Config:
    """How containers of the image start; Kubernetes lets a pod override all of it."""

    entrypoint: Sequence[str] = ()
    cmd: Sequence[str] = ()
    env: Sequence[str] = ()
    user: str = ""
    """uid:gid; empty is root."""

    def document(self, diff_ids: Sequence[str]) -> dict[str, Any]:
        return {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": [_PATH, *self.env],
                "Entrypoint": list(self.entrypoint),
                "Cmd": list(self.cmd),
                "User": self.user,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": list(diff_ids)},
        }


def write_archive(path: Path, names: Sequence[str], layers: Iterable[Layer], config: Config) -> None:
    """Write the image with `layers`, lowest first, as `path`; it is to be known by each of `names` (with tags)."""
    with path.open("wb") as file:
        archive = _Archive(file)
        blobs = [archive.add_layer(layer) for layer in layers]
        # Layers are not compressed, so their digests are their diff ids, too.
        config_blob = archive.add_json(config.document([blob["digest"] for blob in blobs]))
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": {"mediaType": f"{_MEDIA}.config.v1+json", **config_blob},
            "layers": [{"mediaType": f"{_MEDIA}.layer.v1.tar", **blob} for blob in blobs],
        }
        manifest_blob = {"mediaType": manifest["mediaType"], **archive.add_json(manifest)}
        # https://github.com/containerd/containerd/blob/v2.2.9/core/images/annotations.go
        manifests = [{**manifest_blob, "annotations": {"io.containerd.image.name": name}} for name in names]
        archive.add("index.json", _json({"schemaVersion": 2, "manifests": manifests}))
        archive.add("oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        archive.finish()


@dataclass
class _Archive:
    """The outer tar. Layers are streamed into it: their header is written when their size and digest are known."""

    file: IO[bytes]

    def add(self, name: str, content: bytes) -> None:
        self.file.write(_header(name, len(content)) + content + _padding(len(content)))

    def add_json(self, document: object) -> dict[str, Any]:
        content = _json(document)
        digest = hashlib.sha256(content).hexdigest()
        self.add(f"blobs/sha256/{digest}", content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    def add_layer(self, layer: Layer) -> dict[str, Any]:
        start = self.file.tell()
        self.file.seek(_BLOCK, os.SEEK_CUR)
        content = _Hashing(self.file)
        with tarfile.open(fileobj=content, mode="w|", bufsize=1 << 20, format=tarfile.PAX_FORMAT) as tar:
            if isinstance(layer, Tree):
                _add_tree(tar, layer)
            else:
                _add_entries(tar, layer)
        self.file.write(_padding(content.size))
        end = self.file.tell()
        self.file.seek(start)
        self.file.write(_header(f"blobs/sha256/{content.sha256.hexdigest()}", content.size))
        self.file.seek(end)
        return {"digest": f"sha256:{content.sha256.hexdigest()}", "size": content.size}

    def finish(self) -> None:
        self.file.write(tarfile.NUL * 2 * _BLOCK)


class _Hashing(io.RawIOBase):
    """Writes through to `file` and knows digest and size of what went through."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.sha256 = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        self.size += len(data)
        return self.file.write(data)


def _add_tree(tar: tarfile.TarFile, tree: Tree) -> None:
    for child in sorted(tree.source.iterdir()):
        tar.add(child, arcname=child.name, filter=_nameless)


def _add_entries(tar: tarfile.TarFile, entries: Sequence[File | Folder]) -> None:
    folders: set[str] = set()
    for entry in entries:
        target = entry.target.strip("/")
        for parent in reversed(Path(target).parents[:-1]):
            if str(parent) not in folders:
                tar.addfile(_folder(str(parent), 0o755))
                folders.add(str(parent))
        if isinstance(entry, Folder):
            tar.addfile(_folder(target, entry.mode))
            folders.add(target)
            continue
        info = tarfile.TarInfo(target)
        info.size, info.mode = entry.source.stat().st_size, entry.mode
        with entry.source.open("rb") as content:
            tar.addfile(info, content)


def _folder(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    return info


def _nameless(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without names of users and groups, which are this machine's and not the image's."""
    info.uname = info.gname = ""
    return info


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)  # one block, up to any size


def _padding(size: int) -> bytes:
    return tarfile.NUL * (-size % _BLOCK)


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
