"""CopiedTiers: rows for a device that the CPU decodes, because no kernel can; they are copied then."""

from typing import TYPE_CHECKING

import torch
from numpy.typing import ArrayLike

from gnn_ibp import ops
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.host_tiers import HostTiers, Served
from gnn_ibp.read_request import DeviceRequest, Out, ReadRequest

if TYPE_CHECKING:
    from gnn_ibp.cuda import Cuda


class CopiedTiers:
    """The rows of `tiers`, copied to the device of `cuda`."""

    def __init__(self, tiers: HostTiers, file: FeatureFile, cuda: "Cuda") -> None:
        self._tiers = tiers
        self._file = file
        self._cuda = cuda

    def read(
        self, ids: ArrayLike | torch.Tensor, out: Out, at: ArrayLike | torch.Tensor | None
    ) -> list[Served]:
        """See `FeatureFile.read`; `out` is on the device, `ids` and `at` may be."""
        file = self._file
        request = DeviceRequest.checked(self._cuda, ids, out, at, file.num_rows, file.row_type)
        on_host = ops.check_ids(request.ids.cpu(), file.num_rows)
        rows = torch.empty(len(on_host), file.row_bytes, dtype=torch.uint8)
        served = self._tiers.read_checked(ReadRequest(on_host, rows.numpy(), None))
        on_device = self._cuda.upload(rows)
        if request.at is None:
            request.out.copy_(on_device)
        else:
            request.out.index_copy_(0, request.at, on_device)
        return served
