"""The folder keeps two checkpoints, passes over damage by name, and belongs to one process at a time."""

import errno
import os
from pathlib import Path

import pytest

from gnn_ibp.disk_file import NewFile
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.train.checkpoint_folder import CheckpointFolder, Place

PLACES = [Place(1, 5), Place(1, 12), Place(2, 3), Place(10, 1)]


def fill(path: Path) -> None:
    with CheckpointFolder(path) as folder:
        for place in PLACES:
            folder.write(place, {"at": str(place)})


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_the_last_two_are_kept_and_nothing_else_is_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    fill(tmp_path)
    names = ["epoch-0002-batch-0000003.checkpoint", "epoch-0010-batch-0000001.checkpoint", "notes.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_the_furthest_is_found(tmp_path: Path) -> None:
    fill(tmp_path)
    said: list[str] = []
    with CheckpointFolder(tmp_path) as folder:
        assert folder.newest(said.append) == (Place(10, 1), {"at": "epoch 10 after 1 minibatches"})
    assert not said


def test_a_damaged_one_is_named_and_the_one_before_it_is_found(tmp_path: Path) -> None:
    fill(tmp_path)
    damaged = tmp_path / Place(10, 1).file_name
    damage(damaged)
    said: list[str] = []
    with CheckpointFolder(tmp_path) as folder:
        assert folder.newest(said.append) == (Place(2, 3), {"at": "epoch 2 after 3 minibatches"})
    assert len(said) == 1 and said[0].startswith(f"{damaged} is damaged")


def test_one_that_the_disk_does_not_give_is_named_and_the_one_before_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    read = os.preadv
    furthest = (tmp_path / Place(10, 1).file_name).stat().st_ino

    def failing(handle: int, *rest: object) -> int:
        if os.fstat(handle).st_ino == furthest:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(handle, *rest)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(os, "preadv", failing)
    said: list[str] = []
    with CheckpointFolder(tmp_path) as folder:
        found = folder.newest(said.append)
    assert found and found[0] == Place(2, 3)
    assert "Input/output error" in said[0] and Place(10, 1).file_name in said[0]


def test_after_damage_the_one_that_was_good_is_kept_and_the_damaged_one_goes(tmp_path: Path) -> None:
    fill(tmp_path)
    damage(tmp_path / Place(10, 1).file_name)
    with CheckpointFolder(tmp_path) as folder:
        folder.newest(lambda _: None)
        folder.write(Place(3, 1), {})
        assert folder.places() == [Place(3, 1), Place(2, 3)]


def test_where_all_are_damaged_the_remedy_is_told(tmp_path: Path) -> None:
    fill(tmp_path)
    for path in tmp_path.iterdir():
        damage(path)
    said: list[str] = []
    with (
        CheckpointFolder(tmp_path) as folder,
        pytest.raises(FormatError, match=r"none of the checkpoints in .* remove them to start"),
    ):
        folder.newest(said.append)
    assert len(said) == 2


def test_nothing_there_is_no_error(tmp_path: Path) -> None:
    with CheckpointFolder(tmp_path / "new" / "folder") as folder:
        assert folder.newest(print) is None


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    fill(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(_: int) -> None:
        raise OSError(error, os.strerror(error))

    with CheckpointFolder(tmp_path) as folder:
        folder.newest(print)
        with monkeypatch.context() as patched, pytest.raises(OSError, match=os.strerror(error)):
            patched.setattr(os, "fsync", fail)
            folder.write(Place(11, 1), {})
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
        folder.write(Place(11, 2), {})
        assert folder.places() == [Place(11, 2), Place(10, 1)]


def test_what_a_killed_process_left_half_written_goes(tmp_path: Path) -> None:
    left = NewFile(tmp_path / Place(1, 2).file_name)
    other = NewFile(tmp_path / "model.pt")
    assert len(list(tmp_path.iterdir())) == 2
    with CheckpointFolder(tmp_path) as folder:
        assert not folder.places()
        (kept,) = tmp_path.iterdir()
        assert kept.name.startswith(".model.pt")
    left.discard()
    other.discard()


def test_of_two_processes_the_second_is_told(tmp_path: Path) -> None:
    with CheckpointFolder(tmp_path), pytest.raises(SettingsError, match="is in use by another process: wait"):
        CheckpointFolder(tmp_path)
    CheckpointFolder(tmp_path).__exit__(None, None, None)


def test_what_cannot_be_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(SettingsError, match=f"--checkpoint {path} cannot be used: .*; it must be"):
            CheckpointFolder(path)
