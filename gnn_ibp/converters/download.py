"""Downloads over HTTP: resumed where they were cut, and checked against what the server announced."""

import contextlib
import fcntl
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gnn_ibp.disk_file import NewFile, errors_name, sync_folder
from gnn_ibp.errors import KEPT
from gnn_ibp.leftovers import is_at
from gnn_ibp.progress import Say, progress

TRIES = 6
"""Tries in a row that bring nothing new before a download is given up."""
FIRST_PAUSE_S = 1.0
ASK_PAUSES_S = (1.0, 2.0, 4.0)
TIMEOUT_S = 60.0
BLOCK_BYTES = 1 << 20

_NETWORK_ERRORS = (OSError, http.client.HTTPException)
_GIVE_UP = range(400, 500)
_TRY_AGAIN = (408, 425, 429)
_NO_HEAD = (403, 405, 501)
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


@dataclass(frozen=True)
class RemoteFile:
    """What a server says of a file. num_bytes: None where it does not say."""

    url: str
    num_bytes: int | None
    etag: str | None
    last_modified: str | None

    @property
    def if_range(self) -> str | None:
        """For the header that asks for the rest of this very file only."""
        strong = self.etag is not None and not self.etag.startswith("W/")
        return self.etag if strong else self.last_modified


class _FileChangedError(Exception):
    """The server has another file than the one that a download began with."""


def ask(url: str) -> RemoteFile:
    """What the server says of the file at `url`. OSError where it is not there or no answer comes."""
    method = "HEAD"
    for pause_s in (*ASK_PAUSES_S, None):
        try:
            with _open(url, method) as response:
                return _remote(url, response)
        except urllib.error.HTTPError as error:
            if method == "HEAD" and error.code in _NO_HEAD:
                method = "GET"
                continue
            _raise_final(error, url)
            problem = str(error)
        except _NETWORK_ERRORS as error:
            problem = str(error) or type(error).__name__
        if pause_s is not None:
            time.sleep(pause_s)
    raise OSError(f"{url} cannot be reached: {problem}; try again later")


def download(remote: RemoteFile, path: Path, say: Say) -> None:
    """Fetches `remote` to `path`, which must not be there; what lies in PATH.part is continued.

    A connection that is cut is taken up again, after longer and longer pauses. What was begun with another
    file, or cannot be resumed because the server sends it whole only, is begun again.

    PATH.part.json tells what is being fetched, and stays until `remove_downloaded`.

    OSError where the server refuses, nothing new comes in `TRIES` tries, another process is at it, or for the
    disk; the last names PATH.part.
    """
    part = path.with_name(f"{path.name}.part")
    with (
        errors_name(part),
        part.open("ab+") as file,
        _locked(file, part),
        progress(path.name, remote.num_bytes, "B") as bar,
    ):
        try:
            _Transfer(remote, path, file, say, bar).run()
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(KEPT)
            raise
        except _WriteError as error:
            raise error.cause from None
        os.fsync(file.fileno())
        part.rename(path)
        sync_folder(path.parent)


def remove_downloaded(path: Path) -> None:
    """Removes the file at `path`, for which there is no more need, if `download` put it there."""
    with contextlib.suppress(OSError):
        if _note(path).exists():
            path.unlink(missing_ok=True)
            _note(path).unlink()


def part_bytes(path: Path) -> int:
    """How much of the file `path` an earlier download left."""
    part = path.with_name(f"{path.name}.part")
    return part.stat().st_size if part.exists() else 0


