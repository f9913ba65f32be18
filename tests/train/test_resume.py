"""A run that is stopped anywhere and goes on ends as one that nobody stopped, bit for bit."""

import json
import multiprocessing
import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from resumed_runs import config, quickly, results, train_slowly
from simt_cuda import SimtCuda

from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.converters.prepare import convert_source
from gnn_ibp.disk_file import NewFile
from gnn_ibp.train import checkpoint_folder, loop
from gnn_ibp.train import checkpoints as checkpoints_module
from gnn_ibp.train import run as run_module
from gnn_ibp.train.config import Config
from gnn_ibp.train.run import train

NUM_EPOCHS, NUM_BATCHES = 3, 3

CONTEXT = multiprocessing.get_context("forkserver")  # a process that is ready to train, again and again
CONTEXT.set_forkserver_preload(["gnn_ibp.train.run"])


class Stop(BaseException):
    """Ends a run at once, as a kill does."""


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with quickly(1):
        yield


@pytest.fixture(scope="module")
def whole(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of a run without checkpoints."""
    out = tmp_path_factory.mktemp("whole")
    report = train(config(root, out, checkpoint=None, checkpoint_every=None))
    assert [epoch["batches"] for epoch in report["epochs"]] == [NUM_BATCHES] * NUM_EPOCHS
    return results(report, out / "model.pt")


def stopped(settings: Config, module: Any, name: str, number: int, after: bool = False) -> None:
    """Runs until the `number`-th call of a function, from 0, begins, or is done; nothing is cleaned up."""
    function, calls = getattr(module, name), [0]

    def stopping(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == number + 1 and not after:
            raise Stop
        found = function(*args, **named)
        if calls[0] == number + 1:
            raise Stop
        return found

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Stop):
        patched.setattr(NewFile, "discard", lambda self: None)
        patched.setattr(module, name, stopping)
        train(settings)


def resumed(settings: Config, **changes: Any) -> Config:
    return Config(**{**vars(settings), "resume": True, **changes})


def check_resumed(settings: Config, whole: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Goes on to the end, and returns the report."""
    settings = resumed(settings, **changes)
    report = train(settings)
    assert settings.save and settings.report and settings.checkpoint
    assert results(report, settings.save) == whole
    assert results(json.loads(settings.report.read_text()), settings.save) == whole
    assert len(list(settings.checkpoint.iterdir())) <= 2
    return report


def without_sources(ended: dict[str, Any]) -> dict[str, Any]:
    """What has to be the same where rows have other sizes, so that others are cached."""
    epochs = [{**epoch, "sources": None} for epoch in ended["epochs"]]
    return {**ended, "epochs": epochs, "sources": None}


@pytest.mark.parametrize("versions", [(1, 2), (2, 1)])
def test_it_goes_on_with_its_data_in_another_row_format(
    root: Path, tmp_path: Path, whole: dict[str, Any], versions: tuple[int, int]
) -> None:
    paths = [tmp_path / f"format-{version}" for version in versions]
    for path, version in zip(paths, versions, strict=True):
        convert_source(str(root / "synthetic-1500"), path, settings=ConversionSettings(format=version))
    settings = config(root, tmp_path, dataset=str(paths[0]))
    stopped(settings, loop, "cross_entropy", 5)
    report = train(resumed(settings, dataset=str(paths[1])))
    assert settings.save and report["resumed"]
    assert without_sources(results(report, settings.save)) == without_sources(whole)


def test_interrupted_it_names_no_file_of_weights_that_only_an_earlier_process_had(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    settings = config(root, tmp_path)
    stopped(settings, loop, "cross_entropy", NUM_BATCHES + 1)
    monkeypatch.setattr(loop, "cross_entropy", interrupted)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        train(resumed(settings, save=tmp_path / "elsewhere.pt"))
    assert not (tmp_path / "elsewhere.pt").exists()
    assert [note for note in interrupt.value.__notes__ if "epoch 1 is told in" in note]
    assert not [note for note in interrupt.value.__notes__ if "elsewhere.pt" in note]


@pytest.mark.parametrize("batch", range(NUM_EPOCHS * NUM_BATCHES))
def test_stopped_in_a_step_it_goes_on_at_that_minibatch(
    root: Path, tmp_path: Path, whole: dict[str, Any], batch: int
) -> None:
    settings = config(root, tmp_path)
    stopped(settings, loop, "cross_entropy", batch)
    report = check_resumed(settings, whole)
    epoch, done = divmod(batch, NUM_BATCHES)
    place = {"epoch": epoch + 1, "batch": done} if done else {"epoch": epoch, "batch": NUM_BATCHES}
    assert report["resumed"] == ([place] if batch else [])


@pytest.mark.parametrize(
    ("module", "name", "number", "after"),
    [
        (loop, "sampled_accuracy", 0, False),
        (loop, "sampled_accuracy", 1, True),
        (run_module, "save_model", 0, False),
        (run_module, "save_model", 0, True),
        (checkpoint_folder, "write_checkpoint", 0, False),
        (checkpoint_folder, "write_checkpoint", 4, True),
        (os, "fsync", 5, False),  # of each file first it, then its folder
        (os, "fsync", 6, False),
        (run_module, "exact_accuracy", 0, False),
        (run_module.report, "write_json", 0, False),
    ],
)
def test_stopped_anywhere_else_it_goes_on_to_the_same_end(
    root: Path, tmp_path: Path, whole: dict[str, Any], module: Any, name: str, number: int, after: bool
) -> None:
    settings = config(root, tmp_path)
    stopped(settings, module, name, number, after)
    check_resumed(settings, whole)


@pytest.mark.parametrize(("every", "prefetch"), [(2, 2), (4, 0), (5, 5), (100, 1)])
def test_what_was_done_since_the_last_checkpoint_is_done_again(
    root: Path, tmp_path: Path, whole: dict[str, Any], every: int, prefetch: int
) -> None:
    settings = config(root, tmp_path, checkpoint_every=every, prefetch=prefetch)
    stopped(settings, loop, "cross_entropy", 7)
    report = check_resumed(settings, whole)
    places = [(at["epoch"] - 1) * NUM_BATCHES + at["batch"] for at in report["resumed"]]
    assert places == [7 // every * every] * (every <= 7)


def test_without_a_number_checkpoints_come_when_time_has_passed(
    root: Path, tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(root, tmp_path, checkpoint_every=None)
    stopped(settings, run_module, "exact_accuracy", 0)
    (path,) = (tmp_path / "checkpoints").iterdir()  # the one at the end
    path.unlink()
    monkeypatch.setattr(checkpoints_module, "EVERY_S", 0.01)
    stopped(settings, run_module, "exact_accuracy", 0)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2
    check_resumed(settings, whole)


def test_stopped_again_and_again_it_keeps_what_earlier_processes_did(
    root: Path, tmp_path: Path, whole: dict[str, Any]
) -> None:
    settings = config(root, tmp_path)
    for _ in range(4):
        stopped(settings, loop, "cross_entropy", 2)
        settings = resumed(settings)
    report = check_resumed(settings, whole)
    assert [(at["epoch"], at["batch"]) for at in report["resumed"]] == [(1, 2), (2, 1), (2, 3), (3, 2)]
    assert all(epoch["seconds"]["train"] > 0 for epoch in report["epochs"])


def test_weights_that_an_earlier_process_found_best_are_saved(root: Path, tmp_path: Path) -> None:
    rates = {"lr": 0.5, "dropout": 0.9}
    out = tmp_path / "whole"
    out.mkdir()
    report = train(config(root, out, **rates))
    assert [epoch["best"] for epoch in report["epochs"]][-1] is False
    settings = config(root, tmp_path, **rates)
    stopped(settings, loop, "cross_entropy", 7)
    assert settings.save
    settings.save.unlink()
    check_resumed(settings, results(report, out / "model.pt"))


def test_with_more_epochs_it_ends_as_if_there_had_been_as_many_from_the_beginning(
    root: Path, tmp_path: Path, whole: dict[str, Any]
) -> None:
    """The last epoch is always validated: the second one here, at first, the third one later."""
    out = tmp_path / "whole"
    out.mkdir()
    every = {"eval_every": 3}
    report = train(config(root, out, **every))
    settings = config(root, tmp_path, epochs=2, **every)
    assert train(settings)["epochs"][-1]["val_acc"] is not None
    check_resumed(settings, results(report, out / "model.pt"), epochs=3)
    assert report["epochs"][1]["val_acc"] is None


def test_a_run_that_is_done_tests_again(root: Path, tmp_path: Path, whole: dict[str, Any]) -> None:
    settings = config(root, tmp_path)
    train(settings)
    check_resumed(settings, whole)


def test_what_changes_no_result_may_be_other_when_it_goes_on(
    root: Path, tmp_path: Path, whole: dict[str, Any]
) -> None:
    settings = config(root, tmp_path)
    stopped(settings, loop, "cross_entropy", 4)
    settings = resumed(
        settings,
        **{"prefetch": 0, "threads": 1, "no_cache": True, "hot_set": "degree", "memory_budget": "3GiB"},
        **{"checkpoint_every": 2, "raw": True, "save": tmp_path / "other.pt"},
    )
    report = train(settings)
    found = results(report, tmp_path / "other.pt")
    for tiers in (found["sources"], *(epoch["sources"] for epoch in found["epochs"])):
        assert tiers["cache"]["misses"] == tiers["disk"]["lookups"] == tiers["disk"]["hits"]
    assert found["sources"]["cache"]["lookups"] == whole["sources"]["cache"]["lookups"]
    for name in ("weights", "test_acc", "epoch", "val_acc"):
        assert found[name] == whole[name]
    losses = [[epoch["loss"] for epoch in one["epochs"]] for one in (found, whole)]
    assert losses[0] == losses[1]


def test_in_bfloat16_it_goes_on_too(root: Path, tmp_path: Path, whole: dict[str, Any]) -> None:
    out = tmp_path / "whole"
    out.mkdir()
    expected = results(train(config(root, out, precision="bfloat16")), out / "model.pt")
    assert expected["weights"] != whole["weights"]
    settings = config(root, tmp_path, precision="bfloat16")
    stopped(settings, loop, "cross_entropy", 4)
    check_resumed(settings, expected)


def test_without_validation_it_goes_on_too(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = run_module.labelled_nodes
    monkeypatch.setattr(run_module, "labelled_nodes", lambda ds: {**nodes(ds), "val": torch.empty(0).long()})
    out = tmp_path / "whole"
    out.mkdir()
    expected = results(train(config(root, out)), out / "model.pt")
    settings = config(root, tmp_path)
    stopped(settings, loop, "cross_entropy", 5)
    check_resumed(settings, expected)


def test_on_a_device_it_goes_on_too(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "whole"
    out.mkdir()
    tiers = {"cache_bytes": "40KiB", "host_bytes": "40KiB"}
    expected = results(train(config(root, out, **tiers), SimtCuda()), out / "model.pt")
    assert all(counters["hits"] for counters in expected["sources"].values())
    settings = config(root, tmp_path, **tiers)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(Stop):
        stopping = stop_after_four(checkpoint_folder.write_checkpoint)
        patched.setattr(checkpoint_folder, "write_checkpoint", stopping)
        train(settings, SimtCuda())
    assert results(train(resumed(settings), SimtCuda()), tmp_path / "model.pt") == expected


def stop_after_four(write: Any) -> Any:
    calls: list[Path] = []

    def stopping(path: Path, state: Any) -> None:
        write(path, state)
        calls.append(path)
        if len(calls) == 4:
            raise Stop

    return stopping


def test_training_draws_nothing_from_generators_whose_state_would_be_lost(root: Path, tmp_path: Path) -> None:
    def states() -> list[Any]:
        return [torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()]  # noqa: NPY002

    began: list[Any] = []
    fit = run_module.fit

    def watched(*args: Any) -> Any:
        began.append(states())
        return fit(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_module, "fit", watched)
        train(config(root, tmp_path))
    assert began == [states()]


def steps_done(folder: Path) -> int:
    """Minibatches before the last checkpoint."""
    names = [re.findall(r"\d+", path.name) for path in folder.glob("epoch-*")]
    return max(((int(epoch) - 1) * NUM_BATCHES + int(batch) for epoch, batch in names), default=0)


def kill_at_random(settings: Config, num_threads: int, rng: random.Random) -> bool:
    """Starts the run, kills it at a random moment after some more checkpoints; whether it was too late."""
    assert settings.checkpoint and settings.report
    settings.checkpoint.mkdir(exist_ok=True)
    before, more = steps_done(settings.checkpoint), rng.randrange(5)
    child = CONTEXT.Process(target=train_slowly, args=(settings, num_threads))
    child.start()
    while steps_done(settings.checkpoint) < min(before + more, NUM_EPOCHS * NUM_BATCHES) and child.is_alive():
        time.sleep(0.001)
    child.join(rng.random() * (0.1 if more else 1))
    child.kill()
    child.join()
    return settings.report.exists()


def check_kills(root: Path, folder: Path, num_kills: int, num_threads: int, seed: int) -> None:
    rng = random.Random(seed)
    whole = results(train(config(root, folder, checkpoint=None, checkpoint_every=None)), folder / "model.pt")
    left, number = num_kills, 0
    while left:
        out = folder / f"run{(number := number + 1)}"
        out.mkdir()
        settings = config(root, out, resume=True)
        while left and not kill_at_random(settings, num_threads, rng):
            left -= 1
        check_resumed(settings, whole)


def test_a_run_that_is_killed_goes_on_to_the_same_weights(root: Path, tmp_path: Path) -> None:
    check_kills(root, tmp_path, num_kills=3, num_threads=1, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_thirty_kills_change_no_bit(root: Path, tmp_path: Path) -> None:
    with quickly(2):
        check_kills(root, tmp_path, num_kills=30, num_threads=2, seed=1)
