"""The NumPy reference against the golden vectors, and its fit on cases small enough to work out by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnn_ibp import reference
from gnn_ibp.errors import FormatError
from gnn_ibp.reference import Masks

GOLDEN = json.loads((Path(__file__).parent / "golden" / "ibp_golden.json").read_text())
FITTED = [golden for golden in GOLDEN if golden["threshold"] is not None]


def golden_masks(golden: dict[str, Any]) -> Masks:
    dtype = f"uint{8 * golden['chunk_bytes']}"
    return Masks(
        np.array([int(word, 16) for word in golden["mask"]], dtype),
        np.array([int(word, 16) for word in golden["bitval"]], dtype),
    )


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["name"] for golden in GOLDEN])
def test_golden_rows_are_encoded_and_decoded_bit_for_bit(golden: dict[str, Any]) -> None:
    masks = golden_masks(golden)
    for row in golden["rows"]:
        raw, stored = bytes.fromhex(row["row"]), bytes.fromhex(row["stored"])
        assert reference.encode_row(raw, masks) == stored
        assert (len(stored) < len(raw)) == row["compressed"]
        if row["compressed"]:
            assert reference.decode_row(stored, masks) == raw


@pytest.mark.parametrize("golden", FITTED, ids=[golden["name"] for golden in FITTED])
def test_golden_thresholds_give_the_golden_masks(golden: dict[str, Any]) -> None:
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    fitted = reference.fit_threshold(rows, 8 * golden["chunk_bytes"], round(100 * golden["threshold"]))
    wanted = golden_masks(golden)
    assert np.array_equal(fitted.mask, wanted.mask)
    assert np.array_equal(fitted.bitval, wanted.bitval)


def test_threshold_is_strict_on_both_sides() -> None:
    rows = np.array([[0b11], [0b11], [0b11], [0b10]], np.uint8)  # bit 0: 75 % ones, others: all agree
    assert reference.fit_threshold(rows, 8, 75).mask[0] == 0b11111110
    assert reference.fit_threshold(rows, 8, 74).mask[0] == 0b11111111
    assert reference.fit_threshold(255 - rows, 8, 75).mask[0] == 0b11111110
    assert reference.fit_threshold(255 - rows, 8, 74).bitval[0] == 0b11111100


def test_position_keeps_the_prefix_that_leaves_out_the_most_bits() -> None:
    # Bits 7 to 2 always agree: 6 bits * 8 rows = 48. Bit 1: 7 * 6 = 42. Bit 0: less.
    assert reference.fit_position(np.array([0, 0, 0, 1, 1, 0, 2, 3], np.uint8)) == (0b11111100, 0)
    # 7 of 8 rows agree on everything: 8 * 7 = 56 > 7 * 8 is a tie, and the shorter prefix wins it.
    assert reference.fit_position(np.array([5] * 7 + [4], np.uint8)) == (0b11111110, 4)
    assert reference.fit_position(np.array([5] * 9 + [4], np.uint8)) == (0b11111111, 5)


def test_position_prefers_the_highest_bit_and_value_0_of_equal_ones() -> None:
    # Two rows that differ in every bit: any bit halves them. 1 * 1 bits, growing to 8 * 1.
    assert reference.fit_position(np.array([0xA5, 0x5A], np.uint8)) == (0xFF, 0x5A)


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x0f\0\0", id="one word too many"),
        pytest.param(b"\x0f", id="one word too few"),
        pytest.param(b"\x1f\x12", id="a participation bit beyond the last chunk"),
        pytest.param(b"\x0e\x12\x31", id="ones behind the payload"),
        pytest.param(b"\x00\1\2\3\4", id="longer than raw"),
    ],
)
def test_damaged_row_is_refused(stored: bytes) -> None:
    masks = Masks(np.array([0xFC] * 4, np.uint8), np.array([0] * 4, np.uint8))
    assert reference.decode_row(b"\x0f\x1b", masks) == bytes([0, 1, 2, 3])
    assert reference.decode_row(b"\x0e\xff\x6c", masks) == bytes([0xFF, 1, 2, 3])
    with pytest.raises(FormatError):
        reference.decode_row(stored, masks)
