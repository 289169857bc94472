"""The namespaces that the cluster lives in: create them, start daemons there, find out what runs, end it all."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from devcluster import cgroups
from devcluster.errors import DevclusterError
from devcluster.init import PRIVATE
from devcluster.paths import PACKAGE, Cache

INIT = PACKAGE / "init.py"

# Every process is a member of our groups from before its first fork. `exec` keeps the pid.
_JOIN = 'for group in $1; do echo $$ >"$group/cgroup.procs" || exit 1; done; shift; exec "$@"'


@dataclass
class Namespace:
    """Running namespaces of a cluster that is being started."""

    pid: int
    """PID 1 of the namespaces, as the machine sees it."""
    _commands: IO[str]

    def start(self, argv: list[str | Path], log: Path) -> None:
        """Start a daemon, its output in `log`."""
        self._commands.write(json.dumps({"argv": [str(word) for word in argv], "log": str(log)}) + "\n")
        self._commands.flush()

    def release(self) -> None:
        """Let go of the namespaces: they keep on running without us."""
        self._commands.close()


def create(cache: Cache) -> Namespace:
    """Create the namespaces: new network and PIDs, and a view of the machine's mounts that passes nothing back."""
    groups = cgroups.create(cgroups.hierarchies())
    _create_mount_points(cache)
    unshare = ["unshare", "--mount", "--propagation=slave", "--net", "--pid", "--fork", "--kill-child"]
    log = (cache.logs / "init.log").open("w")
    process = subprocess.Popen(  # noqa: S603 (the shell gets a constant program)
        ["/bin/sh", "-c", _JOIN, "sh", " ".join(map(str, groups)), *unshare, sys.executable, "-S", INIT, cache.cluster],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
        env={"PATH": os.defpath + ":/usr/sbin:/sbin", "LANG": "C.UTF-8"},
    )
    commands, answers = cast(IO[str], process.stdin), cast(IO[str], process.stdout)
    if answers.readline() != "ready\n":
        raise DevclusterError(
            f"cannot create namespaces, see {log.name}; this machine may not allow them, "
            "so use your own cluster instead: see README"
        )
    answers.close()
    return Namespace(_child(process.pid), commands)


def join(cache: Cache, argv: list[str | Path], log: Path) -> None:
    """Start a program beside the daemons of the cluster that runs, in its groups and on its network."""
    groups = cgroups.create(cgroups.hierarchies())
    enter = ["nsenter", f"--net=/proc/{running(cache)['kube-apiserver']}/ns/net"]
    with log.open("w") as output:
        subprocess.Popen(  # noqa: S603 (the shell gets a constant program)
            ["/bin/sh", "-c", _JOIN, "sh", " ".join(map(str, groups)), *enter, *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={"PATH": os.defpath + ":/usr/sbin:/sbin", "LANG": "C.UTF-8"},
        )


def owner() -> Path | None:
    """State folder of the cluster that runs on this machine, ours or another cache's; None if there is none."""
    for pid in cgroups.pids(cgroups.hierarchies()):
        words = _cmdline(pid)
        if len(words) >= 2 and Path(words[-2]).parts[-2:] == INIT.parts[-2:]:
            return Path(words[-1])
    return None


def running(cache: Cache) -> dict[str, int]:
    """Names and pids of our built binaries that run inside the cluster's groups."""
    found = {}
    for pid in cgroups.pids(cgroups.hierarchies()):
        try:
            exe = os.readlink(f"/proc/{pid}/exe")
        except OSError:  # gone meanwhile
            continue
        path = Path(exe.removesuffix(" (deleted)"))  # a newer build may have replaced it
        if path.parent == cache.bin:
            found[path.name] = pid
    return found


def destroy(cache: Cache) -> None:
    """End every process of the cluster. Mounts, interfaces and firewall rules of the namespaces go with the last."""
    roots = cgroups.hierarchies()
    cgroups.kill(roots)
    cgroups.remove(roots)
    _remove_mount_points(cache)


def _create_mount_points(cache: Cache) -> None:
    """Folders to mount over have to exist on the machine; remember which ones are there because of us."""
    record = cache.cluster / "mount-points.json"
    ours = set(json.loads(record.read_text())) if record.exists() else set()
    ours.update(path for path in PRIVATE if not Path(path).exists())
    record.write_text(json.dumps(sorted(ours)))
    for path in PRIVATE:
        Path(path).mkdir(parents=True, exist_ok=True)


def _remove_mount_points(cache: Cache) -> None:
    record = cache.cluster / "mount-points.json"
    for path in json.loads(record.read_text()) if record.exists() else []:
        try:
            Path(path).rmdir()
        except OSError:  # already gone, or something else uses it by now
            continue


def _child(parent: int) -> int:
    """The only child process of `parent`. (/proc/<pid>/task/<pid>/children is not in every kernel.)"""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may hold anything; state and parent follow the last one: see proc(5).
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if int(fields[1]) == parent:
            return int(stat.parent.name)
    raise DevclusterError("the cluster's first process has died, see its log")


def _cmdline(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:  # gone meanwhile
        return []
