"""IBP2Codec and fit_codec: arrays of any dtype come back, and the fit is that of the reference."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ibp2_cases import GOLDEN, GOLDEN_NAMES, special_floats
from numpy.typing import NDArray
from real_rows import TOLERANCE, real_rows, rows_and_percent

import gnn_ibp
from gnn_ibp import IBP2Codec, IBPCodec, ops, reference
from gnn_ibp.codec import codec_from_params, fit_codec
from gnn_ibp.errors import FormatError
from gnn_ibp.fit_sample import SAMPLE_ROWS, fit_sample_ids
from gnn_ibp.ibp2.fit import fit
from gnn_ibp.ibp2.reference import stored_sizes
from gnn_ibp.ibp2.split import FLOATS, Split
from gnn_ibp.ibp2_codec import split_of
from gnn_ibp.reference import Masks
from gnn_ibp.row_bytes import as_row_bytes
from gnn_ibp.row_type import DTYPES
from gnn_ibp.rows import Bytes

FLOAT32 = FLOATS["float32"]


def normal_rows(num_rows: int = 300) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((num_rows, 40)).astype(np.float32)


def binary_rows(num_rows: int = 100) -> NDArray[np.float32]:
    return (np.random.default_rng(1).random((num_rows, 500)) < 0.02).astype(np.float32)


def random_tensor(name: str, shape: tuple[int, ...], kind: str) -> torch.Tensor:
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 3
    if kind == "S":
        rows *= torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.2
    return rows.to(torch.int64).to(DTYPES[name]) if "int" in name else rows.to(DTYPES[name])


@pytest.mark.parametrize("golden", GOLDEN, ids=GOLDEN_NAMES)
def test_golden_rows_are_encoded_and_decoded_bit_for_bit(golden: dict[str, Any]) -> None:
    block = bytes.fromhex(golden["block"])
    codec = IBP2Codec.from_bytes(memoryview(block), golden["V"])
    rows = np.array([np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]])
    packed = codec.encode(rows)
    assert codec.to_bytes() == codec.params == block
    assert packed.bitmask.tolist() == [row["compressed"] for row in golden["rows"]]
    assert [packed.row(i).hex() for i in range(len(rows))] == [row["stored"] for row in golden["rows"]]
    assert packed.nbytes == sum(len(row["stored"]) // 2 for row in golden["rows"])
    assert np.array_equal(codec.decode(packed), rows)


@pytest.mark.parametrize("shape", [(60, 24), (60, 3, 8), (60,), (0, 24), (5, 0)])
@pytest.mark.parametrize("name", DTYPES)
def test_rows_of_every_dtype_come_back_as_they_were(name: str, shape: tuple[int, ...]) -> None:
    for kind in ("D", "S"):
        rows = random_tensor(name, shape, kind)
        for codec in (IBP2Codec.fit(rows), fit_codec(rows)):
            back = codec.decode(codec.encode(rows))
            assert isinstance(back, torch.Tensor)
            assert (back.dtype, back.shape) == (rows.dtype, rows.shape)
            assert torch.equal(back.reshape(-1).view(torch.uint8), rows.reshape(-1).view(torch.uint8))


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("float64", (64, 1, 11)),
        ("float32", (32, 1, 8)),
        ("bfloat16", (16, 1, 8)),
        ("float16", (16, 1, 5)),
        ("float8_e4m3fn", (8, 1, 4)),
        ("float8_e5m2", (8, 1, 5)),
        ("complex64", (32, 1, 8)),
    ],
)
def test_dtype_tells_where_sign_and_exponent_are(name: str, split: tuple[int, int, int]) -> None:
    assert split_of(DTYPES[name]) == split


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "?", "M8[s]", "g"])
def test_other_dtypes_are_whole_numbers(dtype: str) -> None:
    rows = np.random.default_rng(2).integers(0, 2, (50, 8)).astype(dtype)
    tables = IBP2Codec.fit(rows).tables
    assert (tables.chunk_bits, tables.sign_bits) == (8 * min(8, rows.itemsize), 0)


@pytest.mark.parametrize("zeros", [0, 0.9])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_special_floats_keep_every_bit(dtype: str, zeros: float) -> None:
    rows = special_floats(dtype, 300, zeros)
    codec = IBP2Codec.fit(rows)
    assert codec.tables.kind == ("S" if zeros else "D")
    assert codec.encode(rows).bitmask.any()
    assert codec.decode(codec.encode(rows)).tobytes() == rows.tobytes()


# ---- fitting ----------------------------------------------------------------------------------------


def integer_rows() -> NDArray[np.uint16]:
    return np.random.default_rng(3).integers(0, 300, (200, 16)).astype(np.uint16)


@pytest.mark.parametrize(
    ("rows", "split"),
    [
        (normal_rows(), FLOAT32),
        (binary_rows(), FLOAT32),
        (np.maximum(normal_rows(), 0), FLOAT32),
        (normal_rows().astype("f2"), FLOATS["float16"]),
        (integer_rows(), Split(16, 0, 16)),
        (normal_rows(0), FLOAT32),
    ],
    ids=["normal", "binary", "half zeros", "float16", "integers", "none"],
)
def test_fit_is_that_of_the_reference(rows: NDArray[Any], split: Split) -> None:
    sample = as_row_bytes(rows)
    tables = fit(sample, split)
    num_bytes = int(stored_sizes(sample, tables).sum())
    codec, version1 = IBP2Codec.fit(rows), IBPCodec.fit(rows)
    assert codec.tables == tables
    assert codec.encode(rows).nbytes == num_bytes
    version1_bytes = int(reference.stored_sizes(sample, Masks(version1.mask, version1.bitval)).sum())
    assert fit_codec(rows) == (codec if num_bytes < version1_bytes else version1)


def test_smallest_codec_wins_and_version_1_of_equals() -> None:
    assert fit_codec(normal_rows()).describe()["kind"] == "D"
    assert fit_codec(binary_rows()).describe()["kind"] == "S"
    constants = np.tile(normal_rows(1), (20, 1))
    sizes = [fit_codec(constants, version).encode(constants).nbytes for version in (1, 2)]
    assert sizes[0] < sizes[1] and fit_codec(constants).version == 1
    noise = np.random.default_rng(5).integers(0, 256, (20, 32), np.uint8)
    assert fit_codec(noise).version == 1  # both store it raw


def test_version_can_be_asked_for() -> None:
    rows = normal_rows()
    assert fit_codec(rows, version=1) == IBPCodec.fit(rows)
    assert fit_codec(rows, version=2) == IBP2Codec.fit(rows) == gnn_ibp.fit_codec(rows)
    for version in (0, 3, "2"):
        with pytest.raises(ValueError, match=f"version is {version!r}, want 1, 2, or None"):
            fit_codec(rows, version=version)  # type: ignore[arg-type]


def test_fit_depends_on_nothing_but_the_seeded_sample() -> None:
    rows = np.random.default_rng(6).integers(0, 99, (SAMPLE_ROWS + 1000, 8)).astype(np.uint8)
    sample: Bytes = rows[fit_sample_ids(*rows.shape, seed=3)]
    assert IBP2Codec.fit(rows, seed=3) == IBP2Codec.fit(sample)
    assert fit_codec(rows, seed=3) == fit_codec(sample)


@pytest.mark.parametrize(("name", "percent"), rows_and_percent())
def test_real_rows_come_back_and_save_what_is_announced(shared_data: Path, name: str, percent: float) -> None:
    rows = real_rows(shared_data, name)
    codec, version1 = fit_codec(rows), IBPCodec.fit(rows)
    packed = codec.encode(rows)
    assert codec.version == 2 and packed.nbytes < version1.encode(rows).nbytes
    assert 100 * packed.saved > percent - TOLERANCE
    back = codec.decode(packed)
    assert isinstance(back, torch.Tensor)
    assert torch.equal(back.reshape(-1).view(torch.uint8), rows.reshape(-1).view(torch.uint8))


# ---- parameters and errors --------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [normal_rows(), binary_rows()], ids=["D", "S"])
def test_codec_survives_pickling_and_its_file_header(rows: NDArray[np.float32]) -> None:
    codec = IBP2Codec.fit(rows)
    packed = codec.encode(rows)  # the kernel is there now, and must not be pickled
    for copy in (pickle.loads(pickle.dumps(codec)), codec_from_params(2, codec.row_bytes, codec.params)):
        assert copy == codec and hash(copy) == hash(codec)
        assert np.array_equal(copy.decode(packed), rows)
    assert codec != IBP2Codec.fit(-rows) and codec != IBPCodec.fit(rows) and codec != "a codec"
    assert repr(codec).startswith(f"IBP2Codec({codec.row_bytes} bytes in chunks of 32 bits, kind ")


def test_what_is_between_signs_and_exponents_is_described() -> None:
    facts = IBP2Codec.fit(normal_rows()).describe()
    assert facts["tail_bits"] == 23 and "zero" not in facts
    facts = IBP2Codec.fit(binary_rows()).describe()
    assert facts["zero"] == "0x0" and facts["levels"] in (1, 2, 3)


def test_versions_to_come_are_refused_with_what_to_do() -> None:
    with pytest.raises(FormatError, match=r"version 3, this is gnn_ibp .* reads 1 and 2; use a newer"):
        codec_from_params(3, 8, b"")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda block: b"", "0 bytes"),
        (lambda block: block[:1], "1 bytes"),
        (lambda block: block[:-1], "bytes, want"),
        (lambda block: block + b"\0", "bytes, want"),
        (lambda block: b"E" + block[1:], "kind is 'E'"),
        (lambda block: block[:1] + b"\x00" + block[2:], "W is 0"),
        (lambda block: block[:1] + b"\x18" + block[2:], "W is 24"),
        (lambda block: block[:1] + b"\x40" + block[2:], "W is 64, rows have 12 bytes"),
        (lambda block: block[:7] + b"\1" + block[8:], "byte 7"),
    ],
)
def test_damaged_parameters_are_a_format_error_that_names_the_rule(damage: Any, why: str) -> None:
    codec = IBP2Codec.fit(normal_rows()[:, :3])
    with pytest.raises(FormatError, match=f"parameters.*damaged.*{why}"):
        codec_from_params(2, codec.row_bytes, damage(codec.params))


def test_rows_of_another_width_are_refused() -> None:
    codec = IBP2Codec.fit(normal_rows())
    with pytest.raises(ValueError, match="rows have 12 bytes each, the codec is for 160"):
        codec.encode(np.zeros((2, 3), np.float32))
    with pytest.raises(TypeError, match="rows"):
        IBP2Codec.fit([[1.0, 2.0]])  # type: ignore[arg-type]


def test_damaged_rows_are_refused() -> None:
    rows = binary_rows()
    codec = IBP2Codec.fit(rows)
    packed = codec.encode(rows)
    packed.rows.data[:] = 0xFF
    with pytest.raises(FormatError, match="row 0 is damaged"):
        codec.decode(packed)


def test_rows_of_this_version_have_no_layout_in_place() -> None:
    codec, rows = IBP2Codec.fit(normal_rows()), as_row_bytes(normal_rows())
    assert not codec.announces_size and IBPCodec.announces_size
    with pytest.raises(ValueError, match="in place"):
        ops.encode_rows(codec, rows, align=4, in_place=True)
