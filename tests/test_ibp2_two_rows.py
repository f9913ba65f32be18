"""Short rows of version 2 are decoded two at a time: each is what it is alone, and a damaged one is named."""

from typing import Any

import numpy as np
import pytest
from ibp2_cases import GOLDEN

from gnn_ibp import IBP2Codec, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.ops import Source
from gnn_ibp.rows import PAD_BYTES, EncodedRows, RowIndex

DAMAGED = [
    pytest.param(golden, bytes.fromhex(damaged["stored"]), id=f"{golden['name']}: {damaged['why']}")
    for golden in GOLDEN
    for damaged in golden["damaged"]
]


def good_rows(golden: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    """The encoded ones, as stored and raw."""
    encoded = [row for row in golden["rows"] if row["compressed"]]
    return [(bytes.fromhex(row["stored"]), bytes.fromhex(row["row"])) for row in encoded]


def source_of(golden: dict[str, Any], stored: list[bytes]) -> Source:
    """Encoded rows of these bytes, whatever they are, back to back."""
    row_bytes = golden["V"] * golden["W"] // 8
    codec = IBP2Codec.from_bytes(bytes.fromhex(golden["block"]), golden["V"])
    sizes = np.array([len(row) for row in stored], np.int64)
    index = RowIndex.from_sizes(sizes, 1, 1, row_bytes)
    pad = bytes(PAD_BYTES)
    data = np.frombuffer(pad + b"".join(stored) + pad, np.uint8)
    bitmask = np.full(-(-len(sizes) // 8), 0xFF, np.uint8)
    return Source(EncodedRows(data, bitmask, index, len(sizes), row_bytes), None, codec)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
@pytest.mark.parametrize("num_rows", [2, 3, 7])
def test_rows_side_by_side_are_what_they_are_alone(golden: dict[str, Any], num_rows: int) -> None:
    rows = good_rows(golden)
    stored, raw = zip(*(rows[i % len(rows)] for i in range(num_rows)), strict=True)
    out = np.zeros((num_rows, len(raw[0])), np.uint8)
    ops.gather_decode(np.arange(num_rows), [source_of(golden, list(stored))], out)
    assert [row.tobytes() for row in out] == list(raw)


@pytest.mark.parametrize("golden, damaged", DAMAGED)
@pytest.mark.parametrize("at", range(4))
def test_a_damaged_row_beside_a_good_one_is_named(golden: dict[str, Any], damaged: bytes, at: int) -> None:
    (stored, raw), *_ = good_rows(golden)
    rows = [stored] * 4
    rows[at] = damaged
    source = source_of(golden, rows)
    out = np.zeros((4, len(raw)), np.uint8)
    with pytest.raises(FormatError, match=f"row {at} is damaged"):
        ops.gather_decode(np.arange(4), [source], out)
    others = np.delete(np.arange(4), at)
    ops.gather_decode(others, [source], out, others)
    assert [out[i].tobytes() for i in others] == [raw] * 3
