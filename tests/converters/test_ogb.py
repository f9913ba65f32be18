"""OGB's raw folders as a source: everything as it was, and as OGB's own readers give it."""

import gzip
import io
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ogb.io.read_graph_raw import read_binary_graph_raw, read_csv_graph_raw
from ogb_folders import SmallGraph, write_csv, write_raw_folder, write_split_dict

from gnn_ibp.converters.csv_edges import CsvEdges
from gnn_ibp.converters.csv_table import CsvRows
from gnn_ibp.converters.ogb import ogb_parts
from gnn_ibp.converters.ogb_table import NOT_YET, OGB_DATASETS, ogb_dataset
from gnn_ibp.converters.prepare import convert_source, prepare
from gnn_ibp.converters.sources import config_name, find_source
from gnn_ibp.converters.zip_edges import ZipEdges
from gnn_ibp.converters.zip_rows import ZipRows
from gnn_ibp.dataset import Dataset
from gnn_ibp.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.graph import build_csc

PAPERS = "ogbn-papers100M"


def parts_of(name: str, root: Path) -> DatasetParts:
    return ogb_parts(name, root, root, print)


def edges_of(parts: DatasetParts, first: int = 0) -> np.ndarray:
    blocks = list(parts.edge_index.blocks(first))
    return np.concatenate([np.stack(block) for block in blocks], axis=1) if blocks else np.empty((2, 0), int)


def rows_of(parts: DatasetParts, name: str, first: int = 0) -> np.ndarray:
    return np.concatenate([np.asarray(block) for block in parts.features[name].blocks(first)])


def file_rows(dataset: Dataset, name: str) -> np.ndarray:
    with dataset.feature_file(name) as file:
        out = np.empty((file.num_rows, *file.row_shape), file.dtype)
        file.read(np.arange(file.num_rows), out)
        return out


def ogb_reads(name: str, folder: Path) -> dict[str, Any]:
    """The graph as OGB's own readers of raw folders give it."""
    dataset = ogb_dataset(name)
    raw = str(folder / "raw")
    if dataset.binary:
        return read_binary_graph_raw(raw)[0]
    return read_csv_graph_raw(raw, dataset.add_inverse_edge, list(dataset.node_files))[0]


def replace_members(path: Path, changes: dict[str, Any], compression: int = zipfile.ZIP_STORED) -> None:
    """Writes an .npz anew: members as arrays, as bytes, or left out (None)."""
    with zipfile.ZipFile(path) as file:
        members: dict[str, Any] = {name: file.read(name) for name in file.namelist()}
    members |= {f"{name}.npy": content for name, content in changes.items()}
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            if content is not None:
                file.writestr(name, content if isinstance(content, bytes) else npy(content))


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


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
    np.testing.assert_array_equal(file_rows(dataset, "x"), graph.node_feat)
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
    monkeypatch.setattr("gnn_ibp.row_stream.BLOCK_BYTES", 5 * graph.node_feat[0].nbytes)
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
    monkeypatch.setattr("gnn_ibp.row_stream.BLOCK_BYTES", 1 << 15)
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


