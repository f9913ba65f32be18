"""A run on a device gives, digit for digit, what a run on the CPU gives, whatever its tiers hold.

The device is the one of tests/simt: its kernels run on the CPU, over tensors of the CPU, for which the model
computes with the same kernels as in a run without a device.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from simt_cuda import SimtCuda

from gnn_ibp.budget import parse_bytes
from gnn_ibp.train import evaluate, loop, model
from gnn_ibp.train.cli import main
from gnn_ibp.train.config import Config
from gnn_ibp.train.run import train

NUM_NODES = 600


def config(root: Path, **changes: Any) -> Config:
    settings = {
        "dataset": f"synthetic:{NUM_NODES}",
        "root": root,
        "device": "cpu",
        "epochs": 2,
        "hidden": 8,
        "fanout": (4, 3),
        "batch_size": 100,
        "cache_bytes": "auto",
        "host_bytes": "auto",
    }
    return Config(**{**settings, **changes})


@pytest.fixture(scope="module")
def on_cpu(root: Path) -> dict[str, Any]:
    return train(config(root))


def results(report: dict[str, Any]) -> list[Any]:
    epochs = [(epoch["loss"], epoch["val_acc"]) for epoch in report["epochs"]]
    return [epochs, report["test_acc"], report["inference"]]


def hits(report: dict[str, Any]) -> dict[str, int]:
    return {tier: counters["hits"] for tier, counters in report["sources"].items()}


def test_losses_in_bfloat16_are_the_cpus_raw_and_compressed(root: Path, on_cpu: dict[str, Any]) -> None:
    cpu = train(config(root, precision="bfloat16"))
    raw = train(
        config(root, precision="bfloat16", raw=True, cache_bytes="40KiB", host_bytes="100KiB"), SimtCuda()
    )
    assert results(raw) == results(cpu)
    losses = [[epoch["loss"] for epoch in report["epochs"]] for report in (cpu, on_cpu)]
    assert losses[0] == pytest.approx(losses[1], rel=2e-2)
    assert losses[0] != losses[1]
    assert cpu["settings"]["precision"] == "bfloat16"


@pytest.mark.parametrize(
    ("changes", "tiers"),
    [
        ({"cache_bytes": "4MiB", "host_bytes": "0"}, {"cache"}),
        ({"cache_bytes": "40KiB", "host_bytes": "4MiB"}, {"cache", "host"}),
        ({"cache_bytes": "40KiB", "host_bytes": "40KiB"}, {"cache", "host", "disk"}),
        ({"cache_bytes": "40KiB", "host_bytes": "0", "hot_set": "degree"}, {"cache", "disk"}),
        ({"no_cache": True}, {"disk"}),
        ({"raw": True, "cache_bytes": "40KiB", "host_bytes": "100KiB"}, {"cache", "host", "disk"}),
        ({"cache_bytes": "40KiB", "host_bytes": "4MiB", "prefetch": 0}, {"cache", "host"}),
        (
            {"cache_bytes": "40KiB", "host_bytes": "40KiB", "prefetch": 4, "threads": 3},
            {"cache", "host", "disk"},
        ),
    ],
    ids=lambda value: (
        " ".join(map(str, value.values())) if isinstance(value, dict) else "+".join(sorted(value))
    ),
)
def test_losses_and_accuracies_are_the_cpus(
    root: Path, on_cpu: dict[str, Any], changes: dict[str, Any], tiers: set[str]
) -> None:
    report = train(config(root, **changes), SimtCuda())
    assert results(report) == results(on_cpu)
    assert {tier for tier, count in hits(report).items() if count} == tiers
    budget_bytes = sum(parse_bytes(changes.get(name, 0)) for name in ("cache_bytes", "host_bytes"))
    assert sum(cache["bytes"] for cache in report["caches"].values()) <= budget_bytes


def test_cache_that_pinning_failed_for_changes_no_loss(root: Path, on_cpu: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="cannot be page-locked"):
        report = train(config(root, cache_bytes="40KiB", host_bytes="4MiB"), SimtCuda(pin_bytes=0))
    assert results(report) == results(on_cpu)
    assert report["sources"]["host"]["hits"] == report["sources"]["host"]["lookups"] > 0


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All but the rows is computed as on a GPU, and torch refuses what could differ from run to run."""
    for module in (model, evaluate):
        monkeypatch.setattr(module, "has_kernels", lambda x: False)
    monkeypatch.setattr(loop, "look_every", lambda device: 32)
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("no_kernels")
def test_run_in_torchs_operators_is_the_same_every_time(root: Path) -> None:
    reports = [train(config(root, cache_bytes=size), SimtCuda()) for size in ("1MiB", "20KiB")]
    assert results(reports[0]) == results(reports[1])


@pytest.mark.usefixtures("no_kernels")
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_run_in_torchs_operators_learns_what_the_kernels_learn(
    root: Path, monkeypatch: pytest.MonkeyPatch, dropout: float
) -> None:
    plain = train(config(root, dropout=dropout), SimtCuda())
    monkeypatch.undo()
    ours = train(config(root, dropout=dropout))
    losses = [[epoch["loss"] for epoch in report["epochs"]] for report in (plain, ours)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0] != losses[1]  # they are other sums


def test_report_tells_the_device_its_tiers_and_pcie(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cuda = SimtCuda()
    path = tmp_path / "report.json"
    train(config(root, cache_bytes="40KiB", host_bytes="4MiB", report=path), cuda)
    out, report = capsys.readouterr().out, json.loads(path.read_text())
    assert (report["settings"]["device"], report["settings"]["device_name"]) == (str(cuda.device), cuda.name)
    assert f"device_name={cuda.name}".split()[0] in out
    assert report["caches"].keys() == {"cache", "host"}
    assert report["peak_device_bytes"] == cuda.peak_bytes()
    host = report["sources"]["host"]
    assert host["pcie_bytes"] == host["physical_bytes"] > 0
    assert report["sources"]["cache"]["pcie_bytes"] == 0
    assert all(epoch["sources"]["host"]["pcie_bytes"] for epoch in report["epochs"])
    lines = [line.strip() for line in out.splitlines() if line.strip().startswith("PCIe: ")]
    assert len(lines) == 3  # two epochs and the report
    assert all("encoded in" in line and line.endswith("GB/s") for line in lines)


@pytest.mark.parametrize(("device_bytes", "inference"), [(2 << 20, "sampled"), (3 << 20, "exact")])
def test_inference_is_exact_where_the_device_has_room(root: Path, device_bytes: int, inference: str) -> None:
    """The hidden states take 2 * 256 floats for each of 600 nodes, 1.2 MB."""
    settings = config(root, no_cache=True, hidden=256, prefetch=0, epochs=1, max_batches=2)
    assert train(settings, SimtCuda(device_bytes=device_bytes))["inference"] == inference


def test_gpu_that_is_not_there_ends_the_run_in_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)  # where there is a GPU, torch cannot use it
    assert (
        main(["train", "--dataset", f"synthetic:{NUM_NODES}", "--root", str(root), "--device", "cuda"]) == 1
    )
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("gnn-ibp: device 'cuda' cannot be used: torch")
    assert "settings" not in captured.out


def test_host_tier_on_the_cpu_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["--dataset", "synthetic", "--root", str(tmp_path), "--device", "cpu", "--host-bytes", "1GiB"]
    assert main(["train", *args]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "on the CPU there is no host tier beside the cache, give the memory to --cache-bytes" in line
    assert not list(tmp_path.iterdir())
