"""The real launch agent as a pod of the embedded cluster, and the real `wandb launch` on this machine."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from components.api import RBAC_API
from components.launch_agent import VERBS
from tests.cluster.objects import kind_of, log, named, wait_until
from tests.launch.fake_wandb import ENTITY, KEY, FakeWandb
from tests.launch.images import AGENT_HOME, AGENT_IMAGE, TRAINING_IMAGE

HOST = "10.254.0.2"
"""This machine, as the embedded cluster's pods see it."""
NAME = "agent"
STOP_SECONDS = 5
"""How long the agent leaves a stopped run to end by itself."""


class Agent:
    """An agent that polls queue `ddp`, with the rights that the chart would give it in its namespace."""

    def __init__(self, namespace: str, server: FakeWandb, start_timeout: int = 1800) -> None:
        self.namespace = namespace
        config = {"entity": ENTITY, "queues": ["ddp"], "max_jobs": 10, "builder": {"type": "noop"}}
        config["stopped_run_timeout"] = STOP_SECONDS
        env = {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": server.url, "WANDB_LAUNCH_START_TIMEOUT": str(start_timeout)}
        mount = {"name": "config", "mountPath": f"{AGENT_HOME}/.config/wandb"}
        container = {
            "name": NAME,
            "image": AGENT_IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "volumeMounts": [mount],
            "securityContext": {"runAsUser": 1000, "runAsNonRoot": True},
        }
        self.pod = {
            "metadata": {"name": NAME},
            "spec": {
                "serviceAccountName": NAME,
                "containers": [container],
                "volumes": [{"name": "config", "configMap": {"name": NAME}}],
                "terminationGracePeriodSeconds": 1,
            },
        }
        rules = [
            {"apiGroups": [""], "resources": ["pods", "pods/log", "secrets"], "verbs": list(VERBS)},
            {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": list(VERBS)},
            {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs", "jobs/status"], "verbs": list(VERBS)},
        ]
        role = {"kind": "Role", "name": NAME, "apiGroup": "rbac.authorization.k8s.io"}
        subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
        metadata = {"name": NAME}
        self.create("v1", "ServiceAccount", {"metadata": metadata})
        self.create(RBAC_API, "Role", {"metadata": metadata, "rules": rules})
        self.create(RBAC_API, "RoleBinding", {"metadata": metadata, "subjects": [subject], "roleRef": role})
        self.create("v1", "ConfigMap", {"metadata": metadata, "data": {"launch-config.yaml": json.dumps(config)}})
        self.start(server)

    def create(self, api_version: str, kind: str, body: dict[str, Any]) -> None:
        kind_of(api_version, kind).create(body=body, namespace=self.namespace)

    def start(self, server: FakeWandb) -> None:
        """Start the agent's pod, and return when it polls."""
        before = len(server.agents)
        self.create("v1", "Pod", self.pod)
        wait_until("the agent polls", lambda: len(server.agents) > before)

    def restart(self, server: FakeWandb) -> None:
        kind_of("v1", "Pod").delete(name=NAME, namespace=self.namespace)
        pods = kind_of("v1", "Pod")
        wait_until(
            "the agent is gone",
            lambda: NAME not in [pod.metadata.name for pod in pods.get(namespace=self.namespace).items],
        )
        self.start(server)

    @property
    def log(self) -> str:
        return log(named("v1", "Pod", NAME, self.namespace))


def launch(server: FakeWandb, home: Path, *options: str, image: str = TRAINING_IMAGE) -> str:
    """`wandb launch` on queue `ddp`; the item that it put there."""
    before = set(server.items)
    command = [sys.executable, "-m", "wandb", "launch", "-d", image, "-q", "ddp", "-e", ENTITY, "-p", "demo", *options]
    env = {**os.environ, "HOME": str(home), "WANDB_API_KEY": KEY, "WANDB_BASE_URL": server.url}
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, timeout=60)  # noqa: S603
    new = set(server.items) - before
    assert len(new) == 1, done.stdout + done.stderr
    return new.pop()


def run_of(server: FakeWandb, item: str) -> str:
    """The run that the agent gave the item, when it has taken it."""
    wait_until("the agent takes the item", lambda: "run" in server.items[item], 60)
    run: str = server.items[item]["run"]
    return run


def wait_for_state(server: FakeWandb, item: str, state: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while server.items[item]["state"] != state:
        assert time.monotonic() < deadline, f"item is {server.items[item]}"
        time.sleep(0.5)
