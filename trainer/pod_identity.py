"""Who this pod is: its TrainJob, its index, and the names of its gang.

Kubeflow Trainer tells a pod nothing about its gang unless the runtime names a framework it knows, and TensorFlow is not
one of them. Everything needed is in the pod's hostname, its address and its resolver configuration.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from env_settings import InputError

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
RESOLV_CONF = Path("/etc/resolv.conf")
DEFAULT_DOMAIN = "cluster.local"

# RFC 1035 labels, because JobSet builds the hostname from a TrainJob's name: <job>-node-<replica>-<completion index>.
_HOSTNAME = re.compile(r"([a-z](?:[-a-z0-9]*[a-z0-9])?)-node-(0|[1-9][0-9]*)-(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class PodIdentity:
    """One worker of a TrainJob, read from its pod's hostname."""

    job: str
    """The TrainJob's name, which is also the name of the headless service of its pods."""
    index: int
    """The worker's index, from 0."""
    by_replica: bool = False
    """True for `<job>-node-<index>-0` (one Job per worker), False for `<job>-node-0-<index>` (one Job, many indexes).

    Worker 0's hostname fits both; False stands until a peer shows otherwise.
    """

    @classmethod
    def parse(cls, hostname: str) -> "PodIdentity":
        """Read a pod's hostname, short or fully qualified; raises InputError for any other name.

        >>> PodIdentity.parse("mnist-node-0-3")
        PodIdentity(job='mnist', index=3, by_replica=False)
        >>> PodIdentity.parse("mnist-node-3-0")
        PodIdentity(job='mnist', index=3, by_replica=True)
        """
        match = _HOSTNAME.fullmatch(hostname.partition(".")[0])
        if match is None or (match[2] != "0" and match[3] != "0"):
            raise InputError(
                f"hostname {hostname!r}: expected <trainjob>-node-0-<index> or <trainjob>-node-<index>-0, as a "
                "TrainJob's pods have it (a pod with hostNetwork has its node's name instead)"
            )
        replica, completion = int(match[2]), int(match[3])
        return cls(match[1], max(replica, completion), by_replica=replica > 0)

    @property
    def hostname(self) -> str:
        """The pod's short hostname."""
        return self.peer(self.index)

    def peer(self, index: int | str) -> str:
        """The short hostname of the same gang's worker `index`, or with whatever is to stand for an index."""
        return f"{self.job}-node-{index}-0" if self.by_replica else f"{self.job}-node-0-{index}"


@dataclass(frozen=True)
class Worker:
    """A worker and everything its gang needs to know of it."""

    pod: PodIdentity
    namespace: str
    domain: str
    """The cluster's DNS domain, usually cluster.local."""
    address: str
    """The pod's IP address."""
    port: int
    """The TCP port that TensorFlow will listen on; the rendezvous uses it until then."""
    generation: str = ""
    """New in every run and every restart of the gang; empty when the runtime does not expose it."""
    uid: str = ""
    """The pod's uid; unlike the generation it is new after suspend and resume as well."""

    @property
    def service(self) -> str:
        """The name of the gang's headless service, which has the addresses of all its pods."""
        return f"{self.pod.job}.{self.namespace}.svc.{self.domain}"

    def host(self, index: int | str) -> str:
        """The full DNS name of worker `index`, or with whatever is to stand for an index."""
        return f"{self.pod.peer(index)}.{self.service}"

    @classmethod
    def from_environment(cls, port: int, env: Mapping[str, str] = os.environ) -> "Worker":
        """This pod, from its hostname, its resolver configuration and the runtime's downward API variables.

        POD_NAMESPACE, POD_IP, POD_UID, JOB_UID and JOBSET_RESTART_ATTEMPT are all optional.
        Raises InputError when the hostname is no TrainJob pod's, or the namespace or address cannot be found.
        """
        hostname = socket.gethostname()
        pod = PodIdentity.parse(hostname)
        search = search_list(RESOLV_CONF)
        namespace = env.get("POD_NAMESPACE") or _mounted_namespace() or _namespace_of(search)
        if not namespace:
            raise InputError(
                "no namespace: set POD_NAMESPACE (downward API: metadata.namespace); there is neither "
                f"{NAMESPACE_FILE} nor a <namespace>.svc.<domain> in the search list of {RESOLV_CONF}"
            )
        generation = "/".join(filter(None, (env.get("JOB_UID"), env.get("JOBSET_RESTART_ATTEMPT"))))
        address = env.get("POD_IP") or _own_address(hostname)
        try:
            address = str(ipaddress.ip_address(address))
        except ValueError as error:
            raise InputError(f"POD_IP={address!r}: expected this pod's IPv4 or IPv6 address") from error
        return cls(pod, namespace, cluster_domain(search), address, port, generation, env.get("POD_UID", ""))


def search_list(resolv_conf: Path) -> list[str]:
    """The domains of resolv.conf's last `search` line, as resolvers read it; empty when there is none."""
    try:
        lines = resolv_conf.read_text().splitlines()
    except OSError:
        return []
    searches = [line.split()[1:] for line in lines if line.split()[:1] == ["search"]]
    return [domain.rstrip(".") for domain in searches[-1]] if searches else []


def cluster_domain(search: Iterable[str]) -> str:
    """The cluster's DNS domain: kubelet puts `<namespace>.svc.<domain> svc.<domain> <domain>` in the search list.

    It is not cluster.local everywhere (https://github.com/kubeflow/trainer/issues/770).
    """
    for entry in search:
        head, svc, domain = entry.partition("svc.")
        if svc and domain and (not head or re.fullmatch(r"[-a-z0-9]+\.", head)):
            return domain
    return DEFAULT_DOMAIN


def _namespace_of(search: Iterable[str]) -> str:
    for entry in search:
        match = re.match(r"([-a-z0-9]+)\.svc\..", entry)
        if match:
            return match[1]
    return ""


def _mounted_namespace() -> str:
    try:
        return NAMESPACE_FILE.read_text().strip()
    except OSError:
        return ""


def _own_address(hostname: str) -> str:
    """The pod's address from /etc/hosts, where kubelet writes it beside the hostname."""
    try:
        found = socket.getaddrinfo(hostname, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InputError(
            f"no address for hostname {hostname!r} ({error}): set POD_IP (downward API: status.podIP)"
        ) from error
    return str(found[0][4][0])
