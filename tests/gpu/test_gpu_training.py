"""Training on a GPU: the losses are the same whatever is compressed or cached."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from gnn_ibp import Dataset, FeatureStore, Loader
from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.converters.prepare import prepare
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=[True, False], ids=["deterministic", "as it comes"])
def deterministic(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether torch refuses what is not. Nobody tells it to in a run: sums must have one order without."""
    torch.use_deterministic_algorithms(request.param)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory, simulated: bool) -> dict[int, Dataset]:
    """The same one, by the format of its rows."""
    name = f"synthetic:{400 if simulated else 20_000}"
    return {
        version: prepare(
            name,
            tmp_path_factory.mktemp(f"version{version}"),
            settings=ConversionSettings(format=version),
            say=lambda _: None,
        )
        for version in (1, 2)
    }


def losses(dataset: Dataset, cuda: Any, num_batches: int, **store_settings: Any) -> tuple[list[float], Any]:
    """Of the first minibatches, and the counters of what they read."""
    store = FeatureStore(dataset, cuda, **store_settings)
    sampler = NeighborSampler(dataset.graph, [5, 5], seed=0)
    loader = Loader(store, sampler, dataset.split["train"], 128, shuffle=True, max_batches=num_batches)
    torch.manual_seed(0)
    model = GraphSAGE(128, 64, 2, dataset.num_classes, 0.5, Normalize("none")).to(cuda.device)
    optimizer = torch.optim.Adam(model.parameters())
    found = []
    for at, batch in enumerate(loader):
        loss = cross_entropy(model(batch.x, batch.layers, [at]), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found).tolist(), store.stats()


@pytest.mark.filterwarnings("ignore:.*holds no row")
def test_losses_are_equal_raw_compressed_and_without_a_cache(
    cuda: Any, simulated: bool, datasets: dict[int, Dataset], deterministic: None
):
    num_batches = 2 if simulated else 50
    quarter = datasets[1].num_nodes * 512 // 4 + 8 * datasets[1].num_nodes
    settings = {
        "compressed": {"cache_bytes": quarter, "host_bytes": quarter},
        "compressed, all cached": {"cache_bytes": 8 * quarter, "host_bytes": 0},
        "raw": {"cache_bytes": quarter, "host_bytes": quarter, "raw": True},
        "no cache": {"cache_bytes": 0, "host_bytes": 0},
    }
    runs = {
        (name, version): losses(dataset, cuda, num_batches, **chosen)
        for name, chosen in settings.items()
        for version, dataset in datasets.items()
    }
    first, _ = runs["compressed", 1]
    assert len(set(first)) == len(first)
    for name, (found, _) in runs.items():
        assert found == first, name
    hits = {
        name: [stats[tier]["hits"] for tier in ("cache", "host", "disk")] for name, (_, stats) in runs.items()
    }
    for version in datasets:
        assert all(hits["compressed", version])
        assert hits["compressed, all cached", version][1:] == [0, 0]
        assert hits["no cache", version][:2] == [0, 0]
    assert hits["compressed", 2][0] > hits["compressed", 1][0]  # more rows in as many bytes


def results(report: dict[str, Any]) -> list[Any]:
    """Every digit."""
    return [*((epoch["loss"], epoch["val_acc"]) for epoch in report["epochs"]), report["test_acc"]]


def test_a_run_on_the_device_reports_what_it_did(cuda: Any, simulated: bool, tmp_path: Path):
    pytest.importorskip("tyro", reason="the command line needs tyro")
    if simulated:
        pytest.skip("a run of its own takes no stand-in")

    def run(*flags: str) -> dict[str, Any]:
        command = [sys.executable, "train/run.py", "--dataset", "synthetic:20000", "--root", str(tmp_path)]
        more = ["--device", "cuda", "--epochs", "2", "--report", str(tmp_path / "report.json"), *flags]
        outside = {**os.environ, "PYTHONPATH": str(ROOT)}
        outside.pop("CUBLAS_WORKSPACE_CONFIG", None)  # that of the other tests
        done = subprocess.run([*command, *more], cwd=ROOT, env=outside, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        report: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
        return report

    cached = run("--cache-bytes", "2MiB", "--host-bytes", "3MiB")
    assert len(cached["epochs"]) == 2
    assert cached["test_acc"] > 0
    sources = cached["epochs"][1]["sources"]
    assert all(sources[tier]["hits"] for tier in ("cache", "host", "disk"))
    assert sources["host"]["pcie_bytes"] >= sources["host"]["encoded_bytes"]
    for flags in (["--no-cache"], ["--raw", "--cache-bytes", "2MiB", "--host-bytes", "3MiB"]):
        other = run(*flags)
        assert results(other) == results(cached), flags
