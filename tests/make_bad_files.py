"""Makes tests/golden/bad: feature files that must be refused. Run by hand: `python tests/make_bad_files.py`.

Each case says what the error must contain. Forged ones have good checksums, so that what stands behind the
checksums is tested.
"""

import io
import re
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bad_ibp2_files import bad_ibp2_files
from file_parts import FileParts
from some_rows import numbered_file

from gnn_ibp.disk_file import DiskFile
from gnn_ibp.format import ROWS_AT, read_header

FOLDER = Path(__file__).parent / "golden" / "bad"
BLOCK_BYTES = 1024
NUM_ROWS = 41

Forger = Callable[[FileParts], None]


def forged(good: Path, forge: Forger) -> bytes:
    """The bytes of `good` after `forge` changed its parts, with checksums to match."""
    parts = FileParts.of(good.read_bytes())
    forge(parts)
    return parts.signed()


def set_field(name: str, value: object) -> Forger:
    def forge(parts: FileParts) -> None:
        parts.fields[name] = value

    return forge


def set_header(text: bytes) -> Forger:
    def forge(parts: FileParts) -> None:
        parts.header = text

    return forge


def set_byte(section: str, at: int, value: int) -> Forger:
    def forge(parts: FileParts) -> None:
        parts.sections[section][at] = value

    return forge


def greedy_row(parts: FileParts) -> None:
    """Row 1 announces that no chunk participates: a longer payload than it has."""
    first = int.from_bytes(parts.sections["sizes"][:2], "little") * parts.fields["unit"]
    parts.rows[first : first + 4] = bytes(4)


def longer_row(parts: FileParts) -> None:
    parts.sections["sizes"][2] += 1


def overflowing_align(parts: FileParts) -> None:
    """40 rows 2^62 bytes apart: the sums of each group of 32, and of all, are 0 in 64 bits."""
    del parts.sections["sizes"][80:], parts.sections["bitmask"][5:], parts.rows[64:]
    parts.sections["bases"][:] = bytes(16)
    parts.fields |= {"num_rows": 40, "num_raw_rows": 8, "align": 2**62, "rows_bytes": 0}


def endless_block(parts: FileParts) -> None:
    """One block, of more bytes than a signed number holds."""
    parts.block_bytes = parts.fields["block_bytes"] = 2**63


FORGED: dict[str, tuple[Forger, str]] = {
    "row-version": (set_field("codec", 7), "version 7"),
    "row-version-3": (set_field("codec", 3), "version 3"),
    "dtype": (set_field("dtype", "float31"), "float31"),
    "dtype-of-wrong-type": (set_field("dtype", ["float32"]), "header"),
    "layout": (set_field("layout", "sideways"), "sideways"),
    "align": (set_field("align", 6), "align is 6"),
    "unit": (set_field("unit", 8), "align is 4"),
    "unit-zero": (set_field("unit", 0), "0"),
    "no-rows": (set_field("num_rows", 0), "of 0 rows"),
    "more-rows": (set_field("num_rows", 2**62), "section"),
    "negative-rows": (set_field("num_rows", -41), "-41"),
    "rows-as-text": (set_field("num_rows", "41"), "'41'"),
    "wider-rows": (set_field("row_shape", [21]), "parameters"),
    "huge-rows": (set_field("row_shape", [2**40, 2**40]), "bytes"),
    "raw-rows": (set_field("num_raw_rows", 10), "bitmask"),
    "block-bytes": (set_field("block_bytes", 1), "section"),
    "unknown-field": (set_field("colour", "blue"), "colour"),
    "no-json": (set_header(b"{row_shape"), "header"),
    "deep-json": (set_header(b"[" * 5000), "header"),
    "other-json": (set_header(b"17"), "header"),
    "bitmask-padding": (set_byte("bitmask", 5, 0xFF), "bitmask"),
    "bitmask-swap": (set_byte("bitmask", 0, 0b11011101), "index"),
    "bases": (set_byte("bases", 8, 0), "index"),
    "sizes": (longer_row, "index"),
    "params-bitval": (set_byte("params", 4 + 80, 0xFF), "bitval"),
    "params-chunk-bits": (set_byte("params", 0, 31), "chunk_bits"),
    "row-too-greedy": (greedy_row, "row 1 "),
    "overflowing-align": (overflowing_align, "align is 4611686018427387904"),
    "endless-block": (endless_block, "9223372036854775808"),
}


def plain_cases(good: bytes, bases_at: int) -> dict[str, tuple[bytes, str]]:
    """Files that are cut, foreign, or changed without their checksums."""
    header_at = struct.unpack_from("<Q", good, 16)[0]
    array = io.BytesIO()
    np.save(array, np.zeros((2, 3), np.float32))

    def flipped(at: int) -> bytes:
        return good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]

    return {
        "empty": (b"", "empty"),
        "array": (array.getvalue(), "NumPy array"),
        "zip": (b"PK\x03\x04" + bytes(40), "zip"),
        "text": (b"node,feature\n" * 9, "begins with"),
        "unfinished": (bytes(ROWS_AT) + good[ROWS_AT:], "never finished"),
        "version": (good[:8] + struct.pack("<I", 9) + good[12:], "version 9"),
        "cut-magic": (good[:10], "10 are there"),
        "cut-preamble": (good[:2000], "2000 are there"),
        "cut-rows": (good[: ROWS_AT + 700], f"{len(good)} bytes expected, {ROWS_AT + 700} are there"),
        "cut-header": (good[:-1], f"{len(good)} bytes expected, {len(good) - 1} are there"),
        "longer": (good + b"\n", "behind its end"),
        "flipped-preamble": (flipped(3000), "first 4096 bytes"),
        "flipped-header": (flipped(header_at + 30), "header"),
        "flipped-section": (flipped(header_at - 5), "section params"),
        "flipped-row": (flipped(ROWS_AT + 1500), "block 1 (rows 1"),
        "flipped-padding": (flipped(bases_at - 3), "block"),
    }


def all_cases() -> dict[str, tuple[bytes, str]]:
    """name -> (bytes of the file, what the error must contain)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "good.ibp"
        numbered_file(path, NUM_ROWS, block_bytes=BLOCK_BYTES)
        bases_at = read_header(DiskFile(path)).sections["bases"].at
        cases = {name: (forged(path, forge), text) for name, (forge, text) in FORGED.items()}
        ibp2_cases = {slug(f"ibp2 {bad.name}"): bad[1:] for bad in bad_ibp2_files(Path(folder))}
        return cases | plain_cases(path.read_bytes(), bases_at) | ibp2_cases


def slug(words: str) -> str:
    """A name of a file."""
    return "-".join(re.findall(r"\w+", words))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (data, _) in all_cases().items():
        (FOLDER / f"{name}.ibp").write_bytes(data)
