"""Which memory the gather-decode kernel touches: a row's sectors and no others, at any distance."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gather_cases import make_case
from gather_check import (
    ORDERS,
    check_case,
    check_damage,
    check_far_rows,
    check_slots,
)
from gather_launch import GUARD, TiledCuda, launch, lazily_zeroed
from kernel_launch import LaunchError, Options
from poisoned_launch import launch_poisoned

from gnn_ibp import IBPCodec
from gnn_ibp.ops import DeviceSource
from gnn_ibp.rows import PAD_BYTES


@pytest.mark.parametrize("host", ["in place", "condensed"])
@pytest.mark.parametrize("chunk_bits, row_bytes", [(16, 66), (32, 400), (64, 136), (32, 2408)])
def test_no_byte_outside_of_the_rows_sectors_is_touched(chunk_bits: int, row_bytes: int, host: str) -> None:
    case = make_case(chunk_bits, row_bytes, "random", "mixed", host, 1)
    got = launch_poisoned(case, case.ids)
    assert np.array_equal(got, case.rows[case.ids])
    with pytest.raises(LaunchError, match="out of bounds"):
        launch_poisoned(case, case.ids[case.ids != case.ids[0]])


def test_damaged_rows_are_found_first_and_harm_no_other() -> None:
    check_damage(TiledCuda(Options("random", seed=3, eager_copies=True)))


def test_damaged_rows_are_never_read_beyond_the_slab() -> None:
    check_damage(TiledCuda(ORDERS[1], sanitizer="address"))


@pytest.mark.parametrize("sanitizer", [None, "address"])
def test_slots_and_rows_outside_of_the_slab_are_damage(sanitizer: str | None) -> None:
    check_slots(TiledCuda(sanitizer=sanitizer))


def test_rows_and_ids_beyond_2_to_the_31_are_found() -> None:
    num_rows = 2**31 + 1000
    codec = IBPCodec(np.array([0xFF00], np.uint16), np.array([0x1200], np.uint16), 16)  # 2 bytes: all raw
    data = lazily_zeroed(2 * num_rows + 2 * PAD_BYTES)
    ids = np.array([num_rows - 1, 0, 2**31, 2**31 - 1, 2**31 + 7])
    data[PAD_BYTES + 2 * ids] = torch.tensor([11, 12, 13, 14, 15], dtype=torch.uint8)
    source = DeviceSource(data, lazily_zeroed(-(-num_rows // 8)), None, None, num_rows, 1, None)
    cuda = TiledCuda()
    got = launch(cuda, codec, ids, num_rows, [source])
    assert got.out[:, 0].tolist() == [11, 12, 13, 14, 15]
    slot_of = lazily_zeroed(4 * num_rows).view(torch.int32)
    slot_of[2**31 + 7] = 2**31 - 1
    slot_of[2**31] = -1
    tabled = DeviceSource(data, source.bitmask, None, None, num_rows, 1, slot_of)
    got = launch(cuda, codec, ids, num_rows, [tabled])
    assert got.out[:, 0].tolist() == [12, 12, GUARD, 12, 14]
    assert got.missing_ids.tolist() == [2**31]
    assert launch(cuda, codec, [num_rows], num_rows, [source]).counts.bad_at == 0


@pytest.mark.parametrize("row_bytes", [64, 512, 4096])
def test_offsets_beyond_4_gib_are_found(row_bytes: int) -> None:
    check_far_rows(TiledCuda(), row_bytes)


def test_rows_under_128_bytes_do_not_overrun_their_neighbour_in_the_output() -> None:
    for row_bytes in (4, 12, 20, 100, 124):
        case = make_case(32, row_bytes, "random", "mixed", "condensed", 2)
        at = np.arange(0, 2 * len(case.ids), 2)
        case = replace(case, at=at, num_out=2 * len(case.ids))
        for options in ORDERS:
            check_case(TiledCuda(options), case)  # compares the rows between, too


def test_masks_are_complete_before_a_lane_uses_them() -> None:
    case = make_case(32, 512, "random", "encoded", "in place", 4)
    for options in (
        Options(fill=0x00),
        Options(fill=0xFF),
        *ORDERS,
        Options("random", seed=9, eager_copies=True),
    ):
        check_case(TiledCuda(options), case)


def test_words_of_the_ring_are_visible_to_all_lanes_before_they_are_read() -> None:
    for row_bytes in (1024, 3072, 14812):
        case = make_case(32, row_bytes, "random", "mixed", "in place", 4)
        for options in (*ORDERS, Options("reverse", fill=0x00), Options("random", seed=8, eager_copies=True)):
            check_case(TiledCuda(options), case)


@pytest.mark.slow
@pytest.mark.parametrize("row_bytes", [100, 512, 3072])
def test_lanes_are_synchronised_around_every_exchange(row_bytes: int) -> None:
    for host in ("in place", "condensed"):
        case = make_case(32, row_bytes, "random", "mixed", host, 4)
        check_case(TiledCuda(ORDERS[1], sanitizer="thread"), case)


def test_work_is_queued_on_the_callers_stream() -> None:
    case = make_case(32, 400, "random", "mixed", "condensed", 1)
    cuda = TiledCuda()
    stream = cuda.stream()
    with stream:
        check_case(cuda, case)
    assert {launched.stream for launched in cuda.launches} == {stream}
