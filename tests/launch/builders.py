"""What the tests build from: a valid thing, changed where the test says."""

import copy
from typing import Any

from components.launch_template import HardenedArgs, hardened, tutorial
from components.volcano_job import volcano_job


def a_hardened_template(**changes: Any) -> dict[str, Any]:
    args: HardenedArgs = {"namespace": "wandb", "replicas": 1}
    return volcano_job(hardened({**args, **changes}))  # type: ignore[typeddict-item]


def a_template(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The tutorial's template with the values at these paths changed: ("spec.tasks.0.name", "chief")."""
    return changed(volcano_job(tutorial()), *changes)


def a_plain_job(*changes: tuple[str, Any]) -> dict[str, Any]:
    """A Kubernetes Job as the queue's template."""
    pod = {"containers": [{"name": "train", "image": "${image_uri}"}], "restartPolicy": "Never"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train-${run_id}"},
        "spec": {"template": {"spec": pod}},
    }
    return changed(job, *changes)


REMOVED = object()


def changed(document: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    document = copy.deepcopy(document)
    for path, value in changes:
        *above, last = (int(part) if part.isdecimal() else part for part in path.split("."))
        node: Any = document
        for part in above:
            node = node[part]
        if value is REMOVED:
            del node[last]
        else:
            node[last] = value
    return document
