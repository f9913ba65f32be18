"""Feature files of row format version 2 that must be refused: broken parameter blocks, damaged rows."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from file_parts import FileParts
from ibp2_broken_rules import BROKEN_RULES, DENSE, SPARSE
from ibp2_cases import GOLDEN, golden_named

from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import region_bytes
from gnn_ibp.ibp2_codec import IBP2Codec

ROW = 3
"""Which one is damaged; all rows hold the same."""


class BadFile(NamedTuple):
    """why: what the error must contain."""

    name: str
    data: bytes
    why: str


def bad_ibp2_files(folder: Path) -> Iterator[BadFile]:
    """Made in `folder`. All checksums are right."""
    for rule in BROKEN_RULES:
        parts = golden_file(folder, rule.golden)
        parts.sections["params"][:] = rule.block()
        yield BadFile(rule.name, parts.signed(), rule.why)
    for golden in (DENSE, SPARSE):
        for name, length in {"short": -1, "empty": 0}.items():
            parts = golden_file(folder, golden)
            del parts.sections["params"][length:]
            yield BadFile(f"{name} block of kind {golden['kind']}", parts.signed(), "bytes, want")
    parts = golden_file(folder, DENSE)
    parts.sections["params"].append(0)
    yield BadFile("long block", parts.signed(), "bytes, want")
    yield from damaged_rows(folder)


def damaged_rows(folder: Path) -> Iterator[BadFile]:
    """Those of the golden vectors, and rows of wrong sizes."""
    for golden in GOLDEN:
        for damaged in golden["damaged"]:
            parts, stored = golden_file(folder, golden), bytes.fromhex(damaged["stored"])
            if len(stored) % parts.fields["unit"] == 0:  # others cannot be told by the index
                put_row(parts, stored)
                yield BadFile(f"row of {golden['name']}, {damaged['why']}", parts.signed(), f"row {ROW} ")
    bfloat16 = golden_named("2s bf16 V257")
    sizes = {
        "no multiple of 4 bytes": (bfloat16, encoded_row(bfloat16)[:-2]),
        "cut": (SPARSE, encoded_row(SPARSE)[:-4]),
    }
    for name, (golden, stored) in sizes.items():
        parts = golden_file(folder, golden)
        put_row(parts, stored)
        yield BadFile(f"row {name}", parts.signed(), f"row {ROW} ")
    for name, stored in {"as long as a raw one": bytes(32), "longer than a raw one": bytes(36)}.items():
        parts = golden_file(folder, DENSE)
        put_row(parts, stored)
        yield BadFile(f"row {name}", parts.signed(), "index")
    parts = golden_file(folder, DENSE)
    parts.sections["bitmask"][0] ^= 1 << ROW
    parts.fields["num_raw_rows"] = 1
    yield BadFile("short row said to be raw", parts.signed(), "index")


def golden_file(folder: Path, golden: dict[str, Any]) -> FileParts:
    """A file of five times the first row of a golden vector that is encoded."""
    path = folder / "golden.ibp"
    row = next(bytes.fromhex(row["row"]) for row in golden["rows"] if row["compressed"])
    rows = np.frombuffer(5 * row, f"<i{golden['W'] // 8}").reshape(5, golden["V"])
    write_feature_file(path, rows, IBP2Codec.from_bytes(bytes.fromhex(golden["block"]), golden["V"]))
    return FileParts.of(path.read_bytes())


def encoded_row(golden: dict[str, Any]) -> bytes:
    """The row of `golden_file` as stored."""
    return next(bytes.fromhex(row["stored"]) for row in golden["rows"] if row["compressed"])


def put_row(parts: FileParts, stored: bytes) -> None:
    """Stores row `ROW` as these bytes, of few rows in a condensed file, and tells the index."""
    unit, align = parts.fields["unit"], parts.fields["align"]
    sizes = [unit * size for (size,) in struct.iter_unpack("<H", parts.sections["sizes"])]
    ends = np.cumsum([0, *(_aligned(size, align) for size in sizes)]).tolist()
    parts.rows[ends[ROW] : ends[ROW + 1]] = stored.ljust(_aligned(len(stored), align), b"\0")
    sizes[ROW] = len(stored)
    parts.sections["sizes"][:] = struct.pack(f"<{len(sizes)}H", *(size // unit for size in sizes))
    parts.fields["rows_bytes"] = rows_bytes = sum(_aligned(size, align) for size in sizes)
    del parts.rows[rows_bytes:]
    parts.rows += bytes(region_bytes(rows_bytes) - len(parts.rows))


def _aligned(size: int, align: int) -> int:
    return -(-size // align) * align
