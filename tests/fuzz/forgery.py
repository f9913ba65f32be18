"""Files that lie with right checksums, so that what stands behind the checksums is reached."""

from collections.abc import Callable
from contextlib import suppress
from operator import index
from random import Random

from damage import near, put_number
from file_parts import FileParts

from gnn_ibp.format import ROWS_AT, region_bytes
from gnn_ibp.ibp2.params import block_bytes
from gnn_ibp.row_type import DTYPES, RowType
from gnn_ibp.rows import GROUP

Forgery = Callable[[Random, FileParts], None]

COUNTS = ("codec", "unit", "align", "num_rows", "num_raw_rows", "rows_bytes", "block_bytes")
NOTHING_FOLLOWS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""From a field that an earlier lie made one of another kind."""

MAX_BYTES = 1 << 20
"""Of a section that is made longer: lies of more bytes than there are need no file of that size."""


def field_at_limit(rng: Random, parts: FileParts) -> None:
    name = rng.choice(COUNTS)
    parts.fields[name] = near(rng, parts.fields[name])


def other_align(rng: Random, parts: FileParts) -> None:
    parts.fields["align"] = rng.choice([4, 8, 12, 36, 2 ** rng.randrange(2, 64), 2**64 - 8])


def field_of_other_kind(rng: Random, parts: FileParts) -> None:
    strange = [-1, 1.0, 1e300, True, None, "1", [], {}, [1], 2**64, -(2**63), 10**400]
    parts.fields[rng.choice(list(parts.fields))] = rng.choice(strange)


def other_type(rng: Random, parts: FileParts) -> None:
    if rng.random() < 0.5:
        parts.fields["dtype"] = rng.choice(list(DTYPES))
    if rng.random() < 0.5:
        shape = parts.fields["row_shape"]
        shapes = [shape[::-1], [*shape, 1], [*shape, 0], shape[:-1], [near(rng, n) for n in shape], [-1, -1]]
        parts.fields["row_shape"] = rng.choice(shapes)


def other_layout(rng: Random, parts: FileParts) -> None:
    parts.fields["layout"] = rng.choice(["condensed", "in-place", "sideways"])


def other_field(rng: Random, parts: FileParts) -> None:
    name = rng.choice(list(parts.fields))
    if rng.random() < 0.5:
        del parts.fields[name]
    else:
        parts.fields[name + "s"] = 1


def header_of_noise(rng: Random, parts: FileParts) -> None:
    texts = [b"", b"{}", b"[]", b"null", b"[" * 5000, b'{"a":' * 3000, b"\xff\xfe", rng.randbytes(200)]
    parts.header = rng.choice(texts)


def number_in_section(rng: Random, parts: FileParts) -> None:
    name, width = rng.choice([("bases", 8), ("sizes", 2), ("sizes", 4), ("bitmask", 1), ("params", 4)])
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if len(parts.sections[name]) >= width:
            put_number(rng, parts.sections[name], width)


def bit_in_section(rng: Random, parts: FileParts) -> None:
    data = parts.sections[rng.choice(["bases", "sizes", "bitmask", "params"])]
    for _ in range(rng.choice([1, 1, 2, 8])):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def other_tables(rng: Random, parts: FileParts) -> None:
    """Numbers that may stand in the first bytes of version 2's parameters; some are legal together."""
    data = parts.sections["params"]
    for _ in range(rng.choice([1, 1, 2, 4])):
        if data:
            data[rng.randrange(min(len(data), 96))] = rng.choice([0, 1, 2, 3, 8, 16, 32, 0x40, 0x53, 0x44])


def section_of_other_length(rng: Random, parts: FileParts) -> None:
    data = parts.sections[rng.choice(list(parts.sections))]
    if rng.random() < 0.5:
        del data[rng.randrange(len(data) + 1) :]
    else:
        data += rng.randbytes(rng.choice([1, 2, 8, 100]))


def bit_in_rows(rng: Random, parts: FileParts) -> None:
    for _ in range(rng.choice([1, 1, 2, 10, 100])):
        parts.rows[rng.randrange(len(parts.rows))] ^= 1 << rng.randrange(8)


def noise_in_rows(rng: Random, parts: FileParts) -> None:
    at = rng.randrange(len(parts.rows))
    length = min(rng.choice([1, 4, 32, 200]), len(parts.rows) - at)
    parts.rows[at : at + length] = rng.choice([rng.randbytes(length), bytes(length), b"\xff" * length])


