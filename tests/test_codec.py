"""IBPCodec: golden vectors, exactness for any bytes, what fitting promises, and what is refused."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gnn_ibp import IBPCodec, ops, reference
from gnn_ibp.codec import codec_from_params
from gnn_ibp.errors import FormatError
from gnn_ibp.fit_sample import SAMPLE_BYTES, SAMPLE_ROWS, fit_sample_ids
from gnn_ibp.reference import Masks
from gnn_ibp.rows import PAD_BYTES

GOLDEN = json.loads((Path(__file__).parent / "golden" / "ibp_golden.json").read_text())
FITTED = [golden for golden in GOLDEN if golden["threshold"] is not None]
CHUNK_BITS = [8, 16, 32, 64]
NUMPY_DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8"]
TORCH_DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int8,
    torch.int64,
    torch.uint8,
    torch.bool,
]


def random_bytes(rng: np.random.Generator, *shape: int) -> NDArray[np.uint8]:
    return rng.integers(0, 256, shape, np.uint8)


@st.composite
def codecs_and_rows(draw: st.DrawFn) -> tuple[IBPCodec, NDArray[np.uint8]]:
    """A codec with any masks, and rows of which some chunks match them; 0 to 140 chunks."""
    chunk_bits = draw(st.sampled_from(CHUNK_BITS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    num_chunks = draw(st.one_of(st.integers(0, 9), st.integers(60, 68), st.integers(120, 140)))
    word = f"uint{chunk_bits}"
    mask = random_bytes(rng, num_chunks * chunk_bits // 8).view(word)
    mask |= random_bytes(rng, mask.nbytes).view(word)  # three of four bits
    mask[rng.random(num_chunks) < draw(st.sampled_from([0, 0.1, 1]))] = 0
    mask[rng.random(num_chunks) < draw(st.sampled_from([0, 0.3, 1]))] = np.iinfo(word).max
    bitval = random_bytes(rng, mask.nbytes).view(word) & mask
    rows = random_bytes(rng, draw(st.integers(0, 9)), mask.nbytes).view(word)
    match = rng.random(rows.shape) < draw(st.sampled_from([0, 0.5, 0.9, 1]))
    rows[match] = ((rows & ~mask) | bitval)[match]
    return IBPCodec(mask, bitval, chunk_bits), rows.view(np.uint8).reshape(len(rows), mask.nbytes)


@pytest.mark.parametrize("golden", GOLDEN, ids=[golden["name"] for golden in GOLDEN])
def test_golden_rows_are_encoded_and_decoded_bit_for_bit(golden: dict[str, Any]) -> None:
    mask = [int(word, 16) for word in golden["mask"]]
    bitval = [int(word, 16) for word in golden["bitval"]]
    codec = IBPCodec(mask, bitval, 8 * golden["chunk_bytes"])
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    packed = codec.encode(rows)
    assert packed.bitmask.tolist() == [row["compressed"] for row in golden["rows"]]
    assert [packed.row(i).hex() for i in range(len(rows))] == [row["stored"] for row in golden["rows"]]
    assert packed.nbytes == sum(row["size"] for row in golden["rows"])
    assert np.array_equal(codec.decode(packed), rows)


@pytest.mark.parametrize("golden", FITTED, ids=[golden["name"] for golden in FITTED])
def test_golden_thresholds_give_the_golden_masks(golden: dict[str, Any]) -> None:
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    fitted = IBPCodec.fit(rows, 8 * golden["chunk_bytes"], threshold=golden["threshold"])
    assert fitted.mask.tolist() == [int(word, 16) for word in golden["mask"]]
    assert fitted.bitval.tolist() == [int(word, 16) for word in golden["bitval"]]


@settings(max_examples=300, deadline=None)
@given(codecs_and_rows())
def test_any_bytes_come_back_and_are_stored_as_the_reference_says(
    case: tuple[IBPCodec, NDArray[np.uint8]],
) -> None:
    codec, rows = case
    masks = Masks(codec.mask, codec.bitval)
    packed = codec.encode(rows)
    stored = [packed.row(i) for i in range(len(rows))]
    assert stored == [reference.encode_row(row.tobytes(), masks) for row in rows]
    assert all(len(row) <= codec.row_bytes for row in stored)
    assert packed.bitmask.tolist() == [len(row) < codec.row_bytes for row in stored]
    assert np.array_equal(codec.decode(packed), rows)


@settings(max_examples=300, deadline=None)
@given(codecs_and_rows(), st.integers(0, 2**32))
def test_damaged_bytes_are_refused_or_decoded_as_the_reference_does(
    case: tuple[IBPCodec, NDArray[np.uint8]], seed: int
) -> None:
    codec, rows = case
    masks = Masks(codec.mask, codec.bitval)
    rng = np.random.default_rng(seed)
    for row in rows:
        encoded = ops.encode_rows(codec, row[None], align=8)
        if not encoded.encoded()[0]:
            continue
        assert encoded.index is not None
        stored = encoded.data[PAD_BYTES:][: encoded.index.size_bytes()[0]]
        for _ in range(rng.integers(1, 4)):
            stored[rng.integers(len(stored))] ^= 1 << rng.integers(8)
        out = np.zeros_like(row[None])
        try:
            wanted = reference.decode_row(stored.tobytes(), masks)
        except FormatError:
            with pytest.raises(FormatError, match="row 0 "):
                ops.decode_all(codec, encoded, out)
        else:
            ops.decode_all(codec, encoded, out)
            assert out[0].tobytes() == wanted


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(20, 24), (20, 3, 8), (20,), (0, 24), (5, 0)])
def test_numpy_array_comes_back_as_it_was(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    rows = (rng.standard_normal(shape) * 3).astype(dtype)
    codec = IBPCodec.fit(rows)
    back = codec.decode(codec.encode(rows))
    assert isinstance(back, np.ndarray)
    assert (back.dtype, back.shape, back.tobytes()) == (rows.dtype, rows.shape, rows.tobytes())


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(20, 24), (20, 3, 8), (20,), (0, 24), (5, 0)])
def test_torch_tensor_comes_back_as_it_was(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    codec = IBPCodec.fit(rows)
    back = codec.decode(codec.encode(rows))
    assert isinstance(back, torch.Tensor)
    assert (back.dtype, back.shape) == (rows.dtype, rows.shape)
    assert torch.equal(back.reshape(-1).view(torch.uint8), rows.reshape(-1).view(torch.uint8))


def test_special_floats_keep_every_bit() -> None:
    bits = np.array([0x7FC00001, 0xFF800001, 0x7F800000, 0xFF800000, 0x80000000, 1, 0x807FFFFF, 0], np.uint32)
    rows = np.random.default_rng(2).permuted(np.tile(bits, (50, 4)), axis=1).view(np.float32)
    codec = IBPCodec.fit(rows)
    assert codec.encode(rows).bitmask.any()
    assert codec.decode(codec.encode(rows)).tobytes() == rows.tobytes()


def test_strided_and_readonly_rows_are_taken() -> None:
    base = np.arange(600, dtype=np.float32).reshape(30, 20)
    base.flags.writeable = False
    for rows in (base, base[::2], base[:, ::2], base.T, np.asfortranarray(base)):
        codec = IBPCodec.fit(rows)
        assert np.array_equal(codec.decode(codec.encode(rows)), rows)
    tensor = torch.arange(600.0).reshape(30, 20).requires_grad_()
    codec = IBPCodec.fit(tensor.T)
    assert torch.equal(codec.decode(codec.encode(tensor.T)), tensor.T.detach())


@pytest.mark.parametrize("chunk_bits", CHUNK_BITS)
def test_rows_that_are_all_invariant_shrink_to_their_participation_bits(chunk_bits: int) -> None:
    rows = np.tile(np.arange(64, dtype=np.uint64), (10, 1))
    codec = IBPCodec.fit(rows, chunk_bits)
    num_chunks = 64 * 64 // chunk_bits
    assert {len(codec.encode(rows).row(i)) for i in range(10)} == {num_chunks // 8}
    assert codec.describe()["invariant_bits"] == 64 * 64


@pytest.mark.parametrize("chunk_bits", CHUNK_BITS)
def test_single_chunk_is_always_raw(chunk_bits: int) -> None:
    rows = np.zeros((4, chunk_bits // 8), np.uint8)
    packed = IBPCodec.fit(rows, chunk_bits).encode(rows)
    assert not packed.bitmask.any()
    assert packed.nbytes == packed.raw_nbytes


def test_raw_codec_stores_every_row_raw() -> None:
    for row_bytes, chunk_bits in [(24, 64), (12, 32), (6, 16), (7, 8), (0, 64)]:
        codec = IBPCodec.raw(row_bytes)
        rows = np.zeros((3, row_bytes), np.uint8)
        assert codec.chunk_bits == chunk_bits
        assert not codec.encode(rows).bitmask.any()
        assert codec.decode(codec.encode(rows)).shape == rows.shape


def test_packed_rows_say_how_much_is_saved() -> None:
    rows = np.zeros((100, 16), np.float32)
    packed = IBPCodec.fit(rows, 32).encode(rows)
    assert (packed.raw_nbytes, packed.nbytes) == (6400, 400)
    assert packed.saved == 1 - 400 / 6400
    assert IBPCodec.fit(rows[:0]).encode(rows[:0]).saved == 0.0
    with pytest.raises(IndexError, match="row 100 of 100"):
        packed.row(100)


# ---- fitting ----------------------------------------------------------------------------------------


def float_rows(seed: int, dtype: str, num_rows: int = 300) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((num_rows, 16)) * 10.0 ** rng.integers(-2, 3, 16)
    rows[rng.random(rows.shape) < rng.random(16)] = 0  # columns from dense to sparse
    return rows.astype(dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "u1"])
@pytest.mark.parametrize("num_rows", [0, 1, 63, 64, 130])
def test_fit_matches_the_reference(dtype: str, num_rows: int) -> None:
    rows = float_rows(3, dtype, num_rows)
    row_bytes = rows.view(np.uint8).reshape(num_rows, 16 * rows.itemsize)
    for chunk_bits in CHUNK_BITS:
        for threshold, wanted in [
            (None, reference.fit(row_bytes, chunk_bits)),
            ("sweep", reference.fit_sweep(row_bytes, chunk_bits)),
            (0.5, reference.fit_threshold(row_bytes, chunk_bits, 50)),
            (0.99, reference.fit_threshold(row_bytes, chunk_bits, 99)),
        ]:
            codec = IBPCodec.fit(rows, chunk_bits, threshold)  # type: ignore[arg-type]
            assert np.array_equal(codec.mask, wanted.mask), (chunk_bits, threshold)
            assert np.array_equal(codec.bitval, wanted.bitval), (chunk_bits, threshold)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("seed", range(5))
def test_fit_is_never_worse_on_its_sample_than_the_sweep(dtype: str, seed: int) -> None:
    rows = float_rows(seed, dtype)
    for chunk_bits in (None, *CHUNK_BITS):
        ours, sweep = IBPCodec.fit(rows, chunk_bits), IBPCodec.fit(rows, chunk_bits, "sweep")
        assert ours.encode(rows).nbytes <= sweep.encode(rows).nbytes


@pytest.mark.parametrize(
    "name",
    [
        "word2vec-debian-rows0-8192.f32",
        "word2vec-debian-rows0-8192.f16",
        "minilm-lasthidden-debiantext.f32",
        "minilm-wordemb-rows2000-6096.bf16",
        "minilm-L1-values-debiantext.f16",
    ],
)
def test_real_rows_come_back_and_save_no_less_than_by_the_sweep(shared_data: Path, name: str) -> None:
    rows = np.load(shared_data / "tensors" / f"{name}.npy")
    ours, sweep = IBPCodec.fit(rows), IBPCodec.fit(rows, threshold="sweep")
    packed = ours.encode(rows)
    assert packed.nbytes <= sweep.encode(rows).nbytes < packed.raw_nbytes
    assert ours.decode(packed).tobytes() == rows.tobytes()


def test_fit_by_position_saves_more_on_half_sparse_rows() -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((2000, 64)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.5] = 0
    gained = IBPCodec.fit(rows).encode(rows).saved - IBPCodec.fit(rows, threshold="sweep").encode(rows).saved
    assert gained > 0.05


def test_automatic_width_stores_the_sample_in_the_fewest_bytes() -> None:
    rows = float_rows(6, "f4")
    sizes = {bits: IBPCodec.fit(rows, bits).encode(rows).nbytes for bits in (64, 32, 16)}
    assert IBPCodec.fit(rows).chunk_bits == min(sizes, key=lambda bits: sizes[bits])


@pytest.mark.parametrize(("row_bytes", "chunk_bits"), [(24, 64), (12, 32), (6, 16), (7, 8), (0, 64)])
def test_automatic_width_is_the_widest_of_equal_ones(row_bytes: int, chunk_bits: int) -> None:
    rows = np.random.default_rng(7).integers(0, 256, (1, row_bytes), np.uint8)
    assert IBPCodec.fit(rows[:0]).chunk_bits == chunk_bits


def test_without_rows_nothing_is_invariant() -> None:
    for threshold in (None, "sweep", 0.8):
        codec = IBPCodec.fit(np.empty((0, 8), np.float32), threshold=threshold)  # type: ignore[arg-type]
        assert not codec.mask.any()
        rows = np.ones((3, 8), np.float32)
        assert np.array_equal(codec.decode(codec.encode(rows)), rows)


def test_fit_depends_on_nothing_but_rows_and_seed() -> None:
    rows = random_bytes(np.random.default_rng(8), SAMPLE_ROWS + 1000, 8) & 0x1F
    threads = ops.num_threads()
    try:
        ops.set_num_threads(1)
        one = IBPCodec.fit(rows, seed=3)
        ops.set_num_threads(4)
        assert IBPCodec.fit(rows, seed=3) == one
    finally:
        ops.set_num_threads(threads)


def test_sample_is_seeded_bounded_and_ascending() -> None:
    ids = fit_sample_ids(10**6, 512, seed=1)
    assert len(ids) == SAMPLE_ROWS
    assert (np.diff(ids) > 0).all()
    assert np.array_equal(ids, fit_sample_ids(10**6, 512, seed=1))
    assert not np.array_equal(ids, fit_sample_ids(10**6, 512, seed=2))
    assert len(fit_sample_ids(10**6, 1 << 20)) == SAMPLE_BYTES >> 20
    assert len(fit_sample_ids(5, 1 << 30)) == 1
    assert fit_sample_ids(100, 8).tolist() == list(range(100))


# ---- parameters and errors --------------------------------------------------------------------------


def test_codec_survives_pickling_and_its_file_header() -> None:
    rows = float_rows(9, "f4")
    codec = IBPCodec.fit(rows)
    packed = codec.encode(rows)  # the kernel is there now, and must not be pickled
    for copy in (pickle.loads(pickle.dumps(codec)), codec_from_params(1, codec.row_bytes, codec.params)):
        assert copy == codec
        assert np.array_equal(copy.decode(packed), rows)
    assert np.array_equal(codec.decode(pickle.loads(pickle.dumps(packed))), rows)


def test_damaged_parameters_are_a_format_error() -> None:
    codec = IBPCodec([0xF0] * 8, [0x50] * 8, 8)
    params = codec.params
    with pytest.raises(FormatError, match="version 3"):
        codec_from_params(3, 8, params)
    for damaged in (params[:-1], b"", params + b"\0", b"\x09" + params[1:], params[:-1] + b"\x51"):
        with pytest.raises(FormatError, match="parameters"):
            codec_from_params(1, 8, damaged)


def test_given_masks_are_checked() -> None:
    with pytest.raises(ValueError, match="bitval & ~mask == 0"):
        IBPCodec([0x0F], [0x10], 8)
    with pytest.raises(ValueError, match="chunk_bits is 12"):
        IBPCodec([1], [1], 12)
    with pytest.raises(ValueError, match="bitval has 2 chunks"):
        IBPCodec([1], [1, 1], 8)
    with pytest.raises(ValueError, match="unsigned numbers of 8 bits"):
        IBPCodec([256], [0], 8)
    with pytest.raises(ValueError, match="unsigned numbers of 8 bits"):
        IBPCodec([-1], [0], 8)
    with pytest.raises(ValueError, match="one dimension"):
        IBPCodec([[1]], [[1]], 8)
    with pytest.raises(TypeError, match="want integers"):
        IBPCodec([1.0], [1.0], 8)
    assert IBPCodec([2**64 - 1, 1], [2**63, 0], 64).mask.tolist() == [2**64 - 1, 1]


@pytest.mark.parametrize("threshold", [0.494, 0.995, 1.5, -0.8, float("nan"), "best"])
def test_threshold_out_of_range_is_refused(threshold: float | str) -> None:
    with pytest.raises(ValueError, match="threshold"):
        IBPCodec.fit(np.zeros((3, 8), np.float32), threshold=threshold)  # type: ignore[arg-type]


def test_width_that_does_not_divide_the_row_is_refused() -> None:
    with pytest.raises(ValueError, match="does not divide rows of 12 bytes"):
        IBPCodec.fit(np.zeros((3, 3), np.float32), chunk_bits=64)
    with pytest.raises(ValueError, match="chunk_bits is 7"):
        IBPCodec.fit(np.zeros((3, 3), np.float32), chunk_bits=7)
    with pytest.raises(ValueError, match="chunk_bits is 0"):
        IBPCodec.fit(np.zeros((3, 3), np.float32), chunk_bits=0)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(np.zeros((2, 2), ">f4"), id="foreign byte order"),
        pytest.param(np.zeros((2, 2), object), id="object"),
        pytest.param(np.zeros((2, 2), "U3"), id="string"),
        pytest.param(np.zeros((2, 2), "S3"), id="bytes"),
        pytest.param(np.zeros(2, [("a", "f4")]), id="records"),
        pytest.param([[1.0, 2.0]], id="list"),
        pytest.param(torch.zeros(2, 2).to_sparse(), id="sparse tensor"),
    ],
)
def test_rows_that_are_no_plain_numbers_are_refused(rows: Any) -> None:
    with pytest.raises(TypeError, match="rows"):
        IBPCodec.fit(rows)
    with pytest.raises(TypeError, match="rows"):
        IBPCodec.raw(8).encode(rows)


def test_foreign_byte_order_names_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"rows\.astype\('<f4'\)"):
        IBPCodec.fit(np.zeros((2, 2), ">f4"))


def test_rows_of_another_width_are_refused() -> None:
    codec = IBPCodec.raw(8)
    with pytest.raises(ValueError, match="rows have 12 bytes each, the codec is for 8"):
        codec.encode(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="rows of 8 bytes, the codec is for 12"):
        IBPCodec.raw(12).decode(codec.encode(np.zeros((2, 2), np.float32)))
    with pytest.raises(ValueError, match="no dimensions"):
        codec.encode(np.array(1.0))
