"""On a disk that really is full, at whatever point, the same holds as where a write is made to fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("tiny_disk.py")
JOBS = ("npz", "npz, no look at the disk", "folder, through files, no look at the disk", "training")
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")


def run(disk: Path) -> str:
    """What the program says; skips where nothing can be mounted."""
    probe = [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", disk]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: `unshare --user --map-root-user --mount` fails")
    root = Path(__file__).parents[2]
    folders = os.pathsep.join(map(str, (root, root / "tests", root / "tests" / "converters")))
    command = [*UNSHARE, sys.executable, PROGRAM, disk, *JOBS]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": folders}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_disk_full_at_any_page_changes_no_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(tmp_path)
    with capsys.disabled():
        print("\n" + "\n".join(line for line in said.splitlines() if "survived" in line))
