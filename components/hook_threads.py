"""Threads for what hooks ask of the cluster."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
THREADS = ThreadPoolExecutor(32, "hook")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function returns, without blocking the event loop.

    Not `asyncio.to_thread`: the SDK holds one of the loop's threads for every registration until the engine answers
    (https://github.com/pulumi/pulumi/blob/v3.272.0/sdk/python/lib/pulumi/runtime/resource.py), and the engine answers
    when the hook is done. A stack of a hundred jobs takes all of these threads, and its hooks would wait for ever.
    """
    call = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(THREADS, lambda: call(function, *args, **kwargs))
