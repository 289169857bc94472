"""Real input without the internet: scikit-learn's digits, 1,797 scans of handwriting, in CIFAR-10's batch format.

The format: https://www.cs.toronto.edu/~kriz/cifar.html. Like the original's, the files are pickles of protocol 2 with
bytes as keys, so whatever reads CIFAR-10 reads them.
"""

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

from devcluster.paths import DATA

FOLDER = DATA / "cifar-10-batches-py"
_TRAIN_BATCHES = 5
_PER_BATCH = 300
_SEED = 0
_SCALE = 4
"""8x8 scans become 32x32 images."""
_NAMES = (b"zero", b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight", b"nine")


def write(folder: Path = FOLDER) -> None:
    """Write 1,500 training and 297 test images into `folder`, which is complete once it exists.

    The split is the same each time. Other users may read the files.
    """
    import numpy as np
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    digits = load_digits()
    order = np.random.default_rng(_SEED).permutation(len(digits.target))
    scans = np.kron(digits.images[order], np.ones((_SCALE, _SCALE)))  # each pixel becomes a square
    gray = (scans * (255 / 16)).round().astype(np.uint8).reshape(len(order), -1)
    rows = np.tile(gray, 3)  # the red, the green and the blue plane
    labels = [int(label) for label in digits.target[order]]

    scratch = folder.with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for number in range(_TRAIN_BATCHES + 1):
        start = number * _PER_BATCH
        end = start + _PER_BATCH if number < _TRAIN_BATCHES else len(labels)
        is_test = number == _TRAIN_BATCHES
        name = "test_batch" if is_test else f"data_batch_{number + 1}"
        label = "testing batch 1 of 1" if is_test else f"training batch {number + 1} of {_TRAIN_BATCHES}"
        batch = {
            b"batch_label": label.encode(),
            b"labels": labels[start:end],
            b"data": rows[start:end],
            b"filenames": [f"digit_{index:04}.png".encode() for index in order[start:end]],
        }
        _dump(scratch / name, batch)
    meta = {b"num_cases_per_batch": _PER_BATCH, b"label_names": list(_NAMES), b"num_vis": rows.shape[1]}
    _dump(scratch / "batches.meta", meta)
    for path in (folder.parent, scratch):
        path.chmod(0o755)
    scratch.rename(folder)


def _dump(path: Path, content: dict[bytes, Any]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
        os.fchmod(file.fileno(), 0o644)  # whatever the umask says
        pickle.dump(content, file, protocol=2)
