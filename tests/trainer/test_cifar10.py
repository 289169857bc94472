"""Batches are read as published; whatever else is in the folder gives one clear line and runs nothing."""

import builtins
import os
import pickle
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cifar10 import TEST_FILE, load_batch, load_cifar10_local
from env_settings import InputError

from tests.trainer.batches import a_batch, write_batches
from tests.trainer.processes import finish, start


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_batches_of_every_pickle_protocol_are_read(tmp_path: Path, protocol: int) -> None:
    (images, labels), (test_images, _) = load_cifar10_local(write_batches(tmp_path, protocol=protocol))
    assert images.shape == (100, 32, 32, 3)
    assert (images.dtype.name, labels.dtype.name) == ("uint8", "int32")
    assert len(test_images) == 30


def test_a_row_becomes_an_image_with_its_channels_last(tmp_path: Path) -> None:
    data = np.arange(3072, dtype=np.uint16).astype(np.uint8).reshape(1, -1)
    images, _ = load_batch(written(tmp_path, a_batch(1, data=data)))
    assert images[0, 5, 7].tolist() == [data[0, 1024 * channel + 32 * 5 + 7] for channel in range(3)]


def test_keys_may_be_str_as_python_3_writes_them(tmp_path: Path) -> None:
    batch = {key.decode(): value for key, value in a_batch(4).items()}
    assert len(load_batch(written(tmp_path, batch))[1]) == 4


