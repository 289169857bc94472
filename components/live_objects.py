"""Objects of the stack's cluster, as the API server has them now."""

import functools
import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from components import api
from components.kubeconfig import HOW_TO_CHOOSE, Kubeconfig

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

ANSWER_SECONDS = 30
_one_at_a_time = threading.Lock()


class ForbiddenError(RuntimeError):
    """The API server does not let this user read the object."""


def find(
    kubeconfig: Kubeconfig, api_version: str, kind: str, name: str, namespace: str | None = None
) -> dict[str, Any] | None:
    """The object, or None when it, or its whole kind, does not exist.

    Raises RuntimeError, one line, when the API server does not answer or refuses.
    """
    return get(kubeconfig, f"{_collection(api_version, kind, namespace)}/{name}")


def delete(kubeconfig: Kubeconfig, api_version: str, kind: str, name: str, namespace: str | None = None) -> None:
    """Delete the object, in the background; one that is gone already is fine."""
    path = f"{_collection(api_version, kind, namespace)}/{name}"
    _ask(kubeconfig, "DELETE", path, {"propagationPolicy": "Background"})


def gang_pods(kubeconfig: Kubeconfig, namespace: str, job_name: str) -> list[dict[str, Any]]:
    """The pods of a TrainJob's JobSet, in any phase."""
    path = _collection(api.CORE_API, api.POD_KIND, namespace)
    found = get(kubeconfig, path, labelSelector=f"{api.JOBSET_NAME_LABEL}={job_name}") or {}
    return [{"kind": api.POD_KIND, **pod} for pod in found.get("items", [])]


def events(kubeconfig: Kubeconfig, namespace: str) -> list[dict[str, Any]]:
    """What the cluster's controllers have lately reported about the namespace's objects."""
    found = get(kubeconfig, _collection(api.CORE_API, api.EVENT_KIND, namespace)) or {}
    return list(found.get("items", []))


def last_lines(kubeconfig: Kubeconfig, namespace: str, pod: str, lines: int) -> list[str]:
    """The end of the training container's log; empty when the pod, or its log, is gone."""
    path = f"{_collection(api.CORE_API, api.POD_KIND, namespace)}/{pod}/log"
    text = _ask(kubeconfig, "GET", path, {"container": api.NODE, "tailLines": str(lines)})
    return (text or b"").decode(errors="replace").splitlines()


def _collection(api_version: str, kind: str, namespace: str | None) -> str:
    root = "/apis" if "/" in api_version else "/api"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}/{api_version}{scope}/{api.PLURALS[kind]}"


def _client(kubeconfig: Kubeconfig) -> "ApiClient":
    """One for all threads, and made by one: the library keeps certificates in files that a second thread would find
    empty (https://github.com/kubernetes-client/python/blob/master/kubernetes/base/config/kube_config.py)."""
    with _one_at_a_time:
        return _made_client(kubeconfig)


@functools.cache
def _made_client(kubeconfig: Kubeconfig) -> "ApiClient":
    return kubeconfig.api_client()


def get(kubeconfig: Kubeconfig, path: str, **query: str) -> dict[str, Any] | None:
    """The object that a GET answers with; None for 404. Without the library's classes: custom kinds have none.

    Raises ForbiddenError for 403, and RuntimeError when the API server does not answer or refuses otherwise.
    """
    text = _ask(kubeconfig, "GET", path, query)
    answer: dict[str, Any] | None = None if text is None else json.loads(text)
    return answer


def _ask(kubeconfig: Kubeconfig, method: str, path: str, query: Mapping[str, str]) -> bytes | None:
    from urllib3.exceptions import HTTPError

    client = _client(kubeconfig)
    request = client.param_serialize(
        method,
        path,
        query_params=list(query.items()),
        header_params={"Accept": "application/json", "Accept-Encoding": "gzip"},
        auth_settings=["BearerToken"],
    )
    try:
        response = client.call_api(*request, _request_timeout=ANSWER_SECONDS)
        text: bytes = response.read()
    except HTTPError as error:
        raise RuntimeError(f"the Kubernetes API server does not answer: {' '.join(str(error).split())}") from error
    if response.status == 404:
        return None
    if response.status != 200:
        refused = ForbiddenError if response.status == 403 else RuntimeError
        remedy = f"; renew the context's credentials, or {HOW_TO_CHOOSE}" if response.status == 401 else ""
        raise refused(f"the Kubernetes API server refuses {method} {path}: {response.status} {_message(text)}{remedy}")
    return text


def _message(text: bytes) -> str:
    """The reason in an answer, which is a Status object unless something in between answered."""
    try:
        status = json.loads(text)
    except ValueError:
        return " ".join(text.decode(errors="replace").split())
    return str(status.get("message", status)) if isinstance(status, Mapping) else str(status)
