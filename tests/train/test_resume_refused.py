"""A run goes on from its own checkpoints alone; what stands in the way is told with the remedy."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from resumed_runs import config, quickly, results

from gnn_ibp.errors import SettingsError
from gnn_ibp.sample import SampleShape
from gnn_ibp.train import checkpoint_folder, planner, same_run
from gnn_ibp.train.checkpoint_file import WRITING_COPIES
from gnn_ibp.train.config import Config, config_from_args
from gnn_ibp.train.run import train


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with quickly(1):
        yield


@pytest.fixture(scope="module")
def done(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """The settings of a run that was trained."""
    settings = config(root, tmp_path_factory.mktemp("done"), epochs=1)
    train(settings)
    return settings


def test_a_refused_run_leaves_the_report_of_the_one_before(done: Config) -> None:
    assert done.report
    before = done.report.read_bytes()
    for changes in ({"lr": 0.02}, {"memory_budget": "1MiB"}, {"resume": False}):
        with pytest.raises(SettingsError):
            train(changed(done, **changes))
    assert done.report.read_bytes() == before


def changed(settings: Config, **changes: Any) -> Config:
    return Config(**{**vars(settings), "resume": True, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 0.02}, "--lr is 0.02, it was 0.01"),
        ({"fanout": (4, 2)}, "--fanout is 4,2, it was 4,3"),
        ({"seed": 1, "hidden": 8}, "--hidden is 8, it was 16; --seed is 1, it was 0"),
        ({"normalize": "none"}, "--normalize is none, it was standard"),
        ({"precision": "bfloat16"}, "--precision is bfloat16, it was float32"),
        ({"max_batches": 2}, "--max-batches is 2, it was None"),
        ({"dataset": "synthetic:1600"}, "synthetic-1600 holds other data than .*synthetic-1500 did"),
        ({"undirected": True}, "synthetic-1500-undirected holds other data than"),
    ],
)
def test_checkpoint_of_another_run_is_refused_with_what_differs(
    done: Config, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(
        SettingsError, match=f"are of another run: .*{message}.*name another folder for --chec"
    ):
        train(changed(done, **changes))


def test_settings_that_nobody_thought_of_are_compared(done: Config) -> None:
    now = {"settings": {"later": 2, "lr": 1}, "data": {"path": "p", "fingerprint": "f"}}
    then = {"settings": {"lr": 1}, "data": {"path": "q", "fingerprint": "f"}}
    with pytest.raises(SettingsError, match="--later is 2, it was None"):
        same_run.check_same_run(now, then, Path("folder"))
    assert {*vars(done)} > same_run.CHANGES_NO_RESULT | same_run.OF_THE_DATA


@pytest.mark.parametrize(("now", "then", "good"), [("cuda:0", "cuda:1", True), ("cpu", "cuda:0", False)])
def test_of_a_device_the_kind_counts(now: str, then: str, good: bool) -> None:
    runs = [{"settings": {"device": name}, "data": {"path": "", "fingerprint": ""}} for name in (now, then)]
    if good:
        same_run.check_same_run(*runs, Path("folder"))
    else:
        with pytest.raises(SettingsError, match="--device is cpu, it was cuda"):
            same_run.check_same_run(*runs, Path("folder"))


def test_another_machine_is_warned_of(done: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnn_ibp.train.machine.processor_name", lambda: "Another One")
    with pytest.warns(UserWarning, match="device_name is Another One, it was .* last digits of its results"):
        train(changed(done))


def test_data_set_that_was_moved_is_the_same(done: Config, tmp_path: Path) -> None:
    (done.root / "synthetic-1500").rename(tmp_path / "moved")
    try:
        train(changed(done, dataset=str(tmp_path / "moved")))
    finally:
        (tmp_path / "moved").rename(done.root / "synthetic-1500")


def test_fewer_epochs_than_there_were_are_refused(root: Path, tmp_path: Path) -> None:
    settings = config(root, tmp_path, epochs=2)
    train(settings)
    with pytest.raises(
        SettingsError, match="--epochs is 1, the checkpoint is of epoch 2 after 3 minibatches: give"
    ):
        train(changed(settings, epochs=1))


def test_checkpoints_are_never_overwritten_unasked(done: Config) -> None:
    with pytest.raises(SettingsError, match=r"holds checkpoints, the last of epoch 1 .*: add --resume to"):
        train(changed(done, resume=False))


def test_where_there_is_no_checkpoint_it_starts_from_the_beginning_and_says_so(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = train(config(root, tmp_path, epochs=1, resume=True))
    said = f"resume: there is no checkpoint in {tmp_path / 'checkpoints'}, the run starts from the beginning"
    assert said in capsys.readouterr().out
    assert report["resumed"] == []


def test_where_it_goes_on_is_said_and_damage_is_named(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(root, tmp_path, epochs=1)
    assert settings.save and settings.checkpoint
    expected = results(train(settings), settings.save)
    before, last = sorted(settings.checkpoint.iterdir())
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=f"{last} is damaged.*; the checkpoint before it is looked for"):
        report = train(changed(settings))
    assert f"resume: going on from {before}" in capsys.readouterr().out
    assert results(report, settings.save) == expected


@pytest.mark.parametrize("flag", ["--resume", "--checkpoint-every=5"])
def test_flags_without_a_folder_are_refused(flag: str) -> None:
    with pytest.raises(SettingsError, match="needs --checkpoint FOLDER"):
        config_from_args([flag])


def test_number_of_minibatches_is_checked() -> None:
    with pytest.raises(SettingsError, match="--checkpoint-every is 0, it must be a whole number from 1 up"):
        config_from_args(["--checkpoint", "folder", "--checkpoint-every", "0"])


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_training_goes_on_without_checkpoints_that_cannot_be_written(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    settings = config(root, tmp_path, epochs=2)
    assert settings.save and settings.checkpoint
    expected = results(
        train(changed(settings, checkpoint=None, checkpoint_every=None, resume=False)), settings.save
    )
    write, paths = checkpoint_folder.write_checkpoint, []

    def failing(path: Path, state: Any) -> None:
        paths.append(path)
        if 3 <= len(paths) <= 5:
            raise OSError(error, os.strerror(error), "the file")
        write(path, state)

    with monkeypatch.context() as patched, pytest.warns(UserWarning) as warned:
        patched.setattr(checkpoint_folder, "write_checkpoint", failing)
        report = train(settings)
    assert results(report, settings.save) == expected
    messages = [str(warning.message) for warning in warned]
    assert len(messages) == len(set(messages)) == 3
    for message in messages:
        assert f"was not written: [Errno {error}] {os.strerror(error)}" in message
        assert message.endswith("the training goes on, and the checkpoint before it stays")
    assert sorted(settings.checkpoint.iterdir()) == [paths[1], paths[5]]


@pytest.mark.parametrize("again", [False, True])
def test_memory_of_writing_is_part_of_the_plan(
    root: Path,
    tmp_path: Path,
    done: Config,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    again: bool,
) -> None:
    if again:
        monkeypatch.setattr(planner, "largest_minibatch", lambda *_: SampleShape((1, 1, 1), (1, 1)))
    with_, without = (
        train(config(root, tmp_path, epochs=1, checkpoint=folder, checkpoint_every=None))["memory"]
        for folder in (tmp_path / "checkpoints", None)
    )
    assert capsys.readouterr().out.count("planned anew") == 2 * again
    weights = 4 * (2 * (128 * 16) + 16 + 2 * (16 * 40) + 40)
    assert with_["model"] - without["model"] == WRITING_COPIES * weights
