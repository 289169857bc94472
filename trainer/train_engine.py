"""The model and its steps under MultiWorkerMirroredStrategy.

A loop of our own, since Keras 3's `fit` does not run under this strategy (https://github.com/keras-team/keras/issues/20585).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf  # type: ignore[import-untyped]
from cifar10 import CLASSES, IMAGE_SHAPE, Images, Labels
from env_settings import InputError
from train_input import Schedule, pipeline
from train_settings import Settings


@dataclass(frozen=True)
class Totals:
    """Means over all examples that all workers have seen since the last reading."""

    loss: float
    accuracy: float


def make_strategy() -> Any:
    """The strategy for the cluster in TF_CONFIG: NCCL between GPUs, RING between CPUs."""
    communication = tf.distribute.experimental.CommunicationImplementation
    implementation = communication.NCCL if tf.config.list_physical_devices("GPU") else communication.RING
    options = tf.distribute.experimental.CommunicationOptions(implementation=implementation)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def make_model() -> Any:
    """A small convolutional network from uint8 images to class scores."""
    layers = tf.keras.layers
    convolution = {"kernel_size": 3, "padding": "same", "activation": "relu"}
    return tf.keras.Sequential(
        [
            tf.keras.Input(IMAGE_SHAPE, dtype="uint8"),
            layers.Rescaling(1 / 127.5, offset=-1.0),
            layers.Conv2D(16, **convolution),
            layers.MaxPooling2D(),
            layers.Conv2D(32, **convolution),
            layers.MaxPooling2D(),
            layers.Conv2D(64, **convolution),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )


class Engine:
    """Trains and evaluates one model, in step with all other workers: every method is called by all of them."""

    def __init__(self, strategy: Any, settings: Settings) -> None:
        local_replicas = len(strategy.extended.worker_devices)
        if settings.batch_size % local_replicas:
            raise InputError(
                f"BATCH_SIZE={settings.batch_size}: expected a multiple of this worker's {local_replicas} GPUs"
            )
        self._strategy = strategy
        self._seed = settings.seed
        self._local_replicas = local_replicas
        self._replica_batch = settings.batch_size // local_replicas
        self._replicas: int = strategy.num_replicas_in_sync
        self.workers = self._replicas // local_replicas
        self.worker: int = strategy.cluster_resolver.task_id or 0
        tf.keras.utils.set_random_seed(settings.seed)
        with strategy.scope():
            self._model = make_model()
            self._optimizer = tf.keras.optimizers.Adam(settings.learning_rate)
            # Variables created inside the first step would not be mirrored.
            self._optimizer.build(self._model.trainable_variables)
            self._sums = _summed_variable(3)  # loss, right answers, examples
            self._ballot = _summed_variable(2)
        # What a checkpoint needs beside model and optimizer: the steps done, the steps in an epoch, the sums of the
        # epoch begun, and the totals of the last whole one. Plain variables: saving takes no collective.
        self._position = tf.Variable([0, 1], dtype=tf.int64, trainable=False)
        self._sums_so_far = tf.Variable(tf.zeros(3), trainable=False)
        self._last_totals = tf.Variable(tf.zeros(2), trainable=False)
        self._losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        # The next batch is fetched inside the graph: between two steps it would take 0.3 ms.
        self._train_step = _compiled(lambda batches: strategy.run(self._train_replica, args=next(batches)))
        self._test_step = _compiled(lambda batches: strategy.run(self._test_replica, args=next(batches)))
        self._cast_vote = _compiled(lambda vote: strategy.run(self._ballot.assign, args=(vote,)))
        self._from_worker_0 = _compiled(lambda values: strategy.run(_from_replica_0, args=(values,)))
        self._read_sums = _compiled(self._sums.read_value)
        self._read_ballot = _compiled(self._ballot.read_value)

    def batches(self, images: Images, labels: Labels, schedule: Schedule, steps: range) -> Iterator[Any]:
        """This worker's batches for `steps`, for `train` or `test`."""

        first = self.worker * self._local_replicas
        dataset = pipeline(images, labels, schedule, steps, first, self._local_replicas)
        if not tf.config.list_physical_devices("GPU"):
            return iter(dataset)
        # Gives each GPU its batches, ahead of time. A CPU would only pay for it.
        return iter(self._strategy.distribute_datasets_from_function(lambda _: dataset))

    def schedule(self, examples: int, *, shuffled: bool) -> Schedule:
        """The steps for a data set of so many examples."""
        return Schedule(examples, self._replicas, self._replica_batch, self._seed if shuffled else None)

    def train(self, batches: Iterator[Any]) -> None:
        """One step on the next batch: the gradient of the mean loss over all workers' examples, applied everywhere."""
        self._train_step(batches)

    def test(self, batches: Iterator[Any]) -> None:
        """Count the next batch without learning from it."""
        self._test_step(batches)

    def totals(self) -> Totals:
        """The means since the last call, over all workers."""
        loss, right, examples = (float(value) for value in self._read_sums())
        self._sums.assign(tf.zeros(3))
        totals = Totals(loss / examples, right / examples)
        self._last_totals.assign([totals.loss, totals.accuracy])
        return totals

    def mean_over_workers(self, first: float, second: float) -> tuple[float, float]:
        """The means of what each worker says; the same numbers on all of them."""
        self._cast_vote(tf.constant([first, second], tf.float32))
        one, two = (float(value) for value in self._read_ballot())
        return one / self._replicas, two / self._replicas

    @property
    def state(self) -> dict[str, Any]:
        """Everything that a run needs to go on, for a checkpoint."""
        return {
            "model": self._model,
            "optimizer": self._optimizer,
            "position": self._position,
            "sums": self._sums_so_far,
            "totals": self._last_totals,
        }

    def note_position(self, step: int, steps_per_epoch: int) -> None:
        """Bring `state` up to date after `step` steps."""
        self._sums_so_far.assign(self._read_sums())
        self._position.assign([step, steps_per_epoch])

    def copy_from_worker_0(self) -> None:
        """Take over worker 0's `state`."""
        variables = [variable.value for variable in [*self._model.variables, *self._optimizer.variables]]
        variables += [self._position, self._sums_so_far, self._last_totals]
        values = self._from_worker_0([tf.identity(variable) for variable in variables])
        for variable, value in zip(variables, values, strict=True):
            variable.assign(self._strategy.experimental_local_results(value)[0])
        self._sums.assign(self._sums_so_far)

    @property
    def position(self) -> tuple[int, int]:
        """The steps done, and the steps in an epoch, as of the last `note_position` or `copy_from_worker_0`."""
        done, steps_per_epoch = (int(value) for value in self._position)
        return done, steps_per_epoch

    @property
    def last_totals(self) -> Totals:
        """The last `totals`, an earlier attempt's included."""
        return Totals(*(float(value) for value in self._last_totals))

    def barrier(self) -> None:
        """Return once every worker has called this."""
        self.mean_over_workers(0, 0)

    def _train_replica(self, images: Any, labels: Any, weights: Any) -> None:
        with tf.GradientTape() as tape:
            scores = self._model(images, training=True)
            losses = self._losses(labels, scores)
            # Weights are 1 / (examples in the step), so the sum of all replicas' gradients is that of the mean loss.
            loss = tf.reduce_sum(weights * losses)
        gradients = tape.gradient(loss, self._model.trainable_variables)
        self._optimizer.apply_gradients(zip(gradients, self._model.trainable_variables, strict=True))
        self._count(scores, labels, losses, weights)

    def _test_replica(self, images: Any, labels: Any, weights: Any) -> None:
        scores = self._model(images, training=False)
        self._count(scores, labels, self._losses(labels, scores), weights)

    def _count(self, scores: Any, labels: Any, losses: Any, weights: Any) -> None:
        real = tf.cast(weights > 0, tf.float32)
        right = tf.cast(tf.argmax(scores, axis=1, output_type=labels.dtype) == labels, tf.float32)
        self._sums.assign_add([tf.reduce_sum(real * losses), tf.reduce_sum(real * right), tf.reduce_sum(real)])


def _compiled(function: Callable[..., Any]) -> Any:
    """`function` as a graph. Ours have no Python loops or branches on tensors for autograph to translate."""
    return tf.function(function, autograph=False)


def _from_replica_0(values: list[Any]) -> list[Any]:
    """Replica 0's values in every replica."""
    context = tf.distribute.get_replica_context()
    first = context.replica_id_in_sync_group == 0
    return [context.all_reduce("sum", tf.where(first, value, tf.zeros_like(value))) for value in values]


def _summed_variable(size: int) -> Any:
    """A variable of which each replica has a part of its own; reading it gives the sum over all workers."""
    return tf.Variable(
        tf.zeros(size),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
