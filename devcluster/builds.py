"""Kinds of things that are made from Go modules, and the keys under which they are cached."""

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from devcluster.paths import TOOLS, Cache

GO_FLAGS = "-buildvcs=false -trimpath"
LINKER_FLAGS = "-s -w"
"""No symbol tables: they would be a third of 2 GiB of binaries."""


@dataclass(frozen=True)
class Module:
    """A module that a tool's own go.mod does not select, with the hash that go.sum would have."""

    path: str
    version: str
    sum: str

    def __str__(self) -> str:
        return f"{self.path}@{self.version}"


@dataclass(frozen=True)
class Copy:
    """A file or a folder that is copied out of a module."""

    module: str | Module
    """A module's path stands for the version that the tool's go.mod selects."""
    source: str
    """Path in the module."""
    target: str
    """Relative to where this kind of copy goes."""
    edit: Callable[[str], str] | None = None
    """Applied to the content of the file, or of `edit_file` in the folder."""
    edit_file: str = ""

    def key(self) -> list[str]:
        edit = inspect.getsource(self.edit) if self.edit else ""
        return [str(self.module), self.source, self.target, self.edit_file, edit]


@dataclass(frozen=True)
class Tool:
    """A folder of `tools/`: a Go module of its own that pins what is built in it."""

    name: str
    copies: tuple[Copy, ...] = ()
    """What the module's sources need besides: copied into the build folder, which is a copy of the tool's."""

    def key(self) -> list[object]:
        """Changes with any file of the folder, so with any pinned version, the Go version's among them."""
        folder, sha = TOOLS / self.name, hashlib.sha256()
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            sha.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0".encode())
            sha.update(file.read_bytes())
        return [sha.hexdigest(), [copy.key() for copy in self.copies]]


@dataclass(frozen=True)
class Binary:
    """A program."""

    name: str
    tool: Tool
    package: str
    linker_flags: str = ""

    def path(self, cache: Cache) -> Path:
        return cache.bin / self.name

    def key(self) -> str:
        return _digest(self.tool.key(), self.package, self.linker_flags, GO_FLAGS, LINKER_FLAGS)


@dataclass(frozen=True)
class PulumiPlugin(Binary):
    """A resource provider. Pulumi finds it in its home folder; found on PATH, it would warn each time."""

    version: str = ""

    def path(self, cache: Cache) -> Path:
        resource = self.name.removeprefix("pulumi-resource-")
        return cache.pulumi_home / "plugins" / f"resource-{resource}-v{self.version}" / self.name


@dataclass(frozen=True)
class Extract:
    """Files of a module that the cluster needs at run time."""

    tool: Tool
    copy: Copy
    executable: bool = False

    @property
    def name(self) -> str:
        return self.copy.target

    def path(self, cache: Cache) -> Path:
        return (cache.bin if self.executable else cache.files) / self.copy.target

    def key(self) -> str:
        return _digest(self.tool.key(), self.copy.key(), self.executable)


Artifact = Binary | Extract


class Keys:
    """What everything in the cache was made from."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._keys: dict[str, str] = json.loads(cache.keys.read_text()) if cache.keys.exists() else {}

    def is_current(self, artifact: Artifact) -> bool:
        return artifact.path(self._cache).exists() and self._keys.get(artifact.name) == artifact.key()

    def record(self, artifact: Artifact) -> None:
        self._keys[artifact.name] = artifact.key()
        scratch = self._cache.keys.with_suffix(".new")
        scratch.write_text(json.dumps(self._keys, indent=1, sort_keys=True))
        scratch.replace(self._cache.keys)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
