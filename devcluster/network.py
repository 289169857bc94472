"""The one link between the machine and the cluster's network namespace."""

import ipaddress
import json
import time

from devcluster.addresses import HOST_IP, HOST_LINK, LINK_CIDR, NODE_IP, NODE_LINK, POD_CIDR, SERVICE_CIDR
from devcluster.commands import run
from devcluster.errors import DevclusterError

_PREFIX = ipaddress.ip_network(LINK_CIDR).prefixlen


def connect(pid: int) -> None:
    """Connect the network namespace of process `pid` with the machine, which reaches node, pods and Services there.

    Pods reach the machine at HOST_IP and nothing beyond it: the machine's forwarding and firewall stay as they are.
    """
    run(["ip", "link", "add", HOST_LINK, "type", "veth", "peer", "name", NODE_LINK, "netns", str(pid)])
    _batch(
        [
            f"link set {HOST_LINK} up",
            f"address add {HOST_IP}/{_PREFIX} dev {HOST_LINK}",
        ]
    )
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net"]
    _batch(
        [
            "link set lo up",
            f"link set {NODE_LINK} up",
            f"address add {NODE_IP}/{_PREFIX} dev {NODE_LINK}",
            f"route add default via {HOST_IP}",
        ],
        inside,
    )
    # /proc/sys/net shows the network namespace of the process that opens it.
    run([*inside, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])
    _batch([f"route add {cidr} via {NODE_IP} dev {HOST_LINK}" for cidr in (POD_CIDR, SERVICE_CIDR)])


def disconnect(timeout: float = 10.0) -> None:
    """Wait until the link is gone, as it is shortly after the last process of its namespace (`timeout` in seconds)."""
    deadline = time.monotonic() + timeout
    while HOST_LINK in _links():
        if time.monotonic() > deadline:
            raise DevclusterError(f"network interface {HOST_LINK} is still there: `ip link delete {HOST_LINK}`")
        time.sleep(0.02)


def check_free() -> None:
    """Raise DevclusterError if the machine already uses our interface's name or our addresses."""
    if HOST_LINK in _links():
        raise DevclusterError(f"network interface {HOST_LINK} exists, and no devcluster runs: remove or rename it")
    if clash := find_clash(json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]))):
        raise DevclusterError(clash)


def find_clash(routes: list[dict[str, str]]) -> str | None:
    """Say which of the machine's routes (`ip -json route`) overlaps with the cluster's addresses, if one does."""
    for route in routes:
        destination = route["dst"]
        if destination in ("default", "0.0.0.0/1", "128.0.0.0/1"):  # the halves: how VPNs spell default
            continue
        for ours in (LINK_CIDR, POD_CIDR, SERVICE_CIDR):
            if ipaddress.ip_network(ours).overlaps(ipaddress.ip_network(destination)):
                return (
                    f"the cluster needs {ours}, but this machine already routes {destination} "
                    f"to {route.get('dev', 'another interface')}; or use your own cluster: see README"
                )
    return None


def _links() -> set[str]:
    return {link["ifname"] for link in json.loads(run(["ip", "-json", "link", "show"]))}


def _batch(commands: list[str], prefix: list[str] | None = None) -> None:
    run([*(prefix or []), "ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
