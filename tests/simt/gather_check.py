"""Checks of the gather-decode kernel that its tests and the mutants share."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from gather_cases import Case, cases, make_codec, make_rows
from gather_launch import GUARD, TiledCuda, device_source, launch, lazily_zeroed, on_device, starts
from kernel_launch import Options
from numpy.typing import NDArray

from gnn_ibp import IBPCodec, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.ops import DeviceSource, Source
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.rows import PAD_BYTES, EncodedRows

ORDERS = tuple(Options(order=order) for order in ("forward", "reverse", "random"))

CHECKS: list[tuple[str | None, Options]] = [
    *((None, options) for options in ORDERS),
    (None, Options(fill=0x00, eager_copies=True)),
    ("address", Options(order="random", seed=2)),
    ("thread", Options(order="reverse")),
]
"""What `check_gather` is run with, the cheapest first."""

FEW_BYTES = (6, 20, 128, 132, 400, 512, 516, 2408, 14812, 65536)


def check_gather(kernels: Path, sanitizer: str | None, options: Options) -> None:
    """Rows of all chunk widths and shapes, by the kernels in the folder `kernels`.

    Raises AssertionError where a row, a count or a byte read is not what it must be, LaunchError where the
    harness or a sanitizer finds a fault, BuildError where the kernels do not compile.
    """
    cuda = TiledCuda(options, sanitizer=sanitizer, kernels=kernels)
    for chunk_bits in (32, 16, 64):
        for number, case in enumerate(cases(chunk_bits, FEW_BYTES)):
            # of few, each kind of host and length of tile, which number % 3 and number % 4 pick
            if sanitizer is None or number % 7 in (0, 3):
                check_case(cuda, case)
    check_ids(cuda)
    check_slots(cuda)
    check_damage(cuda)
    if cuda.in_process:
        check_far_rows(cuda, 512)
        check_far_rows(cuda, 4096)


def check_case(cuda: TiledCuda, case: Case) -> None:
    """Launches a case: rows, counts, missing ids, the bytes around.

    In the forward order also what was read of the slabs, watched one after the other.
    """
    slabs, sources, device_sources = sources_of(case)
    cuda.tile, cuda.grid = case.tile, case.grid
    expected = np.full((case.num_out, case.codec.row_bytes), GUARD, np.uint8)
    wanted = ops.gather_decode(case.ids, sources, expected, case.at)
    watches = cuda.in_process and cuda.options.order == "forward"
    for watched in range(len(slabs)) if watches else [None]:
        cuda.watch, cuda.reads = (None if watched is None else device_sources[watched].data), []
        got = launch(
            cuda, case.codec, case.ids, len(case.rows), device_sources, num_out=case.num_out, at=case.at
        )
        assert np.array_equal(got.out, expected), case.name
        assert (got.counts.bad_at, got.counts.bad_target_at, got.counts.damaged_at) == (-1, -1, -1), case.name
        assert got.counts.hits == wanted.hits, case.name
        assert got.counts.encoded_bytes == wanted.encoded_bytes, case.name
        order = np.lexsort((got.missing_at, got.missing_ids))
        wanted_order = np.lexsort((wanted.missing.at, wanted.missing.ids))
        assert np.array_equal(got.missing_ids[order], wanted.missing.ids[wanted_order]), case.name
        assert np.array_equal(got.missing_at[order], wanted.missing.at[wanted_order]), case.name
        served = served_rows(case, sources)
        for source, rows in enumerate(slabs):
            sectors = sectors_of(rows, served[source], case)
            num_bytes = 32 * sum(map(len, sectors))
            assert got.counts.sector_bytes[source] == num_bytes, case.name
            if watched == source and served[source]:
                (reads,) = cuda.reads
                assert np.array_equal(reads.sectors(), np.unique(np.concatenate(sectors))), case.name
                if case.reads_once:
                    assert reads.num_bytes.sum() == num_bytes, case.name


def sources_of(case: Case) -> tuple[list[EncodedRows], list[Source], list[DeviceSource]]:
    """The sources of a case: the cache, and the host where there is one."""
    num_rows = len(case.rows)
    slabs, slot_tables = [], []
    some = np.random.default_rng(num_rows).permutation(num_rows)[: num_rows // 2]
    for ids, align, in_place in (
        (case.cache_ids, case.align, False),
        (some if case.host == "some" else np.arange(num_rows), 32, case.host == "in place"),
    ):
        slabs.append(ops.encode_rows(case.codec, case.rows[ids], align, in_place))
        slot_of = np.full(num_rows, -1, np.int32)
        slot_of[ids] = np.arange(len(ids))
        slot_tables.append(slot_of if len(ids) < num_rows else None)
    pairs = list(zip(slabs, slot_tables, strict=True))
    return (
        slabs,
        [Source(rows, slot_of, case.codec) for rows, slot_of in pairs],
        [device_source(rows, slot_of) for rows, slot_of in pairs],
    )


def served_rows(case: Case, sources: list[Source]) -> list[list[int]]:
    """Per source, the slots that the ids of a case are served from."""
    served: list[list[int]] = [[] for _ in sources]
    for row in case.ids:
        for number, source in enumerate(sources):
            slot = int(row) if source.slot_of is None else int(source.slot_of[row])
            if slot >= 0:
                served[number].append(slot)
                break
    return served


def sectors_of(rows: EncodedRows, slots: list[int], case: Case) -> list[NDArray[np.int64]]:
    """Per slot, the 32-byte sectors of the stored row, counted from the start of the slab."""
    first, sizes = starts(rows)[slots], ops.measure_rows(case.codec, rows, np.array(slots, np.int64))
    return [
        np.arange(begin // 32, -(-(begin + size) // 32) if size else begin // 32)
        for begin, size in zip(first, sizes, strict=True)
    ]


def check_ids(cuda: TiledCuda) -> None:
    """Ids out of range are reported by their first position; the others come out, in the order asked."""
    cuda.tile = cuda.grid = None
    for row_bytes in (20, 400, 2408):
        codec, rows = codec_and_rows(32, row_bytes, 50)
        source = device_source(ops.encode_rows(codec, rows, 32))
        tabled = replace(source, slot_of=on_device(np.arange(50, dtype=np.int32)))
        for bad, first in ((-1, 7), (50, 0), (-(2**63), 99), (2**63 - 1, 31), (2**32, 64)):
            ids = np.arange(100) % 50
            ids[first:] = np.where(np.arange(first, 100) % 3 == first % 3, bad, ids[first:])
            good = (ids >= 0) & (ids < 50)
            for sources in ([source], [None, tabled]):
                got = launch(cuda, codec, ids, 50, sources)
                assert (got.counts.bad_at, got.counts.damaged_at) == (first, -1)
                assert np.array_equal(got.out[good], rows[ids[good]])
                assert (got.out[~good] == GUARD).all()
                assert (sum(got.counts.hits), got.counts.num_missing) == (good.sum(), 0)
        at = np.array([3, 4, -1, 0, 4, 2**40])
        got = launch(cuda, codec, np.arange(6), 50, [source], num_out=4, at=at)
        assert (got.counts.bad_target_at, got.counts.bad_at) == (1, -1)
        assert np.array_equal(got.out[[3, 0]], rows[[0, 3]])
        assert (got.out[[1, 2]] == GUARD).all()


def check_slots(cuda: TiledCuda) -> None:
    """Slots beyond the rows, rows beyond the slab and rows out of line are damage; the others come out."""
    cuda.tile = cuda.grid = None
    codec, rows = codec_and_rows(32, 400, 10)
    slot_of = np.arange(10, dtype=np.int32)
    slot_of[[3, 8]] = 10, 2**31 - 1
    good = [0, 1, 2, 4, 9]
    for in_place in (False, True):
        encoded = ops.encode_rows(codec, rows, 32, in_place)
        got = launch(cuda, codec, np.arange(10), 10, [device_source(encoded, slot_of)])
        assert got.counts.damaged_at == 3
        assert np.array_equal(got.out[good], rows[good])
        source = device_source(encoded)
        cut = source.data[: int(starts(encoded)[8]) + PAD_BYTES + 4]
        got = launch(cuda, codec, np.arange(10), 10, [replace(source, data=on_device(cut.numpy()))])
        assert got.counts.damaged_at == 8
        assert np.array_equal(got.out[:8], rows[:8])
    condensed = device_source(ops.encode_rows(codec, rows, 32))
    assert condensed.bases is not None
    got = launch(cuda, codec, np.arange(10), 10, [replace(condensed, bases=condensed.bases + 2)])
    assert (got.counts.damaged_at, got.counts.hits) == (0, [0, 0])


def check_far_rows(cuda: TiledCuda, row_bytes: int) -> None:
    """Rows more than 4 GiB behind the start of the slab, to places as far behind the start of `out`."""
    cuda.tile = cuda.grid = None
    codec, rows = codec_and_rows(32, row_bytes, 40)
    far = 5 << 30
    num_out = far // row_bytes
    at = num_out - 1 - np.arange(40)
    out = lazily_zeroed(num_out * row_bytes).view(num_out, row_bytes)
    for in_place in (False, True):
        near = ops.encode_rows(codec, rows, 32, in_place)
        data = lazily_zeroed(far + len(near.data))
        data[far:] = torch.from_numpy(near.data)
        source = replace(device_source(near), data=data)
        slots, num_rows = np.arange(40), 40
        if in_place:  # a data set of which the last rows are these
            num_rows = far // row_bytes + 40
            slots += num_rows - 40
            bitmask = lazily_zeroed(-(-num_rows // 8))
            bitmask[-5:] = source.bitmask
            source = replace(source, bitmask=bitmask, num_rows=num_rows)
        else:
            source = replace(source, bases=source.bases + far)
        out[at] = 0
        got = launch(cuda, codec, slots, num_rows, [source], out=out, at=at)
        assert got.counts.damaged_at == -1
        assert np.array_equal(got.out[at], rows)
        assert not got.out[:40].any()


def codec_and_rows(chunk_bits: int, row_bytes: int, num_rows: int) -> tuple[IBPCodec, NDArray[np.uint8]]:
    """A codec, and rows of which some are stored raw."""
    rng = np.random.default_rng(row_bytes)
    codec = make_codec(chunk_bits, row_bytes, "random", rng)
    return codec, make_rows(codec, num_rows, "mixed", rng)


def check_damage(cuda: TiledCuda) -> None:
    """A row is damaged where the CPU says so; it is found first, and nothing beside it suffers."""
    for number, (chunk_bits, row_bytes) in enumerate(
        (
            (32, 100),
            (16, 66),
            (64, 136),
            (16, 400),
            (64, 400),
            (32, 2408),
            (16, 1030),
            (64, 9000),
            (32, 20000),
        )
    ):
        rng = np.random.default_rng(number)
        codec = make_codec(chunk_bits, row_bytes, "random", rng)
        rows = make_rows(codec, 24, "encoded", rng)
        cuda.tile, cuda.grid = (8, 32)[number % 2], None
        for in_place in (False, True):
            encoded = ops.encode_rows(codec, rows, 32, in_place)
            for kind, damaged in enumerate(damaged_rows(encoded, rng)):
                if cuda.in_process or (kind + number) % 3 == 0:
                    check_verdicts(cuda, codec, damaged)


def damaged_rows(rows: EncodedRows, rng: np.random.Generator) -> Iterator[EncodedRows]:
    """The rows, damaged in various ways: bits of them, of the bitmask, of the index."""
    flips = rows.data.copy()
    first = starts(rows)
    for slot in range(0, rows.num_rows, 2):  # a bit of every second row, mostly near its beginning or end
        size = rows.row_bytes if rows.index is None else int(rows.index.size_bytes()[slot])
        if size == 0:
            continue
        byte = int(rng.choice([rng.integers(0, size), rng.integers(0, min(size, 8)), size - 1]))
        flips[first[slot] + byte] ^= 1 << int(rng.integers(0, 8))
    yield replace(rows, data=flips)
    noise = rows.data.copy()
    noise[64:-64:3] = rng.integers(0, 256, len(noise[64:-64:3]))
    yield replace(rows, data=noise)
    yield replace(rows, data=np.zeros_like(rows.data))  # no chunk participates: the payload would not end
    yield replace(rows, data=np.full_like(rows.data, 0xFF))
    yield replace(rows, bitmask=rows.bitmask ^ np.uint8(0x5A))
    index = rows.index
    if index is None:
        return
    for bases, sizes in (
        (index.bases + np.uint64(2**63), index.sizes),
        (index.bases + np.uint64(2**64 - 64), index.sizes),
        (index.bases + np.uint64(len(rows.data)), index.sizes),
        (index.bases + np.uint64(index.rows_bytes - 256), index.sizes),
        (index.bases, index.sizes + index.sizes.dtype.type(1)),
        (index.bases, index.sizes - index.sizes.dtype.type(1)),
        (index.bases, np.zeros_like(index.sizes)),
        (index.bases, np.full_like(index.sizes, 0xFFFF)),
    ):
        yield replace(rows, index=replace(index, bases=bases, sizes=sizes))


def check_verdicts(cuda: TiledCuda, codec: RowCodec, rows: EncodedRows) -> None:
    """Every row that the CPU decodes comes out the same, every row that it refuses is refused."""
    expected = np.full((rows.num_rows, codec.row_bytes), GUARD, np.uint8)
    source, bad = Source(rows, None, codec), []
    for row in range(rows.num_rows):
        try:
            ops.gather_decode(np.array([row]), [source], expected[row : row + 1])
        except FormatError:
            bad.append(row)
    good = np.setdiff1d(np.arange(rows.num_rows), bad)
    target = device_source(rows)
    got = launch(cuda, codec, np.arange(rows.num_rows), rows.num_rows, [None, target])
    assert got.counts.damaged_at == (bad[0] if bad else -1)
    assert np.array_equal(got.out[good], expected[good])
    if cuda.in_process:
        for row in bad[:: max(1, len(bad) // 6)]:
            got = launch(cuda, codec, [*good, row], rows.num_rows, [target])
            assert got.counts.damaged_at == len(good), f"row {row} is damaged"
            assert np.array_equal(got.out[:-1], expected[good])
            assert got.counts.hits == [len(good), 0]
