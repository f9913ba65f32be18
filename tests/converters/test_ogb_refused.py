"""Folders of OGB that are incomplete, damaged or another data set's: told by file, with the reason."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ogb_folders import SmallGraph, write_csv, write_raw_folder
from ogb_parts import PAPERS, edges_of, parts_of

from gnn_ibp.converters.ogb_table import NOT_YET
from gnn_ibp.converters.prepare import convert_source, prepare
from gnn_ibp.converters.sources import find_source
from gnn_ibp.errors import FormatError, SettingsError


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


def test_a_data_set_made_of_one_is_not_taken_for_another(tmp_path: Path) -> None:
    graph = SmallGraph()
    write_raw_folder(tmp_path / "raw", "ogbn-arxiv", graph)
    prepare("ogbn-arxiv", tmp_path).path.rename(tmp_path / "ogbn-products")
    with pytest.raises(SettingsError, match=r"was made from .*'ogbn-arxiv'"):
        prepare("ogbn-products", tmp_path)
