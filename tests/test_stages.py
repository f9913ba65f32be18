"""How long the stages of a conversion took, and for how much: told at its end."""

import re
from pathlib import Path

import numpy as np
import pytest

from gnn_ibp.conversion import dataset_writer
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.conversion.row_stream import ArrayRows
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.edges.edge_stream import ArrayEdges
from gnn_ibp.report import stage_lines
from gnn_ibp.stages import Stage, Stages

EDGES = ArrayEdges(*np.random.default_rng(0).integers(0, 500, (2, 3000)))


def parts() -> DatasetParts:
    x = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32)
    return DatasetParts("staged", {"kind": "test"}, 500, edge_index=EDGES, features={"x": ArrayRows(x)})


@pytest.mark.parametrize("held", [False, True])
def test_a_conversion_tells_what_went_through_each_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    monkeypatch.setattr(EdgeSortPlan, "held", held)
    said: list[str] = []
    settings = ConversionSettings(undirected=True)
    dataset_writer.write_dataset(parts(), tmp_path / "quick", settings, say=said.append)
    assert len(said) == 1  # what takes no second is not told of
    monkeypatch.setattr(dataset_writer, "TOLD_FROM_S", 0.0)
    dataset_writer.write_dataset(parts(), tmp_path / "ds", settings, say=said.append)
    header, *lines = said[2:]
    assert header.split()[:4] == ["stage", "amount", "seconds", "MB/s"]
    amounts = {line[:15].strip(): re.split(r" {2,}", line)[1] for line in lines}
    # 3,000 edges of 2 int64; 6,000 records of 8 bytes
    assert amounts["partition edges"] == amounts["sort edges"] == "46.9 KiB"
    assert amounts["fit x"] == amounts["encode x"] == "31.2 KiB"
    assert "checksums" in amounts


def test_rates_are_of_what_went_through_and_idle_processors_show() -> None:
    stages = [
        Stage("sort edges", num_bytes=800_000_000, num_edges=100_000_000, elapsed_s=8.0, cpu_s=12.0),
        Stage("checksums", num_bytes=10_000_000, elapsed_s=0.0),
    ]
    header, edges, checksums = stage_lines(stages)
    assert edges.split() == ["sort", "edges", "763", "MiB", "8.0", "100", "12.5", "1.5"]
    assert len(header) == len(edges) and checksums.startswith("checksums")


def test_a_stage_with_nothing_to_do_and_one_that_failed_are_left_out() -> None:
    stages = Stages()
    with stages.measure("nothing"):
        pass
    with pytest.raises(ValueError, match="bad"), stages.measure("failed") as stage:
        stage.num_bytes = 1
        raise ValueError("bad")
    assert not stages.done
    with stages.measure("something") as stage:
        stage.num_bytes = 1
    assert [stage.name for stage in stages.done] == ["something"] and stages.elapsed_s > 0
