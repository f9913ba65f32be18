"""gnn-ibp convert, info, verify: what they print and return."""

import re
from pathlib import Path

import numpy as np
import pytest
from small_dataset import edit_meta

from gnn_ibp import Dataset
from gnn_ibp.dataset_meta import file_info
from gnn_ibp.errors import SettingsError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import FeatureFileWriter
from gnn_ibp.train.cli import main
from gnn_ibp.train.commands import convert, info, info_text, verify

X = np.random.default_rng(0).standard_normal((3000, 512)).astype(np.float32)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    noise = np.random.default_rng(1).integers(0, 256, (3000, 16)).astype(np.uint8)
    return Dataset.from_arrays(
        tmp_path / "ds",
        x=X,
        y=np.arange(3000) % 3,
        split={"train": np.arange(1200)},
        edge_index=np.arange(6000).reshape(2, 3000) % 3000,
        features={"noise": noise},
    )


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_info_shows_what_is_in_a_data_set(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    assert info(dataset.path) == 0
    text = capsys.readouterr().out
    for shown in (
        "3,000",
        "train 1,200",
        "3,000 x 512",
        "float32",
        "condensed",
        "chunk_bits",
        "5.86 MiB",
        "x.ibp",
    ):
        assert shown in text
    assert f"{100 * dataset.features['x'].saved:.1f} %" in text


def test_info_tells_bits_by_part_and_the_bound(dataset: Dataset) -> None:
    lines = info_text(dataset.path).splitlines()
    (x,) = (line for line in lines if line.startswith("bits of a 32-bit chunk of x: codes "))
    numbers = [float(number) for number in re.findall(r"\d+\.\d\d", x)]
    *parts, whole, bound = numbers
    assert "RAW" in x and "planes 23.00" in x and "padding" in x and "rows sampled" in x
    assert sum(parts) == pytest.approx(whole, abs=0.03)
    assert whole == pytest.approx(32 * (1 - dataset.features["x"].saved), abs=0.05)
    assert whole - 1 < bound < whole
    (noise,) = (line for line in lines if line.startswith("bits of a 8-bit chunk of noise: "))
    assert "raw rows 8.00 = 8.00" in noise


def test_info_warns_where_little_is_saved(dataset: Dataset) -> None:
    warnings = [line for line in info_text(dataset.path).splitlines() if line.startswith("warning")]
    assert len(warnings) == 1 and "noise saves" in warnings[0]


def test_info_of_a_feature_file_alone(dataset: Dataset) -> None:
    text = info_text(dataset.path / "x.ibp")
    assert "3,000 x 512" in text and "train" not in text


def test_convert_writes_what_info_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert convert("synthetic:400", out, layout="in-place", threshold="0.8", threads=1, dedup=True) == 0
    text = capsys.readouterr().out
    assert "of disk needed" in text and "in-place" in text and "threshold = 0.8" in text
    assert "no space is saved" in text
    assert Dataset.open(out).dedup
    with pytest.raises(SettingsError, match="--threshold is 'often'"):
        convert("synthetic:400", tmp_path / "other", threshold="often")


def test_format_is_a_flag_of_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version in ("1", "2", "auto"):
        assert main(["convert", "synthetic:300", str(tmp_path / version), "--format", version]) == 0
    versions = [Dataset.open(tmp_path / name).row_format() for name in ("1", "2", "auto")]
    assert versions == [1, 2, 2]
    capsys.readouterr()
    assert main(["convert", "synthetic:300", str(tmp_path / "x"), "--format", "2", "--chunk-bits", "16"]) == 2
    assert "chunk_bits = 16 asks for row format 1, format = 2" in capsys.readouterr().err
    assert main(["convert", "synthetic:300", str(tmp_path / "x"), "--format", "3"]) == 2


def test_rows_that_a_width_does_not_divide_are_settings_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "odd.npz", x=np.zeros((4, 3), np.float32), edge_index=np.zeros((2, 1), np.int64))
    args = ["convert", f"npz:{tmp_path}/odd.npz", str(tmp_path / "out")]
    assert main([*args, "--chunk-bits", "64"]) == 2
    error = capsys.readouterr().err
    assert "chunk_bits = 64 divides the rows of no feature" in error and "8, 16 or 32 would" in error
    assert main([*args, "--threshold", "0.2"]) == main([*args, "--align", "6"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["odd.npz"]
    assert main([*args, "--chunk-bits", "32"]) == 0


@pytest.mark.parametrize("link", [False, True])
def test_a_folder_is_never_converted_into_itself(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str], link: bool
) -> None:
    source = dataset.path
    if link:
        source = tmp_path / "link"
        source.symlink_to(dataset.path)
    before = {path: path.read_bytes() for path in dataset.path.rglob("*")}
    for out, words in [
        (dataset.path, "lies in the source"),
        (source, "lies in the source"),
        (source / "new", "lies in the source"),
        (dataset.path / "a" / ".." / "b", "lies in the source"),
        (tmp_path, "holds the source"),
    ]:
        assert main(["convert", str(source), str(out)]) == 2
        assert words in capsys.readouterr().err
    assert {path: path.read_bytes() for path in dataset.path.rglob("*")} == before
    assert main(["convert", str(source), str(tmp_path / "ds-2")]) == 0


def test_a_folder_that_is_converted_again_keeps_its_row_format_unless_another_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("1", "2"):
        assert main(["convert", "synthetic:300", str(tmp_path / version), "--format", version]) == 0

    def converted(source: str, *flags: str) -> int:
        out = tmp_path / "-".join([source, "again", *flags])
        assert main(["convert", str(tmp_path / source), str(out), *flags]) == 0
        return Dataset.open(out).row_format()

    capsys.readouterr()
    assert (converted("1"), converted("2")) == (1, 2)
    said = capsys.readouterr().out
    assert f"row format 1, as {tmp_path / '1'} was converted; --format chooses another" in said
    assert (converted("1-again"), converted("1-again", "--undirected")) == (1, 1)
    assert (converted("1", "--format", "2"), converted("1", "--format", "auto")) == (2, 2)
    assert converted("1-again---format-auto") == 2
    capsys.readouterr()
    assert converted("2", "--chunk-bits", "32") == 1
    assert "was converted; --format" not in capsys.readouterr().out


def test_verify_finds_nothing_in_what_is_whole(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    dataset.raw_twin()
    assert verify(dataset.path) == 0
    assert verify(dataset.path / "x.ibp") == 0
    assert capsys.readouterr().out.count("no damage") == 2


def test_verify_names_file_block_and_rows(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    twin = dataset.raw_twin()
    flip(dataset.path / "x.ibp", 4096 + (4 << 20) + 1000)
    flip(dataset.path / "indices.npy", 500)
    flip(twin, 5000)
    assert verify(dataset.path) == 1
    out = capsys.readouterr().out
    assert "x.ibp: block 1 (rows " in out and "x.raw.ibp: block 0 (rows 0 to " in out
    assert "indices.npy: has another checksum" in out
    assert out.splitlines()[-1].endswith("4 damages found")
    assert verify(dataset.path / "x.ibp") == 1


def test_verify_tells_a_raw_twin_of_which_a_single_row_is_another(
    dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    twin = dataset.raw_twin()
    with FeatureFile.open(twin) as file:
        rows = np.empty(X.shape, X.dtype)
        file.read(np.arange(len(rows)), rows)
        rows[1234, 0] += 1
        with FeatureFileWriter(twin, file.codec, file.row_type) as writer:
            writer.append(rows)
    assert verify(dataset.path) == 1
    damage, found = capsys.readouterr().out.splitlines()
    assert "x.raw.ibp: holds other rows than x.ibp; delete it" in damage and "1 damage found" in found


def test_verify_opens_a_feature_file_once(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    open_file = FeatureFile.open
    monkeypatch.setattr(FeatureFile, "open", lambda path: opened.append(path) or open_file(path))
    assert verify(dataset.path / "x.ibp") == 0
    assert opened == [dataset.path / "x.ibp"]


def test_verify_says_of_a_foreign_file_that_it_is_none_of_ours(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(dataset.path / "y.npy")]) == 1
    printed = capsys.readouterr()
    assert "y.npy is not a feature file but a NumPy array" in printed.err
    assert "damage" not in printed.out + printed.err
    newer = bytearray((dataset.path / "x.ibp").read_bytes())
    newer[8] = 9
    (tmp_path / "newer.ibp").write_bytes(newer)
    assert main(["verify", str(tmp_path / "newer.ibp")]) == 1
    assert "newer.ibp has format version 9" in capsys.readouterr().err
    (dataset.path / "x.ibp").write_bytes(b"PK\3\4" + bytes(9000))  # in a data set it takes another's place
    assert main(["verify", str(dataset.path)]) == 1
    assert "x.ibp is not a feature file but a zip archive" in capsys.readouterr().out


def test_verify_names_every_file_that_is_missing_or_cut(
    dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    (dataset.path / "y.npy").unlink()
    path = dataset.path / "noise.ibp"
    path.write_bytes(path.read_bytes()[:-7])
    assert verify(dataset.path) == 1
    out = capsys.readouterr().out
    assert "y.npy: missing" in out and "noise.ibp: has " in out and "noise.ibp is cut short" in out
    assert "no damage" not in out


def test_verify_tells_an_index_that_points_nowhere(dataset: Dataset) -> None:
    """A data set whose files are as they were written may still have been written wrong."""
    path = dataset.path / "indices.npy"
    flip(path, path.stat().st_size - 1)
    edit_meta(dataset.path, lambda fields: fields["files"][path.name].update(xxh3=file_info(path).xxh3))
    assert verify(dataset.path) == 1


def test_damage_is_never_converted(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bit that makes another edge, label or member of a split of one: nothing but the checksum tells."""
    for name in ("indices.npy", "y.npy", "split_train.npy"):
        path = dataset.path / name
        content = path.read_bytes()
        flip(path, 128)
        assert main(["convert", str(dataset.path), str(tmp_path / "copy")]) == 1
        assert f"{path} is damaged: its checksum is another" in capsys.readouterr().err
        assert not (tmp_path / "copy").exists()
        path.write_bytes(content)
    assert main(["convert", str(dataset.path), str(tmp_path / "copy")]) == 0


def test_a_folder_that_is_no_data_set_does_not_hide_a_source_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "synthetic:30").mkdir()
    assert main(["convert", "synthetic:30", "out"]) == 0
    assert Dataset.open("out").num_nodes == 30


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["synthetic:9", "OUT", "--threads", "0"], 2, "--threads is 0, it must be from 1 to 1024"),
        (["synthetic:9", "OUT", "--threads", "99999"], 2, "--threads is 99999, it must be from 1"),
        (["synthetic:9", "OUT", "--memory-budget", "many"], 2, "--memory-budget: cannot read 'many'"),
        (["synthetic:99999999999999999999", "OUT"], 2, "the number of nodes is wanted .* at most"),
        (["FOLDER/short.npz", "OUT"], 2, "FOLDER/short.npz is a file: npz:FOLDER/short.npz names it"),
        (["npz:FOLDER", "OUT"], 1, "FOLDER is no file; npz:PATH names an .npz file"),
        (["FOLDER/nothing", "OUT"], 2, "there is no folder FOLDER/nothing with a data set; names that"),
        (["FOLDER", "OUT"], 2, "there is no folder FOLDER with a data set; names that"),
        (["", "OUT"], 2, "unknown data set ''"),
        (["synthetic:9", "FOLDER/file/out"], 2, "FOLDER/file is no folder: choose another one"),
        (["synthetic:9", "FOLDER/link"], 1, "FOLDER/link exists"),
        (["synthetic:9", "FOLDER/link/out"], 2, "FOLDER/link is no folder"),
        (["npz:FOLDER/short.npz", "OUT"], 1, "'y' has 5 rows, the graph has 4 nodes"),
    ],
)
def test_what_cannot_be_converted_is_told_with_its_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], status: int, message: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    (folder / "link").symlink_to(folder / "nothing")
    edges, x = np.zeros((2, 1), np.int64), np.zeros((4, 2), np.float32)
    np.savez(folder / "short.npz", x=x, y=np.arange(5), train_idx=np.arange(5), edge_index=edges)
    before = sorted(folder.iterdir())
    places = {"FOLDER": str(folder), "OUT": str(tmp_path / "out")}
    for name, place in places.items():
        args, message = [arg.replace(name, place) for arg in args], message.replace(name, place)
    assert main(["convert", *args]) == status
    assert re.search(message, capsys.readouterr().err)
    assert sorted(folder.iterdir()) == before and not (tmp_path / "out").exists()
