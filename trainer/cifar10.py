"""CIFAR-10 from local pickle batches, the "python version" of https://www.cs.toronto.edu/~kriz/cifar.html.

Never a download: a pod may have no way out, and a training job that fetches its data by itself is a surprise. The
pickles are data, so they may not run code: everything but the few names such batches need is refused.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from env_settings import InputError
from numpy.typing import NDArray

IMAGE_SHAPE = (32, 32, 3)
CLASSES = 10
TRAIN_FILES = [f"data_batch_{number}" for number in range(1, 6)]
TEST_FILE = "test_batch"
_PIXELS = 32 * 32 * 3

Images = NDArray[np.uint8]
Labels = NDArray[np.int32]


def load_cifar10_local(folder: str | Path) -> tuple[tuple[Images, Labels], tuple[Images, Labels]]:
    """(training images, labels), (test images, labels) from data_batch_1 to data_batch_5 and test_batch in `folder`.

    Images are uint8 of shape (n, 32, 32, 3), labels int32 from 0 to 9. Raises InputError, naming the file and what is
    accepted, for a missing, truncated, foreign or hostile one.
    """
    folder = Path(folder)
    train = [load_batch(folder / name) for name in TRAIN_FILES]
    images = np.concatenate([images for images, _ in train])
    labels = np.concatenate([labels for _, labels in train])
    return (images, labels), load_batch(folder / TEST_FILE)


def load_batch(path: Path) -> tuple[Images, Labels]:
    """The images and labels of one batch file; raises InputError when it is none."""
    batch = _unpickle(path)
    if not isinstance(batch, dict):
        raise _refused(path, f"it holds a {type(batch).__name__}", "a dict")
    # The published batches come from Python 2: their keys are bytes, and str when written by Python 3.
    data = batch.get(b"data", batch.get("data"))
    labels = batch.get(b"labels", batch.get("labels"))
    if data is None or labels is None:
        raise _refused(path, f"it has the keys {sorted(map(str, batch))[:8]}", "'data' and 'labels'")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,) or not len(data):
        what = f"{data.dtype} of shape {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise _refused(path, f"its data is {what}", f"a uint8 array of shape (n, {_PIXELS})")
    if not isinstance(labels, list) or len(labels) != len(data):
        what = f"a list of {len(labels)}" if isinstance(labels, list) else f"a {type(labels).__name__}"
        raise _refused(path, f"its labels are {what}", f"a list of {len(data)}, one for each image")
    if not all(type(label) is int and 0 <= label < CLASSES for label in labels):
        raise _refused(path, "its labels are of other values", f"whole numbers from 0 to {CLASSES - 1}")
    # A row is a plane of red, one of green, one of blue; TensorFlow on CPUs wants the channels last.
    images = np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return images, np.asarray(labels, np.int32)


def _refused(path: Path, found: str, accepted: str) -> InputError:
    return InputError(f"{path} is no CIFAR-10 batch: {found}; expected {accepted}")


def _unpickle(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            return _BatchUnpickler(file, encoding="bytes").load()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; expected the CIFAR-10 batches (python version) to be mounted at {path.parent}: "
            "they are never downloaded"
        ) from error
    except pickle.UnpicklingError as error:
        raise _refused(path, str(error), "an unmodified batch of the python version") from error
    except Exception as error:  # a truncated or foreign pickle fails in any way, whatever its opcodes happen to do
        raise _refused(path, f"{type(error).__name__}: {error}", "a complete pickle") from error


_NDARRAY = object()
"""Stands for the class numpy.ndarray, which a pickle names but never calls."""


def _array(subtype: Any, shape: Any, _typecode: Any) -> NDArray[Any]:
    """numpy's _reconstruct, which makes an empty array; the pickle's next step fills in shape, type and bytes."""
    if subtype is not _NDARRAY or shape != (0,):
        raise pickle.UnpicklingError("it asks numpy for something else than an array")
    return np.ndarray(shape, np.int8)


def _dtype(code: Any, *_: Any) -> np.dtype[Any]:
    """numpy's dtype, for plain numbers; an array of objects would be built of whatever the pickle has."""
    dtype: np.dtype[Any] = np.dtype(code)
    if dtype.kind not in "biuf":
        raise pickle.UnpicklingError(f"it asks numpy for the type {dtype}")
    return dtype


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Python 3 writes bytes in old protocols as text to be encoded."""
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError("it asks for an encoding other than latin1")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _array,  # numpy 1
    ("numpy._core.multiarray", "_reconstruct"): _array,  # numpy 2
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
}


class _BatchUnpickler(pickle.Unpickler):
    """Knows only the names above: a pickle can call nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """What the pickle may call; raises UnpicklingError for anything not admitted."""
        try:
            return _ADMITTED[(module, name)]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no such batch needs") from None

    def persistent_load(self, pid: Any) -> Any:
        """References out of the pickle; no batch has one."""
        raise pickle.UnpicklingError("it refers to something outside of the file")
