"""A new file takes the place of a file, and of nothing else."""

import os
import stat
from pathlib import Path

import pytest

from gnn_ibp.disk_file import NewFile


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match=f"not a regular file: .*{name}"):
            NewFile(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "link"}
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
