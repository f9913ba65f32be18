"""CPU kernels of gnn_ibp; call them through gnn_ibp.ops."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def set_num_threads(num_threads: int) -> None: ...

def num_threads() -> int: ...

class RowCodec:
    """A row format with its parameters."""

    @property
    def row_bytes(self) -> int: ...

    @property
    def unit(self) -> int: ...

def ibp_codec(mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bitval: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], chunk_bits: int) -> RowCodec: ...

class StoredRows:
    """The arrays of gnn_ibp.rows.EncodedRows."""

    def __init__(self, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bitmask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], bases: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, sizes16: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, sizes32: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, num_rows: int, row_bytes: int, unit: int, align: int) -> None: ...

def stored_sizes(codec: RowCodec, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def encode_rows(codec: RowCodec, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], stored: StoredRows, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

class RowSource:
    """Encoded rows, their codec and, where not every row is there, its slot."""

    def __init__(self, codec: RowCodec, stored: StoredRows, slot_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

class GatherCounts:
    @property
    def num_missing(self) -> int: ...

    @property
    def damaged(self) -> int: ...

    def hits(self, arg: int, /) -> int: ...

    def encoded_bytes(self, arg: int, /) -> int: ...

def gather_decode(ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, sources: Sequence[RowSource], out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], missing_ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], missing_at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> GatherCounts: ...
