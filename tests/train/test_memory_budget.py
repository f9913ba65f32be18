"""A run within its memory budget: conversion, epochs and evaluation, under a hard limit a little above it."""

import json
import os
import re
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gnn_ibp.train import planner
from gnn_ibp.train.cli import main
from gnn_ibp.train.memory_plan import plan_memory
from gnn_ibp.train.needs import WatchedSampler

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT}/tests/bench"}
MIB = 1 << 20


def small_stacks() -> None:
    resource.setrlimit(resource.RLIMIT_STACK, (MIB, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def run_limited(path: Path, budget: str, *args: str) -> tuple[int, dict[str, Any]]:
    """The budget that sufficed, and the report of a run in a process that is limited to it."""
    report = path / "report.json"
    program = Path(__file__).with_name("limited_train.py")
    command = [sys.executable, str(program), budget, *args, "--root", str(path), "--report", str(report)]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, check=False, preexec_fn=small_stacks
    )
    lines = done.stdout.splitlines()
    if lines and lines[0].startswith("/"):
        Path(lines[0]).rmdir()
    assert done.returncode == 0, done.stdout + done.stderr
    return int(lines[-1]), json.loads(report.read_text())


QUICK = ["--epochs", "1", "--max-batches", "8", "--batch-size", "512", "--hidden", "64", "--fanout", "10,5"]


@pytest.mark.parametrize("precision", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_a_run_goes_through_in_the_smallest_budget_that_is_named(tmp_path: Path, precision: str) -> None:
    args = ["--dataset", "synthetic:40000", "--precision", precision, *QUICK]
    budget, report = run_limited(tmp_path, "smallest", *args)
    assert report["peak_anon_bytes"] <= budget == report["memory"]["budget"]
    assert report["memory"]["left"] >= 0
    assert report["test_acc"] is not None


@pytest.mark.slow
@pytest.mark.timeout(1800)  # a conversion and three runs
def test_a_larger_run_goes_through_in_budgets_that_leave_it_more_and_more(tmp_path: Path) -> None:
    args = ["--dataset", "synthetic:300000", "--undirected", *QUICK]
    _, first = run_limited(tmp_path, "smallest", *args)
    smallest, second = run_limited(tmp_path, "smallest", *args)  # nothing is converted any more
    budget, third = run_limited(tmp_path, f"{smallest // MIB + 300}MiB", *args)
    reports = [first, second, third]
    assert second["peak_anon_bytes"] <= smallest
    assert third["peak_anon_bytes"] <= budget
    losses = [[epoch["loss"] for epoch in report["epochs"]] for report in reports]
    assert all(loss == losses[0] for loss in losses)
    assert {report["memory"]["topology_in"] for report in reports} == {"mapped", "memory"}


def train_small(root: Path, *args: str) -> int:
    small = ["--dataset", "synthetic:3000", "--root", str(root), *QUICK]
    return main(["train", *small, *args])


def test_topology_on_the_disk_changes_no_digit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "memory.json", tmp_path / "mapped.json"]
    assert train_small(tmp_path, "--report", str(paths[0])) == 0
    assert "topology" in capsys.readouterr().out
    monkeypatch.setattr(planner, "plan_memory", partial(plan_memory, mapped=True))
    assert train_small(tmp_path, "--report", str(paths[1])) == 0
    assert "indptr in memory, indices read from the disk" in capsys.readouterr().out
    memory, mapped = (json.loads(path.read_text()) for path in paths)
    assert (memory["memory"]["topology_in"], mapped["memory"]["topology_in"]) == ("memory", "mapped")
    assert memory["memory"]["topology"] > mapped["memory"]["topology"]
    for key in ("loss", "val_acc"):
        assert [e[key] for e in memory["epochs"]] == [e[key] for e in mapped["epochs"]]
    assert (memory["test_acc"], memory["inference"]) == (mapped["test_acc"], mapped["inference"])
    hits = [report["sources"]["cache"]["hits"] for report in (memory, mapped)]
    assert hits[0] == hits[1] > 0  # the same hot rows


def test_larger_minibatches_than_those_that_were_measured_are_planned_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "measured.json", tmp_path / "met.json"]
    budget = ["--memory-budget", "3GiB"]
    assert train_small(tmp_path, "--report", str(paths[0]), *budget) == 0
    assert "planned anew" not in capsys.readouterr().out
    real = planner.largest_minibatch

    def of_few_seeds(sampler: Any, nodes: Any, batch_size: int) -> Any:
        return real(sampler, {name: ids[:20] for name, ids in nodes.items()}, batch_size)

    monkeypatch.setattr(planner, "largest_minibatch", of_few_seeds)
    assert train_small(tmp_path, "--report", str(paths[1]), *budget) == 0
    assert "planned anew" in capsys.readouterr().out
    reports = [json.loads(path.read_text()) for path in paths]
    measured, met = (report["memory"] for report in reports)
    assert met["minibatches"] > 0.9 * measured["minibatches"] and met["model"] > 0.9 * measured["model"]
    assert sum(size for name, size in met.items() if name not in ("budget", "topology_in")) == 3 << 30
    assert [e["loss"] for e in reports[0]["epochs"]] == [e["loss"] for e in reports[1]["epochs"]]


def test_minibatches_for_which_there_is_no_room_are_refused_when_they_are_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = WatchedSampler.sample

    def sample(self: WatchedSampler, seeds: Any, *, epoch: int = 0, batch: int = 0) -> Any:
        drawn = real(self, seeds, epoch=epoch, batch=batch)
        assert self.shape
        self.shape = self.shape.times(1_000_000)
        return drawn

    monkeypatch.setattr(WatchedSampler, "sample", sample)
    assert train_small(tmp_path, "--memory-budget", "3GiB") == 2
    assert re.search(r"--memory-budget is 3.00 GiB, training needs \d+MiB", capsys.readouterr().err)


def test_a_cache_that_does_not_fit_is_refused_with_the_budget_that_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_small(tmp_path, "--cache-bytes", "100GiB", "--memory-budget", "3GiB") == 2
    error = capsys.readouterr().err
    named = re.search(r"--memory-budget is 3.00 GiB, training needs (\d+)MiB: .*--cache-bytes", error)
    assert named and 100 << 10 < int(named[1]) < 104 << 10


def test_the_budget_is_a_setting_like_others(tmp_path: Path) -> None:
    file, report = tmp_path / "settings.toml", tmp_path / "report.json"
    file.write_text('memory-budget = "5GiB"\n')
    assert train_small(tmp_path, "--config", str(file), "--report", str(report)) == 0
    memory = json.loads(report.read_text())["memory"]
    assert memory["budget"] == 5 << 30
    assert sum(size for name, size in memory.items() if name not in ("budget", "topology_in")) == 5 << 30
