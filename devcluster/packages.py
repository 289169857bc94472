"""Debian packages that the cluster runs on."""

import os
import shutil

from devcluster.commands import run
from devcluster.errors import DevclusterError

_NEEDED = {
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ebtables": "ebtables",
    "socat": "socat",
    "ethtool": "ethtool",
    "debootstrap": "debootstrap",
    "debian-archive-keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "kmod": "modprobe",
    "ipset": "ipset",
    "iproute2": "ip",
    "mount": "mount",
    "util-linux": "unshare",
}
"""Package and a program or file of it: one that is there is good enough, wherever it came from."""
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def missing() -> list[str]:
    """Names of the packages that are to be installed."""
    return [name for name, sign in _NEEDED.items() if not (os.path.exists(sign) or shutil.which(sign, path=_PATH))]


def install(names: list[str]) -> None:
    """Install packages with apt-get.

    Raises:
        DevclusterError: this machine has no apt-get, or it failed.
    """
    if shutil.which("apt-get") is None:
        raise DevclusterError(f"this machine has no apt-get: install {', '.join(names)} yourself, and run it again")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *names]
    try:
        run(command, env=env)
    except DevclusterError:  # package lists may be missing or too old
        run(["apt-get", "update"], env=env)
        run(command, env=env)
