"""Whatever the order, the delays, the losses and the duplicates: agreement, validity, termination."""

import asyncio
import os
from collections.abc import Awaitable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pod_identity import Worker
from rendezvous import agree
from rendezvous_wire import RendezvousError, Timing

from tests.trainer.gang import FakeDns, a_gang, another_pod, hosts_of

EXAMPLES = int(os.environ.get("RENDEZVOUS_EXAMPLES", "3"))
"""Each example is several gangs at once, which wait for their time-outs together."""
TIMEOUT = 1.5
"""Seconds until a gang that lost somebody gives up."""

moments = st.integers(0, 8).map(lambda tick: tick * 0.04)


@dataclass(frozen=True)
class Fate:
    """What becomes of one worker's pod."""

    starts: float
    named: float
    """When its name appears in DNS."""
    dies: float | None
    """When it is killed; never, if None."""
    doubled: float | None
    """When a second process with its index appears, which DNS does not know."""
    predecessor_leaves: float | None
    """Until when DNS still has a pod of an earlier run; there is none, if None."""


fates = st.builds(
    Fate,
    starts=moments,
    named=moments,
    dies=st.one_of(st.none(), st.none(), st.none(), moments),
    doubled=st.one_of(st.none(), st.none(), moments),
    predecessor_leaves=st.one_of(st.none(), moments),
)

gangs = st.lists(st.lists(fates, min_size=2, max_size=5), min_size=10, max_size=16)

Outcome = list[str] | RendezvousError | asyncio.CancelledError


@dataclass
class Story:
    """A gang, and how the rendezvous ended for each of its processes."""

    gang: list[Worker]
    outcomes: list[Outcome]
    doubles: list[Outcome]
    names_at_start: list[bool]
    """For each process that got a list: whether each name had its own address then, and no other."""

    @property
    def started(self) -> list[list[str]]:
        """The lists that processes have started with."""
        return [outcome for outcome in [*self.outcomes, *self.doubles] if isinstance(outcome, list)]


async def play(lives: list[Fate], size: int | None, timing: Timing) -> Story:
    gang, dns = a_gang(len(lives)), FakeDns()
    names_at_start: list[bool] = []

    async def later(moment: float, action: Awaitable[None]) -> None:
        await asyncio.sleep(moment)
        await action

    async def name(worker: Worker) -> None:
        dns.publish(worker)

    async def unname(worker: Worker) -> None:
        dns.withdraw(worker)

    async def live(worker: Worker, starts: float, dies: float | None) -> Outcome:
        async def take_part() -> list[str]:
            await asyncio.sleep(starts)
            hosts = await agree(worker, size, dns, timing)
            names_at_start.append(
                all(dns.records[peer.host(peer.pod.index)] == {peer.address} for peer in gang[: len(hosts)])
            )
            return hosts

        task = asyncio.create_task(take_part())
        if dies is not None:
            asyncio.get_running_loop().call_later(dies, task.cancel)
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, (list, RendezvousError, asyncio.CancelledError)), outcome
        return outcome

    events, pods, doubles = [], [], []
    for worker, fate in zip(gang, lives, strict=True):
        events.append(later(fate.named, name(worker)))
        pods.append(live(worker, fate.starts, fate.dies))
        if fate.predecessor_leaves is not None:
            old = another_pod(worker, 1)
            dns.publish(old)
            events.append(later(fate.predecessor_leaves, unname(old)))
        if fate.doubled is not None:
            double = another_pod(worker, 2)
            doubles.append(live(double, fate.doubled, None))
    outcomes, other_outcomes, _ = await asyncio.gather(
        asyncio.gather(*pods), asyncio.gather(*doubles), asyncio.gather(*events)
    )
    return Story(gang, outcomes, other_outcomes, names_at_start)


def assert_properties(story: Story) -> None:
    assert all(hosts == story.started[0] for hosts in story.started), "agreement"
    assert all(hosts == hosts_of(story.gang)[: len(hosts)] for hosts in story.started), "validity: only members"
    for outcome in [*story.outcomes, *story.doubles]:
        if isinstance(outcome, RendezvousError):
            assert "no agreement after" in str(outcome), "termination: a failure says what was missing"


PATIENT = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # shrinking would take minutes, since each try is real time
    database=None,
)


def play_all(gangs: list[list[Fate]], timing: Timing, *, sizes_known: bool) -> list[Story]:
    async def case() -> list[Story]:
        return await asyncio.gather(*(play(lives, len(lives) if sizes_known else None, timing) for lives in gangs))

    return asyncio.run(asyncio.wait_for(case(), timing.timeout + 10))


@pytest.mark.timeout(1200)
@PATIENT
@given(gangs=gangs)
def test_with_a_known_number_all_start_together_or_nobody_does(gangs: list[list[Fate]]) -> None:
    for lives, story in zip(gangs, play_all(gangs, Timing(TIMEOUT, 0.2), sizes_known=True), strict=True):
        assert_properties(story)
        assert all(len(hosts) == len(lives) for hosts in story.started), "never with fewer than asked for"
        assert all(story.names_at_start), "validity: every name is its member's alone"
        if isinstance(story.outcomes[0], RendezvousError):
            dead = [
                worker.pod.hostname
                for worker, fate in zip(story.gang, lives, strict=True)
                if fate.dies is not None and fate.doubled is None
            ]
            assert all(name in str(story.outcomes[0]) for name in dead), "termination: worker 0 names who is missing"
        if all(fate.dies is None for fate in lives):
            assert all(isinstance(outcome, list) for outcome in story.outcomes), "nobody was lost: all start"


@pytest.mark.timeout(1200)
@PATIENT
@given(gangs=gangs)
def test_without_a_known_number_all_that_start_agree(gangs: list[list[Fate]]) -> None:
    for story in play_all(gangs, Timing(TIMEOUT, 0.1), sizes_known=False):
        assert_properties(story)
        assert all(len(hosts) >= 2 for hosts in story.started), "never alone"
