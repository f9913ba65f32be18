"""A conversion in a process of its own, small but with everything in it; for tests that kill it."""

import os
import sys
from pathlib import Path

import numpy as np

from gnn_ibp.conversion import feature_conversion, row_stream
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.conversion.row_stream import ArrayRows
from gnn_ibp.edges import csc_output, edge_stream, run_files
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.edges.edge_stream import ArrayEdges

NUM_NODES, NUM_EDGES = 6000, 60_000


def parts(seed: int = 0) -> DatasetParts:
    """Nodes and edges with features, floats and others, rows that are no multiple of a group."""
    rng = np.random.default_rng(seed)
    ends = (rng.random((2, NUM_EDGES)) ** 2 * NUM_NODES).astype(np.int32)
    return DatasetParts(
        name="killed",
        source={"kind": "test", "seed": seed},
        num_nodes=NUM_NODES,
        edge_index=ArrayEdges(*ends),
        labels=rng.integers(0, 9, NUM_NODES),
        splits={"train": np.arange(1000)},
        features={
            "x": ArrayRows(rng.standard_normal((NUM_NODES, 37)).astype(np.float32)),
            "z": ArrayRows(rng.integers(0, 100, (NUM_NODES, 16))),
        },
        edge_features={"w": ArrayRows(rng.standard_normal((NUM_EDGES, 3)))},
        edge_arrays={"edge_type": rng.integers(0, 3, NUM_EDGES)},
        arrays={"node_type": rng.integers(0, 3, NUM_NODES)},
    )


def make_everything_small(
    block_edges: int = 1000,
    checkpoint_edges: int = 8000,
    checkpoint_records: int = 9000,
    checkpoint_bytes: int = 200_000,
    block_bytes: int = 40_000,
    run_records: int = 5000,
    load_records: int = 3000,
    shift: int = 7,
) -> None:
    """Blocks, runs, loads and checkpoints, so that a kill finds each of them unfinished."""
    edge_stream.BLOCK_EDGES = block_edges
    run_files.CHECKPOINT_EDGES = checkpoint_edges
    csc_output.CHECKPOINT_RECORDS = checkpoint_records
    feature_conversion.CHECKPOINT_BYTES = checkpoint_bytes
    row_stream.BLOCK_BYTES = block_bytes
    EdgeSortPlan.run_records = property(lambda self: run_records)  # type: ignore[assignment,method-assign]
    EdgeSortPlan.load_records = property(lambda self: load_records)  # type: ignore[assignment,method-assign]
    EdgeSortPlan.shift = property(lambda self: shift)  # type: ignore[assignment,method-assign]


def convert(out: Path, seed: int = 0, **settings: bool) -> list[str]:
    """Converts within so little memory that edges go through files; returns what is said."""
    said: list[str] = []
    EdgeSortPlan.held = False  # type: ignore[assignment,method-assign]
    write_dataset(parts(seed), out, ConversionSettings(**{"undirected": True, **settings}), say=said.append)
    return said


if __name__ == "__main__":
    make_everything_small()
    os.fsync = lambda handle: None  # what was written outlives the process without it
    convert(Path(sys.argv[1]))
