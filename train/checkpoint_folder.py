"""CheckpointFolder: the last two checkpoints of one run, in a folder that one process uses at a time."""

import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from gnn_ibp.disk_file import PARTIAL
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.progress import Say
from gnn_ibp.train.checkpoint_file import read_checkpoint, write_checkpoint
from gnn_ibp.train.training import State

_NAME = re.compile(r"epoch-(\d+)-batch-(\d+)\.checkpoint")
_PARTIAL = f".epoch-*-batch-*.checkpoint.*{PARTIAL}"


@dataclass(frozen=True, order=True)
class Place:
    """Where in a training a checkpoint stands: `batch` minibatches of epoch `epoch`, from 1, are done."""

    epoch: int
    batch: int

    def __str__(self) -> str:
        return f"epoch {self.epoch} after {self.batch} minibatches"

    @property
    def file_name(self) -> str:
        return f"epoch-{self.epoch:04}-batch-{self.batch:07}.checkpoint"


class CheckpointFolder:
    """The folder `path`, made where it is missing, and locked; a context manager.

    Two checkpoints are kept: the one written last, and the one before it, written or read. Files that are no
    checkpoints are left alone. Raises SettingsError where the folder cannot be used, and while another
    process uses it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._before: Place | None = None
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise SettingsError(
                f"--checkpoint {path} cannot be used: {error.strerror}; it must be a folder, or become one"
            ) from None
        try:
            self._take()
        except BaseException:
            os.close(self._lock)
            raise

    def places(self) -> list[Place]:
        """Of the checkpoints that are there, whole or not, the furthest first."""
        found = (_NAME.fullmatch(path.name) for path in self.path.iterdir())
        return sorted((Place(int(name[1]), int(name[2])) for name in found if name), reverse=True)

    def read(self, place: Place) -> State:
        """Raises FormatError where the checkpoint is damaged."""
        return read_checkpoint(self.path / place.file_name)

    def newest(self, say: Say) -> tuple[Place, State] | None:
        """The furthest checkpoint that is whole; None where there are none.

        `say` is told of those that are damaged. Raises FormatError where all are.
        """
        places = self.places()
        for place in places:
            try:
                state = self.read(place)
            except (FormatError, OSError) as error:
                say(f"{error}; the checkpoint before it is looked for")
            else:
                self._before = place
                return place, state
        if places:
            raise FormatError(
                f"none of the checkpoints in {self.path} can be used: remove them to start from the beginning"
            )
        return None

    def write(self, place: Place, state: State) -> None:
        """Raises OSError where that fails; what was there is still there then."""
        write_checkpoint(self.path / place.file_name, state)
        for other in self.places():
            if other not in (place, self._before):
                (self.path / other.file_name).unlink()
        self._before = place

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                f"--checkpoint {self.path} is in use by another process: wait until it is done, or name "
                "another folder"
            ) from None
        except OSError:  # a file system without locks
            pass
        if not os.access(self.path, os.W_OK):
            raise SettingsError(f"--checkpoint {self.path} cannot be used: it may not be written to")
        for partial in self.path.glob(_PARTIAL):  # of a process that was killed
            partial.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)
