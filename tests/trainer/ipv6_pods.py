"""Pods of one gang that have IPv6 and nothing else: no IPv4 address, no IPv4 route, no A record.

Linux namespaces make a node with a bridge, a name server and pods whose network, hostname and /etc/hosts are their own;
so everything runs as it does in a cluster, down to TensorFlow's server, which listens on its port at any address. The
cluster's domain is not the usual one.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.trainer.dns_server import DnsServer
from tests.trainer.processes import TRAINER, Result

JOB, NAMESPACE, DOMAIN = "mnist", "ml", "k8s.acme.io"
SERVICE = f"{JOB}.{NAMESPACE}.svc.{DOMAIN}"
NAME_SERVER = "fd00::53"
ISOLATED = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
# An address of the bridge's own: by default it has that of one of its ports, another one when a pod comes or goes.
NODE_UP = f"""
ip link add bridge address 02:00:00:00:00:53 type bridge
ip link set bridge up
ip -6 address add {NAME_SERVER}/64 dev bridge nodad
"""
CABLE = """
ip link add "pod$1" type veth peer name eth0 netns "$1"
ip link set "pod$1" master bridge up
"""
POD = """
read -r plugged
hostname "$1"
mount --bind "$2" /etc/hosts
ip link set lo up
ip -4 address flush dev lo
ip link set eth0 up
ip -6 address add "$3/64" dev eth0 nodad
shift 3
exec "$@"
"""


def address(index: int) -> str:
    """The pod's only address."""
    return f"fd00::{index + 1:x}"


def possible() -> bool:
    """Whether this machine lets us have such pods."""
    command = [*ISOLATED, "sh", "-ec", f"{NODE_UP} ip link add one type veth peer name other"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603


def run_pods(size: int, *command: str, downward_api: bool, **env: str) -> list[Result]:
    """Run tfrun.py with this command in every pod of a gang, each with `env`; how each ended, by index.

    Without the downward API a pod knows itself only from its hostname and the files that kubelet writes.
    """
    task = json.dumps({"size": size, "command": command, "downward_api": downward_api, "env": env})
    done = subprocess.run(  # noqa: S603
        [*ISOLATED, sys.executable, "-m", __name__, task],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=150,
    )
    return [Result(*ended) for ended in json.loads(done.stdout)]


async def _pod(
    index: int, files: Path, size: int, command: list[str], downward_api: bool, env: dict[str, str]
) -> Result:
    hostname = f"{JOB}-node-0-{index}"
    hosts = files / f"hosts-{index}"
    hosts.write_text(f"::1 localhost\n{address(index)} {hostname}.{SERVICE} {hostname}\n")
    pod_env = {"POD_NAMESPACE": NAMESPACE, "POD_IP": address(index), "POD_UID": hostname, "JOB_UID": "1"}
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--net", "--mount", "--uts", "sh", "-ec", POD, "sh", hostname, str(hosts), address(index)),
        *(sys.executable, "-u", str(TRAINER / "tfrun.py"), "--", *command),
        env={"PATH": os.environ["PATH"], "TF_NUM_WORKERS": str(size), "TF_RENDEZVOUS_TIMEOUT": "60"}
        | (pod_env if downward_api else {})
        | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        await asyncio.sleep(0.01)
    _run("sh", "-ec", CABLE, "sh", str(process.pid))
    output, errors = await process.communicate(b"plugged\n")
    return Result(process.returncode or 0, output.decode(), errors.decode())


async def _gang(size: int, command: list[str], downward_api: bool, env: dict[str, str]) -> list[Result]:
    dns = DnsServer()
    for index in range(size):
        for name in (SERVICE, f"{JOB}-node-0-{index}.{SERVICE}"):
            dns.records[name].add(address(index))
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        (files / "resolv.conf").write_text(
            f"search {NAMESPACE}.svc.{DOMAIN} svc.{DOMAIN} {DOMAIN}\nnameserver {NAME_SERVER}\noptions ndots:5\n"
        )
        _run("mount", "--bind", str(files / "resolv.conf"), "/etc/resolv.conf")
        async with dns.running(NAME_SERVER, 53):
            pods = (_pod(index, files, size, command, downward_api, env) for index in range(size))
            return await asyncio.gather(*pods)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)  # noqa: S603


def _main(task: str) -> None:
    """In the namespaces."""
    wanted = json.loads(task)
    _run("sh", "-ec", NODE_UP)
    print(json.dumps([[pod.code, pod.output, pod.errors] for pod in asyncio.run(_gang(**wanted))]))


if __name__ == "__main__":
    _main(sys.argv[1])
