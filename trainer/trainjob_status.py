"""Progress in the TrainJob's status, through Kubeflow Trainer's TrainJobStatus gate.

With the gate on, Trainer gives each pod the three variables below; without them nothing is reported.
https://github.com/kubeflow/trainer/blob/v2.3.0/docs/user-guides/trainjob-progress.md
"""

import json
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

URL = "KUBEFLOW_TRAINER_SERVER_URL"
CA_FILE = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN_FILE = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105  a variable's name

INTERVAL = 5.0
"""Seconds between two reports, as Trainer asks for; only the newest state is sent."""
TIMEOUT = 5.0
"""Seconds for one report."""


class TrainJobStatus:
    """Sends reports in a thread of its own: the training never waits, and no failure disturbs it."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._enabled = all(os.environ.get(key) for key in (URL, CA_FILE, TOKEN_FILE))
        self._newest: bytes | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._send_all, name="trainjob-status", daemon=True)
        if self._enabled:
            self._thread.start()

    def report(self, percent: float, seconds_left: float, metrics: Mapping[str, float]) -> None:
        """Have this state sent."""
        status = {
            "progressPercentage": int(percent),
            "estimatedRemainingSeconds": round(seconds_left),
            "metrics": [{"name": name, "value": f"{value:.6g}"} for name, value in metrics.items()],
            "lastUpdatedTime": datetime.now(timezone.utc).isoformat(),
        }
        with self._changed:
            self._newest = json.dumps({"trainerStatus": status}).encode()
            self._changed.notify()

    def close(self) -> None:
        """Send the last state; returns when it is sent, or after TIMEOUT seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._enabled:
            self._thread.join(TIMEOUT)

    def _send_all(self) -> None:
        last_failure = ""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest or self._closing)
                body, self._newest = self._newest, None
            if body is None:
                return
            failure = _send(body)
            if failure and failure != last_failure:
                self._log(f"progress not reported: {failure}")
            last_failure = failure
            with self._changed:
                self._changed.wait_for(lambda: self._closing, INTERVAL)


def _send(body: bytes) -> str:
    """Send one report; the reason when that fails."""
    try:
        # Kubernetes renews both files while the pod runs.
        token = Path(os.environ[TOKEN_FILE]).read_text().strip()
        context = ssl.create_default_context(cafile=os.environ[CA_FILE])
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(os.environ[URL], body, headers)  # noqa: S310  the URL is Trainer's
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as response:  # noqa: S310
            response.read()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.reason}: {error.read(500).decode(errors='replace').strip()}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""
