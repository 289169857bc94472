"""What the program asks of the cluster itself, just before and after the provider acts: Pulumi resource hooks."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from components import api
from components.kubeconfig import Kubeconfig

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

Hook = Callable[[pulumi.ResourceHookArgs], Awaitable[None]]
POLL_SECONDS = 0.5
GRACE_SECONDS = 30
"""What a pod gets to end when it does not say so itself (Kubernetes' default)."""
MARGIN_SECONDS = 60
"""How long past its pods' grace period an old gang may take to go."""


def refuse_existing(setting: str) -> Hook:
    """A before-create hook: fail when the cluster has the object already, for then somebody else owns it.

    The provider would take it over without a word, and destroying either stack would delete it under the other.
    `setting` is the switch that makes the stack use the object instead of creating it.
    """
    kubeconfig = Kubeconfig.of_stack()

    def check(manifest: Mapping[str, Any]) -> None:
        name, kind = manifest["metadata"]["name"], manifest["kind"]
        client = kubeconfig.api_client()
        if _find(client, manifest["apiVersion"], api.PLURALS[kind], name) is not None:
            raise RuntimeError(
                f"{kind} {name} exists already and does not belong to this stack; set {setting} to false to use it, or "
                "choose another name"
            )

    async def hook(args: pulumi.ResourceHookArgs) -> None:
        await asyncio.to_thread(check, args.new_inputs or {})

    return hook


def wait_for_old_gang(namespace: str, job_name: str) -> Hook:
    """A before-create hook: wait until nothing is left of an earlier TrainJob of this name.

    Deleting a TrainJob returns before its JobSet, pods and PodGroup are gone. A new job's pods would have the old ones'
    host names, and workers of two runs would meet. Fails when the old pods outlive their grace period by a minute, or
    when a TrainJob of this name exists and is not being deleted.
    """
    kubeconfig = Kubeconfig.of_stack()

    def wait() -> None:
        client = kubeconfig.api_client()
        deadline: float | None = None
        while left := list(_left_of(client, namespace, job_name)):
            if deadline is None:
                grace = max(map(_grace_seconds, left))
                deadline = time.monotonic() + grace + MARGIN_SECONDS
                pulumi.log.info(f"waiting for the earlier {job_name} to end: {_described(left)}")
            elif time.monotonic() > deadline:
                raise TimeoutError(
                    f"the earlier {job_name} does not end: {_described(left)} still in namespace {namespace}"
                )
            time.sleep(POLL_SECONDS)

    async def hook(_: pulumi.ResourceHookArgs) -> None:
        await asyncio.to_thread(wait)

    return hook


class Verdict:
    """How an awaited job ended; a failure is told once in an update, whether this update ran the job or found it so."""

    def __init__(self) -> None:
        self._told = False

    async def hook(self, args: pulumi.ResourceHookArgs) -> None:
        """After create and update: fail the update when the job Failed, with the Trainer's own reason."""
        if failure := failure_of((args.new_outputs or {}).get("status")):
            self._told = True
            raise RuntimeError(failure)

    def result(self, status: Mapping[str, Any] | None) -> str:
        """Complete, Failed, or empty while the job runs.

        Raises RunError for a job that an earlier update left Failed. A preview only warns, or nobody could get past it
        to mend the job.
        """
        failure = failure_of(status)
        if failure and not self._told:
            if not pulumi.runtime.is_dry_run():
                raise pulumi.RunError(failure)
            pulumi.log.warn(failure)
        complete = _conditions(status).get("Complete", {}).get("status") == "True"
        return "Failed" if failure else "Complete" if complete else ""


def failure_of(status: Mapping[str, Any] | None) -> str:
    """Why the TrainJob of this status Failed, in one line; "" when it did not."""
    failed = _conditions(status).get("Failed", {})
    if failed.get("status") != "True":
        return ""
    return f"the TrainJob Failed ({failed.get('reason')}): {failed.get('message')}; change runId to retry"


def _conditions(status: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in (status or {}).get("conditions") or []}


def _left_of(client: "ApiClient", namespace: str, job_name: str) -> Iterator[Mapping[str, Any]]:
    """What the cluster still has of a TrainJob: itself, its JobSet, its PodGroup and its pods."""
    train_job = _find(client, api.TRAINER_API, api.PLURALS[api.TRAIN_JOB_KIND], job_name, namespace)
    if train_job is not None:
        if "deletionTimestamp" not in train_job["metadata"]:
            raise RuntimeError(
                f"TrainJob {job_name} exists already in namespace {namespace} and does not belong to this stack; "
                "delete it or choose another job.name"
            )
        yield train_job
    for api_version, kind in ((api.JOBSET_API, api.JOBSET_KIND), (api.VOLCANO_API, api.POD_GROUP_KIND)):
        found = _find(client, api_version, api.PLURALS[kind], job_name, namespace)
        if found is not None:
            yield found
    yield from _pods(client, namespace, job_name)


def _find(
    client: "ApiClient", api_version: str, plural: str, name: str, namespace: str | None = None
) -> Mapping[str, Any] | None:
    """The object, or None when it, or its whole kind, does not exist."""
    from kubernetes.client import ApiException, CustomObjectsApi

    group, _, version = api_version.partition("/")
    objects = CustomObjectsApi(client)
    try:
        if namespace:
            found: Any = objects.get_namespaced_custom_object(group, version, namespace, plural, name)
        else:
            found = objects.get_cluster_custom_object(group, version, plural, name)
    except ApiException as error:
        if error.status == 404:
            return None
        raise
    return dict(found)


def _pods(client: "ApiClient", namespace: str, job_name: str) -> Iterator[Mapping[str, Any]]:
    from kubernetes.client import CoreV1Api

    pods = CoreV1Api(client).list_namespaced_pod(namespace, label_selector=f"{api.JOBSET_NAME_LABEL}={job_name}")
    yield from client.sanitize_for_serialization(pods)["items"]


def _grace_seconds(manifest: Mapping[str, Any]) -> float:
    return float(manifest.get("spec", {}).get("terminationGracePeriodSeconds", GRACE_SECONDS))


def _described(left: list[Mapping[str, Any]]) -> str:
    return ", ".join(f"{manifest.get('kind') or 'Pod'} {manifest['metadata']['name']}" for manifest in left)
