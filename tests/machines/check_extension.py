"""Encodes and decodes the rows of a flat file by the extension; needs nothing but Python itself.

python check_extension.py EXTENSION FILE: prints "CASES cases, ROWS rows" where all are right. row_cases.py
writes the file and draws its layout.
"""

import importlib.util
import sys
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple


class Case(NamedTuple):
    """row_bytes of a row; sizes of the stored rows."""

    chunk_bits: int
    row_bytes: int
    mask: bytes
    bitval: bytes
    rows: bytes
    sizes: array
    stored: bytes


def cases(file: BinaryIO) -> Iterator[Case]:
    """Of the file, one after the other."""
    while head := file.read(48):
        version, chunk_bits, row_bytes, num_rows, num_damaged, _ = array("q", head)
        assert (version, num_damaged) == (1, 0), "rows of version 1 alone are read here"
        planes = file.read(row_bytes), file.read(row_bytes), file.read(num_rows * row_bytes)
        sizes = array("q", file.read(8 * num_rows))
        yield Case(chunk_bits, row_bytes, *planes, sizes, file.read(sum(sizes)))


def table(data: "bytes | bytearray", row_bytes: int) -> memoryview:
    """The bytes as (num_rows, row_bytes)."""
    return memoryview(data).cast("B", (len(data) // row_bytes, row_bytes))


def check(kernels: Any, case: Case) -> None:
    """Encodes in place and gathers from the last row to the first."""
    num_rows, pad = len(case.sizes), 64
    codec = kernels.ibp_codec(case.mask, case.bitval, case.chunk_bits)
    sizes = array("q", bytes(8 * num_rows))
    kernels.stored_sizes(codec, table(case.rows, case.row_bytes), sizes)
    assert sizes == case.sizes, "sizes differ"
    bitmask = bytearray(-(-num_rows // 8))
    for i, size in enumerate(sizes):
        bitmask[i // 8] |= (size < case.row_bytes) << i % 8
    data = bytearray(pad + len(case.rows) + pad)
    stored = kernels.StoredRows(data, bitmask, None, None, None, num_rows, case.row_bytes, codec.unit, 4)
    kernels.encode_rows(codec, table(case.rows, case.row_bytes), stored, data)
    for i, (size, end) in enumerate(zip(sizes, accumulate(sizes), strict=True)):
        first = pad + i * case.row_bytes
        assert data[first : first + size] == case.stored[end - size : end], f"encoded row {i} is wrong"
    ids, out = array("q", reversed(range(num_rows))), bytearray(len(case.rows))
    source = kernels.RowSource(codec, stored, None)
    missing = array("q", bytes(8 * num_rows)), array("q", bytes(8 * num_rows))
    counts = kernels.gather_decode(ids, None, [source], table(out, case.row_bytes), *missing)
    assert counts.damaged == -1 and counts.hits(0) == num_rows, "rows are missing or called damaged"
    for i in ids:
        at = (num_rows - 1 - i) * case.row_bytes
        row = case.rows[i * case.row_bytes :][: case.row_bytes]
        assert out[at : at + case.row_bytes] == row, f"decoded row {i} is wrong"


def main(extension: str, path: str) -> None:
    spec = importlib.util.spec_from_file_location("_kernels", extension)
    assert spec and spec.loader
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    num_cases = num_rows = 0
    with open(path, "rb") as file:  # noqa: PTH123
        for case in cases(file):
            check(kernels, case)
            num_cases, num_rows = num_cases + 1, num_rows + len(case.sizes)
    print(f"{num_cases} cases, {num_rows} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
