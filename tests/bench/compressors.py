"""Compressors of bytes that others wrote, as their packages come: what tests/bench/compare.py compares with.

Each entry of COMPRESSORS makes one for elements of a dtype, and raises ImportError where its package is not
installed. A compressor serves one thread.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Compressor(NamedTuple):
    """encode: the bytes of an array, compressed. decode: what gives them back."""

    encode: Callable[[bytes], bytes]
    decode: Callable[[bytes], bytes]


class Entry(NamedTuple):
    """package: as installers call it. make: for elements of a dtype, by NumPy's name."""

    package: str
    make: Callable[[str], Compressor]


def zstd(dtype: str) -> Compressor:
    import zstandard

    return Compressor(zstandard.ZstdCompressor(level=3).compress, zstandard.ZstdDecompressor().decompress)


def lz4(dtype: str) -> Compressor:
    import lz4.block

    return Compressor(lz4.block.compress, lz4.block.decompress)


def blosc2_with(shuffle: str) -> Callable[[str], Compressor]:
    """zstd at blosc2's usual level behind a shuffle of the elements' bytes or bits."""

    def make(dtype: str) -> Compressor:
        import blosc2

        settings = {
            "codec": blosc2.Codec.ZSTD,
            "typesize": itemsize(dtype),
            "filters": [blosc2.Filter[shuffle]],
            "nthreads": 1,
        }
        return Compressor(lambda piece: blosc2.compress2(piece, **settings), blosc2.decompress2)

    return make


def pcodec(dtype: str) -> Compressor:
    from pcodec import ChunkConfig, standalone

    numbers, config = f"uint{8 * itemsize(dtype)}" if dtype == "bfloat16" else dtype, ChunkConfig()
    return Compressor(
        lambda piece: standalone.simple_compress(np.frombuffer(piece, numbers), config),
        lambda stored: standalone.simple_decompress(stored).tobytes(),
    )


def zipnn(dtype: str) -> Compressor:
    from zipnn import ZipNN

    coder = ZipNN(input_format="byte", bytearray_dtype=dtype, threads=1)
    return Compressor(lambda piece: bytes(coder.compress(bytearray(piece))), coder.decompress)


def itemsize(dtype: str) -> int:
    """Bytes of an element."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


COMPRESSORS = {
    "zstd": Entry("zstandard", zstd),
    "lz4": Entry("lz4", lz4),
    "blosc2, shuffle": Entry("blosc2", blosc2_with("SHUFFLE")),
    "blosc2, bitshuffle": Entry("blosc2", blosc2_with("BITSHUFFLE")),
    "pcodec": Entry("pcodec", pcodec),
    "ZipNN": Entry("zipnn", zipnn),
}

ELSEWHERE = {
    "nvCOMP": "not measured here: needs an NVIDIA GPU and its package, nvidia-nvcomp-cu12 or -cu13",
    "ndzip": "not measured here: has no package, needs a build from its sources; float32 and float64 only",
}
"""What a comparison should have, and what it needs."""
