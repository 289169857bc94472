"""Reading from an API server, played by a small HTTP server."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from components import api
from components.kubeconfig import Kubeconfig
from components.live_objects import find, gang_pods
from tests.unit.api_server import ApiServer, api_server


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server() as server:
        yield server


def test_an_object_of_the_cluster(server: ApiServer) -> None:
    server.answer("/apis/scheduling.volcano.sh/v1beta1/queues/tensorflow", {"kind": "Queue"})
    assert find(server.kubeconfig, api.VOLCANO_API, "Queue", "tensorflow") == {"kind": "Queue"}


def test_an_object_of_a_namespace(server: ApiServer) -> None:
    server.answer("/api/v1/namespaces/ml/configmaps/scripts", {"kind": "ConfigMap"})
    assert find(server.kubeconfig, "v1", "ConfigMap", "scripts", "ml") == {"kind": "ConfigMap"}


def test_no_such_object(server: ApiServer) -> None:
    server.answer("/apis/scheduling.volcano.sh/v1beta1/queues/tensorflow", {"kind": "Status"}, 404)
    assert find(server.kubeconfig, api.VOLCANO_API, "Queue", "tensorflow") is None


def test_no_such_kind(server: ApiServer) -> None:
    assert find(server.kubeconfig, api.VOLCANO_API, "PodGroup", "digits", "ml") is None


def test_all_threads_share_one_client(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Kubeconfig] = []
    original = Kubeconfig.api_client

    def slow(kubeconfig: Kubeconfig) -> Any:
        made.append(kubeconfig)
        time.sleep(0.05)
        return original(kubeconfig)

    monkeypatch.setattr(Kubeconfig, "api_client", slow)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: find(server.kubeconfig, api.VOLCANO_API, "Queue", name), "abcdef"))
    assert made == [server.kubeconfig]


def test_the_pods_of_a_gang(server: ApiServer) -> None:
    path = "/api/v1/namespaces/ml/pods?labelSelector=jobset.sigs.k8s.io/jobset-name%3Ddigits"
    server.answer(path, {"items": [{"metadata": {"name": "digits-node-0-0"}}]})
    assert gang_pods(server.kubeconfig, "ml", "digits") == [{"kind": "Pod", "metadata": {"name": "digits-node-0-0"}}]


def test_a_refusal_is_told_with_the_servers_reason(server: ApiServer) -> None:
    server.answer("/apis/scheduling.volcano.sh/v1beta1/queues/tensorflow", {"message": "queues is forbidden"}, 403)
    with pytest.raises(RuntimeError) as refused:
        find(server.kubeconfig, api.VOLCANO_API, "Queue", "tensorflow")
    assert str(refused.value) == (
        "the Kubernetes API server refuses GET /apis/scheduling.volcano.sh/v1beta1/queues/tensorflow: "
        "403 queues is forbidden"
    )


def test_a_server_that_is_gone_is_one_line(server: ApiServer) -> None:
    gone = Kubeconfig((server.kubeconfig.contents_or_path or "").replace("127.0.0.1:", "127.0.0.1:1#"))
    with pytest.raises(RuntimeError, match=r"^the Kubernetes API server does not answer: [^\n]+$"):
        find(gone, api.VOLCANO_API, "Queue", "tensorflow")
