"""What an update says while it waits for a job's end, and when the job fails."""

import contextvars
import re
import threading
from collections.abc import Mapping
from typing import Any

import pulumi

from components import diagnosis
from components.hook_threads import in_thread
from components.kubeconfig import Kubeconfig

PATIENCE_SECONDS = 10
"""How long a gang may take to start before anybody is told."""
POLL_SECONDS = 3
HOW_TO_REPAIR = "nothing will come of this update: interrupt it, and make the job anew with `pulumi up --refresh`"


class AwaitedJob:
    """A job whose end the update waits for: tells why it does not start, and how it ended.

    A failure is told once in an update, whether this update ran the job or found it so.
    """

    def __init__(self, namespace: str, job_name: str) -> None:
        self._kubeconfig = Kubeconfig.of_stack()
        self._job = (namespace, job_name)
        self._over = threading.Event()
        self._told = False

    async def begin(self, _: pulumi.ResourceHookArgs) -> None:
        """Before create and update: from now on, log what keeps the gang from starting."""
        # Pulumi's own settings are in the context: a plain thread would not know the engine to log to.
        follow = contextvars.copy_context().run
        threading.Thread(target=follow, args=[self._tell_obstacles], daemon=True).start()

    async def end(self, args: pulumi.ResourceHookArgs) -> None:
        """After create and update: fail the update when the job Failed."""
        self._over.set()
        if failure := failure_of((args.new_outputs or {}).get("status")):
            self._told = True
            raise RuntimeError(await in_thread(self._described, failure))

    def result(self, status: Mapping[str, Any] | None) -> str:
        """Complete, Failed, or empty while the job runs.

        Raises RunError for a job that an earlier update left Failed. A preview only warns, or nobody could get past it
        to mend the job.
        """
        failure = failure_of(status)
        if failure and not self._told:
            if not pulumi.runtime.is_dry_run():
                raise pulumi.RunError(self._described(failure))
            pulumi.log.warn(failure)
        complete = _conditions(status).get("Complete", {}).get("status") == "True"
        return "Failed" if failure else "Complete" if complete else ""

    def _described(self, failure: str) -> str:
        try:
            first = diagnosis.first_failure(self._kubeconfig, *self._job)
        except RuntimeError as error:
            first = f"which worker failed first is not known: {error}"
        return "\n".join(filter(None, [failure, first]))

    def _tell_obstacles(self) -> None:
        told: set[str] = set()
        wait, was_there = PATIENCE_SECONDS, False
        while not self._over.wait(wait):
            wait = POLL_SECONDS
            try:
                lines = list(diagnosis.obstacles(self._kubeconfig, *self._job))
                was_there = True
            except diagnosis.GoneError as gone:
                lines = [f"{gone} was deleted; {HOW_TO_REPAIR}"] if was_there else []
            except RuntimeError:
                continue  # the provider tells when the API server is gone
            for line in lines:
                kind_of_line = re.sub(r"\d+", "", line)  # how many nodes lack what changes all the time
                if kind_of_line not in told:
                    told.add(kind_of_line)
                    pulumi.log.warn(line)


def failure_of(status: Mapping[str, Any] | None) -> str:
    """Why the TrainJob of this status Failed, in one line; "" when it did not."""
    failed = _conditions(status).get("Failed", {})
    if failed.get("status") != "True":
        return ""
    return f"the TrainJob Failed ({failed.get('reason')}): {failed.get('message')}; change runId to retry"


def _conditions(status: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in (status or {}).get("conditions") or []}
