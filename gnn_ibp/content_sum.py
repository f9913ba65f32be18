"""ContentSum: a checksum of rows as they are, in whatever pieces they come and however they are stored."""

import xxhash

from gnn_ibp.rows import GROUP, Bytes

PIECE_BYTES = 16 << 10
"""Rows are summed by pieces of about so many bytes: a call each, and nothing beside them."""


def piece_rows(row_bytes: int) -> int:
    """Rows of a piece: whole groups of the index."""
    return GROUP * max(1, PIECE_BYTES // max(1, GROUP * row_bytes))


class ContentSum:
    """Sum, modulo 2^128, of the XXH3 of each piece, whose number is the seed: what came so far is one number.

    state: what another one's `state` was when it had taken `num_rows` rows.
    """

    def __init__(self, row_bytes: int, num_rows: int = 0, state: str = "0") -> None:
        self._piece_rows = piece_rows(row_bytes)
        self._num_rows, self._sum = num_rows, int(state, 16)

    def add(self, rows: Bytes) -> None:
        """Rows (n, row_bytes), whole pieces of them unless they are the last."""
        for first in range(0, len(rows), self._piece_rows):
            piece = rows[first : first + self._piece_rows]
            number = (self._num_rows + first) // self._piece_rows
            self._sum += xxhash.xxh3_128_intdigest(piece.reshape(-1).data, number)
        self._num_rows += len(rows)

    @property
    def state(self) -> str:
        """Hexadecimal; after the last rows the checksum."""
        return f"{self._sum % (1 << 128):032x}"
