"""What disks, copies and versions do to the bytes of a file: changes that no checksum was told of."""

import struct
from collections.abc import Callable
from random import Random

from good_files import GoodFile

from gnn_ibp.format import ROWS_AT, checksum

LIMITS = sorted(
    {
        limit
        for bits in (0, 1, 2, 3, 5, 8, 12, 15, 16, 20, 31, 32, 33, 40, 53, 62, 63, 64)
        for limit in (2**bits - 1, 2**bits, 2**bits + 1)
        if limit < 2**64
    }
)
"""Numbers at and beside the ends of integer types, from 0 on."""

Damage = Callable[[Random, GoodFile, list[GoodFile]], bytes]


def near(rng: Random, number: int) -> int:
    """A number that is often taken wrongly for `number`, from 0 to 2^64 - 1."""
    close = [number - 1, number + 1, number * 2, number // 2, number ^ 1 << rng.randrange(64)]
    return (rng.choice(close) if rng.random() < 0.6 else rng.choice(LIMITS)) % 2**64


def put_number(rng: Random, data: bytearray, width: int) -> None:
    """Overwrites one number of `width` bytes in `data`, which is as long at least."""
    at = rng.randrange(len(data) // width) * width
    old = int.from_bytes(data[at : at + width], "little")
    data[at : at + width] = (near(rng, old) % 2 ** (8 * width)).to_bytes(width, "little")


def place(rng: Random, good: GoodFile) -> int:
    """A byte of the file; every part of it is as likely, however long."""
    return rng.randrange(*rng.choice(good.regions))


def flip_bit(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    data = bytearray(good.data)
    data[place(rng, good)] ^= 1 << rng.randrange(8)
    return bytes(data)


def flip_bits(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    data = bytearray(good.data)
    for _ in range(rng.randint(2, 20)):
        data[place(rng, good)] ^= 1 << rng.randrange(8)
    return bytes(data)


def overwrite(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    """A sector of zeros, of ones, of noise, or of another file."""
    at, length = place(rng, good), rng.choice([1, 8, 64, 512, 4096])
    fill = [bytes(length), b"\xff" * length, rng.randbytes(length), rng.choice(others).data[at : at + length]]
    return (good.data[:at] + rng.choice(fill) + good.data[at + length :])[: len(good.data)]


def cut(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    return good.data[: place(rng, good)]


def grow(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    return good.data + rng.choice([b"\0", b"\n", bytes(4096), rng.randbytes(100), good.data])


def swap_blocks(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    size = rng.choice([4, 16, 64, 512, 1024, 4096])
    a, b = sorted((place(rng, good) // size * size, place(rng, good) // size * size))
    data = good.data
    return data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]


def drop_piece(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    at = place(rng, good)
    return good.data[:at] + good.data[at + rng.choice([1, 4, 64, 512]) :]


def repeat_piece(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    at = place(rng, good)
    return good.data[: at + rng.choice([1, 4, 64, 512])] + good.data[at:]


def splice(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    """The beginning of one file, the end of another."""
    at = place(rng, good)
    return good.data[:at] + rng.choice(others).data[at:]


def other_preamble(rng: Random, good: GoodFile, others: list[GoodFile]) -> bytes:
    """Another version, or places of the header where it is not; half of the time with a right checksum."""
    start = bytearray(good.data[:ROWS_AT])
    kind, at = rng.choice([("I", 8), ("I", 12), ("Q", 16), ("Q", 24), ("Q", 32)])
    width = struct.calcsize(kind)
    start[at : at + width] = struct.pack(
        f"<{kind}", near(rng, struct.unpack_from(f"<{kind}", start, at)[0]) % 2 ** (8 * width)
    )
    if rng.random() < 0.5:
        start[-8:] = struct.pack("<Q", checksum(bytes(start[:-8])))
    return bytes(start) + good.data[ROWS_AT:]


DAMAGES: list[Damage] = [
    *(flip_bit, flip_bit, flip_bits, overwrite, cut, grow, swap_blocks),
    *(drop_piece, repeat_piece, splice, other_preamble),
]
