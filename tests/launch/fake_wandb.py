"""A W&B server for tests: as much of its GraphQL API as the real client, `wandb launch` and `wandb launch-agent` use.

It keeps everything in memory, asks for the API key, and lets a test look at and change what it holds. Where only the
real server knows the answer (how it merges a queue's configuration into a run), it does the simplest thing that the
client understands.
"""

import base64
import gzip
import itertools
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789abcdef0123456789abcdef01234567"
ENTITY = "team"
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")

Json = dict[str, Any]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that left: pods end without a good-bye."""


class FakeWandb:
    """The server's state. `with FakeWandb() as server:` serves it at server.url from a thread."""

    def __init__(self, host: str = "127.0.0.1", key: str = KEY):
        self.key = key
        self.queues: dict[str, Json] = {}
        self.items: dict[str, Json] = {}
        self.runs: dict[str, Json] = {}
        self.agents: dict[str, Json] = {}
        self.operations: list[str] = []
        self.lock = threading.RLock()
        self._ids = itertools.count(1)
        self._server = _Server((host, 0), self._handler())
        self.url = f"http://{host}:{self._server.server_port}"

    def __enter__(self) -> "FakeWandb":
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def template(self, queue: str) -> Json:
        """The queue's Kubernetes template."""
        config: Json = json.loads(self.queues[queue]["config"])
        template: Json = config["resource_args"]["kubernetes"]
        return template

    def answer(self, query: str, variables: Json) -> Json:
        """The answer to a GraphQL request: {"data": ...} or {"errors": ...}."""
        flat = {**variables, **(variables.get("input") or {})}
        entity = next((flat[k] for k in ("entityName", "entity") if flat.get(k)), ENTITY)
        if entity != ENTITY:
            return {"errors": [{"message": f"entity {entity} not found"}], "data": None}
        fields = top_fields(query)
        data: Json = {}
        with self.lock:
            for name, resolve in RESOLVERS.items():
                if name in fields:
                    self.operations.append(name)
                    data["result" if "result: " + name in query else name] = resolve(self, flat)
        return {"data": data}

    def new_id(self) -> str:
        return f"id{next(self._ids)}"

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def body(self) -> bytes:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                return gzip.decompress(content) if self.headers.get("Content-Encoding") == "gzip" else content

            def reply(self, status: int, document: Json) -> None:
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                content = self.body()
                kind, _, credentials = self.headers.get("Authorization", "").partition(" ")
                if kind != "Basic" or base64.b64decode(credentials) != f"api:{server.key}".encode():
                    self.reply(401, {"errors": [{"message": "user is not logged in", "code": "PERMISSION_ERROR"}]})
                elif self.path == "/graphql":
                    request = json.loads(content)
                    self.reply(200, server.answer(request["query"], request.get("variables") or {}))
                else:  # /files/<entity>/<project>/<run>/file_stream
                    server.stream(self.path.split("/")[4], json.loads(content))
                    self.reply(200, {"exitcode": None, "limits": {}})

            def do_PUT(self) -> None:
                self.body()
                self.reply(200, {})

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler

    def stream(self, run: str, message: Json) -> None:
        """What a run sends while it lives: its console, and at last its exit code."""
        with self.lock:
            held = self.run(run)
            for name, part in (message.get("files") or {}).items():
                held["files"].setdefault(name, []).extend(part.get("content", []))
            if message.get("complete"):
                held["state"] = "finished" if message.get("exitcode") == 0 else "failed"

    def run(self, name: str) -> Json:
        return self.runs.setdefault(name, {"state": "running", "stopped": False, "files": {}, "group": None})

    # --- queues ---
    def upsert_queue(self, v: Json) -> Json:
        known = self.queues.get(v["queueName"], {"id": self.new_id(), "configId": self.new_id()})
        variables = json.loads(v.get("templateVariables") or "{}")
        self.queues[v["queueName"]] = known | {
            "resource": v["resourceType"],
            "config": v["resourceConfig"],
            "variables": [{"name": name, "schema": json.dumps(value["schema"])} for name, value in variables.items()],
            "prioritizationMode": v.get("prioritizationMode"),
            "links": v.get("externalLinks"),
        }
        return {"success": True, "configSchemaValidationErrors": []}

    def delete_queues(self, v: Json) -> Json:
        self.queues = {name: queue for name, queue in self.queues.items() if queue["id"] != v["id"]}
        return {"success": True, "clientMutationId": None}

    def queue(self, v: Json) -> Json | None:
        name = v.get("runQueue") or v.get("queueName")
        held = self.queues.get(str(name))
        return held and {
            "id": held["id"],
            "name": name,
            "access": "PROJECT",
            "createdBy": "me",
            "defaultResourceConfigID": held["configId"],
            "prioritizationMode": held["prioritizationMode"],
            "externalLinks": json.loads(held["links"] or "{}"),
        }

    def default_config(self, v: Json) -> Json | None:
        held = next((queue for queue in self.queues.values() if queue["configId"] == v.get("id")), None)
        return held and {
            "config": json.loads(held["config"]),
            "resource": held["resource"],
            "templateVariables": held["variables"],
        }

    def project(self, v: Json) -> Json:
        run = self.runs.get(str(v.get("runId") or v.get("name")))
        queues = [self.queue({"runQueue": name}) for name in self.queues]
        return {"id": "p", "runQueues": queues, "runQueue": self.queue(v), "run": run}

    # --- items ---
    def push(self, v: Json) -> Json | None:
        held = self.queues.get(v["queueName"])
        if held is None:
            return None
        spec, values = json.loads(v["runSpec"]), json.loads(v.get("templateVariableValues") or "{}")
        schemas = {variable["name"]: json.loads(variable["schema"]) for variable in held["variables"]}
        values = {name: values.get(name, schema.get("default")) for name, schema in schemas.items()}
        config = json.loads(held["config"])
        spec["resource_args"] = spec.get("resource_args") or rendered(config["resource_args"], values)
        spec["resource"] = held["resource"]
        item = self.new_id()
        self.items[item] = {"queue": v["queueName"], "state": "PENDING", "spec": spec, "messages": []}
        return {"runQueueItemId": item, "runSpec": json.dumps(spec)}

    def pop(self, v: Json) -> Json | None:
        for name, item in self.items.items():
            if item["state"] == "PENDING" and item["queue"] == v["queueName"]:
                item["state"] = "LEASED"
                return {"runQueueItemId": name, "runSpec": item["spec"]}
        return None

    def acknowledge(self, v: Json) -> Json:
        self.items[v["itemId"]] |= {"state": "CLAIMED", "run": v["runId"]}
        return {"success": True}

    def fail(self, v: Json) -> Json:
        item = self.items[v["runQueueItemId"]]
        item["messages"].append(v["message"])
        item["state"] = "FAILED"
        return {"success": True}

    def warn(self, v: Json) -> Json:
        self.items[v["runQueueItemId"]]["messages"].append(v["message"])
        return {"success": True}

    # --- agents and runs ---
    def create_agent(self, v: Json) -> Json:
        agent = self.new_id()
        self.agents[agent] = {"id": agent, "name": f"agent-{agent}", "stopPolling": False, "runQueues": v["queues"]}
        return {"success": True, "launchAgentId": agent}

    def update_agent(self, v: Json) -> Json:
        self.agents[v["agentId"]]["agentStatus"] = v["agentStatus"]
        return {"success": True}

    def upsert_bucket(self, v: Json) -> Json:
        name = v.get("name") or v.get("id") or self.new_id()
        self.run(name)["group"] = v.get("groupName") or self.run(name)["group"]
        project = {"id": "p", "name": v.get("project") or v.get("modelName"), "entity": {"id": "e", "name": ENTITY}}
        bucket = {"id": name, "name": name, "displayName": name, "description": None, "config": "{}", "sweepName": None}
        return {"bucket": bucket | {"project": project, "historyLineCount": 0}, "inserted": True}

    def create_files(self, v: Json) -> Json:
        files = [{"name": name, "uploadUrl": f"{self.url}/upload/{name}"} for name in v.get("files", [])]
        return {"runID": v.get("run"), "uploadHeaders": [], "files": files}

    def entity(self, v: Json) -> Json:
        organization = {"id": "o", "name": "org", "orgEntity": {"name": "org"}}
        config = self.default_config(v)
        return {
            "id": "e",
            "name": ENTITY,
            "isTeam": True,
            "organization": organization,
            "defaultResourceConfig": config,
        }


