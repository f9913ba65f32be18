"""IGB's papers as a source: everything as it was, with its published counts, headers and splits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper_folders import SmallPapers, write_igb

from gnn_ibp.converters import igb
from gnn_ibp.converters.igb import SIZES, IgbSize, igb_parts
from gnn_ibp.converters.prepare import convert_source, prepare
from gnn_ibp.converters.sources import config_name, find_source
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.graph import build_csc

SMALL = {
    "tiny": IgbSize(90, {19: 90, 2983: 90}),
    "large": IgbSize(90, {19: 90, 2983: 90}, header=False),
    "full": IgbSize(90, {19: 71, 2983: 52}, header=False),
}
FEATURES = "processed/paper/node_feat.npy"
LABELS = "processed/paper/node_label_19.npy"
EDGES = "processed/paper__cites__paper/edge_index.npy"


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published counts are too large for a test: others stand in for them."""
    monkeypatch.setattr(igb, "NUM_COLUMNS", 16)
    for size, facts in SMALL.items():
        monkeypatch.setitem(SIZES, size, facts)


@pytest.fixture
def papers() -> SmallPapers:
    return SmallPapers("float32")


def test_the_sizes_are_the_published_ones() -> None:
    assert {size: facts.num_nodes for size, facts in SIZES.items()} == {
        "tiny": 100_000,
        "small": 1_000_000,
        "medium": 10_000_000,
        "large": 100_000_000,
        "full": 269_346_174,
    }
    assert SIZES["full"].num_labelled == {19: 227_130_858, 2983: 157_675_969}
    assert [size for size, facts in SIZES.items() if not facts.header] == ["large", "full"]
    assert all(set(f.num_labelled.values()) == {f.num_nodes} for s, f in SIZES.items() if s != "full")
    assert igb.NUM_COLUMNS == 1024


@pytest.mark.usefixtures("small_sizes")
@pytest.mark.parametrize("num_classes", [None, 2983])
@pytest.mark.parametrize("size", SMALL)
def test_papers_come_out_as_they_went_in(
    tmp_path: Path, papers: SmallPapers, size: str, num_classes: int | None
) -> None:
    write_igb(tmp_path / "raw", size, papers, header=SMALL[size].header)
    dataset = prepare(f"IGB-{size}", tmp_path, num_classes=num_classes)
    assert dataset.path == tmp_path / f"igb-{size}{'-2983' if num_classes else ''}"
    with dataset.feature_file() as file:
        rows = np.empty((file.num_rows, *file.row_shape), file.dtype)
        file.read(np.arange(file.num_rows), rows)
    np.testing.assert_array_equal(rows.view(np.uint32), papers.features.view(np.uint32))
    built = build_csc(papers.edges, papers.num_nodes).graph
    np.testing.assert_array_equal(dataset.graph.indptr, built.indptr)
    np.testing.assert_array_equal(dataset.graph.indices, built.indices)
    labelled = SMALL[size].num_labelled[num_classes or 19]
    assert dataset.y is not None and dataset.num_classes == (num_classes or 19)
    np.testing.assert_array_equal(dataset.y.numpy()[:labelled], papers.labels[:labelled].astype(int))
    assert (dataset.y.numpy()[labelled:] == -1).all()
    train, val = int(0.6 * labelled), int(0.2 * labelled)
    np.testing.assert_array_equal(dataset.split["train"].numpy(), np.arange(train))
    np.testing.assert_array_equal(dataset.split["val"].numpy(), np.arange(train, train + val))
    np.testing.assert_array_equal(dataset.split["test"].numpy(), np.arange(train + val, labelled))


