"""How the pods of a TrainJob find each other and agree who they are, before TensorFlow starts.

Worker 0 collects the others over TCP, on the port that TensorFlow will use, and tells all of them one membership list;
so two workers never start with different clusters. DNS serves to find worker 0, and to know that every name in the list
resolves to its member. Standard library only.

Environment: TF_NUM_WORKERS (the size; without it, at least two workers and two equal looks 5 s apart),
TF_WORKER_PORT (12345), TF_RENDEZVOUS_TIMEOUT (seconds, 300), and what pod_identity reads.
"""

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from dns_query import DnsError, Resolver
from env_settings import EXIT_SIGTERM, InputError, read_int
from pod_identity import RESOLV_CONF, PodIdentity, Worker
from rendezvous_follower import Follower
from rendezvous_leader import Leader, Resolve
from rendezvous_members import too_many
from rendezvous_wire import RendezvousError, Timing

__all__ = ["PodIdentity", "RendezvousError", "discover_workers", "setup_tf_config"]

DEFAULT_PORT = 12345
OPEN_FILES = 16384
"""Worker 0 holds one connection for each worker; the usual soft limit of 1024 is too low for a gang of that size."""


def setup_tf_config() -> dict[str, Any]:
    """Agree with the gang, put TF_CONFIG into the environment and return it; call it before importing TensorFlow.

    Raises RuntimeError when TensorFlow has been imported already: it read the environment then, and workers with
    different views of the cluster fail later with "different incarnation".
    """
    if "tensorflow" in sys.modules:
        raise RuntimeError("setup_tf_config() must run before `import tensorflow`, which reads TF_CONFIG")
    worker = this_worker()
    hosts = discover_workers(worker)
    config = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": worker.pod.index}}
    os.environ["TF_CONFIG"] = json.dumps(config)
    return config


def discover_workers(worker: Worker | None = None) -> list[str]:
    """All workers of this TrainJob as `host:port`, by index: the same list in every one of them.

    Raises RendezvousError when the gang does not come together, InputError when the pod cannot tell who it is, and
    SystemExit(143) on SIGTERM, after closing the port at once: a pod that is going must not be taken for a member.
    """
    me = worker or this_worker()
    size = read_int("TF_NUM_WORKERS", default=0, minimum=1) if "TF_NUM_WORKERS" in os.environ else None
    timing = Timing(timeout=read_int("TF_RENDEZVOUS_TIMEOUT", default=300, minimum=1))
    try:
        resolver = Resolver.from_resolv_conf(RESOLV_CONF, ipv6=":" in me.address)
    except DnsError as error:
        raise InputError(str(error)) from error
    with _many_open_files():
        return asyncio.run(_until_sigterm(me, size, resolver, timing))


async def agree(me: Worker, size: int | None, resolve: Resolve, timing: Timing) -> list[str]:
    """The gang's membership, agreed by all; `size` is the number of workers when it is known."""
    if size is not None and me.pod.index >= size:
        raise too_many(me.pod, size)
    if size == 1:
        return [f"{me.host(0)}:{me.port}"]
    started = time.monotonic()
    _log(f"worker {me.pod.index} of {size or 'an unknown number'} at {me.address}, service {me.service}")
    if me.pod.index == 0:
        hosts = await Leader(me, size, resolve, timing, _log).agree()
    else:
        hosts = await Follower(me, resolve, timing, _log).agree()
    _log(f"{len(hosts)} workers agreed after {time.monotonic() - started:.2f} s")
    return hosts


def this_worker() -> Worker:
    """This pod; raises InputError when its name, namespace, address or port cannot be found."""
    port = read_int("TF_WORKER_PORT", default=DEFAULT_PORT, minimum=1, maximum=65535)
    return Worker.from_environment(port)


async def _until_sigterm(me: Worker, size: int | None, resolve: Resolve, timing: Timing) -> list[str]:
    task = asyncio.ensure_future(agree(me, size, resolve, timing))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        _stopped()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _stopped() -> NoReturn:
    _log("stopped by SIGTERM")
    raise SystemExit(EXIT_SIGTERM)


@contextlib.contextmanager
def _many_open_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _log(message: str) -> None:
    print(f"[Discovery] {message}", flush=True)
