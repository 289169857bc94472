"""The one link between the machine and the cluster's network namespace."""

import ipaddress
import json

from devcluster.addresses import HOST_IP, HOST_LINK, LINK_CIDR, NODE_IP, NODE_LINK, POD_CIDR, SERVICE_CIDR
from devcluster.commands import run
from devcluster.errors import DevclusterError

_HOST_MAC = "02:00:74:66:74:30"
"""Tells our interface from one that only has the same name. A locally administered address; it ends in "tft0"."""
_PREFIX = ipaddress.ip_network(LINK_CIDR).prefixlen


def connect(pid: int) -> None:
    """Connect the network namespace of process `pid` with the machine, which reaches node, pods and Services there.

    Pods reach the machine at HOST_IP and nothing beyond it: the machine's forwarding and firewall stay as they are.
    """
    _batch(
        [
            f"link add {HOST_LINK} address {_HOST_MAC} type veth peer name {NODE_LINK} netns {pid}",
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


def disconnect() -> None:
    """Remove the link. It would stay for minutes if half-closed TCP connections keep the dead namespace alive."""
    if _links().get(HOST_LINK) != _HOST_MAC:
        return
    try:
        run(["ip", "link", "delete", HOST_LINK])
    except DevclusterError:
        # The kernel removes it as well, once the namespace is dead, and may have been faster.
        if _links().get(HOST_LINK) == _HOST_MAC:
            raise


def check_free() -> None:
    """Raise DevclusterError if the machine already uses our interface's name or our addresses."""
    if HOST_LINK in _links():
        raise DevclusterError(f"network interface {HOST_LINK} exists and is not the devcluster's: remove or rename it")
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


def _links() -> dict[str, str]:
    """Name and hardware address of each of the machine's interfaces."""
    return {link["ifname"]: link.get("address", "") for link in json.loads(run(["ip", "-json", "link", "show"]))}


def _batch(commands: list[str], prefix: list[str] | None = None) -> None:
    run([*(prefix or []), "ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