def rows_of_other_length(rng: Random, parts: FileParts) -> None:
    if rng.random() < 0.5:
        del parts.rows[1 + rng.randrange(len(parts.rows)) :]
    else:
        parts.rows += bytes(rng.choice([1, 4, 64, 4096]))


FORGERIES: list[Forgery] = [
    *(field_at_limit, field_at_limit, other_align, field_of_other_kind, other_type, other_layout),
    *(other_field, header_of_noise, number_in_section, number_in_section, bit_in_section, other_tables),
    *(section_of_other_length, bit_in_rows, noise_in_rows, rows_of_other_length),
]


def make_consistent(rng: Random, parts: FileParts) -> None:
    """Brings numbers that follow from others in line with them, all or some, to get past more checks."""
    some = STEPS if rng.random() < 0.6 else [step for step in STEPS if rng.random() < 0.5]
    for step in some:
        with suppress(*NOTHING_FOLLOWS):
            step(parts)


def _raw_rows_counted(parts: FileParts) -> None:
    num_rows = int(parts.fields["num_rows"])
    ones = int.from_bytes(parts.sections["bitmask"], "little") & (1 << min(num_rows, 8 * MAX_BYTES)) - 1
    parts.fields["num_raw_rows"] = num_rows - ones.bit_count()


def _bases_summed(parts: FileParts) -> None:
    """Modulo 2^64, as a careless reader would."""
    unit, align = parts.fields["unit"], parts.fields["align"]
    width = 4 if _row_bytes(parts) // unit > 0xFFFF else 2
    sizes = parts.sections["sizes"]
    ends, at = [0], 0
    for i in range(0, len(sizes), width):
        size = int.from_bytes(sizes[i : i + width], "little") * unit
        at += -(-size // align) * align
        ends.append(at % 2**64)
    bases = b"".join(end.to_bytes(8, "little") for end in ends[:-1][::GROUP])
    parts.sections["bases"] = bytearray(bases)
    parts.fields["rows_bytes"] = ends[-1]


def _sections_fitted(parts: FileParts) -> None:
    """As long as the header says."""
    num_rows, condensed = parts.fields["num_rows"], parts.fields["layout"] == "condensed"
    width = 4 if _row_bytes(parts) // parts.fields["unit"] > 0xFFFF else 2
    lengths = {
        "bases": -(-num_rows // GROUP) * 8 * condensed,
        "sizes": num_rows * width * condensed,
        "bitmask": -(-num_rows // 8),
        "params": _params_bytes(parts),
    }
    for name, length in lengths.items():
        parts.sections[name] = _fitted(parts.sections[name], length)


def _params_bytes(parts: FileParts) -> int:
    if parts.fields["codec"] != 2:
        return 4 + 2 * _row_bytes(parts)
    kind, chunk_bits = parts.sections["params"][:2]
    return block_bytes(chunk_bits, 1 if kind == ord("S") else _row_bytes(parts) * 8 // chunk_bits)


def _region_fitted(parts: FileParts) -> None:
    if parts.fields["layout"] == "in-place":
        parts.fields["rows_bytes"] = parts.fields["num_rows"] * _row_bytes(parts)
    parts.rows = _fitted(parts.rows, region_bytes(parts.fields["rows_bytes"]))


def _blocks_summed(parts: FileParts) -> None:
    block_bytes = index(parts.fields["block_bytes"])
    if block_bytes >= 16:
        parts.block_bytes = block_bytes


STEPS = [_sections_fitted, _raw_rows_counted, _bases_summed, _region_fitted, _blocks_summed]


def _row_bytes(parts: FileParts) -> int:
    return RowType(parts.fields["dtype"], tuple(parts.fields["row_shape"])).row_bytes


def _fitted(data: bytearray, length: int) -> bytearray:
    return data[:length].ljust(length, b"\0") if length <= MAX_BYTES else data


def forge(rng: Random, good: bytes) -> bytes:
    """`good` with a few lies, and right checksums."""
    parts = FileParts.of(good)
    for forgery in rng.choices(FORGERIES, k=rng.choice([1, 1, 1, 2, 3])):
        with suppress(*NOTHING_FOLLOWS):
            forgery(rng, parts)
    if rng.random() < 0.7:
        make_consistent(rng, parts)
    data = parts.signed()
    assert len(data) >= ROWS_AT
    return data
