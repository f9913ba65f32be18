"""Row format version 2 on the CPU: golden vectors, the bytes of the reference, what is refused."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibp2_broken_rules import BROKEN_RULES, BrokenRule
from ibp2_cases import (
    GOLDEN,
    GOLDEN_NAMES,
    NUM_CHUNKS,
    golden_named,
    golden_params,
    random_params,
    rows_for,
    special_floats,
)

from gnn_ibp import _kernels, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2 import reference
from gnn_ibp.ibp2.params import Code, Params
from gnn_ibp.ibp2.positions import Position
from gnn_ibp.ops import Source
from gnn_ibp.rows import PAD_BYTES, Bytes, EncodedRows, RowIndex

EXAMPLE = GOLDEN[0]
LEVELS = [level for level in ops.simd_levels() if level != "bmi2"]
"""Of vector instructions, those of this processor: "portable" serves for "bmi2", too."""

DAMAGED = [
    pytest.param(golden, damaged, id=f"{golden['name']}: {damaged['why']}")
    for golden in GOLDEN
    for damaged in golden["damaged"]
]


@dataclass(frozen=True)
class KernelCodec:
    """What `ops` needs of a codec, at a level of vector instructions."""

    params: Params
    level: str

    @property
    def row_bytes(self) -> int:
        return self.params.row_bytes

    @property
    def unit(self) -> int:
        return self.kernel.unit

    @cached_property
    def kernel(self) -> _kernels.RowCodec:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GNN_IBP_SIMD", self.level)
            kernel = ops.ibp2_codec(self.params.to_bytes(), self.row_bytes)
        assert kernel.simd == self.level
        return kernel


def codecs_of(params: Params) -> list[KernelCodec]:
    """One for each level."""
    return [KernelCodec(params, level) for level in LEVELS]


def stored_as(codec: KernelCodec, stored: list[bytes], unit: int = 1) -> EncodedRows:
    """Encoded rows of these bytes, whatever they are, back to back."""
    sizes = np.array([len(row) for row in stored], np.int64)
    index = RowIndex.from_sizes(sizes, unit, unit, codec.row_bytes)
    data = np.full(int(sizes.sum()) + 2 * PAD_BYTES, 0xA5, np.uint8)
    data[PAD_BYTES:-PAD_BYTES] = np.frombuffer(b"".join(stored), np.uint8)
    return EncodedRows(data, np.full(-(-len(sizes) // 8), 0xFF, np.uint8), index, len(sizes), codec.row_bytes)


def is_refused(codecs: list[KernelCodec], stored: bytes) -> bool:
    """Whether the checks refuse the row; each level and decoding must say the same."""
    rows = stored_as(codecs[0], [stored])
    (refused,) = {bool(ops.measure_rows(codec, rows, np.zeros(1, np.int64))[0] == -1) for codec in codecs}
    if not refused:
        decoded(codecs, rows)
        return False
    for codec in codecs:
        with pytest.raises(FormatError, match="row 0 is damaged"):
            decoded([codec], rows)
    return True


def rows_as_stored(rows: EncodedRows) -> list[bytes]:
    assert rows.index
    ends = PAD_BYTES + np.cumsum(rows.index.aligned_sizes())
    begins = ends - rows.index.aligned_sizes()
    sizes = rows.index.size_bytes()
    return [rows.data[begin:][:size].tobytes() for begin, size in zip(begins, sizes, strict=True)]


def decoded(codecs: list[KernelCodec], encoded: EncodedRows) -> Bytes:
    """The rows, which are the same at each level."""
    outs = np.full((len(codecs), encoded.num_rows, encoded.row_bytes), 0x5A, np.uint8)
    for codec, out in zip(codecs, outs, strict=True):
        ops.decode_all(codec, encoded, out)
        assert np.array_equal(out, outs[0])
    return outs[0]


@pytest.mark.parametrize("golden", GOLDEN, ids=GOLDEN_NAMES)
def test_golden_rows_are_encoded_and_decoded_bit_for_bit(golden: dict[str, Any]) -> None:
    codecs = codecs_of(golden_params(golden))
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    for codec in codecs:
        encoded = ops.encode_rows(codec, rows, align=max(4, codec.unit))
        assert [row.hex() for row in rows_as_stored(encoded)] == [row["stored"] for row in golden["rows"]]
        assert encoded.encoded().tolist() == [row["compressed"] for row in golden["rows"]]
    assert np.array_equal(decoded(codecs, encoded), rows)


@pytest.mark.parametrize("golden, damaged", DAMAGED)
def test_damaged_golden_rows_are_refused(golden: dict[str, Any], damaged: dict[str, str]) -> None:
    assert is_refused(codecs_of(golden_params(golden)), bytes.fromhex(damaged["stored"]))


def test_the_row_of_the_format_written_by_hand_has_its_bytes() -> None:
    row = np.array([[0.5, -0.75, 0.625, -0.3, np.inf, 0.9, 1.0, -1.5]], "<f4")
    encoded = check_rows(golden_params(EXAMPLE), row.view(np.uint8))
    fields, planes = "1a 3dfe0f 00", "00202803300380 0000000000009a99 0000666600000000"
    assert rows_as_stored(encoded) == [bytes.fromhex(fields + planes)]


def check_rows(params: Params, rows: Bytes) -> EncodedRows:
    """The rows encoded; raises unless they are the reference's and come back."""
    wanted = reference.encode_rows(rows, params)
    codecs = codecs_of(params)
    for codec in codecs:
        encoded = ops.encode_rows(codec, rows, align=8)
        assert rows_as_stored(encoded) == wanted
        assert ops.stored_sizes(codec, rows).tolist() == [len(row) for row in wanted]
    assert np.array_equal(decoded(codecs, encoded), rows)
    return encoded


