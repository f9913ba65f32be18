"""OGB's raw folders as a source: everything as it was, and as OGB's own readers give it."""

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ogb.io.read_graph_raw import read_binary_graph_raw, read_csv_graph_raw
from ogb_folders import SmallGraph, write_raw_folder, write_split_dict
from ogb_parts import PAPERS, edges_of, parts_of
from some_rows import feature_rows

from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.converters.csv_edges import CsvEdges
from gnn_ibp.converters.csv_table import CsvRows
from gnn_ibp.converters.ogb_table import OGB_DATASETS, ogb_dataset
from gnn_ibp.converters.prepare import convert_source, prepare
from gnn_ibp.converters.sources import config_name, find_source
from gnn_ibp.converters.zip_edges import ZipEdges
from gnn_ibp.converters.zip_rows import ZipRows
from gnn_ibp.errors import FormatError
from gnn_ibp.graph import build_csc


def rows_of(parts: DatasetParts, name: str, first: int = 0) -> np.ndarray:
    return np.concatenate([np.asarray(block) for block in parts.features[name].blocks(first)])


def ogb_reads(name: str, folder: Path) -> dict[str, Any]:
    """The graph as OGB's own readers of raw folders give it."""
    dataset = ogb_dataset(name)
    raw = str(folder / "raw")
    if dataset.binary:
        return read_binary_graph_raw(raw)[0]
    return read_csv_graph_raw(raw, dataset.add_inverse_edge, list(dataset.node_files))[0]


@pytest.mark.parametrize(
    ("name", "compress"),
    [("ogbn-arxiv", True), ("ogbn-products", True), (PAPERS, True), (PAPERS, False)],
)
def test_parts_are_what_the_files_were_made_of_and_what_ogb_reads(
    tmp_path: Path, name: str, compress: bool
) -> None:
    graph = SmallGraph(unlabelled=name == PAPERS)
    folder = write_raw_folder(tmp_path, name, graph, compress=compress)
    parts, theirs = parts_of(name, tmp_path), ogb_reads(name, folder)
    np.testing.assert_array_equal(edges_of(parts), theirs["edge_index"])
    given = edges_of(parts)[:, :: 1 + ogb_dataset(name).add_inverse_edge]
    np.testing.assert_array_equal(given, graph.edge_index)
    assert parts.num_edges == theirs["edge_index"].shape[1] and parts.num_nodes == theirs["num_nodes"] == 60
    np.testing.assert_array_equal(rows_of(parts, "x").view(np.uint32), theirs["node_feat"].view(np.uint32))
    np.testing.assert_array_equal(rows_of(parts, "x"), graph.node_feat)
    for extra in ogb_dataset(name).node_files:
        np.testing.assert_array_equal(rows_of(parts, extra), theirs[extra])
        np.testing.assert_array_equal(rows_of(parts, extra), graph.node_year)
    wanted = np.nan_to_num(graph.node_label[:, 0], nan=-1).astype(np.int64)
    assert parts.labels is not None and parts.labels.dtype.kind == "i"
    np.testing.assert_array_equal(parts.labels, wanted)
    for theirs_name, ours in (("train", "train"), ("valid", "val"), ("test", "test")):
        np.testing.assert_array_equal(parts.splits[ours], graph.split[theirs_name])
    assert parts.num_classes == ogb_dataset(name).num_classes and parts.metric == "accuracy"


@pytest.mark.parametrize(
    ("name", "undirected"), [("ogbn-arxiv", True), ("ogbn-products", False), (PAPERS, True)]
)
def test_a_data_set_holds_what_ogb_reads(tmp_path: Path, name: str, undirected: bool) -> None:
    graph = SmallGraph(unlabelled=True)
    theirs = ogb_reads(name, write_raw_folder(tmp_path / "raw", name, graph))
    dataset = prepare(name.upper(), tmp_path, settings=ConversionSettings(undirected=undirected))
    assert dataset.path == tmp_path / f"{name}{'-undirected' * undirected}"
    built = build_csc(theirs["edge_index"], graph.num_nodes, undirected=undirected).graph
    np.testing.assert_array_equal(dataset.graph.indptr, built.indptr)
    np.testing.assert_array_equal(dataset.graph.indices, built.indices)
    np.testing.assert_array_equal(feature_rows(dataset, "x"), graph.node_feat)
    assert dataset.y is not None and dataset.meta.source["dataset"] == name
    np.testing.assert_array_equal(dataset.split["val"].numpy(), graph.split["valid"])


@pytest.mark.parametrize("name", ["ogbn-arxiv", "ogbn-products", PAPERS])
def test_streams_can_be_entered_anywhere_and_come_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    graph = SmallGraph()
    write_raw_folder(tmp_path, name, graph, compress=False)
    for module in ("csv_edges", "zip_edges"):
        monkeypatch.setattr(f"gnn_ibp.converters.{module}.BLOCK_EDGES", 14)
    monkeypatch.setattr("gnn_ibp.conversion.row_stream.BLOCK_BYTES", 5 * graph.node_feat[0].nbytes)
    parts = parts_of(name, tmp_path)
    edges, rows = edges_of(parts), rows_of(parts, "x")
    assert max(len(src) for src, _ in parts.edge_index.blocks()) <= 14
    assert max(len(block) for block in parts.features["x"].blocks()) <= 5
    for first in (1, 13, 14, 15, 100, parts.num_edges - 1, parts.num_edges):
        np.testing.assert_array_equal(edges_of(parts, first), edges[:, first:])
    for first in (1, 5, 33, graph.num_nodes - 1):
        np.testing.assert_array_equal(rows_of(parts, "x", first), rows[first:])
    sample = np.asarray(parts.features["x"].sample(seed=0))
    np.testing.assert_array_equal(sample, rows)


