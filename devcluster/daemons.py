"""The daemons and their command lines."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from devcluster.addresses import CLUSTER_DOMAIN, NODE, NODE_IP, POD_CIDR, SERVICE_CIDR
from devcluster.paths import Cache

_ETCD = "http://127.0.0.1:2379"
_ETCD_PEER = "http://127.0.0.1:2380"


class Needs(Enum):
    """What has to be there before a daemon starts: it would give up, or wait long before it tries again."""

    NOTHING = 0
    API = 1
    NODE = 2


@dataclass(frozen=True)
class Daemon:
    """One host process of the cluster; `name` is its binary's."""

    name: str
    flags: Callable[[Cache], list[str]]
    needs: Needs

    def argv(self, cache: Cache) -> list[str | Path]:
        return [cache.bin / self.name, *self.flags(cache)]


def _etcd(cache: Cache) -> list[str]:
    return [
        f"--name={NODE}",
        f"--data-dir={cache.cluster / 'etcd'}",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        f"--listen-peer-urls={_ETCD_PEER}",
        f"--initial-advertise-peer-urls={_ETCD_PEER}",
        f"--initial-cluster={NODE}={_ETCD_PEER}",
        "--unsafe-no-fsync",  # survives the death of any process, though not of the machine
        "--log-level=warn",
    ]


def _containerd(cache: Cache) -> list[str]:
    return [f"--config={cache.config / 'containerd.toml'}"]


def _kube_apiserver(cache: Cache) -> list[str]:
    pki = cache.pki
    return [
        f"--etcd-servers={_ETCD}",
        f"--bind-address={NODE_IP}",
        f"--advertise-address={NODE_IP}",
        "--secure-port=6443",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        f"--service-account-issuer=https://kubernetes.default.svc.{CLUSTER_DOMAIN}",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-account-signing-key-file={pki}/sa.key",
        f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
        f"--proxy-client-key-file={pki}/front-proxy-client.key",
    ]


def _kube_controller_manager(cache: Cache) -> list[str]:
    pki = cache.pki
    return [
        *_client_flags(pki / "controller-manager.kubeconfig"),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki}/sa.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
        f"--cluster-cidr={POD_CIDR}",
        "--allocate-node-cidrs=false",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        # It asks for a token for each of its controllers when it starts; at 20 a second, the default, that takes 4 s.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def _kube_scheduler(cache: Cache) -> list[str]:
    return _client_flags(cache.pki / "scheduler.kubeconfig")


def _client_flags(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]


def _kubelet(cache: Cache) -> list[str]:
    return [
        f"--config={cache.config / 'kubelet.yaml'}",
        f"--kubeconfig={cache.pki / 'kubelet.kubeconfig'}",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_IP}",
        f"--root-dir={cache.cluster / 'kubelet'}",
    ]


def _kube_proxy(cache: Cache) -> list[str]:
    return [f"--config={cache.config / 'kube-proxy.yaml'}"]


def _kube_router(cache: Cache) -> list[str]:
    """Only its firewall: it enforces NetworkPolicies, which the bridge of the pod network does not."""
    return [
        f"--kubeconfig={cache.kubeconfig}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--run-loadbalancer=false",
        "--enable-ipv6=false",
        f"--hostname-override={NODE}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--health-port=0",
    ]


DAEMONS = (
    Daemon("etcd", _etcd, Needs.NOTHING),
    Daemon("containerd", _containerd, Needs.NOTHING),
    Daemon("kube-apiserver", _kube_apiserver, Needs.NOTHING),
    Daemon("kube-controller-manager", _kube_controller_manager, Needs.API),
    Daemon("kube-scheduler", _kube_scheduler, Needs.API),
    Daemon("kubelet", _kubelet, Needs.API),
    Daemon("kube-proxy", _kube_proxy, Needs.API),
    Daemon("kube-router", _kube_router, Needs.NODE),
)
"""In the order in which they start."""
