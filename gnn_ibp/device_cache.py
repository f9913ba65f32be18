"""The caches of a device: which rows in its own memory, which in host memory, within two budgets."""

from typing import TYPE_CHECKING

import torch
from numpy.typing import ArrayLike

from gnn_ibp.cache import RowCache
from gnn_ibp.feature_file import FeatureFile

if TYPE_CHECKING:
    from gnn_ibp.cuda import Cuda


def device_caches(
    cuda: "Cuda",
    file: FeatureFile,
    hot_ids: ArrayLike | torch.Tensor,
    cache_bytes: int,
    host_bytes: int,
    *,
    progress: str | None = "filling the caches",
) -> list[RowCache]:
    """The "cache" in device memory and the "host" rows in page-locked memory, for `TieredRows`.

    hot_ids: integers, hottest first. cache_bytes: of device memory, the tables of both caches included.
    host_bytes: of page-locked memory for the host rows. Neither is exceeded.
    """
    return [
        RowCache.empty(file.codec, file.row_bytes),
        RowCache.fill(file, hot_ids, host_bytes, progress=progress),
    ]
