"""DeviceDecoder: the gather-decode kernel of one codec on one device, with what it needs there."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gnn_ibp.codec import RowCodec
from gnn_ibp.cuda import Cuda
from gnn_ibp.ops.device import MAX_ROW_BYTES, DeviceSource, initial_counts, launch_gather_decode


def decodes(codec: RowCodec) -> bool:
    """Whether there is a kernel for the codec's rows; else the CPU decodes them."""
    return codec.device_kernel is not None and codec.row_bytes <= MAX_ROW_BYTES


class DeviceDecoder:
    """codec: one that `decodes`. Its parameters come to the device in the order of the current stream."""

    def __init__(self, cuda: Cuda, codec: RowCodec) -> None:
        kernel = codec.device_kernel
        assert kernel, "a codec without a kernel is decoded by the CPU"
        self.cuda = cuda
        self.codec = codec
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
    ) -> None:
        """Queues one launch on the current stream; see `launch_gather_decode`. `counts` begin anew."""
        self.cuda.copy(counts, self._start_counts)
        launch_gather_decode(
            self.cuda,
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
