"""A checkpoint file: what a training needs to go on, behind a checksum.

20 bytes  MAGIC
 4        version of this layout
 8        bytes of the content
16        XXH3, 128 bits, of all the others
 …        the content: torch.save of tensors and plain types
"""

import io
import struct
from pathlib import Path

import numpy as np
import torch
import xxhash

from gnn_ibp.disk_file import DiskFile, NewFile
from gnn_ibp.errors import FormatError
from gnn_ibp.rows import Bytes
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.training import State

MAGIC = b"gnn_ibp checkpoint\r\n"
VERSION = 1
_HEAD = struct.Struct("<20sIQ")
_DIGEST_BYTES = 16

WRITING_COPIES = 5
"""The weights, Adam's two averages and the best weights in the file's form, and room by which that grows too
far: so much memory, in copies of the weights, is taken while a checkpoint is written."""


def writing_bytes(model: GraphSAGE) -> int:
    """Host memory that writing a checkpoint takes, at most."""
    return WRITING_COPIES * model.weight_bytes


def write_checkpoint(path: Path, state: State) -> None:
    """Writes `state` to `path`, whole or not at all; it is on the disk when this returns."""
    data = io.BytesIO()
    torch.save(state, data)  # straight to a full disk it ends in an error of its own that names no cause
    content = np.frombuffer(data.getbuffer(), np.uint8)
    head = _HEAD.pack(MAGIC, VERSION, len(content))
    with NewFile(path) as file:
        file.write(head + _digest(head, content))
        file.write(content)
        file.commit()


def read_checkpoint(path: Path) -> State:
    """What was written to `path`; all tensors are on the CPU. Raises FormatError for damage, or OSError."""
    file = DiskFile(path)
    try:
        head = file.read(0, _HEAD.size).tobytes()
        digest = file.read(_HEAD.size, _DIGEST_BYTES).tobytes()
        content = file.read(_HEAD.size + _DIGEST_BYTES, max(0, file.size - _HEAD.size - _DIGEST_BYTES))
    finally:
        file.close()
    magic, version, num_bytes = _HEAD.unpack(head)
    if magic != MAGIC:
        raise FormatError(f"{path} is damaged: it does not begin like a checkpoint")
    if num_bytes != len(content):
        raise FormatError(f"{path} is damaged: {num_bytes} bytes were written, {len(content)} are there")
    if digest != _digest(head, content):
        raise FormatError(f"{path} is damaged: its checksum is another one")
    if version != VERSION:
        raise FormatError(f"{path} has format version {version}, this program reads version {VERSION}")
    try:
        state: State = torch.load(io.BytesIO(content.data), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises this and that
        raise FormatError(f"{path} is whole, torch {torch.__version__} cannot read it: {error}") from error
    return state


def _digest(head: bytes, content: Bytes) -> bytes:
    sum_of = xxhash.xxh3_128(head)
    sum_of.update(content.data)
    return sum_of.digest()
