"""Splits as ranges: the same as the ids they stand for, without the memory."""

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnn_ibp.conversion import splits as splits_module
from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.conversion.labels import unlabelled_nodes
from gnn_ibp.conversion.splits import checked_splits, split_blocks


def parts(splits: dict[str, Any]) -> DatasetParts:
    return DatasetParts("split", {"kind": "test"}, 3000, labels=np.arange(3000) % 7, splits=splits)


def test_a_range_becomes_the_file_that_its_ids_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits_module, "_BLOCK_IDS", 100)
    ranges = {"train": range(0, 1801), "val": range(1801, 2400), "test": range(2400, 2400)}
    write_dataset(parts(ranges), tmp_path / "ranges")
    write_dataset(parts({name: np.arange(r.start, r.stop) for name, r in ranges.items()}), tmp_path / "ids")
    for path in (tmp_path / "ids").iterdir():
        assert path.read_bytes() == (tmp_path / "ranges" / path.name).read_bytes()


def test_a_range_takes_no_memory_on_its_way() -> None:
    checked = checked_splits({"train": range(1 << 40), "val": range(1 << 40, 1 << 41)}, 1 << 42)
    assert checked == {"train": range(1 << 40), "val": range(1 << 40, 1 << 41)}
    assert next(split_blocks(checked["val"]))[:2].tolist() == [1 << 40, (1 << 40) + 1]


@pytest.mark.parametrize(("as_range", "other_as_range"), list(product([False, True], [False, True])))
def test_nodes_in_two_splits_are_told_however_they_are_given(as_range: bool, other_as_range: bool) -> None:
    one, other = (
        r if kept else np.arange(r.start, r.stop)[::-1]
        for r, kept in ((range(10, 50), as_range), (range(47, 60), other_as_range))
    )
    with pytest.warns(
        UserWarning, match=r"3 nodes are in both splits 'train' and 'test', the first is node 47"
    ):
        checked_splits({"train": one, "test": other}, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checked_splits({"train": one, "test": other[3:] if other_as_range else other[:-3]}, 100)


def test_ranges_of_nodes_that_do_not_exist_and_other_steps_are_refused() -> None:
    for ids, node in ((range(90, 101), 100), (range(-2, 5), -2)):
        with pytest.raises(IndexError, match=f"split 'val' names node {node}, nodes are 0 to 99"):
            checked_splits({"val": ids}, 100)
    with pytest.raises(ValueError, match=r"split 'val' is range\(0, 10, 2\), a range must be of step 1"):
        checked_splits({"val": range(0, 10, 2)}, 100)
    assert checked_splits({"val": range(200, 200)}, 100) == {"val": range(200, 200)}


def test_nodes_without_a_label_are_found_in_any_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits_module, "_BLOCK_IDS", 10)
    labels = np.zeros(100, np.int64)
    labels[[3, 34, 77]] = -1
    assert unlabelled_nodes(labels, range(4, 90)) == (2, 34)
    assert unlabelled_nodes(labels, np.arange(100)[::-1]) == (3, 77)
    assert unlabelled_nodes(labels, range(80, 100)) == (0, None)
