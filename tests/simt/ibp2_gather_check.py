"""Checks of the gather-decode kernels for row format version 2 that their tests and the mutants share."""

from pathlib import Path
from typing import Any

import numpy as np
from gather_cases import request
from gather_check import check_case, check_verdicts, damaged_rows
from gather_launch import TiledCuda, device_source, launch
from ibp2_cases import GOLDEN, golden_params, rows_for
from ibp2_gather_cases import cases, params_for
from kernel_launch import Options

from gnn_ibp import IBP2Codec, ops
from gnn_ibp.ibp2.params import Code, Params
from gnn_ibp.ibp2.positions import Position
from gnn_ibp.rows import EncodedRows, RowIndex

FEW_BYTES = (4, 20, 128, 200, 512, 520, 2408, 4608, 14812)
KINDS = ("D", "S")
DAMAGED_BYTES = {"D": (64, 200, 400, 2408), "S": (104, 1024, 9000)}


def check_ibp2_gather(kernels: Path, sanitizer: str | None, options: Options) -> None:
    """Rows of every kind, chunk width and shape, by the kernels in the folder `kernels`.

    Raises AssertionError where a row, a count or a byte read is not what it must be, LaunchError where the
    harness or a sanitizer finds a fault, BuildError where the kernels do not compile.
    """
    cuda = TiledCuda(options, sanitizer=sanitizer, kernels=kernels)
    for chunk_bits in (32, 16, 64):
        for kind in KINDS:
            for number, case in enumerate(cases(kind, chunk_bits, FEW_BYTES)):
                if sanitizer is None or number % 3 == 0:
                    check_case(cuda, case)
            check_ibp2_damage(cuda, kind, chunk_bits)
        check_rows_of_no_bytes(cuda, chunk_bits)


def check_golden_rows(cuda: TiledCuda, golden: dict[str, Any]) -> None:
    """Golden rows come out as they were, damaged ones are found, each among good ones."""
    codec = IBP2Codec(golden_params(golden))
    rows, stored = ([bytes.fromhex(row[name]) for row in golden["rows"]] for name in ("row", "stored"))
    encoded = [row["compressed"] for row in golden["rows"]]
    source = device_source(stored_as(codec, stored, encoded))
    got = launch(cuda, codec, np.arange(len(rows)), len(rows), [source])
    assert got.counts.damaged_at == -1
    assert [row.tobytes() for row in got.out] == rows
    for damaged in golden["damaged"]:
        bad = bytes.fromhex(damaged["stored"])
        if len(bad) % codec.unit:
            continue  # no index can say so
        source = device_source(stored_as(codec, [*stored, bad], [*encoded, True]))
        got = launch(cuda, codec, [*range(len(rows)), len(rows)], len(rows) + 1, [source])
        assert got.counts.damaged_at == len(rows), damaged["why"]
        assert [row.tobytes() for row in got.out[:-1]] == rows


def stored_as(codec: IBP2Codec, stored: list[bytes], encoded: list[bool]) -> EncodedRows:
    """Rows of these bytes, whatever they are, at 32 bytes."""
    index = RowIndex.from_sizes(np.array(list(map(len, stored))), codec.unit, 32, codec.row_bytes)
    slab = bytes(64) + b"".join(row.ljust(-(-len(row) // 32) * 32, b"\0") for row in stored) + bytes(64)
    bitmask = np.packbits(encoded, bitorder="little")
    return EncodedRows(np.frombuffer(slab, np.uint8), bitmask, index, len(stored), codec.row_bytes)


def check_rows_of_no_bytes(cuda: TiledCuda, chunk_bits: int) -> None:
    """Rows that the tables tell whole come out, and no byte is read for them."""
    for num_chunks in (7, 300):
        code = Code(0, 0, bytes(1))
        tables = Params(
            *("D", num_chunks, chunk_bits, 0, chunk_bits, 0, 0, (code,), (3,) * 32, 0),
            tuple(Position(0, 0, j) for j in range(num_chunks)),
        )
        rows = np.tile(np.arange(3, 3 + num_chunks).astype(f"<u{chunk_bits // 8}"), (20, 1))
        rows[::3, 5] = 0  # stored raw, so that the others begin anywhere
        case = request("rows of no bytes", IBP2Codec(tables), rows.view(np.uint8), "some", 1, True)
        check_case(cuda, case)


def check_ibp2_damage(cuda: TiledCuda, kind: str, chunk_bits: int) -> None:
    """A row is damaged where the CPU says so; it is found first, and nothing beside it suffers."""
    for number, row_bytes in enumerate(DAMAGED_BYTES[kind]):
        rng = np.random.default_rng(number)
        codec, encoded = mostly_encoded(rng, kind, chunk_bits, row_bytes)
        cuda.tile, cuda.grid = (8, 32)[number % 2], None
        for variant, damaged in enumerate(damaged_rows(encoded, rng)):
            if cuda.in_process or (variant + number) % 3 == 0:
                check_verdicts(cuda, codec, damaged)


def mostly_encoded(
    rng: np.random.Generator, kind: str, chunk_bits: int, row_bytes: int
) -> tuple[EncodedRows]:
    """24 rows of which few are stored raw."""
    while True:
        codec = IBP2Codec(params_for(rng, kind, chunk_bits, row_bytes))
        rows = ops.encode_rows(codec, rows_for(rng, codec.tables, 24), 32)
        if rows.encoded().mean() > 0.9:
            return codec, rows


GOLDEN_ROWS = [golden for golden in GOLDEN if golden["W"] > 8]
