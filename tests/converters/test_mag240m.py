"""MAG240M's papers as a source: everything as it was, counts and splits from its saved dictionaries."""

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from paper_folders import SmallPapers, write_mag240m

from gnn_ibp.converters.mag240m import mag240m_parts
from gnn_ibp.converters.prepare import convert_source, prepare
from gnn_ibp.converters.sources import find_source
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.graph import build_csc

ORDER = np.random.default_rng(5).permutation(90)
SPLIT: dict[str, Any] = {
    "train": np.sort(ORDER[:40]),
    "valid": np.sort(ORDER[40:55]),
    "test-whole": np.sort(ORDER[55:70]),
    "test-dev": np.sort(ORDER[55:64]),
    "test-challenge": np.sort(ORDER[64:70]),
}
FEATURES = "processed/paper/node_feat.npy"
LABELS = "processed/paper/node_label.npy"
EDGES = "processed/paper___cites___paper/edge_index.npy"


@pytest.fixture
def papers() -> SmallPapers:
    return SmallPapers("float16")


def convert(root: Path) -> Dataset:
    return Dataset.open(convert_source("mag240m", root / "out", raw_root=root))


def test_papers_come_out_as_they_went_in(tmp_path: Path, papers: SmallPapers) -> None:
    write_mag240m(tmp_path / "raw", papers, SPLIT)
    dataset = prepare("MAG240M", tmp_path)
    with dataset.feature_file() as file:
        rows = np.empty((file.num_rows, *file.row_shape), file.dtype)
        file.read(np.arange(file.num_rows), rows)
    np.testing.assert_array_equal(rows.view(np.uint16), papers.features.view(np.uint16))
    built = build_csc(papers.edges, papers.num_nodes).graph
    np.testing.assert_array_equal(dataset.graph.indptr, built.indptr)
    np.testing.assert_array_equal(dataset.graph.indices, built.indices)
    assert dataset.y is not None and dataset.num_classes == 7
    np.testing.assert_array_equal(dataset.y.numpy(), np.nan_to_num(papers.labels, nan=-1).astype(int))
    assert (dataset.y.numpy() == -1).sum() == 35
    for theirs, ours in (("valid", "val"), *((name, name) for name in SPLIT if name != "valid")):
        np.testing.assert_array_equal(dataset.split[ours].numpy(), SPLIT[theirs])
    assert dataset.meta.source["kind"] == "mag240m" and dataset.name == "mag240m"


