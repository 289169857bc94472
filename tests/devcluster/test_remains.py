"""What real clusters leave behind, and what they start over. Needs root, and the binaries in the cache."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster.paths import Cache
from tests.devcluster.second_cluster import NAME

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

REPOSITORY = Path(__file__).resolve().parents[2]
SNAPSHOT = "ip -brief link | sed 's/@.*//'; ip route; iptables-save | grep -v '^#'; mount; ls /var/lib /var/log /run"


@dataclass(frozen=True)
class SecondCluster:
    """A cluster in a network and a view of the machine's mounts of its own, as if on a second machine."""

    machine: int
    """Process that holds the namespaces."""
    cache: Cache

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        inside = ["nsenter", f"--target={self.machine}", "--net", "--mount", f"--wd={REPOSITORY}"]
        env = {**os.environ, "XDG_CACHE_HOME": str(self.cache.root.parent)}
        return subprocess.run([*inside, *command], env=env, capture_output=True, text=True)  # noqa: S603

    def devcluster(self, command: str) -> str:
        done = self.run(sys.executable, "-m", "tests.devcluster.second_cluster", command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def snapshot(self) -> str:
        """Everything but control groups and processes that a cluster could leave behind."""
        return self.run("sh", "-c", SNAPSHOT).stdout

    def groups(self) -> list[Path]:
        return list(Path("/sys/fs/cgroup").glob(f"*/{NAME}")) + list(Path("/sys/fs/cgroup").glob(NAME))

    def processes(self) -> set[int]:
        found = [file.read_text().split() for group in self.groups() for file in group.rglob("cgroup.procs")]
        return {int(pid) for pids in found for pid in pids}

    def kill(self) -> None:
        """SIGKILL everything at once, shims and pods included, as the OOM killer or a crash might."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def node(self) -> str:
        kubectl = [str(self.cache.bin / "kubectl"), f"--kubeconfig={self.cache.kubeconfig}"]
        return self.run(*kubectl, "get", "node", "devcluster", "--output=jsonpath={.metadata.uid}").stdout


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondCluster]:
    built = Cache.from_environment()
    cache = Cache(tmp_path_factory.mktemp("cache") / "tftrainer")
    for source in (built.bin, built.files, built.pulumi_home):
        shutil.copytree(source, cache.root / source.name)
    shutil.copy(built.keys, cache.keys)
    script = "mount -t tmpfs none /var/lib && ip link set lo up && echo ready && exec sleep infinity"
    with subprocess.Popen(  # noqa: S603
        ["/usr/bin/unshare", "--net", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, text=True
    ) as machine:
        assert machine.stdout is not None
        assert machine.stdout.readline() == "ready\n"
        cluster = SecondCluster(machine.pid, cache)
        yield cluster
        cluster.devcluster("down")
        machine.kill()
    shutil.rmtree(cache.root)


def test_a_healthy_cluster_is_left_alone(second: SecondCluster) -> None:
    second.devcluster("up")
    before = second.processes()
    second.devcluster("up")
    assert second.processes() >= before


def test_a_cluster_starts_over_the_remains_of_a_killed_one_and_keeps_its_state(second: SecondCluster) -> None:
    second.devcluster("up")
    node = second.node()
    second.kill()
    second.devcluster("up")
    assert second.devcluster("status").endswith("healthy\n")
    assert second.node() == node != ""


def test_a_half_dead_cluster_is_replaced(second: SecondCluster) -> None:
    second.devcluster("up")
    [kubelet] = [
        pid for pid in second.processes() if os.readlink(f"/proc/{pid}/exe") == str(second.cache.bin / "kubelet")
    ]
    os.kill(kubelet, signal.SIGKILL)
    assert "kubelet does not run" in second.devcluster("up")
    assert second.devcluster("status").endswith("healthy\n")


@pytest.mark.parametrize(
    "killed", [pytest.param(False, id="of a running cluster"), pytest.param(True, id="of a killed cluster")]
)
def test_down_leaves_nothing(second: SecondCluster, killed: bool) -> None:
    second.devcluster("down")
    before = second.snapshot()
    second.devcluster("up")
    if killed:
        second.kill()
    second.devcluster("down")
    assert second.snapshot() == before
    assert second.groups() == []
    assert not second.cache.cluster.exists()