@pytest.mark.usefixtures("small_sizes")
def test_streams_can_be_entered_anywhere(
    tmp_path: Path, papers: SmallPapers, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_igb(tmp_path, "large", papers, header=False)
    monkeypatch.setattr("gnn_ibp.converters.npy_rows.BLOCK_EDGES", 30)
    for root in (tmp_path, folder):
        parts = igb_parts("large", 19, root)
        for first in (0, 1, 29, 30, 399):
            ends = [np.stack(block) for block in parts.edge_index.blocks(first)]
            np.testing.assert_array_equal(np.concatenate(ends, axis=1), papers.edges[:, first:])
        np.testing.assert_array_equal(
            np.concatenate([np.asarray(block) for block in parts.features["x"].blocks(7)]),
            papers.features[7:],
        )


@pytest.mark.usefixtures("small_sizes")
def test_a_header_that_fits_is_fine_where_none_is_needed(tmp_path: Path, papers: SmallPapers) -> None:
    write_igb(tmp_path, "large", papers)
    np.testing.assert_array_equal(igb_parts("large", 19, tmp_path).labels, papers.labels.astype(int))


@pytest.mark.usefixtures("small_sizes")
@pytest.mark.parametrize(
    ("size", "file", "change", "message"),
    [
        ("tiny", FEATURES, lambda p: p.features[:-1], r"of shape \(89, 16\), this size has \(90, 16\)"),
        ("tiny", FEATURES, lambda p: p.features[:, :8], r"of shape \(90, 8\), this size has \(90, 16\)"),
        (
            "tiny",
            FEATURES,
            lambda p: p.features.astype(np.float16),
            "holds float16 values, wanted are float32",
        ),
        ("tiny", FEATURES, lambda p: np.asfortranarray(p.features), "is in Fortran order"),
        ("tiny", FEATURES, lambda p: p.features.astype(">f4"), "holds big-endian float32"),
        ("tiny", FEATURES, lambda p: p.features.tobytes(), r"does not begin like a \.npy file"),
        ("tiny", LABELS, lambda p: p.labels.tobytes(), r"does not begin like a \.npy file"),
        ("tiny", LABELS, lambda p: p.labels[:-1], r"of shape \(89,\), this size has \(90,\)"),
        ("tiny", LABELS, lambda p: p.labels + 19, "the data set has 19 classes"),
        ("tiny", LABELS, lambda p: p.labels * np.nan, "54 of 54 training nodes have no label"),
        ("tiny", EDGES, lambda p: p.edges, r"of shape \(2, 400\), wanted edges \(E, 2\)"),
        ("large", EDGES, lambda p: p.edges.T.tobytes(), r"does not begin like a \.npy file"),
        ("large", FEATURES, lambda p: p.features, None),
        ("large", FEATURES, lambda p: p.features[:-1], r"of shape \(89, 16\), this size has \(90, 16\)"),
        ("large", FEATURES, lambda p: p.features.tobytes()[:-4], "has 5756 bytes and no header"),
        ("large", FEATURES, lambda p: p.features.tobytes() + b"1", "are 5760 bytes: it is cut short, or of"),
        (
            "full",
            LABELS,
            lambda p: p.labels.tobytes()[:-1],
            r"has 359 bytes and no header, \(90,\) of float32",
        ),
    ],
)
def test_headers_and_sizes_that_do_not_fit_are_named(
    tmp_path: Path, papers: SmallPapers, size: str, file: str, change: Any, message: str | None
) -> None:
    path = write_igb(tmp_path, size, papers, header=SMALL[size].header) / file
    content = change(papers)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    if message is None:
        igb_parts(size, 19, tmp_path)
        return
    with pytest.raises(FormatError, match=message) as caught:
        convert_source(f"igb-{size}", tmp_path / "out", raw_root=tmp_path)
    assert path.name in str(caught.value) and not (tmp_path / "out").exists()


@pytest.mark.usefixtures("small_sizes")
def test_a_file_of_another_size_is_refused_by_the_published_counts(
    tmp_path: Path, papers: SmallPapers, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_igb(tmp_path, "tiny", papers).rename(tmp_path / "small")
    with pytest.raises(FormatError, match=r"of shape \(90, 16\), this size has \(1000000, 16\)"):
        igb_parts("small", 19, tmp_path)


@pytest.mark.usefixtures("small_sizes")
@pytest.mark.parametrize("file", [FEATURES, LABELS, EDGES])
def test_files_that_are_missing_are_named(tmp_path: Path, papers: SmallPapers, file: str) -> None:
    path = write_igb(tmp_path, "tiny", papers) / file
    path.unlink()
    with pytest.raises(FormatError, match=f"{path.name} is missing"):
        igb_parts("tiny", 19, tmp_path)


def test_where_the_raw_files_come_from_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"igb-small are not there: .*/small/processed is wanted; get"
    ):
        convert_source("igb-small", tmp_path / "out")


@pytest.mark.parametrize("size", SIZES)
def test_names_and_numbers_of_classes(size: str) -> None:
    assert find_source(f"IGB-{size}").identity == {"kind": "igb", "size": size, "num_classes": 19}
    for source in (find_source(f"igb-{size}", 2983), find_source(f"igb-{size}:2983")):
        assert source.identity["num_classes"] == 2983 and source.folder == f"igb-{size}-2983"
    assert config_name(f"igb-{size}") == find_source(f"igb-{size}").config == "igb"
    with pytest.raises(SettingsError, match="--num-classes is 20, IGB has labels of 19 and of 2983 classes"):
        find_source(f"igb-{size}", 20)


@pytest.mark.usefixtures("small_sizes")
def test_a_data_set_with_other_labels_is_not_reused(tmp_path: Path, papers: SmallPapers) -> None:
    write_igb(tmp_path / "raw", "tiny", papers)
    path = prepare("igb-tiny", tmp_path).path
    with pytest.raises(SettingsError, match="has 19 classes, --num-classes is 2983"):
        prepare(str(path), tmp_path, num_classes=2983)
    with pytest.raises(SettingsError, match="has 19 classes, --num-classes is 2983"):
        convert_source(str(path), tmp_path / "out", num_classes=2983)


def test_splits_of_hundreds_of_millions_of_nodes_are_ranges() -> None:
    splits = igb._splits(227_130_858)
    assert splits == {
        "train": range(136_278_514),
        "val": range(136_278_514, 181_704_685),
        "test": range(181_704_685, 227_130_858),
    }
