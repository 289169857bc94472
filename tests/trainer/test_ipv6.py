"""A gang whose pods have IPv6 alone: who they are, DNS, the calls between them, TF_CONFIG, and the training itself."""

import json
from pathlib import Path

import pytest

from tests.trainer import ipv6_pods
from tests.trainer.batches import write_batches
from tests.trainer.processes import TRAINER

SIZE = 3
HOSTS = [f"mnist-node-0-{index}.{ipv6_pods.SERVICE}" for index in range(SIZE)]
SCRIPT = """
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
hosts = [worker.rpartition(":")[0] for worker in config["cluster"]["worker"]]
found = [sorted({entry[4][0] for entry in socket.getaddrinfo(host, None)}) for host in hosts]
print(json.dumps({"config": config, "addresses": found}))
"""

pytestmark = pytest.mark.skipif(not ipv6_pods.possible(), reason="no namespaces, or no IPv6 here")


@pytest.mark.parametrize(
    "downward_api",
    [
        pytest.param(True, id="told by the downward API"),
        pytest.param(False, id="known from hostname, hosts file and search list"),
    ],
)
def test_pods_with_ipv6_alone_agree_on_names_that_resolve_to_their_addresses(
    tmp_path: Path, downward_api: bool
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    pods = ipv6_pods.run_pods(SIZE, str(tmp_path / "script.py"), downward_api=downward_api)
    assert [pod.code for pod in pods] == [0] * SIZE, pods
    told = [json.loads(pod.output.splitlines()[-1]) for pod in pods]
    # Names, and so no brackets: TensorFlow would need them around an IPv6 address.
    assert told[0]["config"]["cluster"] == {"worker": [f"{host}:12345" for host in HOSTS]}
    assert [pod["config"]["task"]["index"] for pod in told] == list(range(SIZE))
    assert all(pod["config"]["cluster"] == told[0]["config"]["cluster"] for pod in told)
    assert told[0]["addresses"] == [[ipv6_pods.address(index)] for index in range(SIZE)]
    assert f"worker 0 of {SIZE} at {ipv6_pods.address(0)}, service {ipv6_pods.SERVICE}" in pods[0].output


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_pods_with_ipv6_alone_train(tmp_path: Path) -> None:
    data = str(write_batches(tmp_path / "cifar", train=100, test=20))
    train = str(TRAINER / "train.py")
    pods = ipv6_pods.run_pods(2, train, downward_api=True, DATA_DIR=data, EPOCHS="2", TF_CPP_MIN_LOG_LEVEL="1")
    assert [pod.code for pod in pods] == [0, 0], pods
    assert pods[0].summary["workers"] == 2
    assert pods[0].epochs == pods[1].epochs
