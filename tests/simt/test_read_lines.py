"""The kernel that reads raw lines, the yardstick of measurements on a GPU."""

import numpy as np
import pytest
import torch
from simt_cuda import SimtCuda


@pytest.mark.parametrize("row_units, row_stride", [(1, 8), (8, 8), (25, 32), (32, 32), (47, 48)])
@pytest.mark.parametrize("num_ids", [1, 3, 4, 37])
def test_rows_are_copied_by_id(row_units: int, row_stride: int, num_ids: int):
    cuda = SimtCuda()
    rng = np.random.default_rng(num_ids)
    rows = torch.from_numpy(rng.integers(0, 256, (50, row_stride * 16), np.uint8))
    ids = torch.from_numpy(rng.integers(0, 50, num_ids))
    out = torch.zeros(num_ids + 1, row_units * 16, dtype=torch.uint8)
    scalars = [np.int64(num_ids), np.int64(row_stride), np.int32(row_units)]
    cuda.launch("read_lines", "read_lines", 2, 64, [rows, ids, *scalars, out])
    assert torch.equal(out[:-1], rows[ids, : row_units * 16])
    assert not out[-1].any()
    cuda.launch("read_lines", "read_lines", 2, 64, [rows, None, *scalars, out])
    assert torch.equal(out[:-1], rows[:num_ids, : row_units * 16])
