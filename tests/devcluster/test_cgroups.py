"""Control groups: which processes are ours. A folder stands in for a hierarchy."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import cgroups, namespace
from devcluster.errors import DevclusterError

HYBRID = """\
proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
"""


def test_both_versions_of_control_groups_are_found(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(HYBRID)
    assert cgroups.hierarchies(mounts) == [Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/unified")]


def test_a_machine_without_control_groups_is_told_so(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("proc /proc proc rw 0 0\n")
    with pytest.raises(DevclusterError, match="no control groups"):
        cgroups.hierarchies(mounts)


def test_our_group_is_made_in_every_hierarchy(tmp_path: Path) -> None:
    roots = [tmp_path / "memory", tmp_path / "unified"]
    for root in roots:
        root.mkdir()
    assert cgroups.create(roots) == [root / "tftrainer" / "system" for root in roots]
    cgroups.create(roots)  # remains do not matter
    assert all((root / "tftrainer" / "system").is_dir() for root in roots)


def test_a_cpuset_gets_processors_before_it_gets_processes(tmp_path: Path) -> None:
    root = tmp_path / "cpuset"
    for folder in (root, root / "tftrainer", root / "tftrainer" / "system"):
        folder.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):
            (folder / name).write_text("0-1" if folder == root else "")
    (root / "cgroup.sane_behavior").write_text("0")
    [group] = cgroups.create([root])
    assert (group / "cpuset.cpus").read_text() == "0-1"


def test_processes_of_daemons_and_pods_are_ours_and_no_others(tmp_path: Path) -> None:
    for name, content in (("", "1\n"), ("tftrainer/system", "10\n11\n"), ("tftrainer/kubepods/pod1", "12\n")):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cgroup.procs").write_text(content)
    assert cgroups.pids([tmp_path]) == {10, 11, 12}


def test_nothing_is_ours_on_a_clean_machine(tmp_path: Path) -> None:
    assert cgroups.pids([tmp_path]) == set()
    cgroups.kill([tmp_path])
    cgroups.remove([tmp_path])


def test_groups_are_removed_from_the_innermost_on(tmp_path: Path) -> None:
    (tmp_path / "tftrainer" / "kubepods" / "burstable" / "pod1").mkdir(parents=True)
    cgroups.remove([tmp_path])
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our group on a machine with this one hierarchy."""
    monkeypatch.setattr(cgroups, "hierarchies", lambda: [tmp_path])
    (tmp_path / "tftrainer" / "system").mkdir(parents=True)
    return tmp_path / "tftrainer" / "system"


def test_the_owner_is_read_from_the_first_process(group: Path, tmp_path: Path) -> None:
    script = tmp_path / "devcluster" / "init.py"
    script.parent.mkdir()
    script.write_text("import time; print(flush=True); time.sleep(60)")
    command = [sys.executable, str(script), "/somewhere/cluster"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        process.stdout.readline()  # it runs
        (group / "cgroup.procs").write_text(f"{process.pid}\n")
        found = namespace.owner()
        process.kill()
    assert found == Path("/somewhere/cluster")


def test_a_process_outside_of_our_groups_is_never_the_owner(group: Path) -> None:
    (group / "cgroup.procs").write_text("")
    assert namespace.owner() is None


def test_the_only_child_of_a_process_is_found() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        found = namespace._child(parent.pid)
        os.kill(child, signal.SIGTERM)
    assert found == child
