"""Raw folders that are not there are downloaded, checked and extracted, whole or not at all."""

import io
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bad_server import Served, serving
from ogb_folders import SmallGraph, write_raw_folder

from gnn_ibp.converters import download
from gnn_ibp.converters.ogb_table import ogb_dataset
from gnn_ibp.converters.prepare import convert_source, prepare
from gnn_ibp.disk_file import NewFile
from gnn_ibp.errors import FormatError, SettingsError

NAME = "ogbn-arxiv"
GRAPH = SmallGraph(num_nodes=400, num_edges=3000)


def zipped(folder: Path, top: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir(top)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"{top}/{path.relative_to(folder)}")
    return out.getvalue()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What OGB's server has of the data set: a zip with the folder `arxiv`."""
    root = tmp_path_factory.mktemp("made")
    return zipped(write_raw_folder(root, NAME, GRAPH), "arxiv")


@pytest.fixture
def served(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The server that the data set is downloaded from."""
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    served = Served(archive)
    with serving(served) as url:
        dataset = replace(ogb_dataset(NAME), url=url)
        monkeypatch.setattr("gnn_ibp.converters.ogb.ogb_dataset", lambda name: dataset)
        yield served


def test_a_data_set_is_downloaded_extracted_and_made(tmp_path: Path, served: Served) -> None:
    served.cut_after = 20_000
    said: list[str] = []
    dataset = prepare(NAME, tmp_path, say=said.append)
    with dataset.feature_file() as file:
        rows = np.empty((file.num_rows, *file.row_shape), np.float32)
        file.read(np.arange(file.num_rows), rows)
    np.testing.assert_array_equal(rows, GRAPH.node_feat)
    assert [p.name for p in (tmp_path / "raw").iterdir()] == ["ogbn_arxiv"]
    made = write_raw_folder(tmp_path / "again", NAME, GRAPH)
    for path in made.rglob("*.csv.gz"):
        assert (tmp_path / "raw" / "ogbn_arxiv" / path.relative_to(made)).is_file()
    assert said[0].startswith(f"downloading {NAME} from http://127.0.0.1")
    assert "disk needed: about 104 MiB in all" in said[0]


def test_a_folder_that_is_there_is_used_as_it_is(tmp_path: Path, served: Served) -> None:
    folder = write_raw_folder(tmp_path / "raw", NAME, GRAPH)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    prepare(NAME, tmp_path)
    assert not served.requests
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_archive_that_is_there_is_not_downloaded_again(
    tmp_path: Path, served: Served, archive: bytes
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "arxiv.zip").write_bytes(archive)
    prepare(NAME, tmp_path)
    assert not served.requests
    assert (tmp_path / "raw" / "arxiv.zip").read_bytes() == archive  # whoever put it there may need it


def test_folders_that_are_not_there_yet_are_no_hindrance(tmp_path: Path, served: Served) -> None:
    for name in ("raw", "more raw"):
        (tmp_path / name).mkdir()
    prepare(NAME, tmp_path / "new" / "root", raw_root=tmp_path / "raw")
    convert_source(NAME, tmp_path / "newer" / "out" / "arxiv", raw_root=tmp_path / "more raw")


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_truncated_archive_is_refused(tmp_path: Path, served: Served, keep: float) -> None:
    served.content = served.content[: int(keep * len(served.content))]
    with pytest.raises(FormatError, match=r"arxiv\.zip is no zip archive, or it is cut short.*remove the"):
        prepare(NAME, tmp_path)
    assert {p.name for p in (tmp_path / "raw").iterdir()} == {"arxiv.zip", "arxiv.zip.part.json"}


def test_a_damaged_member_is_named_and_nothing_is_left_of_the_folder(tmp_path: Path, served: Served) -> None:
    damaged = bytearray(served.content)
    with zipfile.ZipFile(io.BytesIO(served.content)) as archive:
        info = archive.getinfo("arxiv/raw/node-feat.csv.gz")
    damaged[info.header_offset + info.compress_size // 2] ^= 1
    served.content = bytes(damaged)
    with pytest.raises(FormatError, match=r"arxiv/raw/node-feat\.csv\.gz is damaged"):
        prepare(NAME, tmp_path)
    assert {p.name for p in (tmp_path / "raw").iterdir()} == {"arxiv.zip", "arxiv.zip.part.json"}


def test_an_archive_of_something_else_is_refused(tmp_path: Path, served: Served) -> None:
    served.content = zipped(write_raw_folder(tmp_path / "made", "ogbn-products", GRAPH), "products")
    with pytest.raises(FormatError, match="holds no folder arxiv"):
        prepare(NAME, tmp_path)


@pytest.mark.parametrize("name", ["arxiv/../../out", "arxiv/..\\out"])
def test_paths_that_lead_out_of_the_archive_are_refused(tmp_path: Path, served: Served, name: str) -> None:
    out = io.BytesIO(served.content)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(name, b"")
    served.content = out.getvalue()
    with pytest.raises(FormatError, match="leads out of the archive"):
        prepare(NAME, tmp_path)
    assert not list(tmp_path.rglob("out"))


def disk_with(free: int) -> Any:
    return lambda path: SimpleNamespace(free=free)


def test_a_disk_without_room_is_refused_before_a_byte_comes(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = 2 * len(served.content) + 169_343 * (4 * 128 + 24) + 1_166_243 * 16
    monkeypatch.setattr(shutil, "disk_usage", disk_with(needed - 1))
    with pytest.raises(SettingsError, match=rf"{NAME} needs about .* are free there; .*--raw-root or --root"):
        prepare(NAME, tmp_path)
    assert served.requests == ["HEAD"]
    monkeypatch.setattr(shutil, "disk_usage", disk_with(needed))
    prepare(NAME, tmp_path)


def test_a_folder_of_that_name_without_raw_files_is_told(tmp_path: Path, served: Served) -> None:
    (tmp_path / "raw" / "ogbn_arxiv" / "processed").mkdir(parents=True)
    with pytest.raises(FormatError, match="ogbn_arxiv is there and holds no folder raw or split; remove it"):
        convert_source(NAME, tmp_path / "out")
    assert not served.requests


def test_a_killed_extraction_is_begun_again(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killing(NewFile):
        def commit(self) -> None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("gnn_ibp.converters.archive.NewFile", Killing)
        prepare(NAME, tmp_path)
    assert not (tmp_path / "raw" / "ogbn_arxiv").exists()
    requests = len(served.requests)
    prepare(NAME, tmp_path)
    assert len(served.requests) == requests
