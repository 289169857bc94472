"""Simulated nodes as the API server and Volcano are to see them."""

import argparse

import pytest

from devcluster import __main__, simulated_nodes


def test_a_node_has_gpus_and_adapters_and_hangs_on_a_leaf_switch() -> None:
    node = simulated_nodes.node("simulated-00016")
    assert node["metadata"]["labels"][simulated_nodes.LEAF_LABEL] == "simulated-leaf-0001"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["status"]["allocatable"]["nvidia.com/hostdev"] == "8"


def test_a_node_keeps_off_pods_that_do_not_ask_for_it() -> None:
    assert simulated_nodes.node("simulated-00000")["spec"]["taints"] == [
        {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
    ]


@pytest.mark.parametrize(
    ("nodes", "leaves"),
    [
        pytest.param(0, 0, id="no node needs none"),
        pytest.param(1, 1, id="one node needs one"),
        pytest.param(16, 1, id="sixteen nodes fill one"),
        pytest.param(17, 2, id="the seventeenth needs another"),
        pytest.param(1000, 63, id="a thousand need sixty-three"),
    ],
)
def test_leaf_switches(nodes: int, leaves: int) -> None:
    assert len(simulated_nodes.leaf_names(nodes)) == leaves


def test_every_leaf_switch_selects_the_nodes_that_hang_on_it() -> None:
    labels = simulated_nodes.node("simulated-00031")["metadata"]["labels"]
    leaf = simulated_nodes.leaf("simulated-leaf-0001")
    selected = leaf["spec"]["members"][0]["selector"]["labelMatch"]["matchLabels"]
    assert selected.items() <= labels.items()


def test_the_spine_is_above_all_leaf_switches() -> None:
    spine = simulated_nodes.spine(33)
    names = [member["selector"]["exactMatch"]["name"] for member in spine["spec"]["members"]]
    assert (spine["spec"]["tier"], names) == (2, simulated_nodes.leaf_names(33))


@pytest.mark.parametrize("text", ["-1", "5001", "many", "1.5", ""])
def test_a_wrong_number_of_nodes_is_told_with_what_is_accepted(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="accepted: 0 to 5000"):
        __main__._node_count(text)