class _Transfer:
    """One file on its way; `file` is PATH.part."""

    def __init__(self, remote: RemoteFile, path: Path, file: BinaryIO, say: Say, bar: Any) -> None:
        self._remote, self._path, self._file, self._say, self._bar = remote, path, file, say, bar
        self._at = os.fstat(file.fileno()).st_size
        known = _read_note(path)
        if self._at and (known != remote or self._at > (remote.num_bytes or self._at)):
            say(
                f"the file at {remote.url} is another one than {path.name}.part was begun with: "
                "beginning again"
            )
            self._restart()
        elif self._at:
            say(f"{path.name}.part is continued after {self._at:,} bytes")
        _write_note(path, remote)
        self._seen = self._at
        bar.update(self._at)

    def run(self) -> None:
        url = self._remote.url
        failures = 0
        while not self._is_whole():
            reached = self._seen
            problem = self._continue()
            if problem is None and self._remote.num_bytes is None:
                return
            failures = 0 if self._seen > reached else failures + 1
            if failures >= TRIES:
                total = self._remote.num_bytes or "unknown"
                raise OSError(
                    f"{url} cannot be downloaded: {self._at:,} of {total} bytes came, nothing more in "
                    f"{TRIES} tries ({problem or 'the server ended the file there'}); type the same again to "
                    f"go on, or put the file at {self._path} yourself"
                )
            if not self._is_whole():
                time.sleep(FIRST_PAUSE_S * 2**failures)

    def _is_whole(self) -> bool:
        num_bytes = self._remote.num_bytes
        if num_bytes is not None and self._at > num_bytes:
            self._restart()
            raise OSError(f"{self._remote.url}: the server sent more than the {num_bytes} bytes announced")
        return self._at == num_bytes

    def _continue(self) -> str | None:
        """Fetches the rest until it ends; returns what cut it, None where the server ended it."""
        try:
            with _open(self._remote.url, at=self._at, remote=self._remote) as response:
                self._begin_at(_first_byte(response, self._at, self._remote))
                while not self._is_whole():
                    try:
                        block = response.read(BLOCK_BYTES)
                    except http.client.IncompleteRead as error:
                        self._append(error.partial)
                        return "the connection was cut"
                    if not block:
                        return None
                    self._append(block)
        except _FileChangedError as change:
            self._say(f"{change}: beginning again")
            self._remote = ask(self._remote.url)
            self._restart()  # before the note says that what is there is of the new file
            _write_note(self._path, self._remote)
            self._bar.total = self._remote.num_bytes
            return "the file changed on the server"
        except urllib.error.HTTPError as error:
            _raise_final(error, self._remote.url)
            return str(error)
        except _NETWORK_ERRORS as error:
            return str(error) or type(error).__name__
        return None

    def _begin_at(self, first: int) -> None:
        if first != self._at:
            self._say(f"{self._remote.url}: the server sends the file whole only: beginning again")
            self._restart()

    def _append(self, block: bytes) -> None:
        with _write_errors():
            self._file.write(block)
            self._file.flush()
        self._at += len(block)
        self._seen = max(self._seen, self._at)
        self._bar.update(len(block))

    def _restart(self) -> None:
        with _write_errors():
            self._file.truncate(0)
        self._bar.reset()
        self._at = 0


class _WriteError(Exception):
    """An error of the disk, where those of the network are awaited."""

    def __init__(self, cause: OSError) -> None:
        self.cause = cause


@contextlib.contextmanager
def _write_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _WriteError(error) from error


def _open(url: str, method: str = "GET", at: int = 0, remote: RemoteFile | None = None) -> Any:
    headers = {"User-Agent": "gnn-ibp"}
    if at:
        headers["Range"] = f"bytes={at}-"
        if remote and remote.if_range:
            headers["If-Range"] = remote.if_range
    request = urllib.request.Request(url, headers=headers, method=method)
    return urllib.request.urlopen(request, timeout=TIMEOUT_S)


def _first_byte(response: Any, at: int, remote: RemoteFile) -> int:
    """Where the answer begins in the file; _FileChangedError where it is of another file."""
    answer = _remote(remote.url, response)
    total = answer.num_bytes
    first = 0
    if response.status == http.client.PARTIAL_CONTENT:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or match[1] is None or int(match[1]) != at:
            raise OSError(f"the server answered with the range {response.headers.get('Content-Range')!r}")
        first, total = at, None if match[3] == "*" else int(match[3])
    for name, known, came in (
        ("length", remote.num_bytes, total),
        ("ETag", remote.etag, answer.etag),
        ("Last-Modified", remote.last_modified, answer.last_modified),
    ):
        if known is not None and came is not None and known != came:
            raise _FileChangedError(f"{remote.url} changed meanwhile, its {name} was {known} and is {came}")
    return first


def _remote(url: str, response: Any) -> RemoteFile:
    length = response.headers.get("Content-Length")
    num_bytes = int(length) if length and length.isdecimal() else None
    return RemoteFile(url, num_bytes, response.headers.get("ETag"), response.headers.get("Last-Modified"))


def _raise_final(error: urllib.error.HTTPError, url: str) -> None:
    """OSError for an answer that will not change; 416, a range that is not there, comes of a changed file."""
    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
        return
    if error.code in _GIVE_UP and error.code not in _TRY_AGAIN:
        raise OSError(f"{url} cannot be downloaded: the server says {error.code} {error.reason}") from error


@contextlib.contextmanager
def _locked(file: BinaryIO, path: Path) -> Iterator[None]:
    """Held while the file is written; the system lets go of it when the process ends, however it does."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OSError(f"another process is writing {path}: wait for it, or end it first") from error
    if not is_at(file.fileno(), path):
        raise OSError(f"another process completed {path} just now: type the same again")
    yield


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.part.json")


def _read_note(path: Path) -> RemoteFile | None:
    try:
        return RemoteFile(**json.loads(_note(path).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _write_note(path: Path, remote: RemoteFile) -> None:
    with NewFile(_note(path)) as file:
        file.write(json.dumps(asdict(remote)).encode())
        file.commit()
