"""Every worker reads its share of the same global batches, each example once an epoch."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from cifar10 import Images, Labels

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]

EXAMPLES = 50


def numbered() -> tuple[Images, Labels]:
    """Images whose pixels are all their own number, from 1."""
    numbers = np.arange(1, EXAMPLES + 1, dtype=np.uint8)
    return np.broadcast_to(numbers[:, None, None, None], (EXAMPLES, 32, 32, 3)).copy(), np.zeros(EXAMPLES, np.int32)


def read(workers: int, *, seed: int | None = 0, steps: range | None = None, gpus: int = 1) -> list[list[list[int]]]:
    """For each worker, for each step, the numbers of the examples it trains on."""
    from train_input import Schedule, pipeline

    schedule = Schedule(EXAMPLES, workers * gpus, 16 // workers // gpus, seed)
    steps = steps or range(schedule.steps_per_epoch)
    found = []
    for worker in range(workers):
        elements = iter(pipeline(*numbered(), schedule, steps, worker * gpus, gpus))
        mine = []
        for _ in steps:
            step = []
            for _ in range(gpus):
                images, _, weights = next(elements)
                step += [int(image.max()) for image, weight in zip(images.numpy(), weights, strict=True) if weight > 0]
            mine.append(step)
        found.append(mine)
    return found


def joined(workers: list[list[list[int]]]) -> list[list[int]]:
    """The global batches."""
    return [list(chain.from_iterable(parts)) for parts in zip(*workers, strict=True)]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_epoch_has_each_example_once(workers: int) -> None:
    counts = Counter(number for step in joined(read(workers)) for number in step)
    assert counts == Counter(range(1, EXAMPLES + 1))


@pytest.mark.parametrize(("workers", "gpus"), [(2, 1), (4, 1), (2, 2), (1, 4)])
def test_global_batches_do_not_depend_on_the_size_of_the_gang(workers: int, gpus: int) -> None:
    assert joined(read(workers, gpus=gpus)) == joined(read(1))


def test_another_epoch_and_another_seed_have_another_order() -> None:
    first, second = joined(read(1, steps=range(4))), joined(read(1, steps=range(4, 8)))
    assert first != second
    assert first != joined(read(1, seed=1))


def test_a_later_start_gets_the_same_batches() -> None:
    assert joined(read(1, steps=range(3, 7))) == joined(read(1, steps=range(7)))[3:]


def test_weights_make_the_mean_of_a_short_step_exact() -> None:
    from train_input import Schedule

    schedule = Schedule(EXAMPLES, 2, 8, 0)
    weights = [schedule.batch(3, replica)[2] for replica in range(2)]  # the last step has 2 of 16
    assert [weight.tolist() for weight in weights] == [[0.5, 0.5] + [0] * 6, [0] * 8]


def test_augmentation_moves_images_a_little_and_evaluation_does_not() -> None:
    from train_input import SHIFT, Schedule, pipeline

    images, labels = numbered()
    images[:] = 0
    images[:, 16, 16] = 255
    for seed, moves in ((None, {0}), (0, set(range(-SHIFT, SHIFT + 1)))):
        batch, *_ = next(iter(pipeline(images, labels, Schedule(EXAMPLES, 1, EXAMPLES, seed), range(1), 0, 1)))
        _, rows, columns = np.nonzero(batch.numpy()[..., 0])
        assert set((rows - 16).tolist()) == set((columns - 16).tolist()) == moves