@pytest.mark.parametrize("name", [*NOT_YET, "ogbl-collab", "ogbg-molhiv"])
def test_what_is_not_there_yet_says_so(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is not there yet; names that work: .*ogbn-papers100M"):
        find_source(name)


@pytest.mark.parametrize(
    ("made", "asked", "looks"),
    [
        ("ogbn-arxiv", "ogbn-products", "ogbn-arxiv or ogbn-mag"),
        ("ogbn-arxiv", PAPERS, "ogbn-arxiv or ogbn-mag"),
        ("ogbn-products", "ogbn-arxiv", "ogbn-products"),
        (PAPERS, "ogbn-arxiv", PAPERS),
    ],
)
def test_the_folder_of_another_data_set_is_refused(tmp_path: Path, made: str, asked: str, looks: str) -> None:
    folder = write_raw_folder(tmp_path, made, SmallGraph())
    with pytest.raises(FormatError, match=f"is not the whole folder of {asked}.*it looks like {looks};"):
        parts_of(asked, folder)


def test_labels_beyond_the_classes_tell_of_another_data_set(tmp_path: Path) -> None:
    write_raw_folder(tmp_path, "ogbn-arxiv", SmallGraph(num_classes=47))
    with pytest.raises(
        FormatError, match=r"node-label\.csv\.gz: node \d+ has label 4[5-6], the data set has 40"
    ):
        parts_of("ogbn-arxiv", tmp_path)


@pytest.mark.parametrize("name", ["ogbn-arxiv", PAPERS])
def test_training_nodes_without_a_label_are_refused(tmp_path: Path, name: str) -> None:
    graph = SmallGraph(unlabelled=True)
    first, second = graph.split["train"][[3, 7]]
    graph.node_label[[first, second]] = np.nan
    write_raw_folder(tmp_path, name, graph)
    with pytest.raises(
        FormatError, match=f"node-label.*: 2 of 30 training nodes have no label .* the first is node {first}"
    ):
        parts_of(name, tmp_path)


@pytest.mark.parametrize("name", ["ogbn-arxiv", PAPERS])
def test_an_edge_of_a_node_that_does_not_exist_is_named(tmp_path: Path, name: str) -> None:
    graph = SmallGraph()
    graph.edge_index[1, 77] = 60
    write_raw_folder(tmp_path, name, graph)
    source = graph.edge_index[0, 77]
    with pytest.raises(IndexError, match=rf"edge 77 is \({source}, 60\), the 60 nodes have ids from 0 to 59"):
        convert_source(name, tmp_path / "out", raw_root=tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "file",
    [
        "raw/num-node-list.csv.gz",
        "raw/num-edge-list.csv.gz",
        "raw/node-feat.csv.gz",
        "raw/node-label.csv.gz",
        "raw/node_year.csv.gz",
        "split/time/valid.csv.gz",
    ],
)
def test_a_missing_or_cut_table_is_named(tmp_path: Path, file: str) -> None:
    graph = SmallGraph(num_nodes=2000, unlabelled=True)
    path = write_raw_folder(tmp_path, "ogbn-arxiv", graph) / file
    content = path.read_bytes()
    for cut in (len(content) - 9, len(content) // 2, 3):
        path.write_bytes(content[:cut])
        with pytest.raises(FormatError, match=rf"{path.name} (is cut short|cannot be read)"):
            convert_source("ogbn-arxiv", tmp_path / "out", raw_root=tmp_path)
    path.unlink()
    with pytest.raises(FormatError, match=f"{path.name} is missing"):
        convert_source("ogbn-arxiv", tmp_path / "out", raw_root=tmp_path)


@pytest.mark.parametrize(
    ("file", "rows", "message"),
    [
        ("edge", [[1, 2], [3, 4]], r"edge\.csv\.gz holds fewer than the 240 edges announced"),
        ("edge", np.ones((241, 2), int), r"edge\.csv\.gz holds more than the 240 edges announced"),
        ("edge", np.ones((240, 3), int), r"edge\.csv\.gz has 3 columns, wanted source and target"),
        ("edge", np.full((240, 2), 1.5), r"edge\.csv\.gz cannot be read as int64 numbers"),
        ("num-node-list", [60, 60], "wanted the count of a single graph"),
        ("num-node-list", [61], r"node-label\.csv\.gz has 60 labels, the graph has 61 nodes"),
        ("num-edge-list", [-1], "wanted the count of a single graph"),
        ("node-feat", np.ones((59, 8)), r"node-feat\.csv\.gz does not hold 60 rows of 8 numbers; 59 were"),
        ("node-feat", np.ones((61, 8)), r"node-feat\.csv\.gz does not hold 60 rows"),
        ("node-label", np.ones((60, 2)), r"node-label\.csv\.gz holds float64 \(2,\) for a node"),
        ("node-label", np.full(60, 0.5), r"node-label\.csv\.gz: node 0 has label 0\.5, classes are whole"),
        ("node-label", np.full(60, np.inf), r"node 0 has label inf, classes are whole"),
        ("node_year", np.full((60, 1), 0.5), r"node_year\.csv\.gz cannot be read as int64"),
    ],
)
def test_tables_that_do_not_fit_are_named_with_the_reason(
    tmp_path: Path, file: str, rows: Any, message: str
) -> None:
    folder = write_raw_folder(tmp_path, "ogbn-arxiv", SmallGraph())
    write_csv(folder / "raw" / f"{file}.csv.gz", rows)
    with pytest.raises(FormatError, match=message):
        convert_source("ogbn-arxiv", tmp_path / "out", raw_root=tmp_path)
    assert not (tmp_path / "out").exists()


def test_text_in_a_table_is_named(tmp_path: Path) -> None:
    folder = write_raw_folder(tmp_path, "ogbn-arxiv", SmallGraph())
    with gzip.open(folder / "raw" / "edge.csv.gz", "wt") as file:
        file.write("1,2\n3,four\n")
    with pytest.raises(
        FormatError, match=r"edge\.csv\.gz cannot be read as int64 numbers, in a row from 0 on"
    ):
        convert_source("ogbn-arxiv", tmp_path / "out", raw_root=tmp_path)


FEATURES = SmallGraph().node_feat
EDGES = SmallGraph().edge_index


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("edge_index", None, r"edge_index\.npy is not there"),
        ("node_feat", None, r"node_feat\.npy is not there"),
        ("num_nodes_list", None, r"num_nodes_list\.npy is not there"),
        ("edge_index", np.asfortranarray(EDGES), r"edge_index\.npy is in Fortran order"),
        ("node_feat", np.asfortranarray(FEATURES), r"node_feat\.npy is in Fortran order"),
        ("edge_index", EDGES.astype(">i8"), r"edge_index\.npy is in foreign byte order \(>i8\)"),
        ("node_feat", FEATURES.astype(">f4"), r"node_feat\.npy is in foreign byte order \(>f4\)"),
        (
            "edge_index",
            EDGES.T.copy(),
            r"edge_index\.npy is int64 \(240, 2\), wanted int32 or int64 \(2, E\)",
        ),
        ("edge_index", EDGES * 1.0, r"edge_index\.npy is float64 \(2, 240\), wanted int32 or int64"),
        ("edge_index", npy(EDGES)[:-8], r"edge_index\.npy is cut short: 3840 bytes of values"),
        ("node_feat", npy(FEATURES)[:-1], r"node_feat\.npy is cut short"),
        ("edge_index", EDGES[:, :-1].copy(), "edge_index has 239 edges, num_edges_list says 240"),
        ("node_feat", FEATURES[:-1], "node_feat has 59 rows, num_nodes_list says 60"),
        ("node_year", FEATURES[:-1], "node_year has 59 rows, num_nodes_list says 60"),
        (
            "num_nodes_list",
            np.array([30, 30]),
            r"num_nodes_list is int64 \(2,\), wanted the count of a single",
        ),
    ],
)
def test_members_that_cannot_be_read_are_named_with_the_reason(
    tmp_path: Path, member: str, content: Any, message: str
) -> None:
    path = write_raw_folder(tmp_path, PAPERS, SmallGraph()) / "raw" / "data.npz"
    replace_members(path, {member: content})
    with pytest.raises(FormatError, match=message) as caught:
        convert_source(PAPERS, tmp_path / "out", raw_root=tmp_path)
    assert "data.npz" in str(caught.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("file", ["data.npz", "node-label.npz"])
def test_an_npz_file_that_is_missing_cut_or_damaged_is_named(
    tmp_path: Path, file: str, compress: bool
) -> None:
    graph = SmallGraph(num_nodes=500, num_columns=32)
    path = write_raw_folder(tmp_path, PAPERS, graph, compress=compress) / "raw" / file
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match=rf"{file} is no \.npz file, or it is cut short"):
        parts_of(PAPERS, tmp_path)
    damaged = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        largest = max(archive.infolist(), key=lambda info: info.compress_size)
    damaged[largest.header_offset + largest.compress_size // 2] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(FormatError, match=f"{file}: {largest.filename} cannot be read"):
        convert_source(PAPERS, tmp_path / "out", raw_root=tmp_path)
    path.unlink()
    with pytest.raises(FormatError, match="is missing" if "label" in file else "is not the whole folder"):
        parts_of(PAPERS, tmp_path)


@pytest.mark.parametrize("first", [0, 4999])
@pytest.mark.parametrize("at", [200, -1])
def test_a_bit_that_flipped_in_either_row_of_the_edges_is_named(tmp_path: Path, at: int, first: int) -> None:
    graph = SmallGraph(num_edges=5000)
    path = write_raw_folder(tmp_path, PAPERS, graph, compress=False) / "raw" / "data.npz"
    content = bytearray(path.read_bytes())
    begin = content.index(npy(graph.edge_index))
    parts = parts_of(PAPERS, tmp_path)
    np.testing.assert_array_equal(edges_of(parts, first), graph.edge_index[:, first:])
    content[begin + (at if at > 0 else len(npy(graph.edge_index)) - 8)] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        FormatError, match=r"data\.npz: edge_index\.npy cannot be read: its checksum is another"
    ):
        edges_of(parts_of(PAPERS, tmp_path), first)


