"""Why a gang does not start, and which of its workers failed first, as the cluster tells it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components import api, live_objects
from components.kubeconfig import Kubeconfig

LOG_LINES = 10
LINE_LENGTH = 500
FOLLOWERS_EXITS = (1, 143)
"""Exit codes of workers that end because another one did: it is the other that failed."""
TOLD_BY_STATE = ("FailedScheduling", "Unschedulable", "Failed", "BackOff")
"""Reasons of events that only repeat what the objects themselves say."""

Manifest = Mapping[str, Any]


class GoneError(Exception):
    """There is no such job, or it is being deleted."""


def first_failure(kubeconfig: Kubeconfig, namespace: str, job_name: str) -> str:
    """Which of the job's workers failed first, and the last lines of its log; "" when no failed pod is left."""
    ends = [end for pod in live_objects.gang_pods(kubeconfig, namespace, job_name) if (end := _end(pod))]
    if not ends:
        return ""
    _, _, worker, pod, how = min(ends)
    lines = live_objects.last_lines(kubeconfig, namespace, pod, LOG_LINES)
    log = "; its last lines:\n" + "\n".join(f"    {_printable(line)}" for line in lines) if lines else ""
    return f"worker {worker} ({pod}) failed first, {how}{log}"


def _printable(line: str) -> str:
    """What a terminal can show of a log's line, whatever a script has printed."""
    shown = "".join(char if char.isprintable() else " " for char in line)
    return shown if len(shown) <= LINE_LENGTH else f"{shown[:LINE_LENGTH]} …"


def _end(pod: Manifest) -> tuple[str, bool, str, str, str] | None:
    """When the pod failed, whether it may only have followed another, its worker index, its name, and how."""
    metadata, status = pod["metadata"], pod.get("status", {})
    worker = metadata.get("labels", {}).get(api.COMPLETION_INDEX_LABEL, "?")
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated")
        if ended and ended["exitCode"] != 0:
            reason = ended.get("reason", "Error")
            how = f"with exit code {ended['exitCode']}" + (f" ({reason})" if reason != "Error" else "")
            return ended.get("finishedAt", ""), ended["exitCode"] in FOLLOWERS_EXITS, worker, metadata["name"], how
    if status.get("phase") == "Failed":  # evicted, or never started
        how = f"{status.get('reason', 'without a reason')}: {status.get('message', 'no message')}"
        return metadata["creationTimestamp"], False, worker, metadata["name"], how
    return None


def obstacles(kubeconfig: Kubeconfig, namespace: str, job_name: str) -> Iterator[str]:
    """What keeps the job's pods from running, one line each; nothing once they all run.

    Raises GoneError when the job does not exist.
    """
    job = live_objects.find(kubeconfig, api.TRAINER_API, api.TRAIN_JOB_KIND, job_name, namespace)
    if job is None or "deletionTimestamp" in job["metadata"]:
        raise GoneError(f"TrainJob {job_name} of namespace {namespace}")
    pods = live_objects.gang_pods(kubeconfig, namespace, job_name)
    if pods and all(pod["status"].get("phase") != "Pending" for pod in pods):
        return
    group = live_objects.find(kubeconfig, api.VOLCANO_API, api.POD_GROUP_KIND, job_name, namespace)
    events = [
        event
        for event in live_objects.events(kubeconfig, namespace)
        if _concerns(event, job_name) and _when(event) >= job["metadata"]["creationTimestamp"]
    ]
    lines = [*_unschedulable(group, pods, events), *_containers(pods), *_warnings(events)]
    yield from dict.fromkeys(" ".join(line.split()) for line in lines)


def _unschedulable(group: Manifest | None, pods: Sequence[Manifest], events: Sequence[Manifest]) -> Iterator[str]:
    if group is None:
        for pod in pods:
            for condition in pod["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    yield f"no node for {pod['metadata']['name']}: {condition.get('message', '')}"
        return
    conditions = group.get("status", {}).get("conditions") or [{}]
    if conditions[-1].get("type") == "Unschedulable":
        yield f"Volcano does not start the gang: {conditions[-1].get('message', '')}"
    elif group.get("status", {}).get("phase", "Pending") == "Pending":
        # The queue does not let it in; only an event says why.
        told = [event for event in events if event["involvedObject"].get("kind") == api.POD_GROUP_KIND]
        reason = f": {max(told, key=_when).get('message', '')}" if told else ""
        yield f"the gang waits in queue {group['spec'].get('queue')}{reason}"


def _containers(pods: Sequence[Manifest]) -> Iterator[str]:
    for pod in pods:
        for container in pod["status"].get("containerStatuses", []):
            waiting = container.get("state", {}).get("waiting", {})
            if waiting.get("message"):
                yield f"{pod['metadata']['name']}: {_said(waiting)}"


def _warnings(events: Sequence[Manifest]) -> Iterator[str]:
    for event in events:
        if event.get("type") == "Warning" and event.get("reason") not in TOLD_BY_STATE:
            about = event["involvedObject"]
            yield f"{about.get('kind', 'object')} {about['name']}: {_said(event)}"


def _said(about: Manifest) -> str:
    """The reason and the message of an event or a state, each of which may be missing."""
    return ": ".join(filter(None, [about.get("reason"), about.get("message")]))


def _concerns(event: Manifest, job_name: str) -> bool:
    name = event["involvedObject"].get("name", "")
    return re.fullmatch(rf"{re.escape(job_name)}(-{api.NODE}-.*)?", name) is not None


def _when(event: Manifest) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
