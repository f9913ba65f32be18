"""The NumPy reference of row format version 2: golden vectors, any bytes under any tables, damaged rows."""

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibp2_cases import (
    GOLDEN,
    GOLDEN_NAMES,
    NUM_CHUNKS,
    golden_params,
    random_params,
    rows_for,
    special_floats,
)
from ibp2_literal import encode_literally

from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2.bitmap import read_bitmap, write_bitmap
from gnn_ibp.ibp2.bits import join_equal, to_bytes
from gnn_ibp.ibp2.params import Code, Params
from gnn_ibp.ibp2.positions import Position
from gnn_ibp.ibp2.reference import decode_row, decode_rows, encode_row, encode_rows, stored_sizes
from gnn_ibp.rows import Bytes

WHY = {
    "size": "the size is",
    "bitmap does not fit": "the bitmap does not fit",
    "bit at or above V": "at or above",
    "a listed byte is 0": "a listed byte is 0",
    "fixed parts do not fit": "the fixed parts do not fit",
    "variable stream does not fit": "the variable stream does not fit",
}
"""The golden vectors' reasons, and ours."""


def check_rows(rows: Bytes, params: Params) -> list[bytes]:
    """The rows as stored; raises unless they come back, with the sizes that were told before."""
    stored = encode_rows(rows, params)
    sizes = np.array([len(row) for row in stored], np.int64)
    encoded = sizes < params.row_bytes
    assert np.array_equal(stored_sizes(rows, params), sizes)
    assert np.array_equal(decode_rows(stored, encoded, params), rows)
    assert all(
        is_encoded or row == raw.tobytes() for is_encoded, row, raw in zip(encoded, stored, rows, strict=True)
    )
    assert not (sizes[encoded] % max(4, params.chunk_bytes)).any()
    return stored


@pytest.mark.parametrize("golden", GOLDEN, ids=GOLDEN_NAMES)
def test_golden_rows_are_encoded_and_decoded_bit_for_bit(golden: dict[str, Any]) -> None:
    params = golden_params(golden)
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    stored = check_rows(rows, params)
    assert [row.hex() for row in stored] == [row["stored"] for row in golden["rows"]]
    assert [len(row) < params.row_bytes for row in stored] == [row["compressed"] for row in golden["rows"]]
    assert [encode_literally(row.tobytes(), params) for row in rows] == stored


DAMAGED = [(golden, damaged) for golden in GOLDEN for damaged in golden["damaged"]]


@pytest.mark.parametrize(("golden", "damaged"), DAMAGED, ids=[f"{g['name']}: {d['why']}" for g, d in DAMAGED])
def test_golden_damaged_row_is_refused_for_its_reason(
    golden: dict[str, Any], damaged: dict[str, str]
) -> None:
    with pytest.raises(FormatError, match=WHY[damaged["why"]]):
        decode_row(bytes.fromhex(damaged["stored"]), golden_params(golden))


def by_hand() -> Params:
    """The parameters of the row that the format works out by hand."""
    symbols = [(0, 0), (0, 1), (1, 0), (0, 3), (1, 1), (0, 2), (1, 2), (1, 3), (0, 2), (0, 2), (0, 2)]
    return Params(
        "D",
        8,
        *(32, 1, 8, 0, 0),
        (Code(1, 1, bytes(t << 6 | leaf for t, leaf in symbols)), Code(0, 0, b"\0")),
        (0, 255, 254, 1, *(0,) * 28),
        0,
        (*(Position(0, 0, 126),) * 6, Position(1, 0, 127), Position(1, 1, 127)),
    )


def test_row_by_hand() -> None:
    row = np.array([0.5, -0.75, 0.625, -0.3, np.inf, 0.9, 1.0, -1.5], "<f4").tobytes()
    stored = bytes.fromhex("1a 3dfe0f 00 00202803300380 0000 0000 0000 9a99 0000 6666 0000 0000")
    assert encode_row(row, by_hand()) == stored
    assert decode_row(stored, by_hand()) == row


