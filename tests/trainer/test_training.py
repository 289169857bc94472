"""Training by several workers is the training of one process with the same global batch."""

import json
import re
import signal
import threading
from pathlib import Path

import pytest

from tests.trainer.batches import write_batches
from tests.trainer.processes import Result, finish, finish_after, finish_gang, start, start_gang

GLOBAL_BATCH = 48


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """250 examples: the last step of an epoch has 10, fewer than one worker's share."""
    return write_batches(tmp_path_factory.mktemp("cifar"), train=250, test=50)


@pytest.fixture(scope="module")
def alone(data: Path) -> Result:
    return finish(start("train.py", DATA_DIR=str(data), EPOCHS="2", BATCH_SIZE=str(GLOBAL_BATCH)))


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_one_process_trains_without_a_cluster(alone: Result) -> None:
    assert (alone.code, alone.summary["workers"], alone.summary["steps"]) == (0, 1, 12), alone.errors


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", [pytest.param(2, id="two workers"), pytest.param(3, id="three workers")])
def test_workers_together_train_as_one_process_would(workers: int, data: Path, alone: Result) -> None:
    batch = str(GLOBAL_BATCH // workers)
    gang = finish_gang(start_gang(workers, DATA_DIR=str(data), EPOCHS="2", BATCH_SIZE=batch))
    assert [worker.code for worker in gang] == [0] * workers, gang[0].errors
    assert all(worker.epochs == gang[0].epochs for worker in gang), "every worker logs the same loss"
    assert gang[0].losses == pytest.approx(alone.losses, abs=1e-4)
    for key in ("test_loss", "test_accuracy"):
        assert gang[0].summary[key] == pytest.approx(alone.summary[key], abs=1e-3)
    assert gang[0].summary["workers"] == workers
    assert not [line for line in "".join(worker.errors for worker in gang).splitlines() if re.match(r"E\d{4} ", line)]


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_a_finished_worker_leaves_before_anything_of_tensorflow_is_destroyed(data: Path, tmp_path: Path) -> None:
    """Destructors may wait for 30 s; those that have left meanwhile would be taken for crashed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, gc, os\n"
        "leave = os._exit\n"
        "def alive(): return {type(one).__name__ for one in gc.get_objects()} & {'Engine', 'OwnedIterator'}\n"
        "os._exit = lambda code: (print(sorted(alive()), flush=True), leave(code))\n"
        "atexit.register(print, 'teardown')\n"
    )
    result = finish(start("train.py", DATA_DIR=str(data), EPOCHS="1", PYTHONPATH=str(tmp_path)))
    *_, summary, alive = result.output.splitlines()
    assert (result.code, json.loads(summary)["epochs"]) == (0, 1), result.errors
    assert alive == "['Engine', 'OwnedIterator']"
    assert "teardown" not in result.output


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_sigterm_to_one_worker_stops_all_after_the_same_step_and_they_resume_there(data: Path, tmp_path: Path) -> None:
    """Worker 0's checkpoints are enough: each worker has a folder of its own, as on nodes without shared storage."""
    env = {"DATA_DIR": str(data), "BATCH_SIZE": "24", "CHECKPOINT_DIR": f"{tmp_path}/{{index}}"}
    gang = start_gang(2, **env, EPOCHS="100000")
    first = finish_after(gang, lambda line: " epoch 3/" in line, lambda: gang[1].send_signal(signal.SIGTERM))
    assert [worker.code for worker in first] == [143, 143], first[0].errors
    (stop,) = {line for worker in first for line in worker.output.splitlines() if "stopped by SIGTERM" in line}
    step = int(stop.split()[-3])
    again = finish_gang(start_gang(2, **env, EPOCHS=str(step // 6 + 2)))
    assert [worker.code for worker in again] == [0, 0], again[0].errors
    assert all(f"resuming after step {step}\n" in worker.output for worker in again)
    assert again[0].epochs == again[1].epochs
    assert len(again[0].epochs) == 2


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_whoever_loses_a_worker_says_after_which_step_and_no_more_than_an_interval_is_repeated(
    data: Path, tmp_path: Path
) -> None:
    every, steps_in_epoch = 4, 6
    env = {"DATA_DIR": str(data), "BATCH_SIZE": "24", "CHECKPOINT_DIR": f"{tmp_path}/{{index}}"}
    env |= {"CHECKPOINT_EVERY_STEPS": str(every)}
    gang = start_gang(2, **env, EPOCHS="100000")
    survivor, killed = finish_after(gang, lambda line: " epoch 3/" in line, gang[1].kill)
    assert (survivor.code, killed.code) == (1, -signal.SIGKILL)
    last = int(_found(r"lost another worker after step (\d+): ", survivor.output))
    assert last >= 3 * steps_in_epoch
    again = finish_gang(start_gang(2, **env, EPOCHS=str(last // steps_in_epoch + 1)))
    assert [worker.code for worker in again] == [0, 0], again[0].errors
    assert last - int(_found(r"resuming after step (\d+)", again[0].output)) <= every


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_a_worker_that_fails_takes_the_others_with_it_and_is_the_first_to_end(data: Path) -> None:
    gang = start_gang(2, DATA_DIR=str(data), CHECKPOINT_DIR="/proc/{index}/none")
    failed = finish(gang[0])
    assert (failed.code, gang[1].poll()) == (2, None)
    assert "CHECKPOINT_DIR='/proc/0/none': No such file or directory; expected a folder to write to" in failed.errors
    (other,) = finish_gang(gang[1:])
    assert (other.code, "[Training] lost another worker: " in other.output) == (1, True)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        pytest.param({"EPOCHS": "0"}, "EPOCHS='0': expected a whole number, 1 or more", id="no epochs"),
        pytest.param({"EPOCHS": "ten"}, "EPOCHS='ten': expected a whole number, 1 or more", id="a word for a number"),
        pytest.param({"BATCH_SIZE": "1.5"}, "BATCH_SIZE='1.5': expected a whole number, 1 or more", id="half an image"),
        pytest.param({"LEARNING_RATE": "-1"}, "LEARNING_RATE='-1': expected a number above 0", id="a negative rate"),
        pytest.param({"SEED": "-1"}, "SEED='-1': expected a whole number, from 0 to 2147483647", id="a negative seed"),
        pytest.param({"DATA_DIR": "/nowhere"}, "/nowhere/data_batch_1: No such file", id="no data"),
    ],
)
def test_bad_input_ends_at_once_with_one_line_and_exit_code_2(env: dict[str, str], message: str) -> None:
    result = finish(start("train.py", **env), timeout=30)
    assert result.code == 2
    assert message in result.errors
    assert result.errors.count("\n") == 1


@pytest.mark.timeout(60)
def test_sigterm_while_tensorflow_is_still_loading_ends_at_once(data: Path) -> None:
    process = start("train.py", DATA_DIR=str(data))
    threading.Timer(1.0, process.send_signal, [signal.SIGTERM]).start()
    assert finish(process, timeout=20).code == 143


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, text
    return match[1]
