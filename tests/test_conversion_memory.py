"""Conversions within a given memory: kept, however large the graph; refused where it cannot be enough."""

import os
import re
import shutil
import subprocess
import sys
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from limited_conversion import NUM_EDGES, NUM_NODES, SETTINGS, DrawnEdges, DrawnRows, limited_parts

from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.conversion.need import ConversionNeed
from gnn_ibp.converters.prepare import convert_source
from gnn_ibp.dataset import Dataset
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.errors import SettingsError
from gnn_ibp.graph import build_csc
from gnn_ibp.train.cli import main

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}


def smallest() -> int:
    return ConversionNeed(limited_parts(), SETTINGS, 0).smallest_memory_bytes


def smallest_with_runs() -> int:
    """The least memory in which edges are sorted without files."""
    need = ConversionNeed(limited_parts(), SETTINGS, 1 << 40)
    plan = need.sort_plan(NUM_NODES)
    assert plan.held
    return bisect_left(range(plan.memory_bytes), True, key=lambda size: replace(plan, memory_bytes=size).held)


@pytest.mark.parametrize("held", [False, True])
def test_however_large_the_graph_it_is_converted_within_the_memory(tmp_path: Path, held: bool) -> None:
    wanted = smallest_with_runs() if held else smallest()
    program = Path(__file__).with_name("limited_conversion.py")
    command = [sys.executable, str(program), str(tmp_path / "ds"), str(wanted)]
    child = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert not child.returncode, child.stderr
    memory_bytes, peak_bytes, _ = map(float, child.stdout.split())
    assert memory_bytes == wanted and (wanted < NUM_EDGES * 2 * 8) != held
    assert peak_bytes <= memory_bytes
    dataset = Dataset.open(tmp_path / "ds")
    expected = build_csc(DrawnEdges(), dataset.num_nodes, undirected=True).graph
    np.testing.assert_array_equal(dataset.graph.indptr, expected.indptr)
    np.testing.assert_array_equal(dataset.graph.indices, expected.indices)


def test_less_memory_than_can_be_enough_is_refused_with_what_is(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"needs \d+MiB of memory") as caught:
        write_dataset(limited_parts(), tmp_path / "ds", SETTINGS, smallest() - 1)
    named = int(re.findall(r"needs (\d+)MiB", str(caught.value))[0]) << 20
    assert smallest() <= named < smallest() + (1 << 20)  # which the test above shows to be enough
    assert not list(tmp_path.iterdir())


def test_the_memory_budget_that_the_command_line_names_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["convert", "synthetic:5000", str(tmp_path / "ds"), "--memory-budget"]
    assert main([*arguments, "64MiB"]) == 2 and not (tmp_path / "ds").exists()
    problem = capsys.readouterr().err
    named = re.findall(r"needs (\d+MiB) of memory.*budget is 64\.0 MiB; raise it", problem)
    assert len(named) == 1, problem
    command = [sys.executable, "-m", "gnn_ibp.train.cli", *arguments, named[0]]
    child = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert not child.returncode, child.stderr
    assert Dataset.open(tmp_path / "ds").num_nodes == 5_000


def test_memory_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ConversionSettings(dedup=True)
    convert_source("synthetic:30000", tmp_path / "much", settings=settings)
    monkeypatch.setattr(EdgeSortPlan, "held", False)
    convert_source("synthetic:30000", tmp_path / "little", settings=settings, memory_budget=4 << 30)
    for path in (tmp_path / "much").iterdir():
        assert path.read_bytes() == (tmp_path / "little" / path.name).read_bytes()


def test_a_disk_without_room_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need = ConversionNeed(limited_parts(), SETTINGS, smallest())
    runs, topology = 2 * NUM_EDGES * 8, 2 * NUM_EDGES * 4
    assert need.disk_bytes and runs + topology < need.disk_bytes < 1.2 * (runs + topology)
    free = need.disk_bytes - 4096
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    with pytest.raises(
        SettingsError, match=r"limited needs at most .*MiB of disk, .* are free in .*; free some"
    ):
        write_dataset(limited_parts(), tmp_path / "ds", SETTINGS, smallest())
    assert not list(tmp_path.iterdir())
    free += 4096
    assert "of disk needed" in need.check_disk(tmp_path, 0)
    free -= 100
    assert "of disk needed" in need.check_disk(tmp_path, 100)  # what an earlier conversion left counts


def test_the_disk_for_features_is_not_added_to_that_for_edges_on_their_way() -> None:
    need = ConversionNeed(limited_parts(), SETTINGS, smallest())
    without = replace(need, parts=replace(need.parts, features={}))
    assert need.disk_bytes == without.disk_bytes
    held = replace(need, memory_bytes=1 << 40)
    assert held.disk_bytes is not None and need.disk_bytes is not None
    assert need.disk_bytes - held.disk_bytes == 2 * NUM_EDGES * 8 - DrawnRows.num_rows * (128 * 4 + 16)