def top_fields(query: str) -> set[str]:
    """The fields that the operation itself asks for, without those inside them and without arguments.

    >>> sorted(top_fields("query Q($a: ID!) { project(name: $a) { run { id } } result: entity { id } }"))
    ['entity', 'project']
    """
    operation = query.partition("fragment ")[0]
    fields, depth = set(), 0
    for word in re.findall(r"[\w:$]+|[{}()]", operation):
        depth += {"{": 1, "}": -1, "(": 10, ")": -10}.get(word, 0)
        if depth == 1 and word not in "{}()" and not word.endswith(":"):
            fields.add(word)
    return fields


def rendered(node: Any, values: Json) -> Any:
    """The template with its variables filled in; one that is a whole value keeps its type."""
    if isinstance(node, dict):
        return {key: rendered(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [rendered(value, values) for value in node]
    if isinstance(node, str):
        whole = PLACEHOLDER.fullmatch(node)
        return values[whole[1]] if whole else PLACEHOLDER.sub(lambda match: str(values[match[1]]), node)
    return node


VIEWER = {"id": "u", "username": "me", "entity": ENTITY, "admin": False, "flags": "{}", "email": "me@example.com"}
RESOLVERS: dict[str, Callable[[FakeWandb, Json], Any]] = {
    "viewer": lambda server, v: VIEWER | {"teams": {"edges": [{"node": {"name": ENTITY}}]}},
    "serverInfo": lambda server, v: {
        "cliVersionInfo": {"min_cli_version": "0.8.0", "max_cli_version": "9.9.9"},
        "latestLocalVersionInfo": None,
        "features": [],
    },
    "upsertModel": lambda server, v: {
        "project": {"id": "p", "name": v.get("name"), "entityName": ENTITY},
        "model": {"id": "p", "name": v.get("name"), "entityName": ENTITY},
        "inserted": False,
    },
    "upsertRunQueue": FakeWandb.upsert_queue,
    "deleteRunQueues": FakeWandb.delete_queues,
    "pushToRunQueueByName": FakeWandb.push,
    "popFromRunQueue": FakeWandb.pop,
    "ackRunQueueItem": FakeWandb.acknowledge,
    "failRunQueueItem": FakeWandb.fail,
    "updateRunQueueItemWarning": FakeWandb.warn,
    "createLaunchAgent": FakeWandb.create_agent,
    "updateLaunchAgent": FakeWandb.update_agent,
    "launchAgent": lambda server, v: server.agents[v["agentId"]],
    "upsertBucket": FakeWandb.upsert_bucket,
    "createRunFiles": FakeWandb.create_files,
    "project": FakeWandb.project,
    "entity": FakeWandb.entity,
}
