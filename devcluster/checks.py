"""What the machine has to have, checked before anything is done; each failure is one line."""

import os
import platform
import shutil
from pathlib import Path

from devcluster.commands import run
from devcluster.errors import DevclusterError
from devcluster.paths import TOOLS

MEMORY_GIB = 6
_OWN_CLUSTER = "or use your own cluster: see README"


def linux() -> None:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        found = f"{platform.system()} on {platform.machine()}"
        raise DevclusterError(f"the embedded cluster needs Linux on x86_64, this is {found}; {_OWN_CLUSTER}")


def root(user_id: int) -> None:
    if user_id != 0:
        raise DevclusterError(f"the embedded cluster needs root (try sudo), this is user id {user_id}; {_OWN_CLUSTER}")


def go() -> None:
    """Go, in a version that all tools' go.mod files take."""
    if shutil.which("go") is None:
        raise DevclusterError(f"building the embedded cluster needs Go on PATH: https://go.dev/dl; {_OWN_CLUSTER}")
    try:
        run(["go", "version"], cwd=TOOLS / "kubernetes", env={**os.environ, "GOWORK": "off"})
    except DevclusterError as error:
        raise DevclusterError(f"Go does not take this project's go.mod: {error}; {_OWN_CLUSTER}") from error


def memory(meminfo: str) -> None:
    """Enough memory for the cluster and a training job; `meminfo` is the content of /proc/meminfo."""
    fields = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    available = int(fields["MemAvailable"].split()[0]) / 2**20
    if available < MEMORY_GIB:
        raise DevclusterError(
            f"the embedded cluster needs {MEMORY_GIB} GiB of memory, {available:.1f} are available; {_OWN_CLUSTER}"
        )


def disk(folder: Path, needed_gib: float) -> None:
    """Enough room for `needed_gib` GiB more in `folder`, which need not exist yet."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free / 2**30
    if free < needed_gib:
        raise DevclusterError(
            f"{needed_gib:.0f} GiB of disk are needed in {folder}, {free:.1f} are free; {_OWN_CLUSTER}"
        )
