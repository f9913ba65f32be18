"""DeviceKernel: which gather-decode kernel decodes a codec's rows, with what parameters, in what blocks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LANE_BYTES = 16
"""Of a decoded row, that a lane makes at once."""

SHORT_ROW_BYTES = 32 * LANE_BYTES
"""Rows of so many bytes are made by the lanes of a warp at once."""

SHORT_WARPS = 8
"""In a block of a kernel for short rows."""

LONG_WARPS = 4
"""In a block of a kernel for others."""


@dataclass(frozen=True)
class DeviceKernel:
    """The kernel that decodes a codec's rows: function `kernel` of kernels/cuda/MODULE.cu.

    table:        uint32, the codec's parameters as the kernel reads them, to be brought to the device.
    head_bytes:   what an encoded row begins with, and what tells its size; 0 where nothing does.
    warps:        in a block.
    blocks_per_processor: that run at once, as their registers and shared memory allow.
    rows_at_once: that a warp makes side by side.
    """

    module: str
    kernel: str
    table: NDArray[np.uint32]
    head_bytes: int
    warps: int
    blocks_per_processor: int
    rows_at_once: int = 1


def lanes_for(row_bytes: int) -> int:
    """Lanes of a warp that make a row together."""
    return next((lanes for lanes in (8, 16) if row_bytes <= lanes * LANE_BYTES), 32)


def padded(values: NDArray[np.unsignedinteger], num_values: int) -> NDArray[np.unsignedinteger]:
    """`values`, little-endian, filled up with zeros to a multiple of `num_values`, at least once."""
    num_groups = max(1, -(-len(values) // num_values))
    whole = np.zeros(num_groups * num_values, values.dtype.newbyteorder("<"))
    whole[: len(values)] = values
    return whole


def table_of(*parts: NDArray[np.unsignedinteger]) -> NDArray[np.uint32]:
    """The bytes of the parts, one behind the other."""
    return np.frombuffer(b"".join(part.tobytes() for part in parts), np.uint32)
