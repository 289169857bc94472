"""Ask the cluster's DNS server, the way a pod would."""

import secrets
import socket
import struct

from devcluster.addresses import CLUSTER_DOMAIN, DNS_SERVICE_IP

_NO_ERROR, _INTERNET, _A = 0, 1, 1
_RECURSION_DESIRED = 0x0100


def answers(timeout: float = 0.5) -> bool:
    """Whether the API server's Service name resolves. An answer proves kube-proxy and the pod network, too.

    `timeout` is in seconds.
    """
    number = secrets.randbits(16)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(timeout)
        try:
            client.sendto(query(number, f"kubernetes.default.svc.{CLUSTER_DOMAIN}"), (DNS_SERVICE_IP, 53))
            return is_success(number, client.recv(512))
        except OSError:
            return False


def query(number: int, name: str) -> bytes:
    """A request for the A records of `name`; see RFC 1035, section 4.1."""
    header = struct.pack("!6H", number, _RECURSION_DESIRED, 1, 0, 0, 0)
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return header + labels + b"\0" + struct.pack("!2H", _A, _INTERNET)


def is_success(number: int, reply: bytes) -> bool:
    """Whether `reply` answers request `number` with at least one record."""
    if len(reply) < 12:
        return False
    got, flags, _, records, _, _ = struct.unpack("!6H", reply[:12])
    return bool(got == number and flags & 0xF == _NO_ERROR and records > 0)
