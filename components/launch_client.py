"""W&B's own client, asked for one queue: every way in which it can fail becomes one sentence.

Imported without wandb; only an operation on a queue loads it.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from wandb import Api
    from wandb.apis.public.jobs import RunQueue

API_KEY: Final = "wandb:apiKey"
HOW_TO_SET_API_KEY: Final = f"pulumi config set --secret {API_KEY}"
NO_CLIENT: Final = "W&B Launch needs W&B's client: pip install wandb==0.31.0"
RESOURCE_TYPE: Final = "kubernetes"
TIMEOUT_SECONDS: Final = 8
TEARDOWN_SECONDS: Final = 3
"""What the client's service process gets to end."""
REFUSALS: Final = ("logged in", "permission", "unauthorized", "forbidden", "api key", "401", "403")
"""Words by which W&B's answers to a wrong key differ from none at all."""

_one_at_a_time = threading.Lock()
"""The client has one service process for all threads, and teardown() ends it."""


class QueueError(Exception):
    """A fault told in one sentence."""


@contextmanager
def client(api_key: str | None, base_url: str) -> Iterator["Api"]:
    """W&B's client, with every way in which it can fail put into one sentence."""
    sys.tracebacklimit = None
    try:
        import wandb
        from wandb.errors import AuthenticationError, CommError, UsageError
        from wandb.sdk.lib.service.service_connection import WandbApiFailedError
    except ImportError:
        _stop(NO_CLIENT)
    with _one_at_a_time:
        try:
            if not api_key:
                raise QueueError(f"no W&B API key: {HOW_TO_SET_API_KEY}")
            yield wandb.Api(overrides={"base_url": base_url}, timeout=TIMEOUT_SECONDS, api_key=api_key)
        except AuthenticationError as error:
            if any(word in str(error).lower() for word in REFUSALS):
                _stop(f"W&B at {base_url} refuses the API key; set another: {HOW_TO_SET_API_KEY}, then pulumi up")
            _stop(f"W&B at {base_url} does not answer within {TIMEOUT_SECONDS} s; check the base URL and the network")
        except (CommError, UsageError, WandbApiFailedError, QueueError) as error:
            _stop(f"W&B Launch queue: {' '.join(str(error).split())}")
        finally:
            _end_service(wandb.teardown)


def _end_service(teardown: Callable[[], None]) -> None:
    """End the client's service process, or leave it to go with this one: after a refused login it may not end, and the
    client would wait for it for ever."""
    thread = threading.Thread(target=teardown, daemon=True)
    thread.start()
    thread.join(TEARDOWN_SECONDS)


def _stop(sentence: str) -> NoReturn:
    """Fail with this sentence alone: Pulumi shows what a dynamic provider raises with its traceback, up to this limit
    (https://github.com/pulumi/pulumi/blob/v3.274.1/sdk/python/lib/pulumi/dynamic/__main__.py)."""
    sys.tracebacklimit = 0
    raise RuntimeError(sentence) from None


def find(api: "Api", props: Mapping[str, Any]) -> "RunQueue | None":
    """The queue, its description loaded; None when there is none."""
    from wandb.errors import CommError

    queue = api.run_queue(props["entity"], props["queue_name"])
    try:
        return queue if queue.id else None
    except CommError as error:
        if isinstance(error.exc, TypeError):  # the client subscripts the null that stands for no queue
            return None
        raise


def upsert(api: "Api", props: Mapping[str, Any], external_links: Mapping[str, str]) -> None:
    """Make the queue what `props` say, or create it so."""
    api.upsert_run_queue(
        name=props["queue_name"],
        entity=props["entity"],
        resource_type=RESOURCE_TYPE,
        resource_config=json.loads(props["template"]),
        template_variables=json.loads(props["variables"]),
        prioritization_mode=props["prioritization"],
        external_links=dict(external_links),
    )


def links(queue: "RunQueue") -> dict[str, str]:
    """The links that somebody gave the queue in W&B's pages, which an update without them would remove."""
    held: Any = _document(queue.external_links) or {}
    return {link["label"]: link["url"] for link in held.get("links", ())}


def _document(value: Any) -> Any:
    """W&B sends some documents as such and some as text."""
    return json.loads(value) if isinstance(value, str) else value


def contents(queue: "RunQueue") -> dict[str, str]:
    """What W&B holds of the queue, in the form that the state keeps."""
    config: Any = _document(queue.default_resource_config)
    listed: Any = queue.template_variables  # a list, whatever the client's annotation says
    variables = {variable["name"]: {"schema": _document(variable["schema"])} for variable in listed}
    return {
        "template": json.dumps(config.get("resource_args", {}).get(RESOURCE_TYPE)),
        "variables": json.dumps(variables),
        "prioritization": queue.prioritization_mode,
    }