@pytest.mark.parametrize("kind", ["D", "S"])
@pytest.mark.parametrize("num_chunks", NUM_CHUNKS)
def test_rows_under_strange_tables_are_those_of_the_reference(kind: str, num_chunks: int) -> None:
    rng = np.random.default_rng(num_chunks)
    for _ in range(16):
        params = random_params(rng, kind, num_chunks)
        check_rows(params, rows_for(rng, params, 5))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from("DS"), num_chunks=st.integers(0, 600))
def test_any_rows_are_those_of_the_reference(seed: int, kind: str, num_chunks: int) -> None:
    rng = np.random.default_rng(seed)
    params = random_params(rng, kind, num_chunks)
    check_rows(params, rows_for(rng, params, 3))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from("DS"))
def test_damaged_rows_are_refused_or_read_as_by_the_reference(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    params = random_params(rng, kind, int(rng.integers(1, 300)))
    codecs = codecs_of(params)
    for row in reference.encode_rows(rows_for(rng, params, 4), params):
        damaged = bytearray(row)
        for at in rng.integers(len(row), size=rng.integers(1, 4)) if row else ():
            damaged[at] = rng.integers(256)
        stored = bytes(damaged[: rng.integers(len(row) + 1)] if rng.random() < 0.3 else damaged)
        try:
            wanted = reference.decode_row(stored, params)
        except FormatError:
            assert is_refused(codecs, stored)
        else:
            assert not is_refused(codecs, stored)
            assert decoded(codecs, stored_as(codecs[0], [stored])).tobytes() == wanted


@pytest.mark.parametrize("name", ["2s f32", "2s S f32 levels 2"])
def test_nan_signed_zero_denormals_and_infinity_come_back(name: str) -> None:
    params = golden_params(golden_named(name))
    rows = special_floats("<f4", params.num_chunks, zeros=0.5 if params.kind == "S" else 0)
    check_rows(params, rows.view(np.uint8))


def one_symbol(head_bits: int, zero_bits: int = 0) -> Params:
    """Rows of 300 uint16 whose heads all are 0: neither fields nor RAW."""
    position = Position(0, 0, 0)
    code = Code(0, 0, bytes(1))
    return Params("D", 300, 16, 0, head_bits, zero_bits, 0, (code,), (0,) * 32, 0, (position,) * 300)


def test_a_row_that_is_known_whole_takes_no_bytes() -> None:
    rows = np.zeros((3, 600), np.uint8)
    rows[1, 7] = 1  # has no symbol, and there is no RAW
    encoded = check_rows(one_symbol(16), rows)
    assert [len(row) for row in rows_as_stored(encoded)] == [0, 600, 0]


def test_a_one_among_the_zero_bits_leaves_the_row_raw() -> None:
    rows = np.zeros((2, 300), "<u2")
    rows[0, 5], rows[1, 5] = 0b11111000, 0b11111100
    encoded = check_rows(one_symbol(8, zero_bits=3), rows.view(np.uint8))
    assert [len(row) for row in rows_as_stored(encoded)] == [300 * 5 // 8 + 1, 600]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["D", "S"])
def test_random_rows_are_gathered_exactly(kind: str, level: str) -> None:
    rng = np.random.default_rng(5)
    params = golden_params(golden_named("2s f32" if kind == "D" else "2s S f32 levels 1"))
    codec = KernelCodec(params, level)
    rows = rows_for(rng, params, 500)
    source = Source(ops.encode_rows(codec, rows, 16), None, codec)
    ids = rng.integers(0, len(rows), 50_000)  # beyond the caches: written past them
    out = np.zeros((len(ids), codec.row_bytes), np.uint8)
    ops.gather_decode(ids, [source], out)
    assert np.array_equal(out, rows[ids])


def test_every_cut_and_every_flipped_bit_is_refused_or_decoded() -> None:
    """And the padding is not looked at: what follows a row changes nothing."""
    num_refused = 0
    for golden in GOLDEN:
        codecs = codecs_of(golden_params(golden))
        stored = min((bytes.fromhex(row["stored"]) for row in golden["rows"] if row["compressed"]), key=len)
        for size in range(0, len(stored), max(4, codecs[0].unit)):
            num_refused += is_refused(codecs, stored[:size])
        for bit in range(0, 8 * len(stored), 3):
            flipped = bytearray(stored)
            flipped[bit // 8] ^= 1 << bit % 8
            num_refused += is_refused(codecs, bytes(flipped))
    assert num_refused > 100


def test_rows_in_place_are_refused_since_they_do_not_tell_their_size() -> None:
    codec = codecs_of(golden_params(EXAMPLE))[0]
    rows = np.zeros((2, codec.row_bytes), np.uint8)
    with pytest.raises(ValueError, match="rows of this format cannot be stored in place"):
        ops.encode_rows(codec, rows, 4, in_place=True)


@pytest.mark.parametrize("broken", BROKEN_RULES, ids=[broken.name for broken in BROKEN_RULES])
def test_broken_rule_is_refused_by_name(broken: BrokenRule) -> None:
    with pytest.raises(ValueError, match=broken.kernels_why or broken.why):
        ops.ibp2_codec(broken.block(), broken.golden["V"] * broken.golden["W"] // 8)


def test_a_block_of_another_length_is_refused() -> None:
    block = bytes.fromhex(EXAMPLE["block"])
    for some in (b"", block[:7]):
        with pytest.raises(ValueError, match="the block is shorter than its head"):
            ops.ibp2_codec(some, 32)
    for some in (block[:8], block[:-1], block + b"\0"):
        with pytest.raises(ValueError, match=f"the block has {len(some)} bytes, want {len(block)}"):
            ops.ibp2_codec(some, 32)


def test_a_row_that_chunks_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="chunk_bits does not divide the row"):
        ops.ibp2_codec(bytes.fromhex(EXAMPLE["block"]), 33)
