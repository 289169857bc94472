"""The images of the launch tests: Debian's own PyTorch with the example's script, and W&B's agent.

    python -m tests.launch.images

builds those that the embedded cluster lacks and loads them (1.8 GiB; root, a Debian mirror and PyPI).
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from devcluster import oci, rootfs
from devcluster.commands import run
from devcluster.images import Store
from devcluster.paths import Cache

TRAINING_IMAGE = "localhost/tftrainer/launch-training:1.13"
AGENT_IMAGE = "localhost/tftrainer/launch-agent:0.31.0"
SCRIPT = Path(__file__).parents[2] / "examples" / "wandb-launch" / "train_ddp.py"
SCRIPT_IN_IMAGE = "/opt/train_ddp.py"
AGENT_HOME = "/home/launch_agent"
"""Where the chart mounts the agent's configuration."""
CLIENT = ["wandb==0.31.0"]
AGENT = [
    *CLIENT, "kubernetes-asyncio==36.1.0", "awscli==1.46.3", "azure-identity==1.27.0", "azure-storage-blob==12.31.1",
    "azure-containerregistry==1.2.0",
]  # fmt: skip
"""The client, and what its agent imports, used or not. (`wandb[launch]` is several times as much.)"""


def debian_with_torch(folder: Path) -> None:
    """A minimal Debian with its packages of Python and PyTorch (1.13, for CPUs)."""
    include = "--include=python3,python3-torch,ca-certificates"
    mirror = rootfs.debian_mirror(rootfs.apt_sources())
    run(["debootstrap", "--variant=minbase", include, rootfs.SUITE, folder, mirror])
    for useless in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(folder / useless)


def packages(folder: Path, requirements: Sequence[str], base: Path) -> None:
    """Packages from PyPI, laid out to lie over Debian in `base`."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
    version = [
        f"--python-version={rootfs.PYTHON}",
        "--platform=manylinux2014_x86_64",
        "--platform=manylinux_2_28_x86_64",
    ]
    run([*pip, *version, "--target", folder / rootfs.PACKAGES, *requirements])
    rootfs.compile_packages(base, folder)


def training_image(scratch: Path) -> tuple[list[oci.Layer], oci.Config]:
    debian_with_torch(scratch / "debian")
    packages(scratch / "packages", CLIENT, scratch / "debian")
    trees = (oci.Tree(scratch / "debian"), oci.Tree(scratch / "packages"))
    return [*trees, [oci.File(SCRIPT, SCRIPT_IN_IMAGE)]], oci.Config(
        entrypoint=["/usr/bin/python3", "-u", SCRIPT_IN_IMAGE]
    )


def agent_image(scratch: Path) -> tuple[list[oci.Layer], oci.Config]:
    rootfs.debian(scratch / "debian")
    packages(scratch / "packages", AGENT, scratch / "debian")
    trees = (oci.Tree(scratch / "debian"), oci.Tree(scratch / "packages"))
    entrypoint = ["/usr/bin/python3", "-u", "-m", "wandb", "launch-agent"]
    return [*trees, [oci.Folder(AGENT_HOME, 0o1777)]], oci.Config(entrypoint=entrypoint, env=[f"HOME={AGENT_HOME}"])


IMAGES: dict[str, Callable[[Path], tuple[list[oci.Layer], oci.Config]]] = {
    TRAINING_IMAGE: training_image,
    AGENT_IMAGE: agent_image,
}


def ensure() -> None:
    """Build and load what the cluster lacks."""
    cache = Cache.from_environment()
    ctr = (cache.bin / "ctr", "--address", cache.containerd_socket, "--namespace", "k8s.io")
    present = run([*ctr, "images", "ls", "--quiet"]).split()
    scratch, archive = cache.build / "launch-image", cache.build / "launch-image.tar"
    for name in IMAGES.keys() - set(present):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        layers, config = IMAGES[name](scratch)
        oci.write_archive(archive, [name], layers, config)
        Store(cache).load(archive)
        archive.unlink()
        shutil.rmtree(scratch)


if __name__ == "__main__":
    ensure()
