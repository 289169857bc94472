"""The Kubernetes provider, started before the program needs it."""

from contextlib import suppress
from threading import Thread
from typing import Any

from pulumi.runtime.proto.resource_pb2 import ResourceInvokeRequest
from pulumi.runtime.settings import get_monitor

from components import kubeconfig
from components.kubernetes_object import PROVIDER_VERSION


def start_provider() -> Thread:
    """Have the engine start the Kubernetes provider now, not at the first object, which then finds it ready.

    Starting takes the provider about a second. A function of the provider is what makes it start; this one asks
    nothing of the cluster. What a provider that cannot start has to say, it says at the first object.

    Returns the thread that waits for the answer. A program that fails need not; by the SDK's own way to call a function
    it would. Where the cluster cannot be used the provider is not started: it could ask for credentials, and never end.
    """
    request = ResourceInvokeRequest(tok="kubernetes:yaml:decode", version=PROVIDER_VERSION)
    request.args.update({"text": ""})
    monitor: Any = get_monitor()
    cluster = kubeconfig.Kubeconfig.of_stack()

    def call() -> None:
        with suppress(Exception):  # a cluster out of reach, or the engine's answer, whatever it is
            kubeconfig.require_reachable(cluster)
            monitor.Invoke(request)

    thread = Thread(target=call, daemon=True)
    thread.start()
    return thread
