"""ConversionFolder: where a data set grows until it is whole, locked, and kept when its maker is killed."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gnn_ibp.disk_file import PARTIAL, errors_name, sync_folder
from gnn_ibp.errors import KEPT, SettingsError
from gnn_ibp.journal import Journal
from gnn_ibp.leftovers import is_at
from gnn_ibp.progress import Say

KEPT_AFTER = (KeyboardInterrupt, OSError, MemoryError)
"""Errors after which going on makes sense: Ctrl-C, a full disk, too little memory."""


class ConversionFolder:
    """The folder `.NAME.converting` beside `out`; a context manager.

    data: what becomes `out` by `finish`. work: what is needed on the way. journal: how far things are.
    identity: of the conversion; None where nothing tells it from others, so that it always starts anew.
    say: takes a line about going on or starting anew.

    RuntimeError where another process is at it. After an error that going on may mend, and after a kill, the
    folder stays where something is done; the error then has the note `KEPT`. Everything else removes it.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any] | None, say: Say) -> None:
        self._out = out
        self._keep = identity is not None
        _make_folder(out.parent)
        self._folder = _folder_of(out)
        self._lock = self._locked()
        self.data, self.work = self._folder / "data", self._folder / "work"
        try:
            self.journal = self._prepared(identity or {}, say)
        except BaseException:
            self._leave(keep=Journal.is_in(self.work))
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
        self._keep = False
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
            if is_at(lock, self._folder):
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
        with errors_name(self._folder / "owner"):
            (self._folder / "owner").write_text(str(os.getpid()))
        self.work.mkdir(exist_ok=True)
        journal = Journal(self.work, identity)
        if journal.earlier and self._keep and self.data.is_dir():
            for folder in (self.data, self.work):
                for partial in folder.glob(f".*{PARTIAL}"):
                    partial.unlink()
            say(f"going on with the conversion into {self._out} that was interrupted")
            return journal
        if journal.earlier is not None:
            say(f"an interrupted conversion into {self._out} has another source, version or settings: redone")
        for folder in (self.data, self.work):
            if folder.exists():
                shutil.rmtree(folder)
            folder.mkdir()
        return Journal(self.work, identity)

    def _leave(self, keep: bool) -> None:
        if not keep:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept_after = (*KEPT_AFTER, SettingsError) if self.journal.earlier else KEPT_AFTER
        keep = self._keep and isinstance(error, kept_after) and not self.journal.is_empty
        if keep and error:
            error.add_note(KEPT)
        self._leave(keep)


def refuse_existing(out: Path) -> None:
    """FileExistsError where `out` exists; what a kill left beside it that came too late for it is removed."""
    if out.exists() or out.is_symlink():  # a link that leads nowhere, too
        remove_outlived(out)
        raise FileExistsError(f"{out} exists; choose another folder, or remove it if nothing in it is needed")


def refuse_overlap(out: Path, source: Path) -> None:
    """SettingsError where `out` is the folder `source`, lies in it, or holds it, by links as well."""
    if _lies_in(out, source):
        raise SettingsError(f"{out} lies in the source, {source}, or is it: choose a folder outside of it")
    if _lies_in(source, out):
        raise SettingsError(f"{out} holds the source, {source}: choose a folder beside it")


def remove_outlived(out: Path) -> None:
    """Removes the folder of a conversion into `out`, which is there, unless somebody is at it."""
    folder = _folder_of(out)
    with contextlib.suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _make_folder(path: Path) -> None:
    """SettingsError where a file, or a link that leads nowhere, is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise SettingsError(f"{error.filename} is no folder: choose another one to write into") from None


def _lies_in(path: Path, folder: Path) -> bool:
    """Whether `path`, which need not exist, is `folder` or below it."""
    resolved = path.resolve()
    places = (resolved, *resolved.parents)
    return folder.exists() and any(place.exists() and place.samefile(folder) for place in places)


def _folder_of(out: Path) -> Path:
    return out.with_name(f".{out.name}.converting")
