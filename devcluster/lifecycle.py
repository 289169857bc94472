"""The commands `up` and `down`: bring about a state, whatever the state before."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import checks, cluster, digits, environment, images, namespace, packages, simulation
from devcluster.builds import Artifact, Keys
from devcluster.catalog import BINARIES, EXTRACTS, SIMULATION
from devcluster.errors import DevclusterError
from devcluster.go_build import GoBuild, drop_go_caches, remove_tree
from devcluster.images import Image, ImageBuild, Store
from devcluster.paths import DATA, Cache
from devcluster.progress import Progress

_BUILD_GIB = 24.0
"""Go's caches when everything has been built; they go before the images are put together."""
_KEPT_GIB = 2.0
"""Binaries, charts and state."""
_ROOTS_GIB = 2.0
"""Root filesystems of images, which are made beside the build."""
_IMAGES_GIB = 6.0
"""The image store, and archives and root filesystems on their way into it."""
_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class Plan:
    """What is to be done before the cluster can start."""

    packages: list[str]
    artifacts: list[Artifact]
    images: list[Image]

    @classmethod
    def make(cls, cache: Cache, simulated_nodes: int = 0) -> "Plan":
        keys, store = Keys(cache), Store(cache)
        wanted: tuple[Artifact, ...] = (*BINARIES, *EXTRACTS, *(SIMULATION if simulated_nodes else ()))
        return cls(
            packages.missing(),
            [artifact for artifact in wanted if not keys.is_current(artifact)],
            [image for image in images.IMAGES if not store.is_current(image)],
        )

    @property
    def disk_gib(self) -> float:
        """Disk space it takes while it runs, in GiB."""
        built = len(self.artifacts) / len((*BINARIES, *EXTRACTS))
        imported = len(self.images) / len(images.IMAGES)
        return 1.0 + built * _KEPT_GIB + max(built * _BUILD_GIB + imported * _ROOTS_GIB, imported * _IMAGES_GIB)

    def describe(self) -> str:
        parts = [(len(self.artifacts), "programs and files to build"), (len(self.images), "images to build")]
        todo = ", ".join(f"{count} {what}" for count, what in parts if count)
        return f"{todo}: needs {self.disk_gib:.0f} GiB of disk meanwhile, at most 12 GiB stay"


def up(cache: Cache, simulated_nodes: int | None = None) -> None:
    """Build what is missing and start the cluster, unless it runs and is well.

    Args:
        cache: where everything is.
        simulated_nodes: how many of them it is to have beside the real one. Default: as many as before, at first none.

    Raises:
        DevclusterError: the machine lacks something, or a step failed.
    """
    checks.linux()
    checks.root(os.geteuid())
    with _locked(cache):
        _refuse_foreign_cluster(cache)
        health = _settled_health(cache)
        nodes = simulation.recorded(cache) if simulated_nodes is None else simulated_nodes
        plan = Plan.make(cache, nodes)
        _check(cache, plan, health)
        if plan.artifacts or plan.images:
            print(plan.describe(), flush=True)
        simulates = bool(nodes or simulation.recorded(cache))
        progress = Progress(bool(plan.packages) + len(plan.artifacts) + len(plan.images) + 2 + simulates)
        if plan.packages:
            with progress.step(f"install {' '.join(plan.packages)}"):
                packages.install(plan.packages)
        image_build = ImageBuild(cache)
        image_build.prepare(plan.images)
        _build(cache, plan.artifacts, progress)
        _write_files(cache)

        fingerprint = cluster.fingerprint(cache, {binary.name: binary.key() for binary in BINARIES})
        reasons = health.problems or ["something of it has changed"] * (cluster.started_from(cache) != fingerprint)
        if reasons:
            if health.runs:
                print(f"replacing the running cluster: {'; '.join(reasons)}", flush=True)
            cluster.kill(cache)
            with progress.step("start the cluster"):
                cluster.start(cache, fingerprint)
        _import(cache, image_build, progress)
        if reasons:
            with progress.step("wait for its DNS"):
                cluster.wait_for_dns(cache)
        if simulates:
            with progress.step(f"have {nodes} simulated nodes"):
                mapped = simulation.scale(cache, nodes)
            if not mapped:
                print("Volcano is not installed, so it knows no network of these nodes: repeat this when it is")
        shutil.rmtree(cache.build, ignore_errors=True)
    print('cluster is up; for a shell to use it: eval "$(python -m devcluster env)"')


def down(cache: Cache) -> None:
    """Stop the cluster and remove it: processes, interfaces, control groups, state, Pulumi's state, and the data.

    The caches stay.

    Raises:
        DevclusterError: something of it resists.
    """
    checks.linux()
    checks.root(os.geteuid())
    with _locked(cache):
        _refuse_foreign_cluster(cache)
        cluster.kill(cache)
        for folder in (cache.cluster, cache.pulumi_state, DATA):
            _refuse_mounts(folder)
            remove_tree(folder)
        cache.operators_config.unlink(missing_ok=True)
    print("cluster is down; binaries and images are kept in", cache.root)


def _check(cache: Cache, plan: Plan, health: cluster.Health) -> None:
    if plan.artifacts:
        checks.go()
    if not health.runs:
        checks.memory(Path("/proc/meminfo").read_text())
    checks.disk(cache.root, plan.disk_gib)


def _build(cache: Cache, artifacts: list[Artifact], progress: Progress) -> None:
    if not artifacts:
        return
    with closing(GoBuild(cache, artifacts)) as build:
        for artifact in artifacts:
            with progress.step(f"build {artifact.name}"):
                build.make(artifact)
    drop_go_caches(cache)


def _write_files(cache: Cache) -> None:
    cache.pulumi_state.mkdir(exist_ok=True)
    environment.write_operators_config(cache)
    if not digits.FOLDER.exists():
        digits.write()


def _settled_health(cache: Cache) -> cluster.Health:
    """The cluster's health, with some patience: one that is only busy must not be replaced."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        health = cluster.health(cache)
        if not health.problems or None in health.daemons.values() or time.monotonic() > deadline:
            return health
        time.sleep(1)


def _import(cache: Cache, build: ImageBuild, progress: Progress) -> None:
    """Build and import the images that the store lacks."""
    store = Store(cache)
    store.forget_missing()
    for image in [image for image in images.IMAGES if not store.is_current(image)]:
        with progress.step(f"build image {image.name}"):
            build.make(image)
            store.add(image, build.archive(image))


def _refuse_foreign_cluster(cache: Cache) -> None:
    owner = namespace.owner()
    if owner not in (None, cache.cluster):
        raise DevclusterError(f"another devcluster runs here, with its state in {owner}: stop that one first")


def _refuse_mounts(folder: Path) -> None:
    """The cluster's mounts are out of sight here; removing a folder that somebody mounted there would empty that."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        target = Path(line.split()[1])
        if target.is_relative_to(folder):
            raise DevclusterError(f"something is mounted on {target}: unmount it, and run `down` again")


@contextmanager
def _locked(cache: Cache) -> Iterator[None]:
    """One `up` or `down` at a time."""
    cache.root.mkdir(parents=True, exist_ok=True)
    with cache.lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another devcluster command to finish", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
