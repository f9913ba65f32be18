"""What meta.json holds, and folders whose files or meta.json are damaged, changed or another's."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from array_dataset import EDGES, NUM_NODES, X, Y, write
from small_dataset import edit_meta

from gnn_ibp import Dataset
from gnn_ibp.dataset_meta import FeatureInfo
from gnn_ibp.errors import FormatError


@pytest.mark.parametrize("name", ["x.ibp", "indices.npy", "y.npy", "split_val.npy"])
@pytest.mark.parametrize("damage", ["missing", "cut short", "grown"])
def test_a_file_of_another_size_is_named_when_the_data_set_is_opened(
    tmp_path: Path, name: str, damage: str
) -> None:
    path = write(tmp_path / "ds").path / name
    if damage == "missing":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[:-1] if damage == "cut short" else content + b"\0")
    with pytest.raises(FormatError, match=rf"{name} .*{damage}"):
        Dataset.open(tmp_path / "ds")


def test_what_is_no_data_set_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gnn-ibp convert"):
        Dataset.open(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"no data set, it holds no meta\.json"):
        Dataset.open(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": "gnn_ibp dataset", "version": 1}', "\xff", "[" * 5000]
)
def test_a_damaged_meta_json_is_told(tmp_path: Path, text: str) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    meta.write_bytes(text.encode("latin1"))
    with pytest.raises(FormatError, match=r"meta\.json cannot be used"):
        Dataset.open(tmp_path / "ds")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("num_nodes",), NUM_NODES - 1),
        (("num_nodes",), str(NUM_NODES)),
        (("num_edges",), -1),
        (("num_classes",), None),
        (("has_labels",), "no"),
        (("splits",), []),
        (("splits", "other"), 3),
        (("source",), None),
        (("settings",), []),
        (("files",), {}),
        (("files", "y.npy", "num_bytes"), "many"),
        (("files", "y.npy", "xxh3"), None),
        (("version",), True),
        (("features", "x", "dtype"), "float31"),
        (("features", "x", "kind"), "hyperedge"),
        (("features", "x", "statistics"), {}),
        (("features", "x", "parts", 0, "file"), "../other/x.ibp"),
        (("files", "../other/x.ibp"), {"num_bytes": 0, "xxh3": ""}),
        (("features", "x", "statistics", "mean"), [10**400]),
        (("features", "x", "raw_bytes"), "many"),
        (("features", "x", "density"), "high"),
    ],
    ids=str,
)
def test_a_meta_json_that_was_edited_is_told(
    tmp_path: Path, place: tuple[str | int, ...], value: object
) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    fields = inner = json.loads(meta.read_text())
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    meta.write_text(json.dumps(fields))
    with pytest.raises(FormatError, match=r"meta\.json cannot be used"):
        Dataset.open(tmp_path / "ds")


def test_a_meta_json_that_makes_sense_but_was_changed_is_told(tmp_path: Path) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    text = meta.read_text()
    for changed in (text.replace('"name": "ds"', '"name": "dt"'), text + "\n", text.replace("  ", " ")):
        assert changed != text
        meta.write_text(changed)
        with pytest.raises(FormatError, match=r"meta\.json .*another checksum.*delete its last line"):
            Dataset.open(tmp_path / "ds")


def test_a_meta_json_without_a_checksum_is_of_an_older_program(tmp_path: Path) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    fields = json.loads(meta.read_text())
    del fields["xxh3"]
    meta.write_text(json.dumps(fields))
    assert Dataset.open(tmp_path / "ds").num_nodes == NUM_NODES


def test_a_feature_file_of_another_data_set_is_told(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    other = write(tmp_path / "other", x=np.roll(X, 1, axis=0))
    shutil.copy(other.path / "x.ibp", dataset.path / "x.ibp")
    size = (other.path / "x.ibp").stat().st_size  # mostly it is another
    edit_meta(dataset.path, lambda fields: fields["files"]["x.ibp"].update(num_bytes=size))
    with pytest.raises(FormatError, match="not the file that this data set was written with"):
        Dataset.open(dataset.path).feature_file()


def test_a_raw_twin_of_an_older_data_set_is_told(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    older = write(tmp_path / "older", x=np.roll(X, 1, axis=0))
    shutil.copy(older.raw_twin(), dataset.path)
    with pytest.raises(FormatError, match=r"other rows than .*x\.ibp; delete it, it is made again"):
        dataset.feature_file(raw=True)
    (dataset.path / "x.raw.ibp").unlink()
    dataset.feature_file(raw=True).close()


def test_a_split_with_nodes_that_do_not_exist_is_told(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    path = dataset.path / "split_train.npy"
    ids = np.load(path)
    ids[-1] = NUM_NODES
    np.save(path, ids)
    with pytest.raises(FormatError, match=rf"split_train\.npy is damaged: it names node {NUM_NODES}"):
        _ = Dataset.open(dataset.path).split


def test_settings_reach_the_files_and_meta_json(tmp_path: Path) -> None:
    dataset = write(
        tmp_path / "ds", chunk_bits=8, layout="in-place", threshold="sweep", dedup=True, features={"id": Y}
    )
    file = dataset.feature_file()
    assert (file.layout, file.codec.unit) == ("in-place", 1)
    settings = dataset.meta.settings
    assert (
        settings["chunk_bits"] == 8 and settings["threshold"] == "sweep" and settings["layout"] == "in-place"
    )
    assert dataset.dedup and dataset.num_edges == len(set(map(tuple, EDGES.T)))
    assert write(tmp_path / "wide", chunk_bits=32, align=128).feature_file().align == 128


def test_feature_info_survives_meta_json(tmp_path: Path) -> None:
    info = write(tmp_path / "ds").features["x"]
    again = FeatureInfo.from_json("x", json.loads(json.dumps(info.to_json())))
    assert again.statistics is not None and info.statistics is not None
    np.testing.assert_array_equal(again.statistics.mean, info.statistics.mean)
    np.testing.assert_array_equal(again.statistics.scale, info.statistics.scale)
