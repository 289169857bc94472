"""CIFAR-10 batch files, right and wrong ones."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from cifar10 import TEST_FILE, TRAIN_FILES


def a_batch(size: int = 20, *, seed: int = 0, **change: Any) -> dict[bytes, Any]:
    """One batch as the published files have it: a bright square on a dark ground, placed by its label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, size)
    images = rng.integers(0, 60, (size, 3, 32, 32), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 5)
        image[:, 4 + row * 14 : 14 + row * 14, 1 + column * 6 : 7 + column * 6] += 150
    batch = {
        b"batch_label": b"a batch",
        b"labels": [int(label) for label in labels],
        b"data": images.reshape(size, 3072),
        b"filenames": [b"image.png"] * size,
    }
    return batch | {key.encode(): value for key, value in change.items()}


def write_batches(folder: Path, *, train: int = 100, test: int = 30, protocol: int = 2) -> Path:
    """A folder with all six files, `train` examples in five of them together."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(TRAIN_FILES):
        (folder / name).write_bytes(pickle.dumps(a_batch(train // 5, seed=number), protocol))
    (folder / TEST_FILE).write_bytes(pickle.dumps(a_batch(test, seed=9), protocol))
    return folder
