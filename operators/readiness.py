"""Wait until an operator's admission webhook answers.

Helm calls a release ready when its pods are. The webhooks answer some seconds later, when the operator's certificate
has reached both the webhook configuration and the pod; until then every object of its kind is refused. A dry-run create
goes through the whole admission chain and leaves nothing behind:
https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run

Before that, the API server is made to read the webhook configurations again. It keeps what it has read of one, and when
the certificate arrives while it still reads the configuration without it, it keeps that for good: "x509: certificate
signed by unknown authority" until the next update of the configuration, whatever that is. (Seen on a busy machine.)
https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/admission/configuration/validating_webhook_manager.go
"""

import contextlib
import time
from datetime import UTC, datetime
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
ADMISSION = "admissionregistration.k8s.io/v1"
CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
RELEASE_ANNOTATION = "meta.helm.sh/release-name"
RELOADED_ANNOTATION = "tftrainer/reloaded"


class NotReadyError(Exception):
    """The operator has not got as far."""


def wait_for_webhook(release: str, api_client: Any) -> None:
    """Return when the release's webhook admits its probe object.

    `api_client` is a kubernetes.client.ApiClient. Raises TimeoutError, with the API server's last answer, after
    TIMEOUT_SECONDS.
    """
    # Imported here because the client costs half a second, and only a release that changes needs it.
    import urllib3
    from kubernetes import dynamic
    from kubernetes.client import ApiException

    reloaded = False
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            client = dynamic.DynamicClient(api_client)
            if not reloaded:
                reload_configurations(release, client)
                reloaded = True
            create_probe(release, client)
            return
        except (ApiException, dynamic.exceptions.DynamicApiError) as error:
            last = str(error.body or error.reason)
        except (NotReadyError, dynamic.exceptions.ResourceNotFoundError, urllib3.exceptions.HTTPError) as error:
            last = str(error)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{release}: its webhook did not answer within {TIMEOUT_SECONDS} s; last: {last}")
        time.sleep(0.5)


def reload_configurations(release: str, client: Any) -> None:
    """Update the release's webhook configurations, all of which have their certificates by now.

    `client` is a kubernetes.dynamic.DynamicClient. Raises NotReadyError if one lacks its certificate.
    """
    note = {"metadata": {"annotations": {RELOADED_ANNOTATION: datetime.now(UTC).isoformat()}}}
    for kind in CONFIGURATIONS:
        configurations = client.resources.get(api_version=ADMISSION, kind=kind)
        for item in configurations.get().to_dict()["items"]:
            metadata = item["metadata"]
            if metadata.get("annotations", {}).get(RELEASE_ANNOTATION) != release:
                continue
            if not all(webhook["clientConfig"].get("caBundle") for webhook in item.get("webhooks", [])):
                raise NotReadyError(f"{kind} {metadata['name']} has no certificate")
            configurations.patch(name=metadata["name"], body=note, content_type="application/merge-patch+json")


def create_probe(release: str, client: Any) -> None:
    """Try to create the release's probe object. Raises what the API server answers, unless there is such an object."""
    from kubernetes.dynamic.exceptions import ConflictError

    probe = PROBES[release]
    kind = client.resources.get(api_version=probe["apiVersion"], kind=probe["kind"])
    with contextlib.suppress(ConflictError):  # it has answered before
        kind.create(body=probe, namespace=probe["metadata"].get("namespace"), query_params=[("dryRun", "All")])
