"""Zip archives: extracted member by member into a folder that appears when it is whole."""

import zipfile
from pathlib import Path, PurePosixPath

from gnn_ibp.converters.zip_arrays import DAMAGED
from gnn_ibp.disk_file import NewFile, sync_folder
from gnn_ibp.errors import FormatError
from gnn_ibp.progress import progress
from gnn_ibp.temporary_folder import temporary_folder

BLOCK_BYTES = 4 << 20


def extracted_bytes(path: Path, top: str) -> int:
    """The bytes that `extract` will write. FormatError where the archive is damaged or cut short."""
    with _opened(path) as archive:
        return sum(info.file_size for info in _members(archive, top).values())


def extract(path: Path, top: str, out: Path) -> None:
    """Extracts what lies in the folder `top` of the archive `path` into the new folder `out`.

    Every member's checksum is compared. FormatError names what is damaged; `out` is whole or not there. Where
    another process made it meanwhile, that one stays.
    """
    with _opened(path) as archive, temporary_folder(out) as folder:
        members = _members(archive, top)
        if not members:
            raise FormatError(f"{path} holds no folder {top}")
        with progress(f"extracting {path.name}", sum(i.file_size for i in members.values()), "B") as bar:
            for name, info in members.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with archive.open(info) as source, NewFile(target) as file:
                        while block := source.read(BLOCK_BYTES):
                            file.write(block)
                            bar.update(len(block))
                        file.commit()
                except DAMAGED as error:
                    raise FormatError(f"{path}: {info.filename} is damaged ({error}); {_REMEDY}") from error
        try:
            folder.rename(out)
        except OSError:
            if not out.exists():  # otherwise another process was faster
                raise
        sync_folder(out.parent)


_REMEDY = "remove the archive, it is downloaded again then"


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except DAMAGED as error:
        raise FormatError(f"{path} is no zip archive, or it is cut short ({error}); {_REMEDY}") from error


def _members(archive: zipfile.ZipFile, top: str) -> dict[str, zipfile.ZipInfo]:
    """The files below `top`, by their path in it. FormatError for paths that lead out of it."""
    members = {}
    for info in archive.infolist():
        path = PurePosixPath(info.filename)
        if info.is_dir() or path.parts[:1] != (top,):
            continue
        if ".." in path.parts or "\\" in info.filename:
            raise FormatError(f"{archive.filename}: the path {info.filename!r} leads out of the archive")
        members[str(PurePosixPath(*path.parts[1:]))] = info
    return members
