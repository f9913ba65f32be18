"""ConversionFolder: where a data set grows until it is whole, locked, and kept when its maker is killed."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gnn_ibp.disk_file import sync_folder
from gnn_ibp.errors import SettingsError
from gnn_ibp.journal import Journal
from gnn_ibp.progress import Say
from gnn_ibp.temporary_folder import remove_leftovers

KEPT_AFTER = (KeyboardInterrupt, OSError, MemoryError)
"""Errors after which going on makes sense: Ctrl-C, a full disk, too little memory."""

_PARTIAL = ".*.partial"


class ConversionFolder:
    """The folder `.NAME.converting` beside `out`; a context manager.

    data: what becomes `out` by `finish`. work: what is needed on the way. journal: how far things are.
    identity: of the conversion; None where nothing tells it from others, so that it always starts anew.
    say: takes a line about going on or starting anew.

    RuntimeError where another process is at it. After an error that going on may mend, and after a kill, the
    folder stays; everything else removes it.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any] | None, say: Say) -> None:
        self._out = out
        self._keep = identity is not None
        out.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(out)
        self._folder = out.with_name(f".{out.name}.converting")
        self._lock = self._locked()
        self.data, self.work = self._folder / "data", self._folder / "work"
        try:
            self.journal = self._prepared(identity or {}, say)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def num_bytes(self) -> int:
        """What lies in it."""
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def finish(self) -> None:
        """Gives the data set its name. FileExistsError where something stands there by now."""
        sync_folder(self.data)
        try:
            self.data.rename(self._out)
        except OSError as error:
            if self._out.exists():
                self._keep = False
                raise FileExistsError(
                    f"{self._out} was made by another process meanwhile; it is left as it is"
                ) from error
            raise
        sync_folder(self._out.parent)

    def _locked(self) -> int:
        """The descriptor of the folder, which holds its lock."""
        while True:
            self._folder.mkdir(exist_ok=True)
            lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(lock)
                raise RuntimeError(
                    f"{self._out} is being made by another process, {self._owner()}; wait until it is done, "
                    "or choose another folder"
                ) from error
            except OSError:  # a file system without locks
                return lock
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), self._folder.stat()):
                    return lock
            os.close(lock)  # whoever held it before has removed the folder: make a new one

    def _owner(self) -> str:
        try:
            return f"number {int((self._folder / 'owner').read_text())}"
        except (OSError, ValueError):
            return "of unknown number"

    def _prepared(self, identity: Mapping[str, Any], say: Say) -> Journal:
        if self._out.exists():
            shutil.rmtree(self._folder, ignore_errors=True)
            raise FileExistsError(f"{self._out} was made by another process meanwhile; it is left as it is")
        (self._folder / "owner").write_text(str(os.getpid()))
        self.work.mkdir(exist_ok=True)
        journal = Journal(self.work, identity)
        if journal.earlier and self._keep and self.data.is_dir():
            for folder in (self.data, self.work):
                for partial in folder.glob(_PARTIAL):
                    partial.unlink()
            say(f"going on with the conversion into {self._out} that was interrupted")
            return journal
        if journal.earlier is not None:
            say(f"an interrupted conversion into {self._out} has another source, version or settings: redone")
        for folder in (self.data, self.work):
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                raise SettingsError(f"{folder} cannot be removed; remove it, or choose another folder")
            folder.mkdir()
        return Journal(self.work, identity)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept_after = (*KEPT_AFTER, SettingsError) if self.journal.earlier else KEPT_AFTER
        if not (self._keep and isinstance(error, kept_after)):
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)
