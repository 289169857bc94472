"""Violence against the node: its daemons, the workers' processes, their network."""

import json
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster import cgroups, namespace
from devcluster.paths import Cache

IN_OUR_GROUPS = 'for group in $1; do echo $$ >"$group/cgroup.procs" || exit 1; done; shift; exec "$@"'
ESTABLISHED = "01"


def signal_worker(pod: dict[str, Any], number: signal.Signals) -> None:
    """Send a signal to every process of the pod's containers, as something on the node would."""
    for pid in _worker_pids(pod):
        os.kill(pid, number)


def restart_daemon(name: str) -> None:
    """SIGKILL a daemon of the cluster and start it again, as a service manager would."""
    pid = namespace.running(Cache.from_environment())[name]
    process = Path(f"/proc/{pid}")
    argv = process.joinpath("cmdline").read_text().rstrip("\0").split("\0")
    environment = dict(item.split("=", 1) for item in process.joinpath("environ").read_text().rstrip("\0").split("\0"))
    groups = " ".join(map(str, cgroups.create(cgroups.hierarchies())))
    with process.joinpath("fd/1").open("ab") as log:
        # Inside first, for the namespaces go by a process that is still there.
        starter = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", IN_OUR_GROUPS, "sh", groups, *_inside(pid), "sh", "-c", 'read _; exec "$@"', "sh", *argv],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.kill(pid, signal.SIGKILL)
    while process.exists():
        pass
    assert starter.stdin is not None
    starter.stdin.write(b"go\n")
    starter.stdin.close()


def peers(pod: dict[str, Any], port: int) -> set[str]:
    """Addresses that the pod has TCP connections with, at `port` on either side."""
    lines = Path(f"/proc/{_worker_pids(pod)[0]}/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    ends = [(_endpoint(line[1]), _endpoint(line[2])) for line in fields if line[3] == ESTABLISHED]
    return {remote[0] for local, remote in ends if port in (local[1], remote[1])}


@contextmanager
def interface_down(pod: dict[str, Any]) -> Iterator[None]:
    """Cut the pod off from the network while the block runs: the bridge's end of its cable goes down."""
    inside_pod = ["nsenter", f"--net=/proc/{_worker_pids(pod)[0]}/ns/net"]
    on_node = ["nsenter", f"--net=/proc/{namespace.running(Cache.from_environment())['kubelet']}/ns/net"]
    [link] = json.loads(_run(*inside_pod, "ip", "-json", "link", "show", "dev", "eth0"))
    peers = json.loads(_run(*on_node, "ip", "-json", "link", "show"))
    peer = next(other["ifname"] for other in peers if other["ifindex"] == link["link_index"])
    _run(*on_node, "ip", "link", "set", "dev", peer, "down")
    try:
        yield
    finally:
        # No matter if it fails: the pod may have been given up meanwhile, and its network with it.
        subprocess.run([*on_node, "ip", "link", "set", "dev", peer, "up"], check=False, capture_output=True)  # noqa: S603


def _inside(pid: int) -> list[str]:
    return ["nsenter", f"--target={pid}", "--mount", "--net", "--pid"]


def _worker_pids(pod: dict[str, Any]) -> list[int]:
    """Processes of the pod's containers, without the pause process that holds its network."""
    found: set[int] = set()
    for root in cgroups.hierarchies():
        for file in (root / cgroups.ROOT).glob(f"kubepods/**/pod{pod['metadata']['uid']}/**/cgroup.procs"):
            found.update(int(word) for word in file.read_text().split())
    return [pid for pid in sorted(found) if not os.readlink(f"/proc/{pid}/exe").endswith("/pause")]


def _endpoint(text: str) -> tuple[str, int]:
    """An address and a port as /proc/net/tcp has them: hexadecimal, the address in the machine's byte order."""
    address, _, port = text.partition(":")
    return socket.inet_ntoa(struct.pack("=I", int(address, 16))), int(port, 16)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
