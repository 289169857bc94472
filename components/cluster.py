"""What the program asks of the cluster itself, just before and after the provider acts: Pulumi resource hooks."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import pulumi

from components import api, live_objects, ownership
from components.hook_threads import in_thread
from components.kubeconfig import Kubeconfig

Hook = Callable[[pulumi.ResourceHookArgs], Awaitable[None]]
POLL_SECONDS = 0.5
GRACE_SECONDS = 30
"""What a pod gets to end when it does not say so itself (Kubernetes' default)."""
QUIET_SECONDS = 2.5
"""For how long nothing must be left of an old run: a Trainer that hears of the JobSet's end before that of the TrainJob
makes the JobSet once more, which then goes like the first."""
MARGIN_SECONDS = 60
"""How long past its pods' grace period an old gang may take to go."""


def refuse_existing(remedy: str) -> Hook:
    """A before-create hook: fail when the cluster has the object already and somebody else owns it.

    The provider would take it over without a word, and destroying either stack would delete it under the other; only
    an object that an earlier update of this stack made, and was killed before it could say so, is to be taken over.
    `remedy` says what to do instead.
    """
    kubeconfig = Kubeconfig.of_stack()

    def check(manifest: Mapping[str, Any]) -> None:
        kind, name, namespace = manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace")
        found = live_objects.find(kubeconfig, manifest["apiVersion"], kind, name, namespace)
        if found is not None and not ownership.is_ours(found, manifest):
            where = f" in namespace {namespace}" if namespace else ""
            raise RuntimeError(f"{kind} {name} exists already{where} and does not belong to this stack; {remedy}")

    async def hook(args: pulumi.ResourceHookArgs) -> None:
        await in_thread(check, args.new_inputs or {})

    return hook


def wait_for_old_gang(namespace: str, job_name: str) -> Hook:
    """A before-create hook: wait until nothing is left of an earlier TrainJob of this name.

    Deleting a TrainJob returns before its JobSet, pods and PodGroup are gone. A new job's pods would have the old ones'
    host names, and workers of two runs would meet. Fails when the old pods outlive their grace period by a minute, or
    when somebody else has a TrainJob of this name. One that a killed update of this stack left is taken up as it runs,
    or deleted when it runs something else.
    """
    kubeconfig = Kubeconfig.of_stack()

    def wait(wanted: Mapping[str, Any]) -> None:
        job = live_objects.find(kubeconfig, api.TRAINER_API, api.TRAIN_JOB_KIND, job_name, namespace)
        if job is not None and "deletionTimestamp" not in job["metadata"]:
            if not ownership.is_ours(job, wanted):
                raise RuntimeError(
                    f"TrainJob {job_name} exists already in namespace {namespace} and does not belong to this stack; "
                    "delete it or choose another job.name"
                )
            if ownership.is_same_run(job, wanted):
                return
            live_objects.delete(kubeconfig, api.TRAINER_API, api.TRAIN_JOB_KIND, job_name, namespace)
        if left := list(_left_of(kubeconfig, namespace, job_name)):
            pulumi.log.info(f"waiting for the earlier {job_name} to end: {_described(left)}")
            _wait_until_gone(kubeconfig, namespace, job_name, max(map(_grace_seconds, left)) + MARGIN_SECONDS)

    async def hook(args: pulumi.ResourceHookArgs) -> None:
        await in_thread(wait, args.new_inputs or {})

    return hook


def _wait_until_gone(kubeconfig: Kubeconfig, namespace: str, job_name: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    last_seen = time.monotonic()
    while time.monotonic() < last_seen + QUIET_SECONDS:
        time.sleep(POLL_SECONDS)
        if left := list(_left_of(kubeconfig, namespace, job_name)):
            last_seen = time.monotonic()
            if last_seen > deadline:
                raise TimeoutError(
                    f"the earlier {job_name} does not end: {_described(left)} still in namespace {namespace}"
                )


def _left_of(kubeconfig: Kubeconfig, namespace: str, job_name: str) -> Iterator[Mapping[str, Any]]:
    """What the cluster still has of a TrainJob: itself, its JobSet, its PodGroup and its pods."""
    for api_version, kind in (
        (api.TRAINER_API, api.TRAIN_JOB_KIND),
        (api.JOBSET_API, api.JOBSET_KIND),
        (api.VOLCANO_API, api.POD_GROUP_KIND),
    ):
        found = live_objects.find(kubeconfig, api_version, kind, job_name, namespace)
        if found is not None:
            yield found
    yield from live_objects.gang_pods(kubeconfig, namespace, job_name)


def _grace_seconds(manifest: Mapping[str, Any]) -> float:
    return float(manifest.get("spec", {}).get("terminationGracePeriodSeconds", GRACE_SECONDS))


def _described(left: list[Mapping[str, Any]]) -> str:
    return ", ".join(f"{manifest['kind']} {manifest['metadata']['name']}" for manifest in left)
