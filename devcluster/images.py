"""The images: what is in them, and how they get into the store, which is their cache."""

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from devcluster import oci, rootfs
from devcluster.builds import Binary, Extract
from devcluster.catalog import BINARIES, VOLCANO_ADMISSION_SCRIPT
from devcluster.commands import run
from devcluster.configs import PAUSE_IMAGE
from devcluster.errors import DevclusterError
from devcluster.paths import Cache

TENSORFLOW_IMAGE = "localhost/tftrainer/tensorflow:2.21.0"

_BINARIES = {binary.name: binary for binary in BINARIES}
_NOBODY = "65532:65532"
_TMP = oci.Folder("/tmp", 0o1777)  # noqa: S108 (in the image; static programs have no other)


@dataclass(frozen=True)
class Image:
    """An image: root filesystems, then files of ours on top of them."""

    name: str
    refs: Sequence[str]
    """Names with tags that pods know it by: those that the operators' charts have as defaults."""
    config: oci.Config
    files: Sequence[tuple[Binary | Extract, str]] = ()
    """What is copied from the cache, and where to."""
    folders: Sequence[oci.Folder] = ()
    trees: Sequence[Callable[[Path], None]] = ()
    """Functions of `rootfs` that fill the folder they are given: Debian first, then Python packages for it."""

    def key(self) -> str:
        """Changes with whatever the image is built from."""
        parts: list[object] = [self.refs, self.config.document([]), [[a.key(), target] for a, target in self.files]]
        parts += [[folder.target, folder.mode] for folder in self.folders]
        if self.trees:
            parts += [[tree.__name__ for tree in self.trees], rootfs.EDITION, rootfs.REQUIREMENTS.read_text()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _program(name: str, binary: str, target: str, *refs: str, user: str = "") -> Image:
    """An image of one static program, and a /tmp."""
    config = oci.Config(entrypoint=[target], user=user)
    return Image(name, refs, config, files=[(_BINARIES[binary], target)], folders=[_TMP])


def _volcano(name: str) -> str:
    return f"docker.io/volcanosh/{name}:v1.15.1"


IMAGES: tuple[Image, ...] = (
    _program("pause", "pause", "/pause", PAUSE_IMAGE),
    _program("coredns", "coredns", "/coredns", "localhost/tftrainer/coredns:1.15.0"),
    _program(
        "jobset",
        "jobset-controller",
        "/manager",
        "registry.k8s.io/jobset/jobset:v0.12.0",
        "us-central1-docker.pkg.dev/k8s-staging-images/jobset/jobset:v0.12.0",
        user=_NOBODY,
    ),
    _program(
        "trainer",
        "trainer-controller-manager",
        "/manager",
        "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0",
        user=_NOBODY,
    ),
    _program("vc-scheduler", "vc-scheduler", "/vc-scheduler", _volcano("vc-scheduler")),
    _program(
        "vc-controller-manager", "vc-controller-manager", "/vc-controller-manager", _volcano("vc-controller-manager")
    ),
    Image(
        # Its chart runs a script in it that makes certificates with OpenSSL and stores them with kubectl.
        "vc-webhook-manager",
        [_volcano("vc-webhook-manager")],
        oci.Config(entrypoint=["/vc-webhook-manager"]),
        files=[
            (_BINARIES["vc-webhook-manager"], "/vc-webhook-manager"),
            (_BINARIES["kubectl"], "/usr/local/bin/kubectl"),
            (VOLCANO_ADMISSION_SCRIPT, "/gen-admission-secret.sh"),
        ],
        trees=[rootfs.debian],
    ),
    Image(
        "tensorflow",
        [TENSORFLOW_IMAGE],
        oci.Config(
            cmd=["/usr/bin/python3"],
            env=["PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "TF_CPP_MIN_LOG_LEVEL=1"],
        ),
        trees=[rootfs.debian, rootfs.tensorflow],
    ),
)


class ImageBuild:
    """One run of image builds. A root filesystem is made once, in the background."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._workers = ThreadPoolExecutor()
        self._trees: dict[str, Future[Path]] = {}

    def prepare(self, images: Sequence[Image]) -> None:
        """Begin with what takes long, most of it waiting for the network and unpacking Debian package by package."""
        for image in images:
            for fill in image.trees:
                self._tree(fill)

    def archive(self, image: Image) -> Path:
        """Where `make` writes the image."""
        return self._cache.build / f"{image.name}.tar"

    def make(self, image: Image) -> None:
        """Write the image's archive.

        Raises:
            DevclusterError: a root filesystem could not be made.
        """
        trees = [self._tree(tree).result() for tree in image.trees]
        for tree in trees[1:]:
            rootfs.compile_packages(trees[0], tree)
        layers: list[oci.Layer] = [oci.Tree(tree) for tree in trees]
        files = [oci.File(artifact.path(self._cache), target) for artifact, target in image.files]
        if files or image.folders:
            layers.append([*files, *image.folders])
        archive = self.archive(image)
        archive.parent.mkdir(parents=True, exist_ok=True)
        oci.write_archive(archive, image.refs, layers, image.config)

    def _tree(self, fill: Callable[[Path], None]) -> Future[Path]:
        name = fill.__name__
        if name not in self._trees:
            self._trees[name] = self._workers.submit(self._make_tree, fill)
        return self._trees[name]

    def _make_tree(self, fill: Callable[[Path], None]) -> Path:
        folder = self._cache.build / f"rootfs-{fill.__name__}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        fill(folder)
        return folder


class Store:
    """containerd's image store, and a record beside it of what the images in it were built from."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._record = cache.images / "keys.json"
        self._keys: dict[str, str] = json.loads(self._record.read_text()) if self._record.exists() else {}

    def is_current(self, image: Image) -> bool:
        return self._keys.get(image.name) == image.key()

    def add(self, image: Image, archive: Path) -> None:
        """Import an archive of ours and remove it."""
        self.load(archive)
        archive.unlink()
        self._keys[image.name] = image.key()
        scratch = self._record.with_suffix(".new")
        scratch.write_text(json.dumps(self._keys, indent=1, sort_keys=True))
        scratch.replace(self._record)

    def load(self, archive: Path) -> list[str]:
        """Import an image archive (`docker save` or OCI) and return the images' names. containerd has to run.

        Raises:
            DevclusterError: it is no image archive for this machine's architecture.
        """
        # The layers themselves are not kept: unpacked they are all that is ever used, and half of the disk space.
        try:
            output = self._ctr("images", "import", "--local", "--discard-unpacked-layers", archive)
        except DevclusterError as error:
            reason = str(error).rpartition("ctr: ")[2]
            raise DevclusterError(
                f"{archive} cannot be loaded: {reason}; an uncompressed tar of an image for linux/amd64 is accepted, "
                "as `docker save` writes it"
            ) from error
        return [line.split()[1] for line in output.splitlines() if line.startswith("unpacking ")]

    def forget_missing(self) -> None:
        """Drop the record of images that are not in the store any more. containerd has to run."""
        present = set(self._ctr("images", "ls", "--quiet").split())
        for image in IMAGES:
            if not present.issuperset(image.refs):
                self._keys.pop(image.name, None)

    def _ctr(self, *args: str | Path) -> str:
        socket = self._cache.containerd_socket
        return run([self._cache.bin / "ctr", "--address", socket, "--namespace", "k8s.io", *args])
