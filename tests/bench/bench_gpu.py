"""Decoded rows per second on a GPU, beside reading raw rows over PCIe and gathering on the CPU.

python tests/bench/bench_gpu.py [--slab-mib 512] [--batch-mib 128] [--rounds 7] [--json FILE]

Rows are asked for at random. GB/s are 10^9 bytes of decoded rows per second, medians of the rounds, each
of which reads other rows; every output is compared bit for bit.

rows        v1, v2: the version of their format
first line  whole lines of 128 bytes in turn out of page-locked memory: what the bus gives to a kernel
raw         rows that are not encoded, each at a line of its own, read by the kernel read_lines
hit 0 %     encoded rows in page-locked memory, decoded on the way; hit h %: h % lie in device memory
x raw       the same divided by raw
PCIe        sectors that crossed the bus at hit 0 %, per second
CPU + copy  gathered by torch on the CPU into page-locked memory, then copied: what trainers usually do
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.cuda import Cuda
from gnn_ibp.ibp2_codec import IBP2Codec
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.ops.device import DeviceSource, GatherCounts, initial_counts, launch_gather_decode
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.rows import EncodedRows

HIT_PERCENT = (0, 50, 90, 100)
LINE_BYTES, UNIT_BYTES = 128, 16
SLEEP_CYCLES = 2_000_000  # about a millisecond: more than a launch takes
DISTINCT_BYTES = 64 << 20  # of rows drawn; a longer table repeats them


@dataclass(frozen=True)
class Kind:
    """Rows like averaged word vectors, or bags of words of which `share` are not 0.

    version: of the row format.
    """

    name: str
    num_columns: int
    dtype: torch.dtype
    share: float = 1.0
    version: int = 1

    def codec(self, rows: Tensor) -> RowCodec:
        """Fitted on rows of the kind."""
        return IBPCodec.fit(rows) if self.version == 1 else IBP2Codec.fit(rows[:FIT_ROWS])


FIT_ROWS = 4000
"""Enough for rows that are all alike; version 2 is fitted in plain NumPy."""

KINDS = [
    *(Kind("dense", n, torch.float32, version=v) for n in (100, 128, 602, 768) for v in (1, 2)),
    *(Kind("dense", n, torch.float16) for n in (100, 128, 602, 768)),
    *(Kind("dense", n, torch.bfloat16, version=2) for n in (128, 768)),
    *(Kind("sparse", 1433, torch.float32, share=0.013, version=v) for v in (1, 2)),
    *(Kind("sparse", 3703, torch.float32, share=0.009, version=v) for v in (1, 2)),
]


@dataclass(frozen=True)
class Sizes:
    """slab_bytes: of the raw rows of a kind. batch_bytes: of the rows that one launch decodes."""

    slab_bytes: int = 512 << 20
    batch_bytes: int = 128 << 20
    rounds: int = 7


@dataclass(frozen=True)
class Measured:
    """Of one kind of rows; GB/s of decoded rows, but for pcie_gbs. gather_gbs: by percent of hits."""

    kind: str
    num_columns: int
    dtype: str
    version: int
    saved: float
    raw_gbs: float
    gather_gbs: dict[int, float]
    pcie_gbs: float
    cpu_gbs: float


class RowsOnDevice:
    """The same rows encoded in device memory, encoded in page-locked memory, and raw there."""

    def __init__(self, cuda: Any, rows: Tensor, codec: RowCodec) -> None:
        self.cuda = cuda
        self.rows = rows
        row_bytes = rows.view(torch.uint8).numpy()
        self.codec = codec
        kernel = self.codec.device_kernel
        assert kernel is not None, "these rows have no chunks of 8 bits"
        self.table = cuda.upload(torch.from_numpy(kernel.table.view(np.int32).copy()))
        in_host = ops.encode_rows(self.codec, row_bytes, align=32)
        self.host = self._source(in_host, self._pin(in_host.data))
        on_device = ops.encode_rows(self.codec, row_bytes, align=16)
        self.device = self._source(on_device, self._to_device(on_device.data))
        stored = on_device.index
        assert stored is not None, "they are condensed"
        self.saved = 1 - float(stored.size_bytes().sum()) / row_bytes.size
        self.row_units = -(-row_bytes.shape[1] // UNIT_BYTES)
        self.row_stride = -(-row_bytes.shape[1] // LINE_BYTES) * (LINE_BYTES // UNIT_BYTES)
        self.raw = cuda.pin(len(rows) * self.row_stride * UNIT_BYTES).view(len(rows), -1)
        self.raw[:, : row_bytes.shape[1]] = torch.from_numpy(row_bytes)
        order = np.random.default_rng(1).permutation(len(rows)).astype(np.int32)
        self.slot_of = {}
        for percent in HIT_PERCENT:
            slots = np.full(len(rows), -1, np.int32)
            hot = order[: round(len(rows) * percent / 100)]
            slots[hot] = hot
            self.slot_of[percent] = cuda.upload(torch.from_numpy(slots))

    def _source(self, rows: EncodedRows, data: Tensor) -> DeviceSource:
        index = rows.index
        assert index is not None, "they are condensed"
        signed = torch.from_numpy(index.sizes.view(index.sizes.dtype.str.replace("u", "i")))
        return DeviceSource(
            data,
            self.cuda.upload(torch.from_numpy(rows.bitmask)),
            self.cuda.upload(torch.from_numpy(index.bases.view(np.int64))),
            self.cuda.upload(signed),
            rows.num_rows,
            index.align,
            None,
        )

    def _pin(self, data: np.ndarray) -> Tensor:
        pinned: Tensor = self.cuda.pin(data.nbytes)
        return pinned.copy_(torch.from_numpy(data))

    def _to_device(self, data: np.ndarray) -> Tensor:
        memory: Tensor = self.cuda.empty(data.nbytes)
        self.cuda.copy(memory, torch.from_numpy(data))
        return memory

    def gather(self, percent: int, ids: Tensor, out: Tensor, scratch: "Scratch", counts: Tensor) -> None:
        """Starts decoding rows ids[i] to out[i]."""
        cache = replace(self.device, slot_of=self.slot_of[percent])
        launch_gather_decode(
            *(self.cuda, self.codec, self.table, ids, len(self.rows), [cache, self.host], out, None),
            *(scratch.missing_ids, scratch.missing_at, counts),
        )

    def read_raw(self, ids: Tensor, out: Tensor) -> None:
        """Starts copying the raw rows ids[i] to out[i]."""
        scalars = [np.int64(len(ids)), np.int64(self.row_stride), np.int32(self.row_units)]
        grid = 8 * self.cuda.num_processors
        self.cuda.launch("read_lines", "read_lines", grid, 256, [self.raw, ids, *scalars, out])


@dataclass(frozen=True)
class Scratch:
    """Where a gather lists the ids it did not find."""

    missing_ids: Tensor
    missing_at: Tensor


def make_rows(kind: Kind, num_bytes: int) -> Tensor:
    """(num_rows, num_columns), seeded."""
    row_bytes = kind.num_columns * kind.dtype.itemsize
    num_rows = max(64, num_bytes // row_bytes)
    rng = np.random.default_rng(kind.num_columns)
    num_distinct = min(num_rows, max(64, DISTINCT_BYTES // row_bytes))
    if kind.share == 1.0:
        values = rng.standard_normal((num_distinct, kind.num_columns), np.float32) * np.float32(0.1)
    else:
        values = (rng.random((num_distinct, kind.num_columns), np.float32) < kind.share).astype(np.float32)
    distinct = torch.from_numpy(values).to(kind.dtype)
    return distinct.repeat(-(-num_rows // num_distinct), 1)[:num_rows].contiguous()


def seconds_of(cuda: Any, rounds: Sequence[Callable[[], None]]) -> float:
    """The device's median time of the rounds after the first, which warms up.

    They are queued while the device is kept busy: it would else wait for the host between them, which takes
    as long to launch a kernel as a fast one runs.
    """
    warm_up, *others = rounds
    warm_up()
    cuda.event().wait()
    if cuda.device.type == "cuda":
        torch.cuda._sleep(len(others) * SLEEP_CYCLES)
    marks = [cuda.event()]
    for work in others:
        work()
        marks.append(cuda.event())
    marks[-1].wait()
    return statistics.median(end.seconds_since(start) for start, end in pairwise(marks))


def measure(cuda: Any, kind: Kind, sizes: Sizes) -> Measured:
    """Raises AssertionError where a decoded row is not the one that was encoded."""
    rows = make_rows(kind, sizes.slab_bytes)
    on_device = RowsOnDevice(cuda, rows, kind.codec(rows))
    row_bytes = rows.shape[1] * rows.element_size()
    num_ids = max(32, min(sizes.batch_bytes, sizes.slab_bytes) // row_bytes)
    rng = np.random.default_rng(2)
    on_cpu = [torch.from_numpy(rng.integers(0, len(rows), num_ids)) for _ in range(sizes.rounds + 1)]
    ids = [cuda.upload(some) for some in on_cpu]
    out = cuda.empty(num_ids * row_bytes).view(num_ids, row_bytes)
    gathered = cuda.pin(num_ids * row_bytes).view(num_ids, row_bytes)
    as_bytes = rows.view(torch.uint8)

    times = []
    for some in on_cpu:
        begin = time.perf_counter()
        torch.index_select(as_bytes, 0, some, out=gathered)
        cuda.copy(out, gathered)
        cuda.event().wait()
        times.append(time.perf_counter() - begin)
    cpu_s = statistics.median(times[1:])
    wanted = out.clone()  # of the last round

    raw_out = cuda.empty(num_ids * on_device.row_units * UNIT_BYTES).view(num_ids, -1)
    raw_s = seconds_of(cuda, [partial(on_device.read_raw, some, raw_out) for some in ids])
    assert torch.equal(raw_out[:, :row_bytes], wanted), "raw rows differ"

    empty_list = torch.empty(num_ids, dtype=torch.int64)
    scratch = Scratch(cuda.upload(empty_list), cuda.upload(empty_list))
    gather_s, sector_bytes = {}, 0
    for percent in HIT_PERCENT:
        counts = [cuda.upload(torch.from_numpy(initial_counts())) for _ in ids]
        out.fill_(0xA5)
        works = [
            partial(on_device.gather, percent, some, out, scratch, count)
            for some, count in zip(ids, counts, strict=True)
        ]
        gather_s[percent] = seconds_of(cuda, works)
        assert torch.equal(out, wanted), f"decoded rows differ at {percent} % hits"
        found = GatherCounts.from_words(counts[-1].cpu().numpy())
        assert (found.num_missing, found.bad_at, found.damaged_at) == (0, -1, -1), found
        if percent == 0:
            sector_bytes = found.sector_bytes[1]
    logical = num_ids * row_bytes / 1e9
    return Measured(
        kind.name,
        kind.num_columns,
        str(kind.dtype).removeprefix("torch."),
        kind.version,
        on_device.saved,
        logical / raw_s,
        {percent: logical / seconds for percent, seconds in gather_s.items()},
        sector_bytes / 1e9 / gather_s[0],
        logical / cpu_s,
    )


def ceiling_gbs(cuda: Any, sizes: Sizes) -> float:
    """Page-locked memory read in turn by whole lines."""
    num_units = sizes.slab_bytes // UNIT_BYTES
    data = cuda.pin(sizes.slab_bytes)
    data.fill_(1)
    row_units = 256
    num_rows = num_units // row_units
    out = cuda.empty(num_rows * row_units * UNIT_BYTES)
    scalars = [np.int64(num_rows), np.int64(row_units), np.int32(row_units)]
    arguments = [data, None, *scalars, out]
    grid = 8 * cuda.num_processors

    work = partial(cuda.launch, "read_lines", "read_lines", grid, 256, arguments)
    return out.numel() / 1e9 / seconds_of(cuda, [work] * (sizes.rounds + 1))


def head(ceiling: float, name: str) -> str:
    """The first lines of the table."""
    hits = "".join(f"{f'hit {percent} %':>10}{'x raw':>6}" for percent in HIT_PERCENT)
    return (
        f"{name}: page-locked memory is read at {ceiling:.1f} GB/s (whole lines in turn)\n"
        f"{'rows':<26}{'saved':>6}{'raw':>7}{hits}{'PCIe':>7}{'CPU + copy':>11}   GB/s"
    )


def line(row: Measured) -> str:
    """The line of one kind of rows."""
    rates = "".join(f"{rate:>10.1f}{rate / row.raw_gbs:>6.2f}" for rate in row.gather_gbs.values())
    label = f"{row.kind} {row.num_columns} {row.dtype} v{row.version}"
    return f"{label:<26}{row.saved:>6.0%}{row.raw_gbs:>7.1f}{rates}{row.pcie_gbs:>7.1f}{row.cpu_gbs:>11.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slab-mib", type=int, default=512, help="of raw rows of each kind")
    parser.add_argument("--batch-mib", type=int, default=128, help="of decoded rows per launch")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    args = parser.parse_args()
    sizes = Sizes(args.slab_mib << 20, args.batch_mib << 20, args.rounds)
    cuda = Cuda.open(args.device)
    name = torch.cuda.get_device_name(cuda.device)
    ceiling = ceiling_gbs(cuda, sizes)
    print(head(ceiling, name), flush=True)
    measured = []
    for kind in KINDS:
        measured.append(measure(cuda, kind, sizes))
        print(line(measured[-1]), flush=True)
    if args.json:
        numbers = {"device": name, "ceiling_gbs": ceiling, "rows": [asdict(row) for row in measured]}
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
