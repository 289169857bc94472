"""Make what the catalog lists: download modules, build binaries, copy files."""

import json
import os
import shutil
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devcluster import checks
from devcluster.builds import GO_FLAGS, LINKER_FLAGS, Artifact, Binary, Copy, Extract, Keys, Module, PulumiPlugin, Tool
from devcluster.commands import run
from devcluster.errors import DevclusterError
from devcluster.paths import TOOLS, Cache

SELDOM_RUN = "github.com/pulumi/pulumi-kubernetes/sdk/v4/..."
"""Generated code that takes long to compile, more than half of the Kubernetes provider's time: not for its speed."""


class GoBuild:
    """One run of builds, to be closed. Go's own caches are kept between its steps; `drop_go_caches` drops them.

    While something is compiled, the modules of what comes after it are downloaded.
    """

    def __init__(self, cache: Cache, artifacts: Sequence[Artifact]) -> None:
        self._cache = cache
        self._keys = Keys(cache)
        temporary = cache.build / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        self._env = {
            **os.environ,
            "CGO_ENABLED": "0",  # one compile serves this machine and images without a C library
            "GOCACHE": str(cache.go_build),
            "GOFLAGS": GO_FLAGS,
            # A quarter of a compiler's time would be garbage collection, though it is soon gone, garbage and all.
            # https://pkg.go.dev/runtime#hdr-Environment_Variables
            "GOGC": "off",
            "GOMEMLIMIT": f"{checks.MEMORY_GIB * 1024 // (os.cpu_count() or 1)}MiB",
            "GOMODCACHE": str(cache.go_mod),
            "GOTMPDIR": str(temporary),
            "GOWORK": "off",
        }
        self._downloads = ThreadPoolExecutor(1)
        self._folders = {
            tool: self._downloads.submit(self._prepare, tool, _packages(artifacts, tool))
            for tool in dict.fromkeys(artifact.tool for artifact in artifacts)
        }

    def close(self) -> None:
        """Drop the downloads that have not begun: after a failure nobody needs them."""
        self._downloads.shutdown(cancel_futures=True)

    def make(self, artifact: Artifact) -> None:
        """Build or copy `artifact`, one of those of this run, into the cache.

        Raises:
            DevclusterError: a module could not be downloaded, or Go failed.
        """
        folder = self._folders[artifact.tool].result()
        if isinstance(artifact, Extract):
            self._extract(artifact, folder)
        else:
            self._build(artifact, folder)
        self._keys.record(artifact)

    def _build(self, binary: Binary, folder: Path) -> None:
        target, scratch = binary.path(self._cache), self._cache.build / binary.name
        linker_flags = f"{LINKER_FLAGS} {binary.linker_flags}".strip()
        # The linker would drop the debugging information, which takes the compiler long to make.
        compiler_flags = ["-gcflags=all=-dwarf=false", f"-gcflags={SELDOM_RUN}=-dwarf=false -l"]
        self._go(folder, "build", *compiler_flags, "-ldflags", linker_flags, "-o", scratch, binary.package)
        if isinstance(binary, PulumiPlugin):
            _install(self._cache, binary, scratch)
            scratch.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch.replace(target)  # a running one keeps its file

    def _extract(self, extract: Extract, folder: Path) -> None:
        target = extract.path(self._cache)
        self._copy(extract.copy, folder, target)
        if extract.executable:
            target.chmod(0o755)

    def _prepare(self, tool: Tool, packages: Sequence[str]) -> Path:
        """A build folder: the tool's, and what its sources need from modules; the modules are in the cache then."""
        folder = self._cache.build / "tools" / tool.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(TOOLS / tool.name, folder)
        for copy in tool.copies:
            self._copy(copy, folder, folder / copy.target)
        if packages:
            self._go(folder, "list", "-deps", *packages)  # `go mod download` would take what the tests need as well
        return folder

    def _copy(self, copy: Copy, folder: Path, target: Path) -> None:
        """Copy out of the module cache, where everything is read-only, with permissions to write."""
        source = self._download(copy.module, folder) / copy.source
        if source.is_dir():
            shutil.copytree(source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
            for path in (target, *target.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        if copy.edit:
            edited = target / copy.edit_file
            edited.write_text(copy.edit(edited.read_text()))

    def _download(self, module: str | Module, folder: Path) -> Path:
        """The module's folder in the module cache."""
        self._go(folder, "mod", "download", str(module))  # with -json, its errors would be in the JSON
        found = json.loads(self._go(folder, "mod", "download", "-json", str(module)))
        if isinstance(module, Module) and found["Sum"] != module.sum:
            raise DevclusterError(f"module {module} has the hash {found['Sum']}, expected {module.sum}")
        return Path(found["Dir"])

    def _go(self, folder: Path, *args: str | Path) -> str:
        return run(["go", *args], cwd=folder, env=self._env)


def _packages(artifacts: Sequence[Artifact], tool: Tool) -> list[str]:
    """What is to be built of the tool."""
    return [one.package for one in artifacts if isinstance(one, Binary) and one.tool == tool]


def drop_go_caches(cache: Cache) -> None:
    """Remove Go's caches: 20 GiB that only a new build would need."""
    for folder in (cache.go_mod, cache.go_build):
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder, read-only ones in it included."""
    if not folder.exists():
        return
    for path, _, _ in os.walk(folder):
        if not Path(path).stat().st_mode & stat.S_IWUSR:
            Path(path).chmod(0o755)
    shutil.rmtree(folder)


def _install(cache: Cache, plugin: PulumiPlugin, file: Path) -> None:
    env = {**os.environ, "PULUMI_HOME": str(cache.pulumi_home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    resource = plugin.name.removeprefix("pulumi-resource-")
    pulumi = cache.bin / "pulumi"
    run([pulumi, "plugin", "install", "resource", resource, plugin.version, "--file", file, "--reinstall"], env=env)
