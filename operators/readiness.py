"""Wait until an operator's admission webhook answers.

Helm calls a release ready when its pods are. The webhooks answer some seconds later, when the operator's certificate
has reached both the webhook configuration and the pod; until then every object of its kind is refused. A dry-run create
goes through the whole admission chain and leaves nothing behind:
https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run
"""

import os
import time
from typing import Any

# One harmless object for each operator that its webhook must admit.
PROBES: dict[str, dict[str, Any]] = {
    "jobset": {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "webhook-probe", "namespace": "default"},
        "spec": {"replicatedJobs": []},
    },
    "kubeflow-trainer": {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "webhook-probe", "labels": {"trainer.kubeflow.org/framework": "tensorflow"}},
        "spec": {"template": {"spec": {"replicatedJobs": []}}},
    },
    "volcano": {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "webhook-probe"},
        "spec": {"weight": 1},
    },
}

TIMEOUT_SECONDS = 120


def wait_for_webhook(release: str, context: str | None = None) -> None:
    """Return when the release's webhook admits its probe object.

    `context` is the kubeconfig context, by default the current one. Raises TimeoutError, with the API server's last
    answer, after TIMEOUT_SECONDS.
    """
    # Imported here because the client costs half a second, and only a release that changes needs it.
    import urllib3
    from kubernetes import config, dynamic
    from kubernetes.client import ApiException

    probe = PROBES[release]
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            client = dynamic.DynamicClient(config.new_client_from_config(os.environ.get("KUBECONFIG"), context))
            kind = client.resources.get(api_version=probe["apiVersion"], kind=probe["kind"])
            kind.create(body=probe, namespace=probe["metadata"].get("namespace"), query_params=[("dryRun", "All")])
            return
        except (ApiException, dynamic.exceptions.DynamicApiError) as error:
            if error.status == 409:  # an object of that name exists, so the webhook has answered before
                return
            last = str(error.body or error.reason)
        except (dynamic.exceptions.ResourceNotFoundError, urllib3.exceptions.HTTPError) as error:
            last = str(error)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{release}: its webhook did not answer within {TIMEOUT_SECONDS} s; last: {last}")
        time.sleep(0.5)
