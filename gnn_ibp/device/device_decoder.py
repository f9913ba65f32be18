"""DeviceDecoder: the gather-decode kernel of one codec on one device, with what it needs there."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gnn_ibp.cuda import Cuda
from gnn_ibp.ops.device import MAX_ROW_BYTES, DeviceSource, initial_counts, launch_gather_decode
from gnn_ibp.row_codec import RowCodec


def decodes(codec: RowCodec) -> bool:
    """Whether there is a kernel for the codec's rows; else the CPU decodes them."""
    return codec.device_kernel is not None and codec.row_bytes <= MAX_ROW_BYTES


BUS_SHARE = 6
"""A launch that reads host memory takes one in so many of the device's processors.

Some hundred warps have as many reads under way as a bus answers at a time: 528 on an H200, of about 700
bytes each, where 55 GB/s at 2 µs are 110 KB. On all processors such a launch would, for the milliseconds that
it waits for the bus, hold the registers that the model's kernels need to run beside it.
"""


class _Part:
    """A part of a device's processors, for `launch_gather_decode`."""

    def __init__(self, cuda: Cuda) -> None:
        self.num_processors = -(-cuda.num_processors // BUS_SHARE)
        self.launch = cuda.launch


class DeviceDecoder:
    """codec: one that `decodes`. Its parameters come to the device in the order of the current stream.

    The kernel is compiled here, which may take seconds, not at the first read.
    """

    def __init__(self, cuda: Cuda, codec: RowCodec) -> None:
        kernel = codec.device_kernel
        assert kernel, "a codec without a kernel is decoded by the CPU"
        self.cuda = cuda
        self.codec = codec
        self._part = _Part(cuda)
        cuda.compile(kernel.module, kernel.kernel)
        self._table = cuda.upload(torch.from_numpy(kernel.table.view(np.int32).copy()))
        self._start_counts = cuda.upload(torch.from_numpy(initial_counts()))

    def gather(
        self,
        ids: Tensor,
        num_rows: int,
        sources: Sequence[DeviceSource | None],
        out: Tensor,
        at: Tensor | None,
        missing_ids: Tensor,
        missing_at: Tensor,
        counts: Tensor,
        *,
        over_bus: bool,
    ) -> None:
        """Queues one launch on the current stream; see `launch_gather_decode`. `counts` begin anew.

        over_bus: one of the sources lies in host memory; see `BUS_SHARE`.
        """
        self.cuda.share(self._table, self._start_counts)
        self.cuda.copy(counts, self._start_counts)
        launch_gather_decode(
            self._part if over_bus else self.cuda,
            self.codec,
            self._table,
            ids,
            num_rows,
            sources,
            out,
            at,
            missing_ids,
            missing_at,
            counts,
        )