def test_rows_of_a_compressed_and_of_a_stored_member_are_the_same(tmp_path: Path) -> None:
    graph = SmallGraph(num_edges=5000)
    for compress in (True, False):
        write_raw_folder(tmp_path / str(compress), PAPERS, graph, compress=compress)
    one, other = (parts_of(PAPERS, tmp_path / str(compress)) for compress in (True, False))
    for first in (0, 4321):
        np.testing.assert_array_equal(edges_of(one, first), edges_of(other, first))


@pytest.mark.parametrize("compress", [True, False])
def test_streams_of_a_large_file_hold_a_few_blocks_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: bool
) -> None:
    graph = SmallGraph(num_nodes=20_000, num_edges=250_000, num_columns=64)
    write_raw_folder(tmp_path, PAPERS, graph, compress=compress)
    monkeypatch.setattr("gnn_ibp.converters.zip_edges.BLOCK_EDGES", 1 << 12)
    monkeypatch.setattr("gnn_ibp.conversion.row_stream.BLOCK_BYTES", 1 << 15)
    parts = parts_of(PAPERS, tmp_path)
    assert min(graph.edge_index.nbytes, graph.node_feat.nbytes) > 7 << 19
    for blocks in (parts.edge_index.blocks(249_000), parts.edge_index.blocks(), parts.features["x"].blocks()):
        tracemalloc.start()
        for _ in blocks:
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 << 19


def test_the_raw_root_is_ogbs_root_or_the_folder_itself(tmp_path: Path) -> None:
    graph = SmallGraph()
    folder = write_raw_folder(tmp_path, "ogbn-arxiv", graph)
    for root in (tmp_path, folder):
        np.testing.assert_array_equal(rows_of(parts_of("ogbn-arxiv", root), "x"), graph.node_feat)


def test_a_split_may_be_one_saved_dictionary(tmp_path: Path) -> None:
    graph = SmallGraph()
    folder = write_raw_folder(tmp_path, PAPERS, graph)
    write_split_dict(folder / "split" / "time", graph.split)
    np.testing.assert_array_equal(parts_of(PAPERS, tmp_path).splits["val"], graph.split["valid"])
    write_split_dict(
        folder / "split" / "time", {"train": graph.split["train"], "valid": graph.split["valid"]}
    )
    with pytest.raises(FormatError, match=r"split_dict\.pt: test is missing"):
        parts_of(PAPERS, tmp_path)
    write_split_dict(folder / "split" / "time", graph.split | {"test": "all others"})
    with pytest.raises(FormatError, match=r"split_dict\.pt: test is str , wanted node ids"):
        parts_of(PAPERS, tmp_path)


@pytest.mark.parametrize("name", OGB_DATASETS)
def test_names_are_found_however_they_are_spelled(name: str) -> None:
    for spelled in (name, name.lower(), name.upper()):
        source = find_source(spelled)
        assert source.name == source.folder == name
        assert source.identity == {"kind": "ogb", "dataset": name, "version": 1}
        assert config_name(spelled) == source.config == name.lower()


@pytest.mark.slow
def test_ogb_itself_is_not_imported() -> None:
    code = (
        "import sys; from gnn_ibp.converters.sources import find_source; find_source('ogbn-arxiv');"
        "sys.exit('ogb' in sys.modules or 'outdated' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", ["ogbn-products", PAPERS])
@pytest.mark.parametrize("stream", ["edges", "rows"])
def test_an_interrupted_conversion_goes_on_and_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stream: str
) -> None:
    graph = SmallGraph(num_nodes=3000, num_edges=9000, unlabelled=True)
    folder = write_raw_folder(tmp_path, name, graph)
    monkeypatch.setattr("gnn_ibp.conversion.row_stream.BLOCK_BYTES", 64 * graph.node_feat[0].nbytes)
    row_bytes = graph.node_feat[0].nbytes
    monkeypatch.setattr("gnn_ibp.conversion.feature_conversion.CHECKPOINT_BYTES", 640 * row_bytes)
    whole = convert_source(name, tmp_path / "whole", raw_root=tmp_path)
    once = iter([True])

    def cut(blocks: Any) -> Any:
        for number, block in enumerate(blocks):
            if number == (1 if stream == "edges" else 30) and next(once, False):
                raise KeyboardInterrupt
            yield block

    source, reader = (CsvEdges, "_given") if stream == "edges" else (CsvRows, "_blocks")
    if name == PAPERS:
        source, reader = (ZipEdges, "_ends") if stream == "edges" else (ZipRows, "_blocks")
    real = getattr(source, reader)
    monkeypatch.setattr(source, reader, lambda *arguments: cut(real(*arguments)))
    monkeypatch.setattr("gnn_ibp.converters.csv_edges.BLOCK_EDGES", 1000)
    monkeypatch.setattr("gnn_ibp.converters.zip_edges.BLOCK_EDGES", 1000)
    with pytest.raises(KeyboardInterrupt):
        convert_source(name, tmp_path / "out", raw_root=folder)
    said: list[str] = []
    out = convert_source(name, tmp_path / "out", raw_root=folder, say=said.append)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == {
        p.name: p.read_bytes() for p in whole.iterdir()
    }
    if stream == "rows":
        assert any("going on" in line for line in said), said
