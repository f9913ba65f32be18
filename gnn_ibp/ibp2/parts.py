"""What rows of version 2 are made of, in bits; and what no code of their heads goes below."""

import numpy as np

from gnn_ibp.ibp2.bitmap import bitmap_sizes
from gnn_ibp.ibp2.codes import Codes
from gnn_ibp.ibp2.counting import NumpyCounting
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.fit import MIN_EQUAL_PERCENT, count_trailing_zeros
from gnn_ibp.ibp2.params import Params
from gnn_ibp.ibp2.reference import batches, is_present, stored_sizes, tops_of
from gnn_ibp.ibp2.split import Split
from gnn_ibp.reference import Bytes, as_chunks

PARTS = ("bitmap", "codes", "RAW", "planes", "padding", "raw rows")


def part_bits(rows: Bytes, params: Params) -> dict[str, int]:
    """Bits of each of `PARTS`, of all `rows`, uint8 (N, row_bytes), together.

    Padding is what fills up bytes and the row; rows that are stored raw count as such alone.
    """
    sums = dict.fromkeys(PARTS, 0)
    for batch in batches(rows, params):
        sizes = stored_sizes(batch, params)
        encoded = batch[sizes < params.row_bytes]
        parts = _encoded_bits(encoded, params)
        stored_bits = 8 * int(sizes.sum())
        parts["raw rows"] = 8 * (len(batch) - len(encoded)) * params.row_bytes
        parts["padding"] = stored_bits - sum(parts.values())
        for part, num_bits in parts.items():
            sums[part] += num_bits
    return sums


def order0_bits(rows: Bytes, split: Split) -> float:
    """Bits of all `rows`, uint8 (N, row_bytes), if heads took what their entropy at each position says.

    All other bits stay, but the low ones that are always 0. A chunk that the fit would leave out, where it
    would, is a head of its own.
    """
    chunks = as_chunks(rows, split.chunk_bits)
    heads, num_tails = split.tops(chunks).astype(np.uint64), chunks.size
    equal = NumpyCounting().commonest(chunks, MIN_EQUAL_PERCENT)
    if equal and split.top_bits < split.chunk_bits:
        heads[chunks == chunks.dtype.type(equal.value)] = np.uint64(1 << split.top_bits)
        num_tails -= equal.num_chunks
    entropy_bits = TopCounts.of(heads, split.head_bits).entropy_bits().sum()
    tail_bits = max(0, split.chunk_bits - split.top_bits - count_trailing_zeros(chunks))
    return float(entropy_bits) + tail_bits * num_tails


def _encoded_bits(rows: Bytes, params: Params) -> dict[str, int]:
    """Of rows that are encoded, without their padding."""
    chunks = as_chunks(rows, params.chunk_bits)
    present = is_present(chunks, params)
    codes = Codes(params, np.nonzero(present)[1])
    coded = chunks[present].astype(np.uint64)
    numbers = codes.numbers(tops_of(coded, params))
    raw_bits = params.top_bits * int((numbers == codes.raw).sum())
    return {
        "bitmap": 8 * int(bitmap_sizes(present, params.levels).sum()) if params.kind == "S" else 0,
        "codes": int(codes.k1.sum() + codes.variable_bits(numbers).sum()) - raw_bits,
        "RAW": raw_bits,
        "planes": params.tail_bits * len(coded),
    }
