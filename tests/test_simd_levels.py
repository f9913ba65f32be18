"""Levels of vector instructions: each encodes and decodes to the reference's bits; one is chosen by name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnn_ibp import IBP2Codec, IBPCodec, ops, reference
from gnn_ibp.ops import Source
from gnn_ibp.reference import Masks

GOLDEN = json.loads((Path(__file__).parent / "golden" / "ibp_golden.json").read_text())
LEVELS = ["portable", "bmi2", "avx2", "avx512"]
"""Those of version 1."""
CHUNK_BITS = [8, 16, 32, 64]

Bytes = NDArray[np.uint8]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Codecs made in the test are of this level."""
    if request.param not in ops.simd_levels():
        pytest.skip(f"this processor does not run {request.param}")
    monkeypatch.setenv("GNN_IBP_SIMD", request.param)
    yield request.param


def made_masks(rng: np.random.Generator, chunk_bits: int, num_chunks: int, kind: str) -> Masks:
    """Of a kind: any bits, the upper ones as in floats, all or none of a chunk as in sparse rows."""
    word = np.dtype(f"uint{chunk_bits}")
    ones = np.iinfo(word).max
    mask = rng.integers(0, ones, num_chunks, word, endpoint=True)
    if kind == "upper":
        mask = (ones << rng.integers(0, chunk_bits, num_chunks).astype(word)).astype(word)
    if kind == "sparse":
        mask = np.where(rng.random(num_chunks) < 0.9, ones, 0).astype(word)
    values = rng.integers(0, ones, num_chunks, word, endpoint=True)
    return Masks(mask, values & mask)


def made_rows(rng: np.random.Generator, masks: Masks, num_rows: int) -> Bytes:
    """Of the first row no chunk has the invariant bits, of the last all have them."""
    rows = rng.integers(0, 256, (num_rows, masks.mask.nbytes), np.uint8).view(masks.mask.dtype)
    match = rng.random(rows.shape) < np.linspace(0, 1, num_rows)[:, None]
    rows[match] = ((rows & ~masks.mask) | masks.bitval)[match]
    return rows.view(np.uint8)


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["name"] for golden in GOLDEN])
def test_golden_rows_are_encoded_and_decoded_bit_for_bit(level: str, golden: dict[str, Any]) -> None:
    mask, bitval = ([int(word, 16) for word in golden[name]] for name in ("mask", "bitval"))
    codec = IBPCodec(mask, bitval, 8 * golden["chunk_bytes"])
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    packed = codec.encode(rows)
    assert codec.kernel.simd == level
    assert [packed.row(i).hex() for i in range(len(rows))] == [row["stored"] for row in golden["rows"]]
    assert np.array_equal(codec.decode(packed), rows)


@pytest.mark.parametrize("kind", ["any", "upper", "sparse"])
@pytest.mark.parametrize("chunk_bits", CHUNK_BITS)
def test_rows_of_any_length_are_those_of_the_reference(level: str, chunk_bits: int, kind: str) -> None:
    rng = np.random.default_rng(chunk_bits)
    for num_chunks in (1, 3, 4, 5, 8, 15, 16, 17, 31, 33, 63, 64, 65, 96, 130):
        masks = made_masks(rng, chunk_bits, num_chunks, kind)
        rows = made_rows(rng, masks, 9)
        codec = IBPCodec(masks.mask, masks.bitval, chunk_bits)
        packed = codec.encode(rows)
        wanted = [reference.encode_row(row.tobytes(), masks) for row in rows]
        assert [packed.row(i) for i in range(len(rows))] == wanted, num_chunks
        assert np.array_equal(codec.decode(packed), rows), num_chunks


@pytest.mark.parametrize("in_place", [False, True])
def test_random_rows_are_gathered_exactly(level: str, in_place: bool) -> None:
    rng = np.random.default_rng(5)
    for chunk_bits in CHUNK_BITS:
        masks = made_masks(rng, chunk_bits, 512 // (chunk_bits // 8), "upper")
        rows = made_rows(rng, masks, 3000)
        codec = IBPCodec(masks.mask, masks.bitval, chunk_bits)
        source = Source(ops.encode_rows(codec, rows, 16, in_place), None, codec)
        ids = rng.integers(0, len(rows), 5000)
        out = np.zeros((len(ids), rows.shape[1]), np.uint8)
        ops.gather_decode(ids, [source], out)
        assert np.array_equal(out, rows[ids]), chunk_bits


def test_a_batch_beyond_the_caches_is_written_past_them_exactly() -> None:
    rng = np.random.default_rng(6)
    masks = made_masks(rng, 32, 100, "upper")
    rows = made_rows(rng, masks, 2000)
    codec = IBPCodec(masks.mask, masks.bitval, 32)
    source = Source(ops.encode_rows(codec, rows, 16), None, codec)
    ids = rng.integers(0, len(rows), 50_000)
    at = rng.permutation(len(ids))
    memory = np.zeros(len(ids) * 400 + 64, np.uint8)
    for first in (0, 4, 63):  # rows begin and end anywhere in a cache line
        out = memory[first:][: len(ids) * 400].reshape(len(ids), 400)
        assert out.nbytes > 16 << 20
        ops.gather_decode(ids, [source], out, at)
        assert np.array_equal(out[at], rows[ids])
        out[:] = 0


def test_the_highest_level_is_chosen_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNN_IBP_SIMD", raising=False)
    best = IBPCodec.raw(64).kernel.simd
    assert best in ops.simd_levels()
    if "avx2" in ops.simd_levels():
        assert best == ops.simd_levels()[-1]
    for name in ops.simd_levels():
        monkeypatch.setenv("GNN_IBP_SIMD", name)
        assert IBPCodec.raw(64).kernel.simd == (name if name in LEVELS else "portable")


def test_version_2_has_all_levels_but_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).standard_normal((50, 16), np.float32)
    for name in ops.simd_levels():
        monkeypatch.setenv("GNN_IBP_SIMD", name)
        assert IBP2Codec.fit(rows).kernel.simd == ("portable" if name == "bmi2" else name)


@pytest.mark.parametrize("name", ["", "AVX2", "sse9"])
def test_a_level_that_there_is_not_is_an_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("GNN_IBP_SIMD", name)
    with pytest.raises(ValueError, match=f'GNN_IBP_SIMD is "{name}".*want portable'):
        _ = IBPCodec.raw(64).kernel
