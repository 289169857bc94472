"""A run that was stopped goes on as if it had not been: the same steps, each once, to the same result."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cifar10 import load_cifar10_local
from env_settings import EXIT_SIGTERM, InputError
from stop_signal import StopSignal
from train_settings import Settings

from tests.trainer.batches import write_batches

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]


class StopsAfter(StopSignal):
    """SIGTERM comes just before the n-th ballot."""

    def __init__(self, ballots: int) -> None:
        self._left = ballots
        self.waited: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)

    def defer(self) -> None:
        pass

    @property
    def requested(self) -> bool:
        self._left -= 1
        return self._left < 0


NEVER = 10**6


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("cifar"), train=100, test=20)


class Job:
    """One TrainJob on this machine, attempt after attempt, with a folder for its checkpoints."""

    def __init__(self, data: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._data = data
        self.folder = folder
        self._capfd = capfd

    def attempt(self, *, stop_after: int = NEVER, epochs: int = 4, batch: int = 16, every: int = 5) -> tuple[int, str]:
        """Its exit code and its log."""
        import stop_ballot
        from train_run import Training

        self._capfd.readouterr()
        settings = Settings(epochs, batch, 0.002, 0, str(self._data), str(self.folder), every, "")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CHECKPOINT_DIR", str(self.folder))
            patch.setattr("train_run.LINGER", 0)
            patch.setattr(stop_ballot, "EVERY", 0)  # a ballot after each step
            code = Training(settings, *load_cifar10_local(self._data), StopsAfter(stop_after)).run()
        return code, self._capfd.readouterr().out

    def checkpoints(self) -> list[int]:
        """The steps of the checkpoints in the folder."""
        return sorted(int(path.stem.split("-")[1]) for path in self.folder.glob("*.index"))


@pytest.fixture
def job(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Job:
    return Job(data, tmp_path / "checkpoints", capfd)


def results(log: str) -> list[str]:
    """Everything that a log says of the model: losses and accuracies, without speed and time."""
    return re.findall(r"epoch \d+/\d+: loss [\d.]+, accuracy [\d.]+|test loss .*", log)


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("builtins.print", lambda text, **_: lines.append(text))
        import train_run

        patch.setattr(train_run, "LINGER", 0)
        settings = Settings(4, 16, 0.002, 0, str(data), "", 5, "")
        assert train_run.Training(settings, *load_cifar10_local(data), StopsAfter(NEVER)).run() == 0
    return results("\n".join(lines))


@pytest.mark.parametrize("step", [1, 7, 10, 27])
def test_a_stopped_run_goes_on_with_the_next_step(job: Job, undisturbed: list[str], step: int) -> None:
    code, before = job.attempt(stop_after=step - 1)
    assert (code, job.checkpoints()[-1]) == (EXIT_SIGTERM, step)
    code, after = job.attempt()
    assert f"resuming after step {step}" in after
    assert (code, results(before) + results(after)) == (0, undisturbed)


def test_a_lost_run_repeats_no_more_than_the_steps_since_its_last_checkpoint(job: Job, undisturbed: list[str]) -> None:
    job.attempt(stop_after=12)
    for path in job.folder.glob("step-13.*"):  # as if the process had been killed after step 13
        path.unlink()
    _, after = job.attempt()
    assert "resuming after step 10" in after
    assert results(after) == undisturbed[1:]


def test_whoever_stops_for_another_worker_waits_to_be_told_itself(data: Path) -> None:
    import train_run

    stop = StopsAfter(0)
    settings = Settings(4, 16, 0.002, 0, str(data), "", 5, "")
    assert train_run.Training(settings, *load_cifar10_local(data), stop).run() == EXIT_SIGTERM
    assert stop.waited == [train_run.TOLD]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda folder: _truncate(folder / "step-13.data-00000-of-00001", 5000), id="a file cut off"),
        pytest.param(lambda folder: _truncate(folder / "step-13.data-00000-of-00001", 0), id="an empty file"),
        pytest.param(lambda folder: (folder / "step-13.data-00000-of-00001").unlink(), id="a file missing"),
        pytest.param(lambda folder: _flip_bit(folder / "step-13.data-00000-of-00001"), id="one bit flipped"),
        pytest.param(lambda folder: _truncate(folder / "step-13.index", 10), id="a broken index"),
    ],
)
def test_a_broken_checkpoint_falls_back_to_the_one_before(
    job: Job, undisturbed: list[str], spoil: Callable[[Path], None]
) -> None:
    job.attempt(stop_after=12)
    spoil(job.folder)
    code, after = job.attempt()
    assert re.search(r"WARNING: .*step-13 cannot be used, going back to the one before", after)
    assert "resuming after step 10" in after
    assert (code, results(after)) == (0, undisturbed[1:])


@pytest.mark.parametrize(
    "content",
    [pytest.param(b"nonsense", id="another text"), pytest.param(b"\xd6\xff\xfe", id="no text")],
)
def test_a_broken_list_of_checkpoints_does_not_matter(job: Job, content: bytes) -> None:
    job.attempt(stop_after=12)
    (job.folder / "checkpoint").write_bytes(content)
    assert "resuming after step 13" in job.attempt()[1]


def test_a_broken_mark_of_a_finished_run_does_not_matter(
    job: Job, undisturbed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBSET_UID", "first")
    job.attempt()
    (job.folder / "finished").write_bytes(b"\xd6\xff\xfe")
    code, again = job.attempt()
    assert (code, results(again)) == (0, undisturbed)


def test_the_newest_three_are_kept(job: Job) -> None:
    job.attempt()
    assert job.checkpoints() == [20, 25, 28]


def test_a_finished_run_reports_its_result_again(job: Job, undisturbed: list[str]) -> None:
    job.attempt()
    code, again = job.attempt()
    assert (code, results(again)) == (0, undisturbed[-1:])


def test_more_epochs_go_on_from_the_result(job: Job, undisturbed: list[str]) -> None:
    job.attempt(epochs=2)
    assert results(job.attempt()[1]) == undisturbed[2:]


def test_a_new_run_takes_up_what_another_has_not_finished(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBSET_UID", "first")
    job.attempt(stop_after=12)
    monkeypatch.setenv("JOBSET_UID", "second")
    assert "resuming after step 13" in job.attempt()[1]


def test_a_new_run_after_a_finished_one_starts_afresh(
    job: Job, undisturbed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBSET_UID", "first")
    job.attempt()
    monkeypatch.setenv("JOBSET_UID", "second")
    _, before = job.attempt(stop_after=9)
    assert "has finished: starting afresh" in before
    assert job.checkpoints() == [5, 10]
    assert results(before) + results(job.attempt()[1]) == undisturbed


def test_a_finished_run_whose_gang_restarts_does_not_train_again(
    job: Job, undisturbed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBSET_UID", "first")
    job.attempt()
    assert results(job.attempt()[1]) == undisturbed[-1:]


def test_with_other_batches_the_epoch_begun_starts_anew(job: Job) -> None:
    job.attempt(stop_after=16)
    code, after = job.attempt(batch=20)
    assert (code, "after epoch 2 in place of step 17" in after) == (0, True)
    assert len(results(after)) == 3


def test_a_checkpoint_of_another_model_is_refused(job: Job) -> None:
    import tensorflow as tf  # type: ignore[import-untyped]

    job.attempt(stop_after=2)
    tf.train.Checkpoint(model=tf.Variable([1.0])).write(str(job.folder / "step-99"))
    with pytest.raises(InputError, match=r"step-99 is a checkpoint of another model"):
        job.attempt()


def test_a_failed_save_is_a_warning(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    def full(*_: object, **__: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.train.CheckpointManager, "save", full)
    code, log = job.attempt(epochs=1)
    assert (code, "WARNING: checkpoint of step 5 not written: No space left on device" in log) == (0, True)


def test_a_folder_that_cannot_be_made_is_refused(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"CHECKPOINT_DIR='/proc/none': .*; expected a folder to write to"):
        Job(data, Path("/proc/none"), capfd).attempt()


def _truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
