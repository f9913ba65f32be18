"""How rows are to be stored is checked before anything is converted, and told with what would work."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnn_ibp import Dataset
from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.errors import SettingsError

RNG = np.random.default_rng(0)
ODD = RNG.integers(0, 9, (40, 3)).astype(np.uint16)
DOUBLES = np.tile(RNG.standard_normal(64), (40, 1))  # 64 bits are the best width for it


class Untouched:
    """Edges that nobody may look at."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, key: object) -> "Untouched":
        raise AssertionError("the conversion has begun")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chunk_bits": 64}, r"chunk_bits = 64 divides the rows of no feature.* x 6; 8 or 16 would"),
        ({"chunk_bits": 12}, "chunk_bits is 12, want 8, 16, 32 or 64"),
        ({"threshold": 0.3}, "threshold is 0.3, want a number from 0.50 to 0.99"),
        ({"layout": "sideways"}, "layout is 'sideways', it must be one of condensed, in-place"),
        ({"align": 6}, "align is 6, it must be a multiple of 4"),
        ({"align": 1 << 30}, "at most 1048576"),
    ],
)
def test_rows_that_cannot_be_stored_so_are_told_before_edges_are_read(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        Dataset.from_arrays(
            tmp_path / "out", x=ODD, edge_index=(Untouched(), Untouched()), num_nodes=40, **settings
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", [{"format": 2}, {"chunk_bits": 64}])
def test_an_alignment_that_no_row_can_have_is_told_with_one_that_does(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(SettingsError, match=r"align = 12 does not suit x.*units of 8 .*a multiple of 8"):
        Dataset.from_arrays(tmp_path / "out", x=DOUBLES, align=12, **settings)
    assert Dataset.from_arrays(tmp_path / "out", x=DOUBLES, align=16, **settings).num_nodes == 40


@pytest.mark.parametrize("settings", [{}, {"format": 1}, {"layout": "in-place"}])
def test_chunks_are_chosen_among_those_that_can_be_aligned(tmp_path: Path, settings: dict[str, Any]) -> None:
    wide = Dataset.from_arrays(tmp_path / "wide", x=DOUBLES, **settings)
    narrow = Dataset.from_arrays(tmp_path / "narrow", x=DOUBLES, align=4, **settings)
    with wide.feature_file() as file, narrow.feature_file() as aligned:
        assert file.codec.unit == 8 and aligned.codec.unit < 8
        out = np.empty_like(DOUBLES)
        aligned.read(np.arange(40), out)
    assert out.tobytes() == DOUBLES.tobytes()


def test_a_width_may_suit_some_features_or_none_be_there(tmp_path: Path) -> None:
    both = Dataset.from_arrays(tmp_path / "both", x=ODD, features={"d": DOUBLES}, chunk_bits=64)
    with both.feature_file("d") as wide, both.feature_file("x") as narrow:
        assert (wide.codec.unit, narrow.codec.unit) == (8, 2)
    assert (
        Dataset.from_arrays(tmp_path / "none", num_nodes=3, edge_index=[[0], [1]], chunk_bits=64).num_nodes
        == 3
    )


def test_settings_that_do_not_exist_are_no_settings() -> None:
    for settings in ({"chunk_bits": 0}, {"threshold": "often"}, {"align": 0}, {"align": -4}):
        with pytest.raises(SettingsError):
            ConversionSettings(**settings)  # type: ignore[arg-type]
