"""A program: jobs on a file system of their own that is full after so many pages. See test_tiny_disk.py.

unshare --user --map-root-user --mount python tiny_disk.py FOLDER STEP
"""

import os
import subprocess
import sys
from pathlib import Path

from fault_library import Fault
from forks import Forks
from world import World

REFUSED = 2
DISK_BYTES, PAGE_BYTES = 4 << 20, 4096


def main(folder: Path, jobs: list[str]) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=True)
    forks = Forks()
    for number, job in enumerate(jobs):
        place = folder / str(number)
        place.mkdir()
        tries = fill(World(forks, job, place), folder)
        print(f"{job}: {tries} full disks survived")


def fill(world: World, disk: Path) -> int:
    """Gives the job more and more room until it suffices; returns how often it did not."""
    tries = 0
    for pages in range(1, DISK_BYTES // PAGE_BYTES):
        world.restore()
        leave(disk, pages)
        answer = world.work()
        if answer.status == 0:
            break
        if answer.status == REFUSED:  # after a look at the disk
            assert "free some space" in answer.err and world.is_untouched(), answer.err
        else:
            world.check(answer, Fault.NO_SPACE)
        leave(disk, DISK_BYTES // PAGE_BYTES)
        world.goes_on()
        tries += 1
    leave(disk, DISK_BYTES // PAGE_BYTES)
    assert tries
    return tries


def leave(disk: Path, pages: int) -> None:
    """Fills the disk but for so many pages."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    free = os.statvfs(disk).f_bavail
    with ballast.open("wb", buffering=0) as file:
        file.write(bytes(max(0, free - pages) * PAGE_BYTES))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
