"""What a data set holds is known again in every row format, and told from anything else."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnn_ibp import Dataset
from gnn_ibp.content_sum import ContentSum, piece_rows
from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.converters.prepare import convert_source

RNG = np.random.default_rng(0)
HELD: dict[str, Any] = {
    "x": RNG.standard_normal((900, 24)).astype(np.float32),
    "y": np.arange(900) % 4,
    "edge_index": RNG.integers(0, 900, (2, 2000)),
    "edge_features": {"w": RNG.standard_normal(2000)},
    "split": {"train": np.arange(300)},
}


@settings(max_examples=30, deadline=None)
@given(row_bytes=st.sampled_from([0, 1, 7, 96, 20_000]), seed=st.integers(0, 2**32))
def test_rows_have_one_checksum_however_they_come(row_bytes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    piece = piece_rows(row_bytes)
    rows = rng.integers(0, 256, (3 * piece + 5, row_bytes), np.uint8)
    whole, parts, first = ContentSum(row_bytes), ContentSum(row_bytes), piece * int(rng.integers(4))
    whole.add(rows)
    parts.add(rows[:first])
    parts = ContentSum(row_bytes, first, parts.state)
    parts.add(rows[first:])
    assert parts.state == whole.state
    if rows.size:
        other = ContentSum(row_bytes)
        rows.reshape(-1)[rng.integers(rows.size)] ^= 1
        other.add(rows)
        assert other.state != whole.state
    swapped = ContentSum(1)
    swapped.add(np.repeat(np.array([[1], [0]], np.uint8), piece_rows(1), axis=0))
    straight = ContentSum(1)
    straight.add(np.repeat(np.array([[0], [1]], np.uint8), piece_rows(1), axis=0))
    assert swapped.state != straight.state


def test_the_content_is_the_same_in_every_row_format(tmp_path: Path) -> None:
    source = Dataset.from_arrays(tmp_path / "0", format=2, **HELD)
    anew = Dataset.from_arrays(tmp_path / "1", format=1, layout="in-place", **HELD)
    assert source.meta.content == anew.meta.content is not None
    settings = ConversionSettings(format=1, chunk_bits=16)
    again = Dataset.open(convert_source(str(source.path), tmp_path / "2", settings=settings))
    assert again.meta.content == source.meta.content
    assert again.meta.fingerprint != source.meta.fingerprint
    for part in ("mean", "scale"):
        pair = [getattr(dataset.statistics(), part) for dataset in (source, again)]
        np.testing.assert_array_equal(*pair)


@pytest.mark.parametrize(
    "change",
    [
        {"x": np.concatenate([HELD["x"][:-1], -HELD["x"][-1:]])},
        {"x": np.concatenate([HELD["x"][1:], HELD["x"][:1]])},
        {"x": HELD["x"].view(np.int32)},
        {"y": HELD["y"][::-1]},
        {"edge_index": HELD["edge_index"][::-1]},
        {"edge_features": {"w": HELD["edge_features"]["w"] + 1}},
        {"split": {"train": np.arange(301)}},
        {"metric": "rocauc"},
        {"num_classes": 9},
        {"dedup": True, "edge_features": {}},
    ],
)
def test_other_data_have_another_content(tmp_path: Path, change: dict[str, Any]) -> None:
    source = Dataset.from_arrays(tmp_path / "0", **HELD)
    other = Dataset.from_arrays(tmp_path / "1", **HELD | change)
    assert other.meta.content != source.meta.content


def test_edges_that_are_added_are_counted_anew(tmp_path: Path) -> None:
    source = Dataset.from_arrays(tmp_path / "0", **HELD)
    settings = ConversionSettings(undirected=True)
    again = Dataset.open(convert_source(str(source.path), tmp_path / "1", settings=settings))
    anew = Dataset.from_arrays(tmp_path / "2", undirected=True, **HELD)
    one, other = (dataset.statistics("w") for dataset in (again, anew))
    assert one and other
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6)
    assert again.statistics("w") != source.statistics("w")


def test_a_data_set_of_an_older_program_has_no_content(tmp_path: Path) -> None:
    source = Dataset.from_arrays(tmp_path / "0", **HELD)
    old = {name: vars(info) | {"content": None} for name, info in source.meta.features.items()}
    features = {name: type(source.meta.features[name])(**fields) for name, fields in old.items()}
    assert type(source.meta)(**vars(source.meta) | {"features": features}).content is None