def test_a_label_file_without_its_member_is_named(tmp_path: Path) -> None:
    path = write_raw_folder(tmp_path, PAPERS, SmallGraph()) / "raw" / "node-label.npz"
    replace_members(path, {"node_label": None, "label": np.zeros(60)})
    with pytest.raises(FormatError, match=r"node-label\.npz: node_label\.npy is not there"):
        parts_of(PAPERS, tmp_path)


@pytest.mark.parametrize("name", ["ogbn-products", PAPERS])
@pytest.mark.parametrize("stream", ["edges", "rows"])
def test_an_interrupted_conversion_goes_on_and_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stream: str
) -> None:
    graph = SmallGraph(num_nodes=3000, num_edges=9000, unlabelled=True)
    folder = write_raw_folder(tmp_path, name, graph)
    monkeypatch.setattr("gnn_ibp.row_stream.BLOCK_BYTES", 64 * graph.node_feat[0].nbytes)
    monkeypatch.setattr("gnn_ibp.feature_conversion.CHECKPOINT_BYTES", 640 * graph.node_feat[0].nbytes)
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


def test_a_data_set_made_of_one_is_not_taken_for_another(tmp_path: Path) -> None:
    graph = SmallGraph()
    write_raw_folder(tmp_path / "raw", "ogbn-arxiv", graph)
    prepare("ogbn-arxiv", tmp_path).path.rename(tmp_path / "ogbn-products")
    with pytest.raises(SettingsError, match=r"was made from .*'ogbn-arxiv'"):
        prepare("ogbn-products", tmp_path)
