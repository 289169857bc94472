"""What the tests of the devcluster build: caches and images, by what differs."""

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.builds import Binary, Tool
from devcluster.paths import Cache


def a_cache(root: Path) -> Cache:
    cache = Cache(root / "tftrainer")
    cache.bin.mkdir(parents=True)
    return cache


def a_binary(name: str = "ctr", tool: str = "containerd", **changes: Any) -> Binary:
    return Binary(name, Tool(tool), **{"package": "example.test/cmd", **changes})


@dataclass(frozen=True)
class Archive:
    """An OCI image archive, read back."""

    blobs: dict[str, bytes]
    index: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "Archive":
        with tarfile.open(path) as tar:
            files = {member.name: _content(tar, member) for member in tar}
        blobs = {
            name.rpartition("/")[2]: content for name, content in files.items() if name.startswith("blobs/sha256/")
        }
        assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
        return cls(blobs, json.loads(files["index.json"]))

    @property
    def names(self) -> list[str]:
        return [each["annotations"]["io.containerd.image.name"] for each in self.index["manifests"]]

    @property
    def manifest(self) -> dict[str, Any]:
        return self.document(self.index["manifests"][0])

    @property
    def config(self) -> dict[str, Any]:
        return self.document(self.manifest["config"])

    def blob(self, descriptor: dict[str, Any]) -> bytes:
        """What `descriptor` points to, checked against its digest and size."""
        algorithm, _, digest = descriptor["digest"].partition(":")
        content = self.blobs[digest]
        assert algorithm == "sha256"
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) == descriptor["size"]
        return content

    def document(self, descriptor: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.blob(descriptor))
        return found

    def layers(self) -> list[dict[str, tarfile.TarInfo]]:
        """Entries of each layer by name, lowest layer first."""
        found = []
        for descriptor in self.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.blob(descriptor))) as tar:
                found.append({member.name: member for member in tar})
        return found


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None
    return file.read()
