"""The gather-decode kernel, run on the CPU: the rows that were encoded, bit for bit, and an exact account."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gather_cases import LONG_ROW_BYTES, ROW_BYTES, all_kinds, cases, make_case
from gather_check import ORDERS, check_case, check_ids, codec_and_rows
from gather_launch import GUARD, TiledCuda, device_source, launch
from kernel_launch import Options

from gnn_ibp import IBPCodec, ops
from gnn_ibp.ops import DeviceSource
from gnn_ibp.ops.device import _blocks
from gnn_ibp.rows import EncodedRows, RowIndex

GOLDEN = Path(__file__).parents[1] / "golden" / "ibp_golden.json"
WIDTHS = (16, 32, 64)


@pytest.mark.parametrize("chunk_bits", WIDTHS)
def test_rows_come_from_the_first_source_that_has_them(chunk_bits: int) -> None:
    cudas = [TiledCuda(options) for options in ORDERS]
    for number, case in enumerate(cases(chunk_bits, ROW_BYTES + LONG_ROW_BYTES)):
        # one order each, so that each kind of host, which number % 3 picks, meets all of them
        check_case(cudas[(number + number // 3) % 3], case)


@pytest.mark.slow
@pytest.mark.parametrize("options", ORDERS, ids=lambda options: options.order)
@pytest.mark.parametrize("chunk_bits", WIDTHS)
def test_rows_come_from_the_first_source_in_every_order(chunk_bits: int, options: Options) -> None:
    cuda = TiledCuda(options)
    for case in cases(chunk_bits, ROW_BYTES + LONG_ROW_BYTES):
        check_case(cuda, case)


@pytest.mark.parametrize("chunk_bits", WIDTHS)
def test_every_mask_and_every_kind_of_rows_is_exact(chunk_bits: int) -> None:
    cuda = TiledCuda(Options(order="random", seed=5, eager_copies=True))
    for row_bytes in (24, 136, 512, 1544):
        for case in all_kinds(chunk_bits, row_bytes):
            check_case(cuda, case)


@pytest.mark.parametrize("chunk_bits", WIDTHS)
def test_nothing_is_touched_out_of_bounds(chunk_bits: int) -> None:
    for number, case in enumerate(cases(chunk_bits)):
        if number % 4 == 0:
            check_case(TiledCuda(ORDERS[number % 3], sanitizer="address"), case)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address", "thread"])
@pytest.mark.parametrize("chunk_bits", WIDTHS)
def test_no_lane_reads_what_another_may_still_write(chunk_bits: int, sanitizer: str) -> None:
    for number, case in enumerate(cases(chunk_bits, ROW_BYTES + LONG_ROW_BYTES)):
        check_case(TiledCuda(ORDERS[number % 3], sanitizer=sanitizer), case)


def test_golden_rows_are_decoded() -> None:
    cuda = TiledCuda()
    for golden in json.loads(GOLDEN.read_text()):
        if golden["chunk_bytes"] > 1:
            check_golden(cuda, golden)


def check_golden(cuda: TiledCuda, golden: dict[str, Any]) -> None:
    """Golden rows, as they are stored in the file, at 32 bytes."""
    mask, bitval = ([int(word, 16) for word in golden[name]] for name in ("mask", "bitval"))
    codec = IBPCodec(mask, bitval, 8 * golden["chunk_bytes"])
    rows, stored = ([bytes.fromhex(row[name]) for row in golden["rows"]] for name in ("row", "stored"))
    sizes = np.array(list(map(len, stored)))
    index = RowIndex.from_sizes(sizes, codec.unit, 32, codec.row_bytes)
    slab = bytes(64) + b"".join(row.ljust(-(-len(row) // 32) * 32, b"\0") for row in stored) + bytes(64)
    bitmask = np.packbits([row["compressed"] for row in golden["rows"]], bitorder="little")
    encoded = EncodedRows(np.frombuffer(slab, np.uint8), bitmask, index, len(rows), codec.row_bytes)
    got = launch(cuda, codec, np.arange(len(rows)), len(rows), [device_source(encoded)])
    assert got.counts.damaged_at == -1, golden["name"]
    assert [row.tobytes() for row in got.out] == rows, golden["name"]


def some_rows(
    num_rows: int = 50, row_bytes: int = 400, chunk_bits: int = 32
) -> tuple[IBPCodec, np.ndarray, DeviceSource]:
    """Rows, and a source that holds them all."""
    codec, rows = codec_and_rows(chunk_bits, row_bytes, num_rows)
    return codec, rows, device_source(ops.encode_rows(codec, rows, 32))


@pytest.mark.parametrize("sanitizer", [None, "address"])
def test_ids_and_targets_out_of_range_are_reported_and_touch_nothing(sanitizer: str | None) -> None:
    check_ids(TiledCuda(ORDERS[1], sanitizer=sanitizer))


def test_without_sources_every_id_is_missing() -> None:
    codec, _, _ = some_rows()
    ids = np.random.default_rng(1).integers(0, 50, 200)
    for sources in ([], [None], [None, None]):
        got = launch(TiledCuda(), codec, ids, 50, sources, num_out=300, at=np.arange(200) + 100)
        assert got.counts.num_missing == 200
        assert sorted(zip(got.missing_at, got.missing_ids, strict=True)) == list(
            zip(np.arange(200) + 100, ids, strict=True)
        )
        assert (got.out == GUARD).all()
        assert (got.counts.hits, got.counts.encoded_bytes, got.counts.sector_bytes) == (
            [0, 0],
            [0, 0],
            [0, 0],
        )


def test_empty_sources_hold_nothing() -> None:
    codec, rows, source = some_rows()
    empty = ops.encode_rows(codec, rows[:0], 16)
    nothing = device_source(empty, np.full(50, -1, np.int32))
    got = launch(TiledCuda(), codec, [4, 2], 50, [nothing, source])
    assert got.counts.hits == [0, 2]
    assert np.array_equal(got.out, rows[[4, 2]])


def test_no_ids_launch_nothing() -> None:
    codec, _, source = some_rows()
    cuda = TiledCuda()
    got = launch(cuda, codec, [], 50, [source], num_out=2)
    assert cuda.launches == []
    assert (got.out == GUARD).all()
    assert got.counts.hits == [0, 0]


def test_rows_without_bytes_are_counted() -> None:
    codec = IBPCodec.raw(0)
    source = device_source(ops.encode_rows(codec, np.zeros((5, 0), np.uint8), 16))
    got = launch(TiledCuda(), codec, [4, 0, 4], 5, [source])
    assert (got.counts.hits, got.counts.sector_bytes, got.counts.damaged_at) == ([3, 0], [0, 0], -1)


@pytest.mark.parametrize(
    "chunk_bits, row_bytes, offset",
    [(16, 512, 2), (16, 30, 2), (32, 512, 4), (32, 2048, 4), (32, 512, 8), (64, 1024, 8)],
)
def test_output_that_begins_anywhere_is_written_exactly(chunk_bits: int, row_bytes: int, offset: int) -> None:
    codec, rows, source = some_rows(40, row_bytes, chunk_bits)
    memory = np.full(40 * row_bytes + 256, GUARD, np.uint8)
    start = -memory.ctypes.data % 256 + offset
    out = torch.from_numpy(memory[start : start + 40 * row_bytes].reshape(40, row_bytes))
    launch(TiledCuda(), codec, np.arange(40), 40, [source], out=out)
    assert np.array_equal(out.numpy(), rows)
    assert (memory[:start] == GUARD).all()
    assert (memory[start + out.numel() :] == GUARD).all()


def test_rows_too_long_for_16_bit_sizes_are_found() -> None:
    case = make_case(16, 2 * 65540, "random", "mixed", "condensed", 3)
    assert ops.encode_rows(case.codec, case.rows, 16).index.sizes.dtype == np.uint32
    check_case(TiledCuda(), case)


def test_many_ids_are_served_by_few_blocks() -> None:
    codec, rows, source = some_rows(row_bytes=64)
    ids = np.random.default_rng(3).integers(0, 50, 20_000)
    cuda = TiledCuda()
    got = launch(cuda, codec, ids, 50, [source])
    assert cuda.launches[0].grid * cuda.launches[0].block // 32 * 32 < len(ids)  # warps take several tiles
    assert np.array_equal(got.out, rows[ids])
    assert got.counts.hits == [20_000, 0]


@pytest.mark.parametrize("row_bytes, unit", [(100, 4), (256, 2), (512, 4), (512, 8), (3072, 4)])
def test_all_warps_that_run_at_once_get_about_as_many_ids(row_bytes: int, unit: int) -> None:
    kernel = codec_and_rows(8 * unit, row_bytes, 1)[0].device_kernel
    rows_at_once = {100: 4, 256: 2}.get(row_bytes, 1)
    assert kernel and kernel.rows_at_once == rows_at_once
    for n in (1, 7, 100, 5000, 50_000, 110_000, 200_000, 1_000_000):
        blocks = _blocks(n, 132, kernel)
        assert 1 <= blocks.tile <= 32 and blocks.tile % rows_at_once == 0
        num_tiles, num_warps = -(-n // blocks.tile), blocks.num * kernel.warps
        assert (blocks.num - 1) * kernel.warps < num_tiles  # no block has nothing to do
        most = -(-num_tiles // num_warps) * blocks.tile
        assert most <= max(rows_at_once, 1.2 * n / num_warps + 1)
        assert num_warps >= min(132 * 16, num_tiles)


def test_8_bit_chunks_have_no_kernel() -> None:
    codec = IBPCodec.raw(7)
    assert codec.chunk_bits == 8 and codec.device_kernel is None


def test_arguments_that_no_kernel_can_take_are_refused() -> None:
    codec, _, source = some_rows()
    cuda = TiledCuda()
    with pytest.raises(ValueError, match="out has 8 columns, the rows have 400 bytes"):
        launch(cuda, codec, [0], 50, [source], out=torch.zeros(1, 8, dtype=torch.uint8))
    with pytest.raises(ValueError, match="out has 1 rows, there are 2 ids"):
        launch(cuda, codec, [0, 1], 50, [source], num_out=1)
    with pytest.raises(ValueError, match="out does not begin at a multiple of 4 bytes"):
        launch(cuda, codec, [0], 50, [source], out=torch.zeros(402, dtype=torch.uint8)[2:].view(1, 400))
    with pytest.raises(ValueError, match="there are 3 sources, at most 2"):
        launch(cuda, codec, [0], 50, [source] * 3)
    with pytest.raises(ValueError, match="align is 2, want a power of two, and a multiple of 4"):
        launch(cuda, codec, [0], 50, [replace(source, align=2)])
    with pytest.raises(ValueError, match="the first row of the slab is not at a multiple of 32 bytes"):
        launch(cuda, codec, [0], 50, [replace(source, data=source.data[16:])])
    with pytest.raises(TypeError, match=r"at has dtype torch\.int32, want torch\.int64"):
        launch(cuda, codec, [0], 50, [source], at=np.zeros(1, np.int32))
    assert cuda.launches == []