def test_streams_can_be_entered_anywhere(
    tmp_path: Path, papers: SmallPapers, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_mag240m(tmp_path, papers, SPLIT)
    monkeypatch.setattr("gnn_ibp.converters.npy_rows.BLOCK_EDGES", 30)
    monkeypatch.setattr("gnn_ibp.conversion.row_stream.BLOCK_BYTES", 4 * papers.features[0].nbytes)
    for root in (tmp_path, folder):
        parts = mag240m_parts(root, tmp_path, print)
        for first in (0, 1, 29, 30, 399):
            ends = [np.stack(block) for block in parts.edge_index.blocks(first)]
            assert max(block.shape[1] for block in ends) <= 30
            np.testing.assert_array_equal(np.concatenate(ends, axis=1), papers.edges[:, first:])
        for first in (0, 3, 4, 89):
            blocks = [np.asarray(block) for block in parts.features["x"].blocks(first)]
            assert max(map(len, blocks)) <= 4
            np.testing.assert_array_equal(np.concatenate(blocks), papers.features[first:])
        monkeypatch.setattr("gnn_ibp.fit_sample.SAMPLE_ROWS", 11)
        sample = np.asarray(parts.features["x"].sample(seed=1))
        assert len(sample) == 11 and {row.tobytes() for row in sample} <= {
            r.tobytes() for r in papers.features
        }


def test_splits_may_be_tensors(tmp_path: Path, papers: SmallPapers) -> None:
    write_mag240m(tmp_path, papers, SPLIT)
    tensors = {name: torch.from_numpy(ids) for name, ids in SPLIT.items()}
    torch.save(tensors, tmp_path / "mag240m_kddcup2021" / "split_dict.pt")
    np.testing.assert_array_equal(convert(tmp_path).split["val"].numpy(), SPLIT["valid"])


class Code:
    """What a pickle may hold that runs a command when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("file", ["meta.pt", "split_dict.pt"])
def test_saved_dictionaries_run_no_code(tmp_path: Path, papers: SmallPapers, file: str) -> None:
    path = write_mag240m(tmp_path, papers, SPLIT) / file
    for content in ({"paper": Code(tmp_path / "ran")}, {"paper": np.array([None])}, {"paper": {1}.union}):
        torch.save(content, path)
        with pytest.raises(FormatError, match=f"{file} is damaged, or holds more than numbers and arrays"):
            convert(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("meta.pt", {"num_classes": 7}, r"meta\.pt: paper is missing"),
        ("meta.pt", {"paper": "90", "num_classes": 7}, r"meta\.pt: paper is '90', a count is wanted"),
        ("meta.pt", {"paper": True, "num_classes": 7}, "a count is wanted"),
        ("meta.pt", {"paper": 91, "num_classes": 7}, r"node_feat\.npy has 90 rows, meta\.pt says 91 papers"),
        ("meta.pt", {"paper": 90, "num_classes": 3}, "the data set has 3 classes"),
        ("meta.pt", [90, 7], r"meta\.pt holds a list, wanted a dictionary"),
        ("split_dict.pt", {"train": SPLIT["train"]}, r"split_dict\.pt: valid is missing"),
        ("split_dict.pt", SPLIT | {"valid": [1, 2]}, r"split_dict\.pt: valid is list"),
        ("split_dict.pt", SPLIT | {"valid": np.ones(3)}, r"split_dict\.pt: valid is float64 \(3,\)"),
        ("split_dict.pt", SPLIT | {"train": SPLIT["test-dev"]}, "9 of 9 training nodes have no label"),
    ],
)
def test_dictionaries_that_do_not_fit_are_named(
    tmp_path: Path, papers: SmallPapers, file: str, content: Any, message: str
) -> None:
    torch.save(content, write_mag240m(tmp_path, papers, SPLIT) / file)
    with pytest.raises(FormatError, match=message):
        convert(tmp_path)
    assert not (tmp_path / "out").exists()


PAPERS = SmallPapers("float16")


@pytest.mark.parametrize(
    ("file", "array", "message"),
    [
        (FEATURES, np.asfortranarray(PAPERS.features), "is in Fortran order"),
        (FEATURES, PAPERS.features.astype(">f2"), "holds big-endian float16"),
        (FEATURES, PAPERS.features.astype(np.float32), "holds float32 values, wanted are float16"),
        (FEATURES, PAPERS.features[0], "wanted are 2 dimensions"),
        (LABELS, PAPERS.labels[1:], r"node_label\.npy has 89 labels, the graph has 90 nodes"),
        (LABELS, np.concatenate([PAPERS.labels, [0]]).astype("f4"), "has more than 90 labels"),
        (LABELS, np.full(90, 0.5), "node 0 has label 0.5"),
        (LABELS, PAPERS.labels.astype(np.int64), "holds int64 values"),
        (EDGES, np.asfortranarray(PAPERS.edges), "is in Fortran order"),
        (EDGES, PAPERS.edges.astype(">i8"), "holds big-endian int64"),
        (EDGES, np.ascontiguousarray(PAPERS.edges.T), r"of shape \(400, 2\), wanted edges \(2, E\)"),
        (EDGES, PAPERS.edges * 1.0, "holds float64 values"),
    ],
)
def test_arrays_that_do_not_fit_are_named(
    tmp_path: Path, papers: SmallPapers, file: str, array: Any, message: str
) -> None:
    np.save(write_mag240m(tmp_path, papers, SPLIT) / file, array)
    with pytest.raises(FormatError, match=message) as caught:
        convert(tmp_path)
    assert Path(file).name in str(caught.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("file", [FEATURES, LABELS, EDGES, "meta.pt", "split_dict.pt"])
def test_files_that_are_missing_or_cut_are_named(tmp_path: Path, papers: SmallPapers, file: str) -> None:
    path = write_mag240m(tmp_path, papers, SPLIT) / file
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FormatError, match=path.name):
        convert(tmp_path)
    path.unlink()
    with pytest.raises(FormatError, match=f"{path.name} is missing"):
        convert(tmp_path)


@pytest.mark.parametrize("error", [AssertionError("saved_id must be a tuple"), struct.error("unpack")])
def test_whatever_torch_raises_of_a_damaged_file_names_it(
    tmp_path: Path, papers: SmallPapers, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    write_mag240m(tmp_path, papers, SPLIT)
    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(FormatError, match=r"meta\.pt is damaged"):
        convert(tmp_path)


def test_an_edge_of_a_paper_that_does_not_exist_is_named(tmp_path: Path, papers: SmallPapers) -> None:
    papers.edges[0, 123] = -1
    write_mag240m(tmp_path, papers, SPLIT)
    with pytest.raises(IndexError, match=rf"edge 123 is \(-1, {papers.edges[1, 123]}\)"):
        convert(tmp_path)


def test_its_labels_leave_no_choice() -> None:
    with pytest.raises(
        SettingsError, match="--num-classes picks one of IGB's labels, mag240m leaves no choice"
    ):
        find_source("mag240m", 19)
