"""A launch that may touch the sectors of some rows alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from gather_cases import Case
from gather_check import sectors_of, served_rows, sources_of
from gather_launch import TiledCuda, launch
from kernel_launch import Argument, Readable


def launch_poisoned(case: Case, readable_ids: np.ndarray) -> np.ndarray:
    """Rows case.ids in order, where of the slabs only the sectors of rows `readable_ids` may be touched."""
    slabs, sources, device_sources = sources_of(case)
    ranges = {}
    served = served_rows(replace(case, ids=readable_ids), sources)
    for rows, slots, source in zip(slabs, served, device_sources, strict=True):
        sectors = np.concatenate([np.empty(0, np.int64), *sectors_of(rows, slots, case)])
        ranges[source.data.data_ptr()] = [(32 * s, 32 * s + 32) for s in np.unique(sectors).tolist()]

    def poison(_: str, arguments: Sequence[Argument]) -> Sequence[Argument]:
        return [
            Readable(a, ranges[a.data_ptr()]) if isinstance(a, torch.Tensor) and a.data_ptr() in ranges else a
            for a in arguments
        ]

    cuda = TiledCuda(sanitizer="address")
    cuda.prepare = poison
    return launch(cuda, case.codec, case.ids, len(case.rows), device_sources).out
