"""The training script's settings."""

import os
from dataclasses import dataclass

from env_settings import read_int, read_positive


@dataclass(frozen=True)
class Settings:
    """What the environment asks for."""

    epochs: int
    """EPOCHS: passes over the training examples; default 10."""
    batch_size: int
    """BATCH_SIZE: examples per worker and step; default 64."""
    learning_rate: float
    """LEARNING_RATE: of Adam; default 0.002."""
    seed: int
    """SEED: of the initial weights, the order of examples and their augmentation; default 0."""
    data_dir: str
    """DATA_DIR: the folder with the CIFAR-10 batches; default /workspace/data/cifar-10-batches-py."""

    checkpoint_dir: str
    """CHECKPOINT_DIR: where worker 0 keeps its checkpoints and resumes from; without it there are none."""
    checkpoint_every_steps: int
    """CHECKPOINT_EVERY_STEPS: steps between two checkpoints, the most that is ever repeated; default 100."""
    log_dir: str
    """LOG_DIR: where worker 0 writes event files for TensorBoard; without it there are none."""

    @classmethod
    def from_environment(cls) -> "Settings":
        """Raises InputError, naming the variable and what is accepted, for a bad one."""
        return cls(
            epochs=read_int("EPOCHS", default=10, minimum=1),
            batch_size=read_int("BATCH_SIZE", default=64, minimum=1),
            learning_rate=read_positive("LEARNING_RATE", default=0.002),
            seed=read_int("SEED", default=0, minimum=0, maximum=2**31 - 1),
            checkpoint_dir=os.environ.get("CHECKPOINT_DIR", ""),
            checkpoint_every_steps=read_int("CHECKPOINT_EVERY_STEPS", default=100, minimum=1),
            log_dir=os.environ.get("LOG_DIR", ""),
            data_dir=os.environ.get("DATA_DIR", "/workspace/data/cifar-10-batches-py"),
        )
