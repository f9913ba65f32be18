"""The gather-decode kernels for row format version 2, run on the CPU: bit for bit, and an exact account."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gather_check import ORDERS, check_case
from gather_launch import TiledCuda, device_source, launch
from ibp2_cases import GOLDEN, golden_params, rows_for
from ibp2_gather_cases import LONG_ROW_BYTES, ROW_BYTES, STAGED_BYTES, cases, make_case
from ibp2_gather_check import (
    GOLDEN_ROWS,
    KINDS,
    check_golden_rows,
    check_ibp2_damage,
    check_rows_of_no_bytes,
)
from kernel_launch import LaunchError, Options
from poisoned_launch import launch_poisoned

from gnn_ibp import IBP2Codec, ops

WIDTHS = (16, 32, 64)
NAMES = [golden["name"] for golden in GOLDEN_ROWS]


@pytest.mark.parametrize("golden", GOLDEN_ROWS, ids=NAMES)
def test_golden_rows_are_decoded_and_damaged_ones_found(golden: dict[str, Any]) -> None:
    check_golden_rows(TiledCuda(), golden)


@pytest.mark.parametrize("chunk_bits", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_under_strange_tables_come_from_the_first_source_that_has_them(
    kind: str, chunk_bits: int
) -> None:
    cudas = [TiledCuda(options) for options in ORDERS]
    for number, case in enumerate(cases(kind, chunk_bits, ROW_BYTES + LONG_ROW_BYTES[:2])):
        check_case(cudas[(number + number // 2) % 3], case)


@pytest.mark.slow
@pytest.mark.parametrize("options", ORDERS, ids=lambda options: options.order)
@pytest.mark.parametrize("chunk_bits", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_under_strange_tables_come_in_every_order(kind: str, chunk_bits: int, options: Options) -> None:
    cuda = TiledCuda(options)
    for seed in range(3):
        for case in cases(kind, chunk_bits, ROW_BYTES + LONG_ROW_BYTES, 100 * seed):
            check_case(cuda, case)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_touched_out_of_bounds(kind: str) -> None:
    cuda = TiledCuda(ORDERS[2], sanitizer="address")
    for number, case in enumerate(cases(kind, 32)):
        if number % 4 == 0:
            check_case(cuda, case)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address", "thread"])
@pytest.mark.parametrize("chunk_bits", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_lane_reads_what_another_may_still_write(kind: str, chunk_bits: int, sanitizer: str) -> None:
    for number, case in enumerate(cases(kind, chunk_bits)):
        check_case(TiledCuda(ORDERS[number % 3], sanitizer=sanitizer), case)


@pytest.mark.parametrize(
    "chunk_bits", [32, *(pytest.param(bits, marks=pytest.mark.slow) for bits in (16, 64))]
)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_rows_are_found_first_and_harm_no_other(kind: str, chunk_bits: int) -> None:
    check_ibp2_damage(TiledCuda(Options("random", seed=3, eager_copies=True)), kind, chunk_bits)


@pytest.mark.slow
@pytest.mark.parametrize("chunk_bits", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_rows_are_never_read_beyond_the_slab(kind: str, chunk_bits: int) -> None:
    check_ibp2_damage(TiledCuda(ORDERS[1], sanitizer="address"), kind, chunk_bits)


@pytest.mark.parametrize("chunk_bits", WIDTHS)
def test_rows_that_the_tables_tell_whole_are_made_of_nothing(chunk_bits: int) -> None:
    check_rows_of_no_bytes(TiledCuda(), chunk_bits)


@pytest.mark.parametrize(
    "kind, row_bytes", [("D", 400), ("D", 2408), ("D", 9000), ("S", 400), ("S", 2000), ("S", 20_000)]
)
def test_no_byte_outside_of_the_rows_sectors_is_touched(kind: str, row_bytes: int) -> None:
    case = make_case(kind, 32, row_bytes, "condensed", 1)
    sizes = ops.stored_sizes(case.codec, case.rows)
    assert case.reads_once == (sizes[sizes < row_bytes].mean() <= STAGED_BYTES[kind])
    assert np.array_equal(launch_poisoned(case, case.ids), case.rows[case.ids])
    with pytest.raises(LaunchError, match=r"out of bounds|use-after-poison"):
        launch_poisoned(case, case.ids[case.ids != case.ids[0]])


@pytest.mark.parametrize(
    "chunk_bits, row_bytes, offset", [(16, 512, 2), (16, 30, 2), (32, 512, 4), (32, 128, 8), (64, 256, 8)]
)
def test_output_that_begins_anywhere_is_written_exactly(chunk_bits: int, row_bytes: int, offset: int) -> None:
    case = make_case("D", chunk_bits, row_bytes, "condensed", 4)
    memory = np.full(len(case.rows) * row_bytes + 256, 0xCD, np.uint8)
    start = -memory.ctypes.data % 256 + offset
    end = start + case.rows.nbytes
    out = torch.from_numpy(memory[start:end].reshape(case.rows.shape))
    source = device_source(ops.encode_rows(case.codec, case.rows, 32))
    launch(TiledCuda(), case.codec, np.arange(len(case.rows)), len(case.rows), [source], out=out)
    assert np.array_equal(out.numpy(), case.rows)
    assert (memory[:start] == 0xCD).all() and (memory[end:] == 0xCD).all()


def test_8_bit_chunks_have_no_kernel() -> None:
    (golden,) = (golden for golden in GOLDEN if golden["W"] == 8)
    assert IBP2Codec(golden_params(golden)).device_kernel is None


def test_rows_in_place_are_refused() -> None:
    codec = IBP2Codec(golden_params(GOLDEN[0]))
    rows = rows_for(np.random.default_rng(0), codec.tables, 3)
    source = replace(device_source(ops.encode_rows(codec, rows, 32)), bases=None, sizes=None)
    with pytest.raises(ValueError, match="rows of this format cannot lie in place"):
        launch(TiledCuda(), codec, [0], 3, [source])
