"""Simulated nodes beside the real one: kwok keeps them Ready, and reports every pod on them as running.

Nothing runs there. They are for scheduling at a size that no machine at hand has. kwok is no daemon of the cluster's:
it comes and goes while the cluster runs.
"""

import json
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from devcluster import namespace, simulated_nodes
from devcluster.addresses import NODE, NODE_IP
from devcluster.catalog import KWOK, KWOK_STAGES
from devcluster.errors import DevclusterError
from devcluster.kube import Kubectl
from devcluster.paths import PACKAGE, Cache

_LEASE_SECONDS = 120
"""kwok renews a node's lease after a quarter of it; Kubernetes gives up a node after 50 s, and each request costs CPU.
https://github.com/kubernetes-sigs/kwok/blob/v0.8.0/pkg/kwok/controllers/controller.go (renewInterval)
"""
_POD_CIDR = "10.245.0.0/16"
"""Addresses that pods are said to have. Nothing answers there."""
_DELETING_SECONDS = 240
"""For a thousand nodes whose pods are being deleted too."""
_OUR_STAGE = PACKAGE / "stages" / "pod-end.yaml"
_NODES_PATH = "/api/v1/nodes"
_LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_HYPER_NODES_PATH = "/apis/topology.volcano.sh/v1alpha1/hypernodes"


def recorded(cache: Cache) -> int:
    """How many simulated nodes the cluster is to have."""
    file = _record(cache)
    return int(file.read_text()) if file.exists() else 0


def scale(cache: Cache, count: int) -> bool:
    """Have `count` simulated nodes, Ready, and Volcano's map of their network. The cluster has to run.

    Returns whether there is a map: without Volcano there is none.

    Raises:
        DevclusterError: kwok does not start, or not all nodes get Ready.
    """
    _record(cache).write_text(str(max(count, recorded(cache))))  # until they are gone, `up` has to know of them
    if count and "kwok" not in namespace.running(cache):
        # It would wait until those that an earlier kwok holds expire, and nodes get lost meanwhile.
        Kubectl(cache)("delete", "--raw", f"{_LEASES_PATH}?{urlencode({'fieldSelector': f'metadata.name!={NODE}'})}")
        namespace.join(cache, _argv(cache), cache.logs / "kwok.log")
    _scale_nodes(cache, count)
    mapped = _scale_network(cache, count)
    _record(cache).write_text(str(count))
    if not count and (pid := namespace.running(cache).get("kwok")):
        os.kill(pid, signal.SIGTERM)
    return mapped


def _argv(cache: Cache) -> list[str | Path]:
    return [
        KWOK.path(cache),
        f"--kubeconfig={cache.kubeconfig}",
        *(f"--config={file}" for file in (*(stage.path(cache) for stage in KWOK_STAGES), _OUR_STAGE)),
        f"--manage-nodes-with-label-selector={simulated_nodes.SELECTOR}",
        "--manage-all-nodes=false",
        f"--node-lease-duration-seconds={_LEASE_SECONDS}",
        f"--node-ip={NODE_IP}",
        f"--cidr={_POD_CIDR}",
    ]


def _scale_nodes(cache: Cache, count: int) -> None:
    _delete_surplus(cache, _NODES_PATH, count)
    listed = json.loads(Kubectl(cache)("get", "--raw", f"{_NODES_PATH}?{_selecting(simulated_nodes.SELECTOR)}"))
    existing = {item["metadata"]["name"] for item in listed["items"]}
    missing = [name for name in simulated_nodes.node_names(count) if name not in existing]
    _send(cache, ["create"], [simulated_nodes.node(name) for name in missing])
    deadline = time.monotonic() + 60 + count / 20
    while (ready := _ready(cache)) < count:
        if "kwok" not in namespace.running(cache):
            raise DevclusterError(f"kwok stopped, see {cache.logs / 'kwok.log'}")
        if time.monotonic() > deadline:
            raise DevclusterError(f"{ready} of {count} simulated nodes are Ready, see {cache.logs / 'kwok.log'}")
        time.sleep(0.5)


def _scale_network(cache: Cache, count: int) -> bool:
    if not Kubectl(cache)("get", "crd", "hypernodes.topology.volcano.sh", "--ignore-not-found", "--output=name"):
        return False
    leaves = [simulated_nodes.leaf(name) for name in simulated_nodes.leaf_names(count)]
    _delete_surplus(cache, _HYPER_NODES_PATH, len(leaves))
    if leaves:
        _send(cache, ["apply", "--server-side"], [*leaves, simulated_nodes.spine(count)])
    return True


def _delete_surplus(cache: Cache, path: str, count: int) -> None:
    """Delete what is numbered `count` or higher: in one request, for kubectl takes minutes to delete a thousand.

    The API server gives a request one minute; what a busy one has not deleted by then is left to the next request.
    """
    surplus = f"{simulated_nodes.SELECTOR},{simulated_nodes.INDEX_LABEL}>{count - 1}"
    selected = _selecting(surplus if count else simulated_nodes.SELECTOR)
    deadline = time.monotonic() + _DELETING_SECONDS
    while True:
        try:
            Kubectl(cache)("delete", "--raw", f"{path}?{selected}", timeout=120)
            return
        except DevclusterError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def _selecting(selector: str) -> str:
    return urlencode({"labelSelector": selector})


def _send(cache: Cache, verb: list[str], manifests: list[dict[str, Any]]) -> None:
    if not manifests:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": manifests}, file)
        file.flush()
        Kubectl(cache)(*verb, f"--filename={file.name}", timeout=60 + len(manifests) / 5)


def _ready(cache: Cache) -> int:
    """How many simulated nodes are Ready."""
    status = '{.items[*].status.conditions[?(@.type=="Ready")].status}'
    words = Kubectl(cache)("get", "nodes", f"--selector={simulated_nodes.SELECTOR}", f"--output=jsonpath={status}")
    return words.split().count("True")


def _record(cache: Cache) -> Path:
    return cache.cluster / "simulated-nodes"
