"""Data sets by name: made once, opened ever after, never taken for another."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_rows import feature_rows

from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.converters.prepare import convert_source, prepare
from gnn_ibp.converters.sources import CONVERTERS, config_name, find_source
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import SettingsError

UNDIRECTED = ConversionSettings(undirected=True)
CONFIGS = Path(__file__).parents[2] / "configs"


def edges_of(dataset: Dataset) -> set[tuple[int, int]]:
    targets = np.repeat(np.arange(dataset.num_nodes), np.diff(dataset.graph.indptr))
    return set(zip(dataset.graph.indices.tolist(), targets.tolist(), strict=True))


def write_npz(path: Path, **changes: Any) -> Path:
    arrays = {"x": np.eye(5, dtype=np.float32), "edge_index": np.array([[0, 1], [1, 2]]), "y": np.arange(5)}
    np.savez(path, **(arrays | changes))
    return path


def test_a_data_set_is_made_once_and_opened_after(tmp_path: Path) -> None:
    said: list[str] = []
    first = prepare("synthetic:500", tmp_path, say=said.append)
    assert first.path == tmp_path / "synthetic-500"
    assert len(said) == 1 and "of disk needed" in said[0] and "free" in said[0]
    stamp = (first.path / "meta.json").stat().st_mtime_ns
    again = prepare("Synthetic:500", tmp_path, say=said.append)
    assert (again.path / "meta.json").stat().st_mtime_ns == stamp and len(said) == 1


def test_settings_of_edges_have_folders_of_their_own(tmp_path: Path) -> None:
    plain, both = prepare("synthetic:300", tmp_path), prepare("synthetic:300", tmp_path, settings=UNDIRECTED)
    assert both.path.name == "synthetic-300-undirected"
    assert edges_of(both) == edges_of(plain) | {(v, u) for u, v in edges_of(plain)}
    settings = ConversionSettings(undirected=True, dedup=True)
    assert prepare("synthetic:300", tmp_path, settings=settings).path.name == "synthetic-300-undirected-dedup"


def test_the_folder_of_a_source_is_called_after_it(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    assert prepare(f"npz:{tmp_path}/mine.npz", tmp_path).path == tmp_path / "mine"
    folders = {name: find_source(name).folder for name in ("synthetic", "synthetic:70", "CORA", "cs")}
    assert folders == {
        "synthetic": "synthetic",
        "synthetic:70": "synthetic-70",
        "CORA": "cora",
        "cs": "coauthor-cs",
    }


def test_other_settings_than_those_of_what_is_there_are_told_with_the_remedy(tmp_path: Path) -> None:
    convert_source("synthetic:300", tmp_path / "synthetic-300", settings=UNDIRECTED)
    with pytest.raises(
        SettingsError, match=r"made with undirected = True, undirected = False is asked for.*--undirected"
    ):
        prepare("synthetic:300", tmp_path)
    plain = prepare("synthetic:200", tmp_path)
    with pytest.raises(
        SettingsError, match=r"chunk_bits = None, chunk_bits = 8 is asked.*gnn-ibp convert .*--chunk-bits 8"
    ):
        prepare("synthetic:200", tmp_path, settings=ConversionSettings(chunk_bits=8))
    plain.path.rename(tmp_path / "synthetic-200-undirected")
    with pytest.raises(
        SettingsError, match=r"undirected = False, undirected = True is asked.*gnn-ibp convert .*--undirected"
    ):
        prepare("synthetic:200", tmp_path, settings=UNDIRECTED)


def test_a_data_set_of_another_source_is_never_taken_for_this_one(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "graph.npz")
    prepare(f"npz:{path}", tmp_path)
    write_npz(path, y=np.arange(5)[::-1])
    with pytest.raises(SettingsError, match="choose another --root, or remove that folder"):
        prepare(f"npz:{path}", tmp_path)
    prepare("synthetic:100", tmp_path).path.rename(tmp_path / "synthetic-200")
    with pytest.raises(SettingsError, match="was made from"):
        prepare("synthetic:200", tmp_path)


def test_a_data_set_outlives_its_source(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "graph.npz")
    prepare(f"npz:{path}", tmp_path)
    path.unlink()
    assert prepare(f"npz:{path}", tmp_path).num_nodes == 5


def test_a_data_set_of_ones_own_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    mine = Dataset.from_arrays(tmp_path / "mine", edge_index=[[0], [1]], num_nodes=2)
    assert prepare("mine", tmp_path).path == mine.path
    assert prepare(str(mine.path), tmp_path / "elsewhere").path == mine.path
    with pytest.raises(SettingsError, match=r"gnn-ibp convert .*mine .*mine-undirected --undirected"):
        prepare("mine", tmp_path, settings=UNDIRECTED)
    convert_source(str(mine.path), tmp_path / "mine-undirected", settings=UNDIRECTED)
    assert prepare("mine", tmp_path, settings=UNDIRECTED).num_edges == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("corra", "unknown data set 'corra', did you mean 'cora'"),
        ("ogbn-mag", r"the converter of OGB's ogbn-mag is not there yet; names that work: synthetic"),
        ("synthetic:many", "the number of nodes is wanted"),
        ("synthetic:0", "the number of nodes is wanted"),
        ("npz:", "npz:PATH"),
        ("cora:3", "cora takes nothing behind a colon"),
        ("", "unknown data set ''"),
    ],
)
def test_names_that_do_not_work_are_answered_with_those_that_do(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        prepare(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_known_name_has_a_config_or_needs_none() -> None:
    assert {config_name(name) for name in CONVERTERS} - {"npz"} - {
        p.stem for p in CONFIGS.glob("*.toml")
    } == {""}
    assert config_name("synthetic:2000000") != config_name("synthetic") == "synthetic"
    assert config_name("npz:/a/b/Cora.npz") == config_name("CORA") == "cora"
    assert config_name("photo") == "amazon-photo"


def test_a_folder_is_encoded_again_with_other_settings(tmp_path: Path) -> None:
    path = write_npz(
        tmp_path / "graph.npz",
        edge_type=np.array([7, 8]),
        class_names=np.array(list("abcde")),
        train_idx=[0, 3],
    )
    source = prepare(f"npz:{path}", tmp_path)
    settings = ConversionSettings(chunk_bits=16, layout="in-place", threshold=0.9, undirected=True)
    copy = Dataset.open(convert_source(str(source.path), tmp_path / "copy", settings=settings))
    np.testing.assert_array_equal(feature_rows(copy), feature_rows(source))
    with copy.feature_file() as file:
        assert (file.layout, file.codec.unit) == ("in-place", 2)
    assert edges_of(copy) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert copy.array("edge_type").tolist() == [7, 7, 8, 8]
    assert copy.y is not None and copy.y.tolist() == [0, 1, 2, 3, 4]
    assert copy.split["train"].tolist() == [0, 3]
    assert copy.meta.names == source.meta.names and copy.meta.source == source.meta.source


@pytest.mark.parametrize("versions", [(1, 2, 1), (2, 1, 2)])
def test_a_folder_goes_to_the_other_row_format_and_back(tmp_path: Path, versions: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    features = {
        "x": rng.standard_normal((700, 20)).astype(np.float32),
        "sparse": (rng.random((700, 200)) < 0.02).astype(np.float32),
        "number": rng.integers(0, 999, (700, 3)),
    }
    source = tmp_path / "source"
    edges = rng.integers(0, 700, (2, 900))
    Dataset.from_arrays(
        source,
        edge_index=edges,
        features=features,
        edge_features={"w": rng.standard_normal(900)},
        format=versions[0],
    )
    made = [Dataset.open(source)]
    for version in versions[1:]:
        out = tmp_path / f"{len(made)}"
        convert_source(str(made[-1].path), out, settings=ConversionSettings(format=version))
        made.append(Dataset.open(out))
    first, other, back = made
    for name in first.features:
        assert [dataset.row_format(name) for dataset in made] == list(versions)
        assert feature_rows(first, name).tobytes() == feature_rows(other, name).tobytes()
        path = first.features[name].file
        assert (back.path / path).read_bytes() == (first.path / path).read_bytes()
    assert feature_rows(other, "x").tobytes() == features["x"].tobytes()


def test_the_row_format_that_saves_more_is_taken_for_each_feature(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((700, 20)).astype(np.float32)
    noise = rng.integers(0, 256, (700, 16)).astype(np.uint8)
    plain = Dataset.from_arrays(tmp_path / "a", x=x, features={"noise": noise})
    assert (plain.row_format("x"), plain.row_format("noise")) == (2, 1)
    old = Dataset.from_arrays(tmp_path / "b", x=x, features={"noise": noise}, threshold="sweep")
    assert (old.row_format("x"), old.row_format("noise")) == (1, 1)
    flags = rng.random((700, 30)) < 0.1  # rows that chunks of 32 bits do not divide
    narrow = Dataset.from_arrays(tmp_path / "d", x=x, features={"flags": flags}, chunk_bits=32)
    assert (narrow.row_format("x"), narrow.row_format("flags")) == (1, 1)
    both = Dataset.from_arrays(tmp_path / "c", x=x, features={"noise": noise}, format=2)
    assert (both.row_format("x"), both.row_format("noise")) == (2, 2)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"chunk_bits": 16}, "chunk_bits = 16"),
        ({"threshold": 0.8}, "threshold = 0.8"),
        ({"layout": "in-place"}, "layout = in-place"),
    ],
)
def test_settings_of_version_1_are_not_taken_beside_version_2(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=rf"{named} asks for row format 1, format = 2 .*leave one"):
        ConversionSettings(format=2, **settings)
    for made in (ConversionSettings(**settings), ConversionSettings(format=1, **settings)):
        assert made.needed_format == 1
    with pytest.raises(SettingsError, match="format is 3, want 1, 2, or auto"):
        ConversionSettings(format=3)


def test_another_row_format_than_that_of_what_is_there_is_told_with_the_remedy(tmp_path: Path) -> None:
    auto = prepare("synthetic:300", tmp_path)
    assert auto.row_format() == 2
    assert prepare("synthetic:300", tmp_path, settings=ConversionSettings(format=2)).path == auto.path
    with pytest.raises(
        SettingsError,
        match=r"synthetic-300 has x in row format 2, format = 1 is asked for; `gnn-ibp convert .*--format 1`",
    ):
        prepare("synthetic:300", tmp_path, settings=ConversionSettings(format=1))
    fresh = prepare("synthetic:300", tmp_path / "other", settings=ConversionSettings(format=1))
    assert fresh.row_format() == 1 and prepare("synthetic:300", tmp_path / "other").path == fresh.path
    best = ConversionSettings(format="auto")
    assert prepare("synthetic:300", tmp_path, settings=best).path == auto.path
    with pytest.raises(
        SettingsError, match=r"made with format = 1, format = auto is asked for; `gnn-ibp .*--format auto`"
    ):
        prepare("synthetic:300", tmp_path / "other", settings=best)


def test_encoding_a_folder_again_keeps_its_reverse_edges_and_the_order_of_its_edges(tmp_path: Path) -> None:
    edges = np.random.default_rng(0).integers(0, 30, (2, 90))
    source = Dataset.from_arrays(
        tmp_path / "a", edge_index=edges, num_nodes=30, edge_features={"w": np.arange(90.0)}, undirected=True
    )
    copy = Dataset.open(convert_source(str(tmp_path / "a"), tmp_path / "b"))
    assert copy.undirected
    np.testing.assert_array_equal(copy.graph.indptr, source.graph.indptr)
    np.testing.assert_array_equal(copy.graph.indices, source.graph.indices)
    np.testing.assert_array_equal(feature_rows(copy, "w"), feature_rows(source, "w"))
    np.testing.assert_array_equal(copy.graph.edge_perm, source.graph.edge_perm)
    directed = Dataset.from_arrays(
        tmp_path / "c", edge_index=edges, num_nodes=30, edge_features={"w": np.arange(90.0)}
    )
    again = Dataset.open(convert_source(str(directed.path), tmp_path / "d", settings=UNDIRECTED))
    assert edges_of(again) == edges_of(source)
    np.testing.assert_array_equal(feature_rows(again, "w"), again.graph.edge_perm)


def test_an_existing_folder_is_not_written_into(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="choose another folder, or remove it if"):
        convert_source("synthetic:10", tmp_path)


def test_a_memory_budget_that_is_too_small_is_told_with_the_numbers(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"needs \d+MiB of memory.*budget is 1\.00 MiB"):
        convert_source("synthetic:100", tmp_path / "out", memory_budget=1 << 20)
    assert not (tmp_path / "out").exists()


def test_a_raw_root_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for call in (
        lambda: prepare("ogbn-products", tmp_path, raw_root=tmp_path / "typo"),
        lambda: convert_source("ogbn-products", tmp_path / "out", raw_root=tmp_path / "typo"),
    ):
        with pytest.raises(SettingsError, match="typo is no folder; make it"):
            call()
    assert not (tmp_path / "typo").exists()
