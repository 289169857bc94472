"""Gang scheduling at a size that no machine at hand has: TrainJobs on simulated nodes, whose pods only seem to run."""

import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from devcluster import lifecycle, simulation
from devcluster.paths import Cache
from devcluster.simulated_nodes import NODES_PER_LEAF, node_names
from tests.cluster.conftest import Deploy
from tests.cluster.objects import wait_until
from tests.cluster.simulated import (
    GPUS,
    NODE_SELECTOR,
    TOLERATIONS,
    Platform,
    cordoned,
    leaf_of,
    node_of,
    simulated_pods,
)

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(900)]

Scale = Callable[[int], list[str]]
SETTLED_SECONDS = 5
"""As many scheduling cycles, in each of which Volcano could have bound what it has not bound until then."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Scale]:
    """Bring about so many simulated nodes, and return their names."""
    cache = Cache.from_environment()
    before = simulation.recorded(cache)

    def scale(count: int) -> list[str]:
        wait_until("earlier pods are gone", lambda: not simulated_pods())
        lifecycle.up(cache, count)
        return node_names(count)

    yield scale
    lifecycle.up(cache, before)


@pytest.fixture
def platform(namespace: str) -> Iterator[Platform]:
    platform = Platform(namespace)
    yield platform
    platform.remove()


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(200, id="two hundred workers"),
        pytest.param(1000, id="a thousand workers"),
    ],
)
def test_a_gang_binds_as_a_whole_or_not_at_all(nodes: Scale, deploy: Deploy, namespace: str, size: int) -> None:
    names, platform = nodes(size), Platform(namespace)
    program = deploy(
        numNodes=size,
        resources={"gpu": GPUS},
        infiniband={"enabled": True, "count": 8},
        nodeSelector=NODE_SELECTOR,
        tolerations=TOLERATIONS,
        awaitCompletion=False,
    )
    with cordoned(names[size // 2]):
        program.up()
        wait_until("all pods are there", lambda: len(platform.pods()) == size, seconds=300)
        time.sleep(SETTLED_SECONDS)
        assert platform.bound() == {}
    wait_until("all pods are bound", lambda: platform.bound() == {"digits": size}, seconds=300)
    assert len({node_of(pod) for pod in platform.pods()}) == size


def test_a_gang_of_one_leaf_switch_waits_until_one_is_free(nodes: Scale, platform: Platform) -> None:
    names = nodes(4 * NODES_PER_LEAF)
    runtime = platform.runtime(platform.queue("queue"), network_topology={"mode": "hard", "highest_tier_allowed": 1})
    first_of_leaf = names[::NODES_PER_LEAF]
    with cordoned(*first_of_leaf[:2], first_of_leaf[3]):
        with cordoned(first_of_leaf[2]):
            platform.train("gang", runtime, NODES_PER_LEAF)
            wait_until("all pods are there", lambda: len(platform.pods()) == NODES_PER_LEAF)
            time.sleep(SETTLED_SECONDS)
            assert platform.bound() == {}, "sixty nodes are free, but nowhere sixteen of them on one leaf switch"
        wait_until("all pods are bound", lambda: platform.bound() == {"gang": NODES_PER_LEAF})
        assert {leaf_of(node_of(pod)) for pod in platform.pods()} == {leaf_of(first_of_leaf[2])}


def test_a_gang_that_may_span_the_spine_does_not_wait_for_a_leaf_switch(nodes: Scale, platform: Platform) -> None:
    nodes(4 * NODES_PER_LEAF)
    runtime = platform.runtime(platform.queue("queue"), network_topology={"mode": "hard", "highest_tier_allowed": 2})
    platform.train("gang", runtime, NODES_PER_LEAF + 1)
    wait_until("all pods are bound", lambda: platform.bound() == {"gang": NODES_PER_LEAF + 1})


def test_of_two_gangs_that_do_not_fit_together_each_runs_whole(nodes: Scale, platform: Platform) -> None:
    nodes(200)
    runtime, size = platform.runtime(platform.queue("queue")), 120
    platform.train("one", runtime, size)
    platform.train("other", runtime, size)
    wait_until("all pods are there", lambda: len(platform.pods()) == 2 * size)
    wait_until("a gang is bound", lambda: size in platform.bound().values())
    time.sleep(SETTLED_SECONDS)
    (first,) = platform.bound()
    (second,) = {"one", "other"} - {first}
    platform.stop(first)
    wait_until("the other gang is bound", lambda: platform.bound() == {second: size})


def test_weights_and_a_capability_hold_while_fifty_jobs_compete(nodes: Scale, platform: Platform) -> None:
    nodes(1)
    # A queue that wants more than all the others and may have four nodes leaves forty, which the others share 3 to 1.
    queues = {
        "three": platform.queue("three", weight=3),
        "one": platform.queue("one", weight=1),
        "capped": platform.queue("capped", weight=8, capability={"nvidia.com/gpu": str(4 * GPUS)}),
    }
    runtimes = {name: platform.runtime(queue, name=name) for name, queue in queues.items()}
    jobs = [f"{name}-{number}" for number in range(20) for name in runtimes][:50]
    for job in jobs:
        platform.train(job, runtimes[job.partition("-")[0]], 2)

    wait_until("all pods are there", lambda: len(platform.pods()) == 100)
    # Only now: a share is what a queue may take, and Volcano, as it is configured, takes nothing back.
    nodes(44)

    def nodes_of_queues() -> dict[str, int]:
        bound = platform.bound()
        assert set(bound.values()) <= {2}, "half a gang has nodes"
        return {name: sum(bound[job] for job in bound if job.startswith(name)) for name in queues}

    most = Counter[str]()

    def settled() -> bool:
        used = nodes_of_queues()
        most.update({name: max(0, count - most[name]) for name, count in used.items()})
        return used == {"three": 30, "one": 10, "capped": 4}

    wait_until("the queues have their shares", settled)
    time.sleep(SETTLED_SECONDS)
    assert settled()
    assert most["capped"] == 4


def test_a_higher_priority_goes_first(nodes: Scale, platform: Platform) -> None:
    nodes(NODES_PER_LEAF)
    queue = platform.queue("queue")
    low = platform.runtime(queue, name="low", priority_class=platform.priority("low", 1))
    high = platform.runtime(queue, name="high", priority_class=platform.priority("high", 2))
    platform.train("running", low, NODES_PER_LEAF)
    wait_until("the nodes are taken", lambda: platform.bound() == {"running": NODES_PER_LEAF})
    platform.train("earlier", low, NODES_PER_LEAF)
    wait_until("the earlier job waits", lambda: len(platform.pods()) == 2 * NODES_PER_LEAF)
    platform.train("urgent", high, NODES_PER_LEAF)
    wait_until("the urgent job waits", lambda: len(platform.pods()) == 3 * NODES_PER_LEAF)
    platform.stop("running")
    wait_until("the urgent job has the nodes", lambda: platform.bound() == {"urgent": NODES_PER_LEAF})