def test_padding_is_not_checked() -> None:
    row = np.array([0.5, -0.75, 0.625, -0.3, np.inf, 0.9, 1.0, -1.5], "<f4").tobytes()
    stored = bytes.fromhex("da 3dfeef ff 00202803300380 0000 0000 0000 9a99 0000 6666 0000 0000")
    assert decode_row(stored, by_hand()) == row


@pytest.mark.parametrize(("levels", "stored"), [(1, "020002"), (2, "050202"), (3, "01050202")])
def test_bitmap_by_hand(levels: int, stored: str) -> None:
    present = np.isin(np.arange(20), [1, 17])
    assert write_bitmap(present, levels).hex() == stored
    positions, num_bytes = read_bitmap(bytes.fromhex(stored) + b"\xff", 20, levels)
    assert positions.tolist() == [1, 17] and num_bytes == len(stored) // 2


@pytest.mark.parametrize(
    ("levels", "stored", "why"),
    [
        (1, "0200", "does not fit"),
        (2, "0502", "does not fit"),
        (3, "", "does not fit"),
        (3, "0105", "does not fit"),
        (1, "020010", "bit 20, a bit at or above 20"),
        (2, "090202", "bit 3, a bit at or above 3"),
        (3, "02050202", "bit 1, a bit at or above 1"),
        (2, "050210", "bit 20, a bit at or above 20"),
        (2, "050200", "a listed byte is 0"),
        (3, "01000202", "a listed byte is 0"),
    ],
)
def test_damaged_bitmap_is_refused(levels: int, stored: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read_bitmap(bytes.fromhex(stored), 20, levels)


@pytest.mark.parametrize("kind", ["D", "S"])
@pytest.mark.parametrize("num_chunks", NUM_CHUNKS)
def test_rows_under_strange_tables_are_as_written_bit_by_bit(kind: str, num_chunks: int) -> None:
    rng = np.random.default_rng(num_chunks)
    num_encoded = 0
    for _ in range(16):
        params = random_params(rng, kind, num_chunks)
        rows = rows_for(rng, params, 5)
        stored = check_rows(rows, params)
        assert stored == [encode_literally(row.tobytes(), params) for row in rows]
        num_encoded += sum(len(row) < params.row_bytes for row in stored)
    assert num_encoded > 10 or num_chunks < 7


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from("DS"), num_chunks=st.integers(0, 600))
def test_any_rows_come_back(seed: int, kind: str, num_chunks: int) -> None:
    rng = np.random.default_rng(seed)
    params = random_params(rng, kind, num_chunks)
    check_rows(rows_for(rng, params, 3), params)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from("DS"))
