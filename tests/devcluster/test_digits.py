"""The digits as CIFAR-10 batches."""

import pickle
import pickletools
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devcluster import digits

NAMES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("data") / "cifar-10-batches-py"
    digits.write(target)
    return target


def load(path: Path) -> dict[bytes, Any]:
    batch: dict[bytes, Any] = pickle.loads(path.read_bytes())  # noqa: S301 (written by the fixture)
    return batch


def test_the_files_are_those_of_cifar_10(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted([*NAMES, "batches.meta"])


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_has_the_form_of_the_original(folder: Path, name: str) -> None:
    batch = load(folder / name)
    assert set(batch) == {b"batch_label", b"labels", b"data", b"filenames"}
    assert batch[b"data"].shape == (len(batch[b"labels"]), 3072)
    assert batch[b"data"].dtype == np.uint8
    assert set(batch[b"labels"]) == set(range(10))
    assert len(batch[b"filenames"]) == len(batch[b"labels"])
    assert {opcode.proto for opcode, _, _ in pickletools.genops((folder / name).read_bytes())} <= {0, 1, 2}


def test_every_scan_is_in_exactly_one_batch(folder: Path) -> None:
    files = [name for batch in NAMES for name in load(folder / batch)[b"filenames"]]
    assert len(files) == len(set(files)) == 1797


def test_an_image_is_a_scan_in_gray_four_times_as_large(folder: Path) -> None:
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    batch = load(folder / "test_batch")
    red, green, blue = batch[b"data"][0].reshape(3, 32, 32)
    assert (red == green).all()
    assert (green == blue).all()
    number = int(batch[b"filenames"][0].decode().removeprefix("digit_").removesuffix(".png"))
    scan = load_digits().images[number]
    assert (red[::4, ::4] == np.round(scan * 255 / 16)).all()
    assert (red[3::4, 3::4] == red[::4, ::4]).all()


def test_writing_again_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    digits.write(again)
    assert all((again / name).read_bytes() == (folder / name).read_bytes() for name in NAMES)


def test_everybody_may_read_them(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}
