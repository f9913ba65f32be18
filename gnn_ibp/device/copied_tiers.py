"""CopiedTiers: rows for a device that the CPU decodes, because no kernel can; then they are copied."""

import warnings

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gnn_ibp.cuda import Cuda
from gnn_ibp.device.locked_memory import LockedMemory
from gnn_ibp.device.staging import BUFFER_BYTES, StagingRing
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.host_tiers import HostTiers, Served
from gnn_ibp.read_request import Out, ReadRequest, check_wanted, device_bytes


class CopiedTiers:
    """The rows of `tiers`, copied to the device of `cuda` through page-locked memory."""

    def __init__(self, tiers: HostTiers, file: FeatureFile, cuda: Cuda) -> None:
        warnings.warn(
            f"rows of {file.path} are decoded by the CPU and copied to {cuda.device}, which is slower: "
            f"no kernel there decodes {file.codec!r}",
            stacklevel=3,
        )
        self._tiers = tiers
        self._file = file
        self._cuda = cuda
        memory = LockedMemory(cuda, "rows on their way to the device")
        self._staging = StagingRing(cuda, memory, max(BUFFER_BYTES, file.row_bytes))

    def read(
        self, ids: ArrayLike | torch.Tensor, out: Out, at: ArrayLike | torch.Tensor | None
    ) -> list[Served]:
        """See `TieredRows.read`. What each cache gave, and last the file."""
        file, cuda = self._file, self._cuda
        rows_out = device_bytes(out, file.row_type, cuda.device)
        wanted = check_wanted(
            _on_host(ids), None if at is None else _on_host(at), len(rows_out), file.num_rows
        )
        served = self._tiers.nothing()
        step = max(1, self._staging.buffer_bytes // max(1, file.row_bytes))
        for first in range(0, len(wanted.ids), step):
            some = wanted.ids[first : first + step]
            num_bytes = len(some) * file.row_bytes
            with self._staging.buffer() as buffer:
                rows = buffer.host[:num_bytes].view(len(some), file.row_bytes)
                found = self._tiers.read_checked(ReadRequest(some, rows.numpy(), None))
                if wanted.at is None:
                    cuda.copy(rows_out[first : first + len(some)], rows)
                else:
                    on_device = buffer.device(cuda, num_bytes).view_as(rows)
                    cuda.copy(on_device, rows)
                    some_at = torch.from_numpy(wanted.at[first : first + len(some)])
                    rows_out.index_copy_(0, cuda.upload(some_at), on_device)
            for total, tier in zip(served, found, strict=True):
                tier.pcie_bytes = tier.num_rows * file.row_bytes  # decoded: what else would cross the bus
                total.add(tier)
        return served


def _on_host(values: ArrayLike | Tensor) -> ArrayLike | Tensor:
    return values.cpu() if isinstance(values, Tensor) else values
