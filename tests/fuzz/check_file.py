"""What holds for every file, whatever its bytes: exact rows or FormatError, and `verify` finds damage."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from file_model import FileModel

from gnn_ibp import ops
from gnn_ibp.cache import RowCache
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.rows import PAD_BYTES, Bytes, EncodedRows, Ids, RowIndex
from gnn_ibp.tiers import TieredRows

MAX_IDS, MAX_READ_BYTES, MAX_MODELLED_ROWS = 150, 200_000, 1000


class BrokenPromiseError(Exception):
    """The library took a damaged file for a good one, a good one for damaged, or gave wrong rows."""


@dataclass
class Seen:
    """What came of a file: refused when opened, or how many rows were read from it, exactly.

    version: of the rows of a feature file that was opened.
    """

    refused: bool = False
    num_rows: int = 0
    version: int = 0


def require(condition: bool, what: str) -> None:
    if not condition:
        raise BrokenPromiseError(what)


def check_file(path: Path, data: bytes, rng: Random, *, changed: bool) -> Seen:
    """Does with the file at `path`, which holds `data`, all that can be done.

    changed: its bytes are no longer what their checksums are of, so that `verify` must find that.
    Raises BrokenPromiseError; any other error but FormatError is a promise broken too, and passes through.
    """
    try:
        file = FeatureFile(path)
    except FormatError as error:
        require(path.name in str(error), f"an error does not name its file: {error}")
        return Seen(refused=True)
    with file:
        return _FileCheck(file, FileModel(data), rng).run(changed)


class _FileCheck:
    def __init__(self, file: FeatureFile, model: FileModel, rng: Random) -> None:
        self.file, self.rng, self.model = file, rng, model
        self.seen = Seen(version=file.codec.version)
        require((file.num_rows, file.row_bytes) == (model.num_rows, model.row_bytes), "other numbers of rows")
        self.is_modelled = model.num_rows <= MAX_MODELLED_ROWS
        self.rows = model.rows() if self.is_modelled else []
        self.sound = model.blocks_sound and None not in self.rows

    def run(self, changed: bool) -> Seen:
        damages = self.file.verify()
        require(not (changed and not damages), "verify finds nothing in a file that was changed")
        if self.sound and not self.is_modelled:
            self.sound = not damages  # which of its many rows are well-formed nobody else knows
        require(self.sound == (not damages), f"verify: {damages[:3]}, sound: {self.sound}")
        self._sequential()
        most = min(MAX_IDS, 1 + MAX_READ_BYTES // max(1, self.file.row_bytes))
        num_ids = self.rng.randint(1, most) if self.rows else 0
        ids = np.array(self.rng.choices(range(len(self.rows)), k=num_ids), np.int64)
        well = np.array([i for i in ids.tolist() if self.rows[i] is not None], np.int64)
        for some in [ids, well]:
            self._random(some)
            self._stored(some)
        self._tiers(ids)
        return self.seen

    def _expect(self, got: Bytes, ids: Ids, what: str) -> None:
        wanted = [self.rows[i] for i in ids.tolist()]
        require(None not in wanted, f"{what}: a damaged row was given")
        require(got.tobytes() == b"".join(wanted), f"{what}: wrong rows")  # type: ignore[arg-type]
        self.seen.num_rows += len(ids)

    def _refusable(self, ids: Ids, what: str) -> None:
        require(any(self.rows[i] is None for i in ids.tolist()), f"{what}: good rows were refused")

    def _sequential(self) -> None:
        at = 0
        try:
            for block in self.file.decoded_blocks():
                got = np.frombuffer(memoryview(_as_bytes(block)), np.uint8)
                if self.rows:
                    self._expect(got, np.arange(at, at + len(block)), "decoded_blocks")
                at += len(block)
            require(at == self.file.num_rows, "decoded_blocks: rows are left out")
        except FormatError:
            require(not self.sound, "decoded_blocks: a good file was refused")

    def _random(self, ids: Ids) -> None:
        """To places at random, with bytes beside that must stay."""
        places = np.array(self.rng.sample(range(len(ids) + 2), len(ids)), np.int64)
        out = np.full((len(ids) + 2, self.file.row_bytes), 0xA5, np.uint8)
        try:
            self.file.read(ids, self.file.row_type.from_bytes(out), places)
        except FormatError:
            return self._refusable(ids, "read")
        self._expect(out[places], ids, "read")
        require((np.delete(out, places, 0) == 0xA5).all(), "read: bytes beside the rows were written")

    def _stored(self, ids: Ids) -> None:
        """As they are stored, then decoded from memory."""
        align = max(4, self.file.codec.unit)
        room = len(ids) * (-(-self.file.row_bytes // align) * align)
        target = EncodedRows(
            np.zeros(2 * PAD_BYTES + room, np.uint8),
            np.zeros(-(-len(ids) // 8), np.uint8),
            RowIndex.unwritten(len(ids), self.file.codec.unit, align, self.file.row_bytes),
            len(ids),
            self.file.row_bytes,
        )
        out = np.empty((len(ids), self.file.row_bytes), np.uint8)
        try:
            self.file.read_stored(ids, target)
            ops.decode_all(self.file.codec, target, out)
        except FormatError:
            return self._refusable(ids, "read_stored")
        self._expect(out, ids, "read_stored")

    def _tiers(self, ids: Ids) -> None:
        """Half of the rows from a cache, which is filled in sequence, checksums compared."""
        out = self.file.row_type.empty(len(ids))
        try:
            with warnings.catch_warnings(action="ignore"):
                cache = RowCache.fill(self.file, ids[::2], self.rng.choice([500, 1 << 20]), progress=None)
            TieredRows([cache], self.file).read(ids, out)
        except FormatError:
            return require(not self.sound, "a cache: a good file was refused")
        self._expect(np.frombuffer(memoryview(_as_bytes(out)), np.uint8), ids, "a cache")


def _as_bytes(rows: object) -> Bytes:
    import torch

    assert isinstance(rows, torch.Tensor)
    out: Bytes = rows.contiguous().view(-1).view(torch.uint8).numpy()
    return out
