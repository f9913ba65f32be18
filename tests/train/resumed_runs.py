"""Small runs with checkpoints, and what of them has to be the same however often they were killed."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from gnn_ibp.train import machine
from gnn_ibp.train.config import Config
from gnn_ibp.train.run import train

COUNTS = ("lookups", "hits", "misses", "hit_rate", "logical_bytes", "encoded_bytes", "physical_bytes")


def config(root: Path, out: Path, **changes: Any) -> Config:
    """Of a run of 3 epochs of 3 minibatches, validated after each, all of whose files lie in `out`."""
    settings: dict[str, Any] = {
        "dataset": "synthetic:1500",
        "root": root,
        "device": "cpu",
        "epochs": 3,
        "hidden": 16,
        "fanout": (4, 3),
        "batch_size": 320,
        "cache_bytes": "100KiB",
        "lr": 0.01,
        "checkpoint": out / "checkpoints",
        "checkpoint_every": 1,
        "save": out / "model.pt",
        "report": out / "report.json",
    }
    return Config(**{**settings, **changes})


def results(report: dict[str, Any], save: Path) -> dict[str, Any]:
    """All that an interruption must not change: numbers with every digit, counts, and the saved model."""
    content = torch.load(save, weights_only=True)
    weights = {name: weight.numpy().tobytes() for name, weight in content.pop("model").items()}
    del content["settings"], content["normalize"]
    epochs = [
        {**epoch, "sources": counts(epoch["sources"]), "seconds": None, "peak_anon_bytes": None}
        for epoch in report["epochs"]
    ]
    told = {name: report[name] for name in ("test_acc", "inference")}
    return {**told, "epochs": epochs, "sources": counts(report["sources"]), "weights": weights, **content}


def counts(sources: dict[str, Any]) -> dict[str, Any]:
    return {tier: {name: counters[name] for name in COUNTS} for tier, counters in sources.items()}


@contextmanager
def quickly(num_threads: int) -> Iterator[None]:
    """Runs in here compute with so many threads, and wait for no disk: no power fails."""
    before = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(machine, "processors", lambda: num_threads)
        patched.setattr(os, "fsync", lambda handle: None)
        yield
    torch.set_num_threads(before)


def train_slowly(settings: Config, num_threads: int) -> None:
    """For a process that is killed: it spends much of its time in the middle of writing."""
    with quickly(num_threads):
        os.fsync = lambda handle: time.sleep(0.01)
        train(settings)
