"""Configuration files of the daemons."""

import json
from pathlib import Path
from typing import Any

import yaml

from devcluster import cgroups
from devcluster.addresses import CLUSTER_DOMAIN, DNS_SERVICE_IP, NODE, NODE_IP, POD_BRIDGE, POD_CIDR
from devcluster.paths import Cache

PAUSE_IMAGE = "localhost/tftrainer/pause:1"


def write(cache: Cache) -> None:
    """Write all of them below the cluster's state."""
    network = cache.config / "cni"
    network.mkdir(parents=True, exist_ok=True)
    (network / "10-devcluster.conflist").write_text(json.dumps(cni()))
    (cache.config / "containerd.toml").write_text(containerd(cache))
    (cache.config / "kubelet.yaml").write_text(yaml.safe_dump(kubelet(cache)))
    (cache.config / "kube-proxy.yaml").write_text(yaml.safe_dump(kube_proxy(cache)))
    # Pods with dnsPolicy Default would get the machine's name servers, which they cannot reach.
    (cache.config / "resolv.conf").write_text("")


def containerd(cache: Cache) -> str:
    """containerd.toml. Its state is below the private /run, so that no restart finds remains of the last one."""

    def text(path: Path) -> str:
        return json.dumps(str(path))  # a JSON string is a TOML string

    return f"""\
version = 3
root = {text(cache.images)}
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[grpc]
  address = {text(cache.containerd_socket)}

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE_IMAGE}"

[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE nothing may be made less likely to be killed than its parent.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = {text(cache.config / "cni")}
"""


def cni() -> dict[str, Any]:
    """The pod network: one bridge. Pods keep their addresses when they talk to the node (no masquerade)."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": POD_CIDR}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni",
    }
    bridge = {
        "type": "bridge",
        "bridge": POD_BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "devcluster", "plugins": [bridge, ports]}


def kubelet(cache: Cache) -> dict[str, Any]:
    """KubeletConfiguration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_IP,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(cache.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(cache.pki / "kubelet-serving.crt"),
        "tlsPrivateKeyFile": str(cache.pki / "kubelet-serving.key"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroups.ROOT}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,  # a lower one takes CAP_SYS_RESOURCE
        "clusterDNS": [DNS_SERVICE_IP],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(cache.config / "resolv.conf"),
        "containerRuntimeEndpoint": f"unix://{cache.containerd_socket}",
        "podLogsDir": str(cache.cluster / "pod-logs"),
        "volumePluginDir": str(cache.cluster / "kubelet" / "volume-plugins"),
        # Images come from `up` and `load-image` only, so the kubelet must not collect them when the disk is filling.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
    }


def kube_proxy(cache: Cache) -> dict[str, Any]:
    """KubeProxyConfiguration. Zeros leave the machine's connection tracking limits alone."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": "0.0.0.0",  # noqa: S104 (inside the cluster's own network namespace)
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "clientConnection": {"kubeconfig": str(cache.pki / "proxy.kubeconfig")},
        "hostnameOverride": NODE,
        "clusterCIDR": POD_CIDR,
        "mode": "iptables",
        "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "oomScoreAdj": 0,
    }