def test_damaged_row_is_refused_or_is_another_row(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    params = random_params(rng, kind, int(rng.integers(1, 300)))
    for row in encode_rows(rows_for(rng, params, 4), params):
        damaged = bytearray(row)
        for at in rng.integers(len(row), size=rng.integers(1, 4)) if row else ():
            damaged[at] = rng.integers(256)
        cut = damaged[: rng.integers(len(row) + 1)] if rng.random() < 0.3 else damaged
        with contextlib.suppress(FormatError):
            assert len(decode_row(bytes(cut), params)) == params.row_bytes


def float_params(dtype: str, kind: str, num_chunks: int) -> Params:
    """One class of six exponents and RAW, around 1.0."""
    chunk_bits, sign_bits, head_bits = {"f2": (16, 1, 5), "f4": (32, 1, 8), "f8": (64, 1, 11)}[dtype]
    symbols = [t << 6 | leaf for leaf in range(6) for t in (0, 1)]
    code = Code(3, 2, bytes(symbols + symbols[-1:] * 8))
    position = Position(0, 0, (1 << head_bits - 1) - 1)
    return Params(
        "D" if kind == "D" else "S",
        num_chunks,
        *(chunk_bits, sign_bits, head_bits, 0, 0 if kind == "D" else 2),
        (code,),
        tuple((-leaf) % (1 << head_bits) if leaf < 6 else 0 for leaf in range(32)),
        0,
        (position,) * (num_chunks if kind == "D" else 1),
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("kind", ["D", "S"])
@pytest.mark.parametrize("num_chunks", NUM_CHUNKS)
def test_nan_payloads_infinities_denormals_and_zeros_of_both_signs_come_back(
    dtype: str, kind: str, num_chunks: int
) -> None:
    rows = special_floats(dtype, num_chunks, zeros=0.3 if kind == "S" else 0)
    params = float_params(dtype, kind, num_chunks)
    stored = check_rows(rows.view(np.uint8).reshape(8, -1), params)
    assert num_chunks < 255 or min(map(len, stored)) < params.row_bytes


def test_row_of_zeros_takes_a_bitmap_of_zeros_and_keeps_minus_zero() -> None:
    params = float_params("f4", "S", 513)
    rows = np.zeros((2, 513), "<f4")
    rows[1, 512] = -0.0
    stored = check_rows(rows.view(np.uint8), params)
    assert stored[0] == bytes(12)  # B2 has 9 bytes
    assert len(stored[1]) > len(stored[0])


def test_encoded_row_may_have_no_bytes() -> None:
    code = Code(0, 0, b"\0")
    params = Params("D", 3, *(16, 0, 16, 0, 0), (code,), (0,) * 32, 0, (Position(0, 0, 7),) * 3)
    row = np.array([7, 7, 7], "<u2").tobytes()
    assert encode_row(row, params) == b""
    assert decode_row(b"", params) == row


def test_row_with_what_no_code_has_is_stored_raw() -> None:
    params = replace(by_hand(), zero_bits=3)
    row = np.array([0.5] * 6 + [1.0, -1.5], "<f4")
    assert len(encode_row(row.tobytes(), params)) < 32
    for at, value in ((7, 2.0), (6, -1.0)):  # k1 = 0, another exponent and another sign
        other = row.copy()
        other[at] = value
        assert check_rows(other.view(np.uint8)[None], params) == [other.tobytes()]
    for bit in range(4):
        other = row.copy()
        other.view("<u4")[0] |= 1 << bit
        assert (check_rows(other.view(np.uint8)[None], params) == [other.tobytes()]) == (bit < 3)


def test_chunk_that_is_left_out_may_have_low_bits() -> None:
    params = replace(float_params("f4", "S", 8), zero=0x3F800001, zero_bits=4)
    rows = np.full((2, 8), params.zero, "<u4")
    rows[1, 3] += 1
    stored = check_rows(rows.view(np.uint8), params)
    assert stored == [bytes(4), rows[1].tobytes()]  # B2 and padding; a coded chunk may not


def test_row_that_encoding_does_not_shorten_is_stored_raw() -> None:
    # 23 bits a chunk and no codes: 3, 6, 9 bytes take 4, 8, 12; 12 bytes take 12 of 16.
    for num_chunks, stored_bytes in ((1, 4), (2, 8), (3, 12), (4, 12)):
        code, position = Code(0, 0, b"\0"), Position(0, 0, 127)
        params = Params("D", num_chunks, *(32, 1, 8, 0, 0), (code,), (0,) * 32, 0, (position,) * num_chunks)
        row = np.linspace(1, 1.5, num_chunks, dtype="<f4").view(np.uint8)[None]
        (stored,) = check_rows(row, params)
        assert len(stored) == stored_bytes
        assert (stored == row.tobytes()) == (num_chunks < 4)


def test_rows_of_noise_are_stored_raw() -> None:
    rows = np.random.default_rng(5).integers(0, 256, (5, 4 * 257), np.uint8)
    for kind in "DS":
        assert check_rows(rows, float_params("f4", kind, 257)) == [row.tobytes() for row in rows]


@pytest.mark.parametrize("kind", ["D", "S"])
def test_row_without_chunks_is_raw(kind: str) -> None:
    params = float_params("f4", kind, 0)
    assert check_rows(np.empty((2, 0), np.uint8), params) == [b"", b""]
    with pytest.raises(FormatError, match="the size is 0"):
        decode_row(b"", params)


def test_damage_is_reported_with_its_row() -> None:
    rows = np.array([[0.5] * 6 + [1.0, -1.5]] * 3, "<f4").view(np.uint8)
    stored = encode_rows(rows, by_hand())
    encoded = np.ones(3, np.bool_)
    with pytest.raises(FormatError, match="row 1: the size is 3"):
        decode_rows([stored[0], stored[1][:3], stored[2]], encoded, by_hand())
    with pytest.raises(FormatError, match=r"row 2: .* 32 of a raw row"):
        decode_rows(stored, np.array([True, True, False]), by_hand())


@pytest.mark.parametrize("num_bytes", [0, 31, 33, 64])
def test_raw_row_has_the_size_of_a_row(num_bytes: int) -> None:
    with pytest.raises(FormatError, match=f"row 0: size {num_bytes}, want 32 of a raw row"):
        decode_rows([bytes(num_bytes)], np.zeros(1, np.bool_), by_hand())


def test_bitmask_says_which_rows_are_raw() -> None:
    rows = np.array([[0.5] * 6 + [1.0, -1.5], [0.5] * 6 + [2.0, -1.5]], "<f4").view(np.uint8)
    encoded, raw = encode_rows(rows, by_hand())
    assert len(encoded) < len(raw) == 32
    assert np.array_equal(decode_rows([raw, encoded], np.array([False, True]), by_hand()), rows[::-1])
    with pytest.raises(FormatError, match="row 1: the size is 32"):
        decode_rows([encoded, raw], np.ones(2, np.bool_), by_hand())


def test_sizes_of_many_rows_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    params = float_params("f4", "S", 20)
    rows = special_floats("f4", 20, zeros=0.7).view(np.uint8).reshape(8, -1)
    for batch_chunks in (1, 60):
        monkeypatch.setattr("gnn_ibp.ibp2.reference.BATCH_CHUNKS", batch_chunks)
        check_rows(rows, params)


def test_planes_must_not_reach_into_level_1() -> None:
    code = Code(0, 0, b"\0")
    params = Params("D", 7, *(32, 1, 8, 0, 0), (code,), (0,) * 32, 0, (Position(0, 0, 127),) * 7)
    assert len(decode_row(bytes(24), params)) == 28  # planes of 7 and 14 bytes
    with pytest.raises(FormatError, match="the fixed parts do not fit"):
        decode_row(bytes(20), params)


TOPS_ONLY = replace(float_params("f4", "S", 1024), levels=1, zero_bits=23)
"""k1 = 3, g = 2, no planes: whatever stands behind level 1 is the variable stream."""


@pytest.mark.parametrize(
    ("num_present", "variable"),
    [
        pytest.param(40, [(0, 2)] * 40, id="level 2: 80 bits, then 72"),
        pytest.param(12, [(3, 2)] * 12 + [(0, 3)] * 12, id="level 3: 60 bits, then 56"),
        pytest.param(
            16, [(3, 2)] * 2 + [(0, 2)] * 14 + [(7, 3)] * 2 + [(5, 9)] * 2, id="RAW: 56 bits, then 48"
        ),
        pytest.param(
            7, [(3, 2)] * 6 + [(0, 2)] + [(7, 3)] + [(0, 3)] * 5 + [(0, 9)], id="RAW: 41 bits, then 40"
        ),
    ],
)
def test_no_field_is_read_behind_the_variable_stream(
    num_present: int, variable: list[tuple[int, int]]
) -> None:
    level1 = to_bytes(np.ones(3 * num_present, np.uint8))  # all go on to level 2
    others = to_bytes(np.concatenate([join_equal(np.array([value]), width) for value, width in variable]))
    fits = write_bitmap(np.arange(1024) < num_present, 1) + level1 + others
    fits += bytes(-len(fits) % 4)
    assert len(decode_row(fits, TOPS_ONLY)) == 4096
    with pytest.raises(FormatError, match="the variable stream does not fit"):
        decode_row(fits[:-4], TOPS_ONLY)
