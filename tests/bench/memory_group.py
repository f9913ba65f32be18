"""A memory cgroup below this process's own, of either version, where the system lets us make one."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ENOUGH = 1 << 40


@dataclass(frozen=True)
class MemoryGroup:
    """folder: of the group. limit_file: bounds what its processes take, pages of their files included."""

    folder: Path
    limit_file: Path

    @classmethod
    def make(cls, name: str) -> Self | None:
        """A new group without a limit; None where none can be made."""
        for mount, path, file in _own_groups():
            folder = mount / path.lstrip("/") / name
            group = cls(folder, folder / file)
            with suppress(OSError):
                folder.mkdir()
                try:
                    group.limit(ENOUGH)
                except OSError:
                    group.remove()
                else:
                    return group
        return None

    def limit(self, num_bytes: int) -> None:
        self.limit_file.write_text(str(num_bytes))

    def enter(self) -> None:
        """Moves this process into the group; what it takes from now on is counted there."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Removes the group, whose processes have ended."""
        for _ in range(50):
            with suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.1)


def _own_groups() -> list[tuple[Path, str, str]]:
    """Mount, path and name of the limit's file of each hierarchy that counts memory."""
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            found.append((Path("/sys/fs/cgroup"), path, "memory.max"))
        elif "memory" in controllers.split(","):
            found.append((Path("/sys/fs/cgroup/memory"), path, "memory.limit_in_bytes"))
    return found
