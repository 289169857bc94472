"""Reading from an API server, played by a small HTTP server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
import yaml

from components import api
from components.kubeconfig import Kubeconfig
from components.live_objects import find, gang_pods


class ApiServer(BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}

    def do_GET(self) -> None:
        status, body = self.answers.get(self.path, (404, b"404 page not found\n"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def kubeconfig() -> Iterator[Kubeconfig]:
    ApiServer.answers = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), ApiServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        yield Kubeconfig(
            yaml.safe_dump(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                    "clusters": [{"name": "x", "cluster": {"server": address}}],
                    "users": [{"name": "x", "user": {"token": "t"}}],
                }
            )
        )
        server.shutdown()


def answer(path: str, body: Any, status: int = 200) -> None:
    ApiServer.answers[path] = (status, json.dumps(body).encode())


def test_an_object_of_the_cluster(kubeconfig: Kubeconfig) -> None:
    answer("/apis/scheduling.volcano.sh/v1beta1/queues/tensorflow", {"kind": "Queue"})
    assert find(kubeconfig, api.VOLCANO_API, "Queue", "tensorflow") == {"kind": "Queue"}


def test_an_object_of_a_namespace(kubeconfig: Kubeconfig) -> None:
    answer("/api/v1/namespaces/ml/configmaps/scripts", {"kind": "ConfigMap"})
    assert find(kubeconfig, "v1", "ConfigMap", "scripts", "ml") == {"kind": "ConfigMap"}


def test_no_such_object(kubeconfig: Kubeconfig) -> None:
    answer("/apis/scheduling.volcano.sh/v1beta1/queues/tensorflow", {"kind": "Status"}, 404)
    assert find(kubeconfig, api.VOLCANO_API, "Queue", "tensorflow") is None


def test_no_such_kind(kubeconfig: Kubeconfig) -> None:
    assert find(kubeconfig, api.VOLCANO_API, "PodGroup", "digits", "ml") is None


def test_the_pods_of_a_gang(kubeconfig: Kubeconfig) -> None:
    path = "/api/v1/namespaces/ml/pods?labelSelector=jobset.sigs.k8s.io/jobset-name%3Ddigits"
    answer(path, {"items": [{"metadata": {"name": "digits-node-0-0"}}]})
    assert gang_pods(kubeconfig, "ml", "digits") == [{"kind": "Pod", "metadata": {"name": "digits-node-0-0"}}]


def test_a_refusal_is_told_with_the_servers_reason(kubeconfig: Kubeconfig) -> None:
    answer("/apis/scheduling.volcano.sh/v1beta1/queues/tensorflow", {"message": "queues is forbidden"}, 403)
    with pytest.raises(RuntimeError) as refused:
        find(kubeconfig, api.VOLCANO_API, "Queue", "tensorflow")
    assert str(refused.value) == (
        "the Kubernetes API server refuses GET /apis/scheduling.volcano.sh/v1beta1/queues/tensorflow: "
        "403 queues is forbidden"
    )


def test_a_server_that_is_gone_is_one_line(kubeconfig: Kubeconfig) -> None:
    gone = Kubeconfig((kubeconfig.contents_or_path or "").replace("127.0.0.1:", "127.0.0.1:1#"))
    with pytest.raises(RuntimeError, match=r"^the Kubernetes API server does not answer: [^\n]+$"):
        find(gone, api.VOLCANO_API, "Queue", "tensorflow")
