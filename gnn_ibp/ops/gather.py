"""Rows by id out of encoded rows in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gnn_ibp import _kernels
from gnn_ibp.errors import FormatError
from gnn_ibp.rows import AnyIds, Bytes, EncodedRows, Ids

MASK_HINT = "; a mask becomes ids by torch.where(mask)[0] or numpy.flatnonzero(mask)"


class KernelCodec(Protocol):
    """What the kernels need of a row format."""

    @property
    def row_bytes(self) -> int: ...
    @property
    def unit(self) -> int: ...
    @property
    def kernel(self) -> _kernels.RowCodec: ...


@dataclass(frozen=True)
class Source:
    """Encoded rows that can be asked for ids.

    slot_of: int32, one entry per id of the data set: the row of `rows` that holds it, -1 where none does.
             None: row i holds id i.
    """

    rows: EncodedRows
    slot_of: NDArray[np.int32] | None
    codec: KernelCodec

    @cached_property
    def kernel(self) -> _kernels.RowSource:
        return _kernels.RowSource(self.codec.kernel, stored_rows(self.rows), self.slot_of)


@dataclass(frozen=True)
class Missing:
    """Ids that no source held, in the order they were asked for, and the rows of `out` they belong to."""

    ids: Ids
    at: Ids


@dataclass(frozen=True)
class Gathered:
    """What a gather found: per source the number of rows and their bytes as stored, and what is missing."""

    missing: Missing
    hits: list[int]
    encoded_bytes: list[int]


def check_ids(ids: ArrayLike | torch.Tensor, num_rows: int) -> Ids:
    """`ids` as int64 (n,), every one of them in [0, num_rows). No copy where they are int64 already.

    Takes NumPy arrays, torch tensors and lists of integers of any width. Raises TypeError for other types,
    bool and float among them, ValueError for other than one dimension, IndexError for an id out of range.
    """
    if isinstance(ids, torch.Tensor):
        if ids.device.type != "cpu":
            raise ValueError(f"ids are on {ids.device}, want them on the CPU: ids.cpu()")
        if ids.is_floating_point() or ids.is_complex():
            raise TypeError(f"ids have dtype {ids.dtype}, want integers")
    array = np.asarray(ids)
    if array.size == 0 and isinstance(ids, list | tuple):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"ids have dtype {array.dtype}, want integers{MASK_HINT * (array.dtype.kind == 'b')}")
    if array.ndim != 1:
        raise ValueError(f"ids have shape {array.shape}, want one dimension")
    checked = np.ascontiguousarray(array, dtype=np.int64)
    # As unsigned numbers negative ids are beyond every valid one, and so are ids above 2^63 - 1.
    if len(checked) and int(checked.view(np.uint64).max()) >= num_rows:
        first = int((checked.view(np.uint64) >= num_rows).argmax())
        raise bad_id(first, int(array[first]), num_rows)
    return checked


def check_narrow_ids(ids: ArrayLike | torch.Tensor, num_rows: int) -> AnyIds:
    """`check_ids`, but int32 stays int32: for lists of most of the rows, which a copy would double."""
    if isinstance(ids, np.ndarray) and ids.dtype == np.int32 and ids.ndim == 1 and len(ids):
        unsigned = ids.view(np.uint32)  # negative ids are beyond every valid one
        if int(unsigned.max()) >= num_rows:
            first = int((unsigned >= num_rows).argmax())
            raise bad_id(first, int(ids[first]), num_rows)
        return ids
    return check_ids(ids, num_rows)


def ids_tensor(ids: Ids) -> torch.Tensor:
    """Ids as a tensor over the same memory; a copy where that is read-only, of which torch would warn."""
    return torch.from_numpy(ids if ids.flags.writeable else ids.copy())


def bad_id(position: int, id_: int, num_rows: int) -> IndexError:
    """The error of an id that is no row, wherever the ids were checked."""
    valid = f"0 to {num_rows - 1}" if num_rows else "empty: there are no rows"
    return IndexError(f"ids[{position}] is {id_}, the valid range is {valid}")


def damaged_row(id_: int) -> FormatError:
    """The error of a row in memory that is not well-formed, whoever found it."""
    return FormatError(f"row {id_} is damaged: its stored bytes are no encoded row")


def gather_decode(ids: Ids, sources: Sequence[Source], out: Bytes, at: Ids | None = None) -> Gathered:
    """Decodes row ids[i] to out[at[i]] (out[i] where `at` is None), out of the first source that has it.

    ids: int64 (n,), checked. out: uint8 (num_out, row_bytes), contiguous. at: int64 (n,). Rows of `out` that
    belong to missing ids are left as they are. Raises FormatError for a row whose stored bytes are damaged
    (other rows may have been written then), IndexError for `at` out of range.
    """
    num_out = out.shape[0]
    if at is None:
        if len(ids) > num_out:
            raise ValueError(f"out has {num_out} rows, there are {len(ids)} ids")
    elif len(at) and int(at.view(np.uint64).max()) >= num_out:
        first = int((at.view(np.uint64) >= num_out).argmax())
        raise IndexError(f"at[{first}] is {at[first]}, out has {num_out} rows")
    missing_ids, missing_at = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    counts = _kernels.gather_decode(
        ids, at, [source.kernel for source in sources], out, missing_ids, missing_at
    )
    if counts.damaged >= 0:
        raise damaged_row(int(ids[counts.damaged]))
    num_missing = counts.num_missing
    return Gathered(
        Missing(missing_ids[:num_missing], missing_at[:num_missing]),
        [counts.hits(source) for source in range(len(sources))],
        [counts.encoded_bytes(source) for source in range(len(sources))],
    )


def stored_rows(rows: EncodedRows) -> _kernels.StoredRows:
    """`rows` as the kernels see them."""
    index = rows.index
    sizes = index.sizes if index else None
    return _kernels.StoredRows(
        rows.data,
        rows.bitmask,
        bases=index.bases if index else None,
        sizes16=cast(NDArray[np.uint16], sizes) if sizes is not None and sizes.itemsize == 2 else None,
        sizes32=cast(NDArray[np.uint32], sizes) if sizes is not None and sizes.itemsize == 4 else None,
        num_rows=rows.num_rows,
        row_bytes=rows.row_bytes,
        unit=index.unit if index else 1,
        align=index.align if index else 1,
    )
