"""The scale test at a small size: the drawn graph is the same in every form, and the script goes through."""

from pathlib import Path

import numpy as np
import pytest
import scale
from papers_shape import NUM_CLASSES, DrawnEdges, PapersShape, drawn_parts, raw_bytes, write_raw_folder

from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.converters.ogb import ogb_parts
from gnn_ibp.dataset import Dataset

SHAPE = PapersShape(num_nodes=3001, num_edges=40_000, num_columns=8, num_train=90, num_eval=40)


def test_the_raw_folder_and_the_streams_give_the_same_data_set(tmp_path: Path):
    folder = write_raw_folder(SHAPE, tmp_path)
    sizes = [file.stat().st_size for file in (folder / "raw").iterdir()]
    assert raw_bytes(SHAPE) <= sum(sizes) <= raw_bytes(SHAPE) + 4096
    raw = ogb_parts("ogbn-papers100M", tmp_path, tmp_path, print)
    ours, drawn = (
        write_dataset(raw, tmp_path / "raw-set"),
        write_dataset(drawn_parts(SHAPE), tmp_path / "drawn"),
    )
    for name in ("indptr", "indices", "y", "split_train", "split_val", "split_test"):
        assert (ours / f"{name}.npy").read_bytes() == (drawn / f"{name}.npy").read_bytes()
    assert (ours / "x.ibp").read_bytes() == (drawn / "x.ibp").read_bytes()
    assert Dataset.open(ours).num_classes == NUM_CLASSES


def test_edges_can_be_read_from_anywhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("papers_shape.BLOCK", 1024)
    edges = DrawnEdges(SHAPE)
    src, dst = (np.concatenate(ends) for ends in zip(*edges.blocks(), strict=True))
    assert len(src) == SHAPE.num_edges and (src.min(), src.max() < SHAPE.num_nodes) == (0, True)
    for first in (0, 1, 1023, 1024, 39_999, 40_000):
        rest = [np.concatenate(ends) for ends in zip(*edges.blocks(first), strict=True)] or [[], []]
        np.testing.assert_array_equal(rest, [src[first:], dst[first:]])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("source", ["raw", "direct"])
def test_the_script_converts_and_trains_and_prints_a_table(
    tmp_path: Path, source: str, capfd: pytest.CaptureFixture[str]
):
    size = ["--nodes=3000", "--columns=8", "--memory-budget=1GiB", f"--source={source}"]
    run = ["--shares=50", "--batches=2", "--epochs=1", "--train-flags=--hidden=16 --fanout=5,5"]
    scale.main([str(tmp_path), *size, *run])
    *_, compressed, raw = capfd.readouterr().out.splitlines()
    assert compressed.startswith("| 50 % | compressed |") and raw.startswith("| 50 % | raw |")


def test_disk_that_is_not_free_is_refused_before_anything_is_made(tmp_path: Path):
    with pytest.raises(SystemExit, match=r"disk needed: at most .*; free some space"):
        scale.main([str(tmp_path), "--nodes", "200", "--edges", str(10**14)])
    assert not list(tmp_path.iterdir())
