"""A feature file taken apart, to be changed and put together again with checksums to match."""

import json
import struct
from dataclasses import dataclass
from typing import Any, Self

from gnn_ibp.format import ROWS_AT, Header, checksum, pack_preamble


@dataclass
class FileParts:
    """What stands in a file, unchecked.

    fields: of the header. rows: all that stands between preamble and sections, padding included.
    block_bytes: of the checksums that `signed` makes, whatever the header says.
    header: what stands for it, instead of `fields`.
    """

    fields: dict[str, Any]
    rows: bytearray
    sections: dict[str, bytearray]
    block_bytes: int
    header: bytes | None = None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Those of a file whose header can be read."""
        header_at, header_bytes = struct.unpack_from("<QQ", data, 16)
        fields = json.loads(data[header_at : header_at + header_bytes])
        places = {name: fields["sections"][name] for name in Header.SECTIONS}
        rows = bytearray(data[ROWS_AT : places[Header.SECTIONS[0]]["at"]])
        sections = {name: bytearray(data[s["at"] : s["at"] + s["num_bytes"]]) for name, s in places.items()}
        return cls(fields, rows, sections, fields["block_bytes"])

    def signed(self) -> bytes:
        """The file made of these parts."""
        blocks = range(0, len(self.rows), self.block_bytes)
        sums = [checksum(bytes(self.rows[at : at + self.block_bytes])) for at in blocks]
        sections = self.sections | {"blocks": struct.pack(f"<{len(sums)}Q", *sums)}
        places, at = {}, ROWS_AT + len(self.rows)
        for name in Header.SECTIONS:
            data = bytes(sections[name])
            places[name] = {"at": at, "num_bytes": len(data), "xxh3": checksum(data)}
            at += len(data)
        whole = json.dumps(self.fields | {"sections": places}, default=str).encode()
        text = whole if self.header is None else self.header
        tail = b"".join(sections[name] for name in Header.SECTIONS)
        return b"".join([pack_preamble(at, text), self.rows, tail, text])
