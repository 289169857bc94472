"""What `operators/` sees to, beyond what the charts install."""

import base64
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, dynamic
from readiness import (
    ADMISSION,
    CONFIGURATIONS,
    PROBES,
    RELEASE_ANNOTATION,
    RELOADED_ANNOTATION,
    NotReadyError,
    reload_configurations,
)

from devcluster.paths import Cache
from tests.cluster.objects import kind_of, listed, named

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

KIND = "ValidatingWebhookConfiguration"


@pytest.fixture
def configuration() -> Iterator[dict[str, Any]]:
    """A webhook configuration of a release of its own, for nothing, and without a certificate."""
    name = f"test-{uuid.uuid4().hex[:6]}"
    webhook = {
        "name": "nothing.test.example",
        "clientConfig": {"url": "https://127.0.0.1:9"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    body = {"metadata": {"name": name, "annotations": {RELEASE_ANNOTATION: name}}, "webhooks": [webhook]}
    kind_of(ADMISSION, KIND).create(body=body)
    yield body
    kind_of(ADMISSION, KIND).delete(name=name)


def reloaded(name: str) -> bool:
    return RELOADED_ANNOTATION in named(ADMISSION, KIND, name)["metadata"]["annotations"]


def test_the_operators_webhooks_were_read_again_after_they_had_their_certificates() -> None:
    found = [item for kind in CONFIGURATIONS for item in listed(ADMISSION, kind)]
    annotations = [item["metadata"].get("annotations", {}) for item in found]
    assert {note.get(RELEASE_ANNOTATION) for note in annotations if RELOADED_ANNOTATION in note} == PROBES.keys()
    assert all(RELOADED_ANNOTATION in note for note in annotations if note.get(RELEASE_ANNOTATION) in PROBES)


def test_a_webhook_configuration_is_read_again_once_it_has_its_certificate(configuration: dict[str, Any]) -> None:
    name, (webhook,) = configuration["metadata"]["name"], configuration["webhooks"]
    cluster = dynamic.DynamicClient(client.ApiClient())
    with pytest.raises(NotReadyError, match=name):
        reload_configurations(name, cluster)
    assert not reloaded(name)

    certificate = base64.b64encode((Cache.from_environment().pki / "ca.crt").read_bytes()).decode()
    whole = webhook | {"clientConfig": webhook["clientConfig"] | {"caBundle": certificate}}
    kind_of(ADMISSION, KIND).patch(name=name, body={"webhooks": [whole]}, content_type="application/merge-patch+json")
    reload_configurations(name, cluster)
    assert reloaded(name)
