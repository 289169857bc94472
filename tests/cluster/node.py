"""Violence against the node: its daemons, the workers' processes, their network."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from components import api
from devcluster import cgroups, namespace
from devcluster.paths import Cache
from tests.cluster.recording import Worker

IN_OUR_GROUPS = 'for group in $1; do echo $$ >"$group/cgroup.procs" || exit 1; done; shift; exec "$@"'
ESTABLISHED = "01"


def signal_worker(worker: Worker, number: signal.Signals) -> None:
    """Send a signal to every process of the worker, as something on the node would."""
    for pid in _pids(worker):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def restart_daemon(name: str) -> None:
    """SIGKILL a daemon of the cluster and start it again, as a service manager would."""
    running = namespace.running(Cache.from_environment())
    process = Path(f"/proc/{running[name]}")
    argv = process.joinpath("cmdline").read_text().rstrip("\0").split("\0")
    environment = dict(item.split("=", 1) for item in process.joinpath("environ").read_text().rstrip("\0").split("\0"))
    groups = " ".join(map(str, cgroups.create(cgroups.hierarchies())))
    inside = ["nsenter", f"--target={running['containerd']}", "--mount", "--net", "--pid"]
    with process.joinpath("fd/1").open("ab") as log:
        os.kill(running[name], signal.SIGKILL)
        while process.exists():
            time.sleep(0.05)
        subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", IN_OUR_GROUPS, "sh", groups, *inside, *argv],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@contextlib.contextmanager
def drained(node: str, job_set: str) -> Iterator[None]:
    """`kubectl drain`, returning when the pods have left; the node takes pods again when the block ends.

    Only this JobSet's pods are evicted: the operators would have nowhere else to go.
    """
    selector = f"--pod-selector={api.JOBSET_NAME_LABEL}={job_set}"
    try:
        _run("kubectl", "drain", node, selector, "--delete-emptydir-data", "--timeout=120s")
        yield
    finally:
        _run("kubectl", "uncordon", node)


def peers(worker: Worker, port: int) -> set[str]:
    """Addresses that the worker has TCP connections with, at `port` on either side."""
    lines = Path(f"/proc/{_pids(worker)[0]}/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    ends = [(_endpoint(line[1]), _endpoint(line[2])) for line in fields if line[3] == ESTABLISHED]
    return {remote[0] for local, remote in ends if port in (local[1], remote[1])}


@contextlib.contextmanager
def interface_down(worker: Worker) -> Iterator[None]:
    """Cut the worker off from the network while the block runs: the bridge's end of its cable goes down."""
    inside_pod = ["nsenter", f"--net=/proc/{_pids(worker)[0]}/ns/net"]
    on_node = ["nsenter", f"--net=/proc/{namespace.running(Cache.from_environment())['kubelet']}/ns/net"]
    [link] = json.loads(_run(*inside_pod, "ip", "-json", "link", "show", "dev", "eth0"))
    links = json.loads(_run(*on_node, "ip", "-json", "link", "show"))
    peer = next(other["ifname"] for other in links if other["ifindex"] == link["link_index"])
    _run(*on_node, "ip", "link", "set", "dev", peer, "down")
    try:
        yield
    finally:
        # No matter if it fails: the pod may have been given up meanwhile, and its network with it.
        subprocess.run([*on_node, "ip", "link", "set", "dev", peer, "up"], check=False, capture_output=True)  # noqa: S603


def _pids(worker: Worker) -> list[int]:
    """Processes of the worker's pod, without the one that holds its network."""
    found: set[int] = set()
    for root in cgroups.hierarchies():
        for file in (root / cgroups.ROOT).glob(f"kubepods/**/pod{worker.uid}/**/cgroup.procs"):
            found.update(int(word) for word in file.read_text().split())
    return [pid for pid in sorted(found) if Path(f"/proc/{pid}/comm").read_text() != "pause\n"]


def _endpoint(text: str) -> tuple[str, int]:
    """An address and a port as /proc/net/tcp has them: hexadecimal, the address in the machine's byte order."""
    address, _, port = text.partition(":")
    return socket.inet_ntoa(struct.pack("=I", int(address, 16))), int(port, 16)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
