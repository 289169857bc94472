"""The cluster's control groups: they limit pods, and they are how every process of the cluster is found again.

A process gets into `tftrainer` only through us and passes it on to its children, so membership identifies what is ours
with no pid file that could be stale. Works with v1 controllers, v2, and both at once.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from devcluster.errors import DevclusterError

ROOT = "tftrainer"
SYSTEM = f"{ROOT}/system"
"""The daemons' group; kubelet puts pods into `tftrainer/kubepods`."""


def hierarchies(mounts: Path = Path("/proc/self/mounts")) -> list[Path]:
    """Mount points of all cgroup hierarchies, v1 and v2."""
    fields = (line.split() for line in mounts.read_text().splitlines())
    found = [Path(target) for _, target, kind, *_ in fields if kind in ("cgroup", "cgroup2")]
    if not found:
        raise DevclusterError("no control groups are mounted on /sys/fs/cgroup; or use your own cluster: see README")
    return found


def create(roots: list[Path]) -> list[Path]:
    """Create our groups in every hierarchy and return the daemons' ones."""
    for root in roots:
        for group in (root / ROOT, root / SYSTEM):
            group.mkdir(exist_ok=True)
            # A new v1 cpuset is empty, and an empty one takes no process.
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (root / "cgroup.sane_behavior").exists() and (group / name).exists():
                    (group / name).write_text((root / name).read_text())
    return [root / SYSTEM for root in roots]


def pids(roots: list[Path]) -> set[int]:
    """Every process of the cluster: daemons, shims and pods."""
    found: set[int] = set()
    for group in _groups(roots):
        try:
            found.update(int(word) for word in (group / "cgroup.procs").read_text().split())
        except OSError:  # removed meanwhile; or a threaded v2 group, whose processes its parent lists
            continue
    return found


def kill(roots: list[Path], timeout: float = 20.0) -> None:
    """SIGKILL every process of the cluster and wait until they are gone (`timeout` in seconds)."""
    deadline = time.monotonic() + timeout
    while remaining := pids(roots):
        for pid in remaining:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            raise DevclusterError(f"processes of the cluster do not die: {sorted(remaining)}; see `ps` for their state")
        time.sleep(0.02)


def remove(roots: list[Path], timeout: float = 5.0) -> None:
    """Remove our groups; the kernel may take a moment to let go of a dead process (`timeout` in seconds)."""
    deadline = time.monotonic() + timeout
    while groups := list(_groups(roots)):
        for group in groups:
            try:
                group.rmdir()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise DevclusterError(f"cannot remove the control group {group}: {error.strerror}") from error
        time.sleep(0.02)


def _groups(roots: list[Path]) -> Iterator[Path]:
    """Our groups, children before their parents."""
    for root in roots:
        for folder, _, _ in os.walk(root / ROOT, topdown=False):
            yield Path(folder)