def test_names_of_numpy_1_are_read(tmp_path: Path) -> None:
    """The published batches name numpy.core, which numpy 2 calls numpy._core."""
    text = pickle.dumps(a_batch(4), 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert b"numpy.core.multiarray" in text
    (tmp_path / TEST_FILE).write_bytes(text)
    assert len(load_batch(tmp_path / TEST_FILE)[1]) == 4


def test_batches_of_python_2_are_read(tmp_path: Path) -> None:
    """Python 2's str is an opcode of its own (U, SHORT_BINSTRING), for keys and for the array's bytes."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"T\x00\x0c\x00\x00" + bytes(3072) + b"tb"
    )
    (tmp_path / TEST_FILE).write_bytes(b"\x80\x02}(U\x06labels](K\x03eU\x04data" + array + b"u.")
    images, labels = load_batch(tmp_path / TEST_FILE)
    assert (images.shape, labels.tolist()) == ((1, 32, 32, 3), [3])


def written(folder: Path, content: Any) -> Path:
    (folder / TEST_FILE).write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, 2))
    return folder / TEST_FILE


class Calls:
    """Pickles as a call of `function`."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._call = function, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


class Builds(Calls):
    """Pickles as a call, then a state for its result."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], state: Any) -> None:
        super().__init__(function, *args)
        self._state = state

    def __reduce__(self) -> tuple[Any, ...]:
        return *self._call, self._state


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(lambda command: Calls(os.system, command), id="os.system"),
        pytest.param(lambda command: Calls(subprocess.check_output, ["sh", "-c", command]), id="subprocess"),
        pytest.param(lambda command: Calls(builtins.exec, f"import os; os.system({command!r})"), id="builtins.exec"),
        pytest.param(lambda command: Calls(builtins.eval, f"__import__('os').system({command!r})"), id="builtins.eval"),
        pytest.param(lambda _: Calls(builtins.getattr, "x", "upper"), id="builtins.getattr"),
        pytest.param(lambda _: Calls(socket.socket), id="a network connection"),
        pytest.param(lambda command: {b"data": [[Calls(os.system, command)]]}, id="nested in lists and a dict"),
        pytest.param(lambda command: Calls(np.dtype, Calls(os.system, command)), id="an argument of an admitted call"),
        pytest.param(
            lambda command: a_batch(2) | {b"extra": Calls(os.system, command)}, id="an extra key of a right batch"
        ),
        pytest.param(lambda _: Calls(np.load, "/etc/passwd"), id="another function of numpy"),
        pytest.param(lambda _: np.array([object], dtype=object), id="an array of objects"),
        pytest.param(lambda _: Builds(np.ndarray, ((1,), "u1"), {"x": 1}), id="a direct call of ndarray"),
        pytest.param(lambda command: f"cos\nsystem\n(V{command}\ntR.".encode(), id="protocol 0 by hand"),
        pytest.param(lambda _: b"\x80\x02P0\n.", id="a persistent reference"),
        pytest.param(lambda _: b"\x80\x02\x82\x01.", id="a code of the extension registry"),
    ],
)
def test_hostile_pickles_run_nothing(tmp_path: Path, attack: Callable[[str], Any]) -> None:
    trace = tmp_path / "trace"
    with pytest.raises(InputError, match=r"test_batch is no CIFAR-10 batch: .*; expected "):
        load_batch(written(tmp_path, attack(f"touch {trace}")))
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "EOFError", id="an empty file"),
        pytest.param(pickle.dumps(a_batch(), 2)[:3000], "truncated", id="a truncated file"),
        pytest.param(b"\x1f\x8b\x08 a gzip file", "expected", id="the archive itself"),
        pytest.param(b"<html>404</html>", "expected", id="an error page"),
        pytest.param([1, 2], "it holds a list; expected a dict", id="another type"),
        pytest.param({b"fine_labels": []}, "'data' and 'labels'", id="CIFAR-100's keys"),
        pytest.param(
            a_batch(2, data=np.zeros((2, 100), np.uint8)),
            "its data is uint8 of shape (2, 100); expected a uint8 array of shape (n, 3072)",
            id="another shape",
        ),
        pytest.param(
            a_batch(2, data=np.zeros((2, 3072), np.float32)), "float32 of shape (2, 3072)", id="another dtype"
        ),
        pytest.param(a_batch(0), "expected", id="no images"),
        pytest.param(a_batch(2, data=[0]), "its data is list", id="data that is no array"),
        pytest.param(a_batch(3, labels=[1, 2]), "a list of 2; expected a list of 3", id="too few labels"),
        pytest.param(a_batch(2, labels=b"ab"), "its labels are a bytes", id="labels that are no list"),
        pytest.param(a_batch(2, labels=[1, 10]), "whole numbers from 0 to 9", id="a label out of range"),
        pytest.param(a_batch(2, labels=[1, "2"]), "whole numbers from 0 to 9", id="a label that is no number"),
    ],
)
def test_a_file_that_is_no_batch_is_named_with_what_is_accepted(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load_batch(written(tmp_path, content))
    assert str(tmp_path / TEST_FILE) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(
            lambda folder: (folder / "data_batch_3").unlink(), "data_batch_3: No such file", id="a batch is missing"
        ),
        pytest.param(
            lambda folder: [(folder / "data_batch_1").unlink(), (folder / "data_batch_1").mkdir()],
            "data_batch_1: Is a directory",
            id="a folder in place of a batch",
        ),
    ],
)
def test_a_folder_without_its_batches_is_named(tmp_path: Path, spoil: Callable[[Path], Any], message: str) -> None:
    spoil(write_batches(tmp_path))
    with pytest.raises(InputError, match=f"{message}.*never downloaded"):
        load_cifar10_local(tmp_path)


def test_a_folder_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match=r"/nowhere/data_batch_1: No such file.*mounted at /nowhere"):
        load_cifar10_local("/nowhere")


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root reads everything, so root becomes somebody else for a while."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    folder = write_batches(tmp_path / "closed")
    folder.chmod(0)
    with as_nobody(), pytest.raises(InputError, match="data_batch_1: Permission denied"):
        load_cifar10_local(folder)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda trace: pickle.dumps(Calls(os.system, f"touch {trace}"), 2), id="a hostile pickle"),
        pytest.param(lambda _: pickle.dumps(a_batch(), 2)[:3000], id="a truncated file"),
    ],
)
def test_the_training_ends_with_one_line_and_exit_code_2(tmp_path: Path, content: Callable[[Path], bytes]) -> None:
    folder, trace = write_batches(tmp_path / "cifar"), tmp_path / "trace"
    (folder / "data_batch_2").write_bytes(content(trace))
    result = finish(start("train.py", DATA_DIR=str(folder)), timeout=30)
    assert (result.code, result.errors.count("\n")) == (2, 1)
    assert "data_batch_2 is no CIFAR-10 batch: " in result.errors
    assert not trace.exists()
