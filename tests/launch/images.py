"""The images of the launch tests: Debian's own PyTorch with W&B's client, as the training image and as the agent's.

    python -m tests.launch.images

builds them (about 1.5 GiB; root, a Debian mirror and PyPI) and loads them into the embedded cluster, if it lacks them.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
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
PACKAGES = ("wandb==0.31.0", "kubernetes-asyncio==36.1.0", "awscli==1.46.3")
"""The client, and the two packages that its agent imports."""


def debian_with_torch(folder: Path) -> None:
    """A minimal Debian with its packages of Python and PyTorch (1.13, for CPUs)."""
    include = "--include=python3,python3-torch,ca-certificates"
    mirror = rootfs.debian_mirror(rootfs.apt_sources())
    run(["debootstrap", "--variant=minbase", include, rootfs.SUITE, folder, mirror])
    for useless in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(folder / useless)


def wandb_packages(folder: Path) -> None:
    """W&B's client, laid out to lie over Debian."""
    target = folder / "usr/local/lib" / f"python{rootfs.PYTHON}" / "dist-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
    version = [
        f"--python-version={rootfs.PYTHON}",
        "--platform=manylinux2014_x86_64",
        "--platform=manylinux_2_28_x86_64",
    ]
    run([*pip, *version, "--target", target, *PACKAGES])


def missing() -> bool:
    socket, ctr = Cache.from_environment().containerd_socket, Cache.from_environment().bin / "ctr"
    listing = subprocess.run(  # noqa: S603
        [ctr, "--address", socket, "--namespace", "k8s.io", "images", "ls", "--quiet"],
        check=True,
        capture_output=True,
        text=True,
    )
    return not {TRAINING_IMAGE, AGENT_IMAGE} <= set(listing.stdout.split())


def build_and_load() -> None:
    """Build what both images share once; it is kept until both are loaded."""
    cache = Cache.from_environment()
    shared, archive = cache.build / "launch-images", cache.build / "launch-image.tar"
    trees = [made(shared / "debian", debian_with_torch), made(shared / "packages", wandb_packages)]
    training = oci.Config(entrypoint=["/usr/bin/python3", "-u", SCRIPT_IN_IMAGE])
    agent = oci.Config(entrypoint=["/usr/bin/python3", "-u", "-m", "wandb", "launch-agent"], env=[f"HOME={AGENT_HOME}"])
    home, script = oci.Folder(AGENT_HOME, 0o1777), oci.File(SCRIPT, SCRIPT_IN_IMAGE)
    for name, top, config in ((TRAINING_IMAGE, script, training), (AGENT_IMAGE, home, agent)):
        oci.write_archive(archive, [name], [*trees, [top]], config)
        Store(cache).load(archive)
        archive.unlink()
    shutil.rmtree(shared)


def made(folder: Path, fill: Callable[[Path], None]) -> oci.Tree:
    """The folder, filled now or by an earlier attempt that got so far."""
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        fill(unfinished)
        unfinished.rename(folder)
    return oci.Tree(folder)


if __name__ == "__main__":
    if missing():
        build_and_load()
