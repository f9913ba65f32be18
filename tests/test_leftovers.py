"""What a killed process left under a temporary name is removed; what a living one is making is not."""

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gnn_ibp import leftovers
from gnn_ibp.disk_file import NewFile
from gnn_ibp.temporary_folder import temporary_folder

FILE = "from gnn_ibp.disk_file import NewFile; file = NewFile(sys.argv[1]); file.write(bytes(9)); "
FOLDER = (
    "from gnn_ibp.temporary_folder import temporary_folder; folder = temporary_folder(Path(sys.argv[1])); "
)


def make_file(path: Path) -> None:
    with NewFile(path) as file:
        file.write(b"whole")
        file.commit()


def make_folder(path: Path) -> None:
    with temporary_folder(path) as folder:
        (folder / "a").write_text("whole")
        folder.rename(path)


@pytest.mark.parametrize(
    ("code", "make"), [(FILE, make_file), (FOLDER + "(folder.__enter__() / 'a').touch(); ", make_folder)]
)
def test_what_a_killed_process_left_is_removed_by_the_next(
    tmp_path: Path, code: str, make: Callable[[Path], None]
) -> None:
    script = f"import os, signal, sys; from pathlib import Path; {code}os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", script, tmp_path / "x"], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    others = {tmp_path / left.name.replace(".x.", f".{name}.") for name in ("y", "x2")}
    for other in others:
        other.touch()
    make(tmp_path / "x")
    assert set(tmp_path.iterdir()) == {tmp_path / "x", *others}


def test_what_another_process_is_making_is_left_to_it(tmp_path: Path) -> None:
    with NewFile(tmp_path / "x") as slow, temporary_folder(tmp_path / "y") as folder:
        slow.write(b"slow")
        make_file(tmp_path / "x")
        make_folder(tmp_path / "y")
        assert (tmp_path / "x").read_bytes() == b"whole"
        slow.commit()
        assert folder.is_dir()
    assert (tmp_path / "x").read_bytes() == b"slow"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]


@pytest.mark.parametrize("make", [make_file, make_folder])
def test_a_new_one_taken_for_a_leftover_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    lock, taken = leftovers.fcntl.flock, list[int]()

    def too_late(handle: int, how: int) -> None:
        if not taken:
            taken.append(handle)
            (path,) = tmp_path.glob(".x.*")
            path.rmdir() if path.is_dir() else path.unlink()
        lock(handle, how)

    monkeypatch.setattr(leftovers.fcntl, "flock", too_late)
    make(tmp_path / "x")
    assert taken and [path.name for path in tmp_path.iterdir()] == ["x"]


def test_where_nothing_can_be_locked_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(leftovers.fcntl, "flock", no_locks)
    left = leftovers.temporary_path(tmp_path / "x", ".partial")
    left.touch()
    make_file(tmp_path / "x")
    assert left.exists() and (tmp_path / "x").read_bytes() == b"whole"
