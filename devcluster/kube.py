"""Talk to the cluster's API server through our own kubectl."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from devcluster.addresses import NODE
from devcluster.commands import run
from devcluster.errors import DevclusterError
from devcluster.paths import Cache


@dataclass(frozen=True)
class Kubectl:
    cache: Cache

    def __call__(self, *args: str | Path, timeout: float = 30.0) -> str:
        """Run kubectl with `args` and return what it prints (`timeout` in seconds).

        Raises:
            DevclusterError: it failed; the message ends in its last line.
        """
        # HOME: where kubectl keeps its discovery cache, which must not outlive the cluster.
        env = {"KUBECONFIG": str(self.cache.kubeconfig), "HOME": str(self.cache.cluster), "PATH": "/usr/bin:/bin"}
        return run([self.cache.bin / "kubectl", *args], env=env, timeout=timeout)

    def api_ready(self) -> bool:
        try:
            return self("get", "--raw=/readyz", "--request-timeout=2s", timeout=5).strip() == "ok"
        except DevclusterError:
            return False

    def node_ready(self, since: float = 0.0) -> bool:
        """Whether the kubelet says so, and said it after `since` (Unix time): kept state may be of an earlier run."""
        try:
            node: dict[str, Any] = json.loads(self("get", "node", NODE, "-o=json", "--request-timeout=2s", timeout=5))
        except DevclusterError:
            return False
        conditions = node["status"].get("conditions", [])
        return any(
            each["type"] == "Ready"
            and each["status"] == "True"
            and datetime.fromisoformat(each["lastHeartbeatTime"]).timestamp() >= int(since)
            for each in conditions
        )
