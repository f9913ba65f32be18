"""Edges each followed by its reverse, as OGB reads files that hold every edge once."""

from collections.abc import Iterator

import numpy as np

from gnn_ibp.edges.edge_stream import Ends


def with_inverse(blocks: Iterator[tuple[Ends, Ends]], drop_first: bool) -> Iterator[tuple[Ends, Ends]]:
    """(u, v), (v, u) for every (u, v), twice as many edges; `drop_first` begins with the first reverse."""
    for src, dst in blocks:
        doubled = np.empty((2, 2 * len(src)), src.dtype)
        doubled[0, 0::2], doubled[1, 0::2] = src, dst
        doubled[0, 1::2], doubled[1, 1::2] = dst, src
        yield doubled[0, drop_first:], doubled[1, drop_first:]
        drop_first = False
