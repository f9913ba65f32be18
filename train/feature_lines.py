"""How features are stored, as the lines that `gnn-ibp info` prints: sizes, codecs, bits by part."""

from collections.abc import Iterator, Mapping

import numpy as np

from gnn_ibp.budget import format_bytes
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.fit_sample import fit_sample_ids
from gnn_ibp.format import IN_PLACE
from gnn_ibp.ibp2.parts import order0_bits
from gnn_ibp.ibp2_codec import IBP2Codec, split_of
from gnn_ibp.rows import Bytes

LITTLE_SAVED = 0.02
"""Below this share there is a warning."""

SAMPLE_BYTES = 4 << 20
"""Raw bytes of the rows whose bits are counted."""


def feature_lines(files: Mapping[str, FeatureFile]) -> list[str]:
    """A table of the features, by name, and notes on each. FormatError for rows that are damaged."""
    header = ["feature", "dtype", "shape", "format", "layout", "rows raw", "raw", "stored", "saved"]
    rows: list[list[str]] = [header]
    notes: list[str] = []
    for name, file in files.items():
        shape = " x ".join(f"{size:,}" for size in (file.num_rows, *file.row_shape))
        sizes = [format_bytes(file.raw_bytes), format_bytes(file.stored_bytes), f"{100 * file.saved:.1f} %"]
        storage = [str(file.codec.version), file.layout, f"{file.num_raw_rows:,}"]
        rows.append([name, file.dtype, shape, *storage, *sizes])
        notes += _notes(name, file)
    return [*table(rows), *notes]


def table(rows: list[list[str]]) -> list[str]:
    """Columns one below the other; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _notes(name: str, file: FeatureFile) -> Iterator[str]:
    codec = ", ".join(f"{key} {value}" for key, value in file.codec.describe().items())
    yield f"codec of {name}: {codec}"
    if file.raw_bytes:
        yield _bits_line(name, file)
    if file.layout == IN_PLACE:
        yield f"note: {name} is stored in place: fewer bytes are read, no space is saved on the disk"
    elif file.saved < LITTLE_SAVED and file.num_raw_rows < file.num_rows:
        yield f"warning: {name} saves {100 * file.saved:.1f} % only: its rows have hardly a bit in common"
    elif file.saved < LITTLE_SAVED and file.raw_bytes:
        yield f"warning: {name} saves nothing: every row is stored raw"


def _bits_line(name: str, file: FeatureFile) -> str:
    """Bits that a number takes, by part of the row, beside its order-0 bound; of sampled rows."""
    rows = _sampled_rows(file)
    codec = file.codec
    split = codec.tables.split if isinstance(codec, IBP2Codec) else split_of(file.torch_dtype)
    num_chunks = 8 * rows.size / split.chunk_bits
    parts = {part: num_bits / num_chunks for part, num_bits in codec.part_bits(rows).items()}
    shown = " + ".join(f"{part} {num_bits:.2f}" for part, num_bits in parts.items() if num_bits)
    return (
        f"bits of a {split.chunk_bits}-bit chunk of {name}: {shown or 'none'} = {sum(parts.values()):.2f}; "
        f"order-0 bound {order0_bits(rows, split) / num_chunks:.2f} ({len(rows):,} rows sampled)"
    )


def _sampled_rows(file: FeatureFile) -> Bytes:
    """Of the rows that a codec would be fitted on some, evenly spread; uint8 (n, row_bytes)."""
    ids = fit_sample_ids(file.num_rows, file.row_bytes)
    step = -(-len(ids) * file.row_bytes // SAMPLE_BYTES)
    ids = ids[:: max(1, step)]
    rows = np.empty((len(ids), file.row_bytes), np.uint8)
    file.read(ids, file.row_type.from_bytes(rows))
    return rows
