"""Commands that fail end in one line: what, which file, what to do."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnn_ibp import Dataset
from gnn_ibp.errors import KEPT, SettingsError
from gnn_ibp.train.cli import main
from gnn_ibp.train.error_line import error_line

FILE, OUT = "/data/x.ibp", " (OUT, --raw-root)"


def of_disk(number: int, path: str | None = FILE) -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            of_disk(errno.ENOSPC),
            f"{FILE}: the disk is full, or a quota: free some space, or choose another folder{OUT}",
        ),
        (
            of_disk(errno.EDQUOT, None),
            f"the disk is full, or a quota: free some space, or choose another folder{OUT}",
        ),
        (
            of_disk(errno.EIO),
            f"{FILE}: cannot be read or written, the disk or the way to it fails: look at the disk, or "
            f"choose another folder{OUT}",
        ),
        (
            of_disk(errno.EPIPE, None),
            "nobody reads what is said any more, so the work was ended; send it to a file",
        ),
        (
            of_disk(errno.EROFS),
            f"{FILE}: the disk is read-only: choose another folder{OUT}",
        ),
        (
            of_disk(errno.EACCES),
            f"{FILE}: permission denied: change its permissions, or choose another folder{OUT}",
        ),
        (of_disk(errno.ENOENT), f"{FILE}: No such file or directory"),
        (OSError(errno.EROFS, "words of its own", "/data"), "/data: words of its own"),
        (OSError("http://x cannot be reached"), "http://x cannot be reached"),
        (SettingsError("two\nlines"), "two lines"),
        (KeyError("unknown name"), "unknown name"),
        (KeyboardInterrupt(), "interrupted; nothing was complete"),
        (ValueError(), "ValueError (set GNN_IBP_TRACEBACK=1 to see where)"),
    ],
)
def test_an_error_is_told_in_one_line(error: BaseException, line: str) -> None:
    assert error_line(error, "convert") == line


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SettingsError("no room")])
def test_notes_on_an_error_follow(error: BaseException) -> None:
    error.add_note(KEPT)
    assert error_line(error, "train").endswith(("interrupted; " + KEPT, "no room; " + KEPT))


def test_output_that_cannot_be_written_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["--help"]) == 1
        full.flush()  # as Python does at its end
    assert capsys.readouterr().err == (
        "gnn-ibp: the disk is full, or a quota: free some space, or choose another folder\n"
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_is_said_may_go_nowhere(tmp_path: Path, closed: str) -> None:
    program = f'"{sys.executable}" -c "from gnn_ibp.train.start import main; raise SystemExit(main())"'
    ran = subprocess.run(f'{program} convert synthetic:300 "{tmp_path}/out" {closed}', shell=True)
    assert ran.returncode == 0
    assert Dataset.open(tmp_path / "out").num_nodes == 300
