"""An API server that answers what a test tells it to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml

from components.kubeconfig import Kubeconfig


class ApiServer:
    """Answers by path; 404 to all others."""

    def __init__(self, address: str) -> None:
        self.answers: dict[str, tuple[int, bytes]] = {}
        user = {"name": "x", "user": {"token": "t"}}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        cluster = {"name": "x", "cluster": {"server": address}}
        self.kubeconfig = Kubeconfig(
            yaml.safe_dump({"current-context": "x", "contexts": [context], "clusters": [cluster], "users": [user]})
        )

    def answer(self, path: str, body: Any, status: int = 200) -> None:
        self.answers[path] = (status, json.dumps(body).encode())


@contextmanager
def api_server() -> Iterator[ApiServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = played.answers.get(self.path, (404, b"404 page not found\n"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        played = ApiServer(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield played
        server.shutdown()
