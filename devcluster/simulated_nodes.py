"""What simulated nodes look like to the API server: machines with GPUs below leaf switches, and a spine above those.

Pure functions from numbers to manifests. Names and taint are kwok's own habit (https://kwok.sigs.k8s.io/docs/user/
kwok-manage-nodes-and-pods/), so that manifests written for kwok elsewhere work here too.
"""

from typing import Any

NODES_PER_LEAF = 16
NODE_PREFIX = "simulated-"
LABEL, LABEL_VALUE = "type", "kwok"
SELECTOR = f"{LABEL}={LABEL_VALUE}"
"""Selects all of them."""
INDEX_LABEL = "simulation.devcluster/index"
"""Number of a node or a leaf switch, from 0: makes it possible to select the last ones."""
LEAF_LABEL = "simulation.devcluster/leaf"
"""The leaf switch that a node hangs on."""
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
"""Keeps off every pod that does not ask for simulated nodes: nothing would run there."""
RESOURCES = {
    "cpu": "96",
    "memory": "1Ti",
    "ephemeral-storage": "1Ti",
    "pods": "110",
    "nvidia.com/gpu": "8",
    "nvidia.com/hostdev": "8",
}


def node_names(count: int) -> list[str]:
    return [f"{NODE_PREFIX}{index:05}" for index in range(count)]


def leaf_names(count: int) -> list[str]:
    """The leaf switches that `count` nodes need."""
    return [f"simulated-leaf-{index:04}" for index in range(-(-count // NODES_PER_LEAF))]


def node(name: str) -> dict[str, Any]:
    """The Node. kwok keeps what it finds in `status` and adds the rest, with the condition Ready."""
    index = _index(name)
    labels = {"kubernetes.io/hostname": name, LEAF_LABEL: leaf_names(index + 1)[-1]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**_own_labels(index), **labels}},
        "spec": {"taints": [TAINT]},
        "status": {"allocatable": RESOURCES, "capacity": RESOURCES},
    }


def leaf(name: str) -> dict[str, Any]:
    """The HyperNode of tier 1: the nodes on one leaf switch."""
    nodes = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {LEAF_LABEL: name}}}}
    return _hyper_node(name, _index(name), 1, [nodes])


def spine(count: int) -> dict[str, Any]:
    """The HyperNode of tier 2: all leaf switches. (Volcano ignores patterns here, though not in tier 1.)"""
    leaves = [{"type": "HyperNode", "selector": {"exactMatch": {"name": name}}} for name in leaf_names(count)]
    return _hyper_node("simulated-spine", 0, 2, leaves)


def _index(name: str) -> int:
    return int(name.rpartition("-")[2])


def _own_labels(index: int) -> dict[str, str]:
    return {LABEL: LABEL_VALUE, INDEX_LABEL: str(index)}


def _hyper_node(name: str, index: int, tier: int, members: list[dict[str, Any]]) -> dict[str, Any]:
    """See https://github.com/volcano-sh/volcano/blob/v1.15.1/docs/design/Network%20Topology%20Aware%20Scheduling.md"""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "labels": _own_labels(index)},
        "spec": {"tier": tier, "members": members},
    }
