"""Folders of raw files as others keep them: found below a root, or downloaded into it."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from gnn_ibp.budget import format_bytes
from gnn_ibp.converters import archive
from gnn_ibp.converters.download import RemoteFile, ask, download, part_bytes, remove_downloaded
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.progress import Say


@dataclass(frozen=True)
class RawFolder:
    """Where the raw files of the data set `name` lie, and where they come from.

    folder: its name below a root; the root may also be the folder itself. inside: folders that lie in it.
    url: of a zip with the folder `top`; one that lies in the root already is used.
    store_bytes: about the size of the data set that is made of it.
    """

    name: str
    folder: str
    inside: tuple[str, ...]
    url: str
    top: str
    store_bytes: int

    def get(self, root: Path, scratch: Path, say: Say) -> Path:
        """The folder that is there, or the one that is fetched; raises as `find` and `fetch`.

        Of an archive that was downloaded for it nothing is left then, even if a kill came before that.
        """
        folder = self.find(root) or self.fetch(root, scratch, say)
        remove_downloaded(self._archive(root))
        return folder

    def find(self, root: Path) -> Path | None:
        """The folder that is there. FormatError for one of that name that does not hold what it should."""
        named = root / self.folder
        for path in (named, root):
            if any((path / name).is_dir() for name in self.inside):
                return path
        if named.exists():
            raise FormatError(
                f"{named} is there and holds no folder {' or '.join(self.inside)}; remove it, and the raw "
                f"files of {self.name} are downloaded into it"
            )
        return None

    def fetch(self, root: Path, scratch: Path, say: Say) -> Path:
        """Downloads and extracts the folder into `root`, after a line that says what and how much.

        scratch: where the data set itself will lie. SettingsError where the disk has not the room for the
        archive, what it holds, and the data set; OSError and FormatError where something goes wrong.
        """
        path = self._archive(root)
        scratch.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            try:
                remote = ask(self.url)
            except OSError as error:
                raise OSError(f"{error}, or fetch it elsewhere and put it at {path}") from error
            root.mkdir(parents=True, exist_ok=True)
            archive_left, raw = max(0, (remote.num_bytes or 0) - part_bytes(path)), remote.num_bytes or 0
            say(self._announcement(remote, root, scratch))
            self._check_disk(root, archive_left + raw, scratch)
            download(remote, path, say)
        self._check_disk(root, archive.extracted_bytes(path, self.top), scratch)
        out = root / self.folder
        archive.extract(path, self.top, out)
        return out

    def _archive(self, root: Path) -> Path:
        return root / self.url.rpartition("/")[2]

    def _announcement(self, remote: RemoteFile, root: Path, scratch: Path) -> str:
        if remote.num_bytes is None:
            return f"downloading {self.name} from {self.url}, which does not say how large it is"
        size, store = format_bytes(remote.num_bytes), format_bytes(self.store_bytes)
        total = format_bytes(2 * remote.num_bytes + self.store_bytes)
        return (
            f"downloading {self.name} from {self.url}: {size}; disk needed: about {total} in all, {size} for "
            f"the archive and about as much for the raw files in {root}, {store} for the data set in "
            f"{scratch}"
        )

    def _check_disk(self, root: Path, raw_bytes: int, scratch: Path) -> None:
        places = [(root, raw_bytes, "--raw-root"), (scratch, self.store_bytes, "--root")]
        if root.stat().st_dev == scratch.stat().st_dev:
            places = [(root, raw_bytes + self.store_bytes, "--raw-root or --root")]
        for folder, needed, flag in places:
            free = shutil.disk_usage(folder).free
            if needed > free:
                raise SettingsError(
                    f"{self.name} needs about {format_bytes(needed)} more in {folder}, {format_bytes(free)} "
                    f"are free there; free some space, or choose another disk with {flag}"
                )


def fingerprint(folder: Path, names: Iterable[str]) -> str:
    """Tells these files of `folder` from others, by names, sizes and times; they are not read."""
    states = [(name, (folder / name).stat()) for name in sorted(names) if (folder / name).is_file()]
    facts = [(name, state.st_size, state.st_mtime_ns) for name, state in states]
    return xxhash.xxh3_64_hexdigest(repr(facts).encode())
