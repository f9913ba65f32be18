"""The arguments of a read, checked once by the outermost reader."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gnn_ibp import ops
from gnn_ibp.cuda import Cuda
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import Bytes, Ids

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
        out_bytes = row_type.out_bytes(out)
        wanted = check_wanted(ids, at, len(out_bytes), num_rows)
        return cls(wanted.ids, out_bytes, wanted.at)


class DeviceRequest(NamedTuple):
    """The same on a device, where values are not checked yet: the kernel that reads them does that.

    ids: int64 (n,). out: uint8 (num_out, row_bytes). at: int64 (n,). All on the device.
    """

    ids: torch.Tensor
    out: torch.Tensor
    at: torch.Tensor | None

    @classmethod
    def checked(
        cls,
        cuda: Cuda,
        ids: ArrayLike | torch.Tensor,
        out: Out,
        at: ArrayLike | torch.Tensor | None,
        num_rows: int,
        row_type: RowType,
    ) -> "DeviceRequest":
        """Checks what a user passed to `read`, but for the values of `ids` and `at` that are on the device.

        These may also be elsewhere, and are copied; `out` is on the device. Raises as `ReadRequest.checked`.
        """
        out_bytes = device_bytes(out, row_type, cuda.device)
        if isinstance(ids, torch.Tensor) and ids.device == cuda.device:
            good_ids = _device_ids(ids)
        else:
            good_ids = cuda.upload(ops.ids_tensor(ops.check_ids(ids, num_rows)))
        if at is None:
            _check_same_length(len(good_ids), len(out_bytes))
            return cls(good_ids, out_bytes, None)
        if not isinstance(at, torch.Tensor) or at.device != cuda.device:
            places = _check_places(at, len(good_ids), len(out_bytes))
            return cls(good_ids, out_bytes, cuda.upload(torch.from_numpy(places)))
        _check_places_shape(str(at.dtype), _is_integer(at), tuple(at.shape), len(good_ids))
        return cls(good_ids, out_bytes, at.to(torch.int64).contiguous())


class Wanted(NamedTuple):
    """Row ids[i] goes to row at[i], or to row i; int64 (n,), valid."""

    ids: Ids
    at: Ids | None


def check_wanted(
    ids: ArrayLike | torch.Tensor, at: ArrayLike | torch.Tensor | None, num_out: int, num_rows: int
) -> Wanted:
    """ids, at: not on a device. Raises as `ReadRequest.checked`."""
    good_ids = ops.check_ids(ids, num_rows)
    if at is None:
        _check_same_length(len(good_ids), num_out)
        return Wanted(good_ids, None)
    return Wanted(good_ids, _check_places(at, len(good_ids), num_out))


def device_bytes(out: Out, row_type: RowType, device: torch.device) -> torch.Tensor:
    """`out`, a tensor on `device`, as uint8 (num_out, row_bytes). Raises as `ReadRequest.checked`."""
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"out must be a torch tensor on {device}, got {type(out).__name__}")
    return row_type.tensor_bytes(out, device)


def bad_places(lowest: int, highest: int, num_out: int) -> IndexError:
    """The error of places that are not all rows of `out`, wherever they were checked."""
    return IndexError(f"at has places from {lowest} to {highest}, out has rows 0 to {num_out - 1}")


def _device_ids(ids: torch.Tensor) -> torch.Tensor:
    if not _is_integer(ids):
        hint = ops.MASK_HINT * (ids.dtype == torch.bool)
        raise TypeError(f"ids have dtype {ids.dtype}, want integers{hint}")
    if ids.ndim != 1:
        raise ValueError(f"ids have shape {tuple(ids.shape)}, want one dimension")
    return ids.to(torch.int64).contiguous()


def _is_integer(tensor: torch.Tensor) -> bool:
    return not (tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex())


def _check_places(at: ArrayLike | torch.Tensor, num_ids: int, num_out: int) -> Ids:
    places = np.asarray(at)
    _check_places_shape(str(places.dtype), places.dtype.kind in "iu", places.shape, num_ids)
    if num_ids and not (int(places.min()) >= 0 and int(places.max()) < num_out):
        raise bad_places(int(places.min()), int(places.max()), num_out)
    return np.ascontiguousarray(places, np.int64)


def _check_same_length(num_ids: int, num_out: int) -> None:
    if num_ids != num_out:
        raise ValueError(f"out has {num_out} rows, there are {num_ids} ids")


def _check_places_shape(dtype: str, is_integer: bool, shape: tuple[int, ...], num_ids: int) -> None:
    if not is_integer and 0 not in shape:
        raise TypeError(f"at has dtype {dtype}, integers are wanted")
    if shape != (num_ids,):
        raise ValueError(f"at has shape {shape}, there are {num_ids} ids")
