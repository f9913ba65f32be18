"""Edges block by block: the same edges from wherever one starts, and nothing but edges."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from gnn_ibp.conversion.row_stream import ArrayRows, IteratedRows, RowStream, TakenRows, skip_rows
from gnn_ibp.conversion.sparse_rows import sparse_tensor_rows
from gnn_ibp.dataset import Dataset
from gnn_ibp.edges import edge_stream
from gnn_ibp.edges.edge_stream import ArrayEdges, EdgeStream, as_edge_stream
from gnn_ibp.graph import build_csc
from gnn_ibp.row_type import RowType

EDGES = np.random.default_rng(0).integers(0, 50, (2, 1000))


class EdgesInPieces:
    """Edges of an array, `piece` at a time; says that there are `announced`."""

    def __init__(self, edges: np.ndarray, piece: int, announced: int | None = None) -> None:
        self._edges, self._piece = edges, piece
        self.num_edges = edges.shape[1] if announced is None else announced
        self.dtype = edges.dtype

    def blocks(self, first: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for at in range(first, self._edges.shape[1], self._piece):
            src, dst = self._edges[:, at : at + self._piece]
            yield src, dst


@pytest.mark.parametrize("first", [0, 1, 64, 999, 1000])
def test_edges_come_in_order_from_any_edge_on(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    monkeypatch.setattr(edge_stream, "BLOCK_EDGES", 64)
    blocks = list(ArrayEdges(*EDGES).blocks(first))
    assert all(len(src) == len(dst) <= 64 for src, dst in blocks)
    seen = np.concatenate([np.empty((2, 0), np.int64), *map(np.stack, blocks)], axis=1)
    np.testing.assert_array_equal(seen, EDGES[:, first:])


@pytest.mark.parametrize("given", [EDGES, torch.from_numpy(EDGES), (EDGES[0], EDGES[1].astype(np.int32))])
def test_arrays_of_edges_become_streams(given: object) -> None:
    stream = as_edge_stream(given)
    assert isinstance(stream, EdgeStream) and (stream.num_edges, stream.dtype) == (1000, np.int64)
    np.testing.assert_array_equal(np.concatenate(list(stream.blocks()), axis=1), EDGES)


def test_a_stream_of_edges_makes_the_data_set_that_its_array_makes(tmp_path: Path) -> None:
    for name, edges in {"array": EDGES, "stream": EdgesInPieces(EDGES, 77)}.items():
        Dataset.from_arrays(tmp_path / name, edge_index=edges, num_nodes=50, undirected=True, name="same")
    for path in (tmp_path / "array").iterdir():
        assert path.read_bytes() == (tmp_path / "stream" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (EdgesInPieces(EDGES, 64, announced=1001), "1000 edges came, 1001 were announced"),
        (EdgesInPieces(EDGES, 64, announced=999), "more edges come than the 999"),
    ],
)
def test_another_number_of_edges_than_was_announced_is_an_error(stream: EdgeStream, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        build_csc(stream, 50)


ROWS = np.random.default_rng(1).integers(0, 3, (300, 4)).astype(np.float32)


def streams() -> dict[str, RowStream]:
    return {
        "array": ArrayRows(ROWS),
        "iterated": IteratedRows(iter([ROWS[:100], ROWS[100:130], ROWS[130:]]), "x"),
        "taken": TakenRows(ArrayRows(ROWS[::-1].copy()), np.arange(300)[::-1].copy()),
        "sparse": sparse_tensor_rows(torch.from_numpy(ROWS).to_sparse(), "x"),
    }


@pytest.mark.parametrize("first_row", [0, 1, 130, 299, 300])
@pytest.mark.parametrize("name", streams())
def test_rows_come_in_order_from_any_row_on(name: str, first_row: int) -> None:
    rows = [np.asarray(block) for block in streams()[name].blocks(first_row)]
    np.testing.assert_array_equal(np.concatenate([ROWS[:0], *rows]), ROWS[first_row:])


def test_skipped_rows_are_left_out_across_blocks() -> None:
    blocks = [ROWS[:10], ROWS[10:20], ROWS[20:30]]
    assert [len(block) for block in skip_rows(blocks, 15)] == [5, 10]
    assert RowType.of(next(iter(skip_rows(blocks, 15)))) == RowType.of(ROWS)
