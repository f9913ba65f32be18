"""The arguments of a read, checked once by the outermost reader."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gnn_ibp import ops
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import Bytes, Ids

if TYPE_CHECKING:
    from gnn_ibp.cuda import Cuda

Out = torch.Tensor | NDArray[Any]


class ReadRequest(NamedTuple):
    """Row ids[i] goes to out[at[i]], or to out[i] where `at` is None.

    ids: int64 (n,), valid. out: uint8 (num_out, row_bytes). at: int64 (n,), inside of `out`.
    """

    ids: Ids
    out: Bytes
    at: Ids | None

    @classmethod
    def checked(
        cls,
        ids: ArrayLike | torch.Tensor,
        out: Out,
        at: ArrayLike | torch.Tensor | None,
        num_rows: int,
        row_type: RowType,
    ) -> "ReadRequest":
        """Checks what a user passed to `read`; nothing is written before.

        Raises IndexError for ids that are no rows and places outside of `out`, TypeError for other dtypes,
        ValueError for other shapes.
        """
        good_ids = ops.check_ids(ids, num_rows)
        out_bytes = row_type.out_bytes(out)
        if at is None and len(out_bytes) != len(good_ids):
            raise ValueError(f"out has {len(out_bytes)} rows, there are {len(good_ids)} ids")
        places = None if at is None else _check_places(at, len(good_ids), len(out_bytes))
        return cls(good_ids, out_bytes, places)


class DeviceRequest(NamedTuple):
    """The same on a device, where the ids are not checked yet: kernels do that as they read.

    ids: int64 (n,). out: uint8 (num_out, row_bytes). at: int64 (n,), inside of `out`. All on the device.
    """

    ids: torch.Tensor
    out: torch.Tensor
    at: torch.Tensor | None

    @classmethod
    def checked(
        cls,
        cuda: "Cuda",
        ids: ArrayLike | torch.Tensor,
        out: Out,
        at: ArrayLike | torch.Tensor | None,
        num_rows: int,
        row_type: RowType,
    ) -> "DeviceRequest":
        """Checks what a user passed to `read`, but for the values of ids that are on the device already.

        ids, at: on the device, or anywhere else, from where they are copied; `at` is looked at even on the
        device, which waits for it. out: on the device. Raises as `ReadRequest.checked`.
        """
        if not isinstance(out, torch.Tensor):
            raise TypeError(f"out must be a torch tensor on {cuda.device}, got {type(out).__name__}")
        out_bytes = row_type.tensor_bytes(out, cuda.device)
        if isinstance(ids, torch.Tensor) and ids.device == cuda.device:
            good_ids = _device_ids(ids)
        else:
            good_ids = cuda.upload(torch.from_numpy(ops.check_ids(ids, num_rows)))
        if at is None and len(out_bytes) != len(good_ids):
            raise ValueError(f"out has {len(out_bytes)} rows, there are {len(good_ids)} ids")
        if at is None:
            return cls(good_ids, out_bytes, None)
        on_host = at.cpu() if isinstance(at, torch.Tensor) else at
        places = _check_places(on_host, len(good_ids), len(out_bytes))
        return cls(good_ids, out_bytes, cuda.upload(torch.from_numpy(places)))


def _device_ids(ids: torch.Tensor) -> torch.Tensor:
    if ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
        hint = "; a mask becomes ids by mask.nonzero()" if ids.dtype == torch.bool else ""
        raise TypeError(f"ids have dtype {ids.dtype}, want integers{hint}")
    if ids.ndim != 1:
        raise ValueError(f"ids have shape {tuple(ids.shape)}, want one dimension")
    return ids.to(torch.int64).contiguous()


def _check_places(at: ArrayLike | torch.Tensor, num_ids: int, num_out: int) -> Ids:
    places = np.asarray(at)
    if places.dtype.kind not in "iu" and places.size:
        raise TypeError(f"at has dtype {places.dtype}, integers are wanted")
    if places.shape != (num_ids,):
        raise ValueError(f"at has shape {places.shape}, there are {num_ids} ids")
    if num_ids and not (int(places.min()) >= 0 and int(places.max()) < num_out):
        raise IndexError(
            f"at has places from {places.min()} to {places.max()}, out has rows 0 to {num_out - 1}"
        )
    return np.ascontiguousarray(places, np.int64)
