"""Runs in a pod with PyTorch: seconds that torchrun's rendezvous takes among so many processes, several times.

    python3 torch_rendezvous.py <processes> <runs>

Prints one JSON list.
"""

import json
import multiprocessing
import random
import sys
import time
from multiprocessing.connection import Connection

from torch.distributed.elastic.rendezvous.api import (  # type: ignore[import-not-found]
    RendezvousParameters,
)
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import (  # type: ignore[import-not-found]
    create_backend,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (  # type: ignore[import-not-found]
    create_handler,
)

START_WITHIN = 2.0
"""Seconds in which the processes start, as the names of bench.rendezvous appear."""
FORK = multiprocessing.get_context("fork")


def member(index: int, size: int, port: int, delay: float, pipe: Connection) -> None:
    """One agent of torchrun's, up to where it knows its rank and its peers."""
    begin = pipe.recv()
    time.sleep(max(0.0, begin + delay - time.monotonic()))
    parameters = RendezvousParameters("c10d", f"127.0.0.1:{port}", "bench", size, size, is_host=index == 0)
    backend, store = create_backend(parameters)
    create_handler(store, backend, parameters).next_rendezvous()
    pipe.send(time.monotonic())
    pipe.recv()


def rendezvous(size: int, seed: int) -> float:
    """Seconds from the last process' start to the last one's agreement."""
    random.seed(seed)
    delays = [random.uniform(0, START_WITHIN) for _ in range(size)]  # noqa: S311
    pipes = []
    for index, delay in enumerate(delays):
        here, there = FORK.Pipe()
        FORK.Process(target=member, args=(index, size, 29500 + seed, delay, there), daemon=True).start()
        pipes.append(here)
    begin = time.monotonic() + 0.2
    for pipe in pipes:
        pipe.send(begin)
    done = [pipe.recv() for pipe in pipes]
    for pipe in pipes:
        pipe.send("end")
    return float(max(done) - begin - max(delays))


print(json.dumps([rendezvous(int(sys.argv[1]), seed) for seed in range(int(sys.argv[2]))]))
