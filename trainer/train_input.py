"""Which examples each step sees, and the tf.data pipeline that delivers them.

The order is a function of (seed, step) alone: a gang of any size sees the global batches that a single process with the
same global batch size would, and a resumed run goes on with the very next one.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-untyped]
from cifar10 import Images, Labels
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

SHIFT = 2
"""Pixels by which augmentation moves an image in each direction. No flips: they turn a digit into another sign."""

CHUNK = 1024
"""Examples that are fetched together: tf.data takes as long for a chunk as for a single batch."""


@dataclass(frozen=True)
class Schedule:
    """The examples of every step, cut into equal batches for the replicas."""

    examples: int
    replicas: int
    replica_batch: int
    seed: int | None
    """Of the order and the augmentation, new in each epoch; None for the order on disk, unchanged."""

    @property
    def global_batch(self) -> int:
        """Examples in a full step."""
        return self.replicas * self.replica_batch

    @property
    def steps_per_epoch(self) -> int:
        """The last step of an epoch may be short; every example is in exactly one step."""
        return -(-self.examples // self.global_batch)

    def examples_done(self, steps: int) -> int:
        """Examples in the first `steps` steps of a run."""
        epochs, within_epoch = divmod(steps, self.steps_per_epoch)
        return epochs * self.examples + within_epoch * self.global_batch

    def batch(self, step: int, replica: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """One replica's examples, how far to shift each, and what each weighs in the step's mean loss.

        In a short step the free places have weight 0, so that all batches have one shape and the mean is exact.
        """
        epoch, step_of_epoch = divmod(step, self.steps_per_epoch)
        order, shifts = self._epoch(epoch)
        begin = step_of_epoch * self.global_batch
        in_step = min(self.global_batch, self.examples - begin)
        first = begin + replica * self.replica_batch
        ids = order[first : first + self.replica_batch]
        weights = np.zeros(self.replica_batch, np.float32)
        weights[: len(ids)] = 1 / in_step
        ids = np.concatenate([ids, np.zeros(self.replica_batch - len(ids), np.int64)])
        return ids, shifts[ids], weights

    @lru_cache(maxsize=2)  # noqa: B019  one per process, and prefetching works on two epochs at most
    def _epoch(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self.seed is None:
            return np.arange(self.examples), np.full((self.examples, 2), SHIFT)
        random = np.random.default_rng([self.seed, epoch])
        return random.permutation(self.examples), random.integers(0, 2 * SHIFT + 1, (self.examples, 2))


def pipeline(
    images: Images, labels: Labels, schedule: Schedule, steps: range, first_replica: int, local_replicas: int
) -> Any:
    """A tf.data.Dataset of (images, labels, weights), one element for each step and local replica in turn.

    Images stay uint8 until they are on the device: a quarter of the bytes to move. The dataset repeats for ever, which
    spares the strategy a collective for each step to find out whether all workers have data left.
    """
    # Views of each image moved by 0 to 2 * SHIFT pixels; SHIFT leaves it where it is, and edges become black. Taking
    # from them in numpy costs a fiftieth of what tf.gather does.
    padded = np.pad(images, [(0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)])
    shifted = sliding_window_view(padded, images.shape[1:3], axis=(1, 2))
    begin, end = steps.start * local_replicas, steps.stop * local_replicas
    chunk = max(1, min(CHUNK // schedule.replica_batch, end - begin))

    def load(first: Any) -> tuple[Images, Labels, NDArray[np.float32]]:
        places = (divmod(element, local_replicas) for element in range(int(first), int(first) + chunk))
        batches = [schedule.batch(step, first_replica + replica) for step, replica in places]
        ids, shifts, weights = (np.stack(parts) for parts in zip(*batches, strict=True))
        # The windows' own axes come last: batches, examples, channels, rows, columns.
        chunk_images = shifted[ids, shifts[..., 0], shifts[..., 1]].transpose(0, 1, 3, 4, 2)
        return np.ascontiguousarray(chunk_images), labels[ids], weights

    def with_shapes(first: Any) -> tuple[Any, Any, Any]:
        chunk_images, chunk_labels, weights = tf.numpy_function(
            load, [first], [tf.uint8, tf.int32, tf.float32], stateful=False
        )
        chunk_images.set_shape([chunk, schedule.replica_batch, *images.shape[1:]])
        chunk_labels.set_shape([chunk, schedule.replica_batch])
        weights.set_shape([chunk, schedule.replica_batch])
        return chunk_images, chunk_labels, weights

    chunks = tf.data.Dataset.range(begin, end, chunk).map(with_shapes, num_parallel_calls=2)
    return chunks.unbatch().repeat().prefetch(max(4, chunk))
