"""Writing feature files: the same bytes however rows come, in little memory, whole or not there."""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from some_rows import (
    STORED,
    all_rows,
    layout_of,
    numbered_file,
    numbered_rows,
    same_bits,
    unit_codec,
    unit_codec2,
)

from gnn_ibp import feature_parts
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile, index_bytes
from gnn_ibp.feature_writer import FeatureFileWriter, write_feature_file
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.row_type import RowType


@pytest.mark.parametrize("align", [4, 8, 12, 32, 128])
def test_rows_stand_at_multiples_of_align(tmp_path: Path, align: int) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 100, align=align)
    assert file.align == align
    sizes = file.stored_sizes(np.arange(100))
    assert file.stored_bytes == int((-(-sizes // align) * align).sum())
    assert same_bits(all_rows(file).numpy(), rows)


def test_condensed_saves_what_encoding_saves(tmp_path: Path) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 500)
    packed = unit_codec().encode(rows)
    assert file.stored_bytes == packed.nbytes
    assert file.saved == packed.saved > 0.1
    assert file.num_raw_rows == np.count_nonzero(~packed.bitmask) == 100
    assert file.raw_bytes == rows.nbytes
    assert file.file_bytes == (tmp_path / "x.ibp").stat().st_size


@pytest.mark.parametrize("sizes", [[500], [1] * 40, [31, 1, 33, 64, 0, 7], [0, 0, 5]], ids=str)
@pytest.mark.parametrize("stored", STORED)
def test_file_is_the_same_however_rows_come(tmp_path: Path, sizes: list[int], stored: str) -> None:
    rows = numbered_rows(sum(sizes))
    codec, layout = unit_codec2() if stored == "version 2" else unit_codec(), layout_of(stored)
    write_feature_file(tmp_path / "whole.ibp", rows, codec, layout=layout)
    blocks = np.split(rows, np.cumsum(sizes)[:-1])
    pieces = (torch.from_numpy(block) if k % 2 else block for k, block in enumerate(blocks))
    write_feature_file(tmp_path / "pieces.ibp", pieces, codec, layout=layout)
    assert (tmp_path / "pieces.ibp").read_bytes() == (tmp_path / "whole.ibp").read_bytes()


def test_encoding_steps_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = numbered_rows(500)
    write_feature_file(tmp_path / "one.ibp", rows, unit_codec())
    monkeypatch.setattr("gnn_ibp.feature_writer.STEP_BYTES", 80 * 64)
    write_feature_file(tmp_path / "many.ibp", rows, unit_codec())
    assert (tmp_path / "one.ibp").read_bytes() == (tmp_path / "many.ibp").read_bytes()


def test_the_index_is_not_held_in_memory_while_rows_are_written(tmp_path: Path) -> None:
    block = np.arange(1 << 17, dtype=np.int32)
    num_rows = 64 * len(block)
    codec = IBPCodec.raw(4)
    tracemalloc.start()
    write_feature_file(tmp_path / "x.ibp", (block for _ in range(64)), codec, RowType("int32", ()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert index_bytes(num_rows, 4) > 18 << 20 and peak < 12 << 20
    with FeatureFile(tmp_path / "x.ibp") as file:
        assert np.array_equal(all_rows(file), np.tile(block, 64))
    assert [path.name for path in tmp_path.iterdir()] == ["x.ibp"]


def test_an_index_for_which_the_disk_has_no_room_is_told_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_a_full_disk(*, dir: Path) -> Any:
        return Path("/dev/full").open("r+b")

    monkeypatch.setattr(feature_parts, "TemporaryFile", of_a_full_disk)
    for num_rows in (5, 1 << 17):  # too few for a write before the end, and enough
        with pytest.raises(OSError, match="No space left") as failed:
            write_feature_file(tmp_path / "x.ibp", np.arange(num_rows, dtype=np.int32), IBPCodec.raw(4))
        assert failed.value.filename == str(tmp_path / "x.ibp")
        assert not list(tmp_path.iterdir())


def test_rows_of_other_type_are_refused_by_the_writer(tmp_path: Path) -> None:
    with (
        pytest.raises(TypeError, match="float64, the file has float32"),
        FeatureFileWriter(tmp_path / "x.ibp", unit_codec(), RowType("float32", (20,))) as writer,
    ):
        writer.append(np.zeros((2, 20)))
    with (
        pytest.raises(ValueError, match=r"\(19,\)"),
        FeatureFileWriter(tmp_path / "x.ibp", unit_codec(), RowType("float32", (20,))) as writer,
    ):
        writer.append(np.zeros((2, 19), np.float32))
    with pytest.raises(ValueError, match="codec is for rows of 80 bytes"):
        FeatureFileWriter(tmp_path / "x.ibp", unit_codec(), RowType("float32", (10,)))
    with pytest.raises(ValueError, match="align is 6"):
        FeatureFileWriter(tmp_path / "x.ibp", unit_codec(), RowType("float32", (20,)), align=6)
    with pytest.raises(ValueError, match="sideways"):
        FeatureFileWriter(tmp_path / "x.ibp", unit_codec(), RowType("float32", (20,)), layout="sideways")
    with pytest.raises(TypeError, match="foreign byte order"):
        write_feature_file(tmp_path / "x.ibp", np.zeros((2, 20), ">f4"), unit_codec())
    with pytest.raises(TypeError, match="dtype"):
        write_feature_file(tmp_path / "x.ibp", np.zeros((2, 20), "S4"), unit_codec())
    with pytest.raises(ValueError, match="row_type"):
        write_feature_file(tmp_path / "x.ibp", iter([]), unit_codec())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    _, rows = numbered_file(tmp_path / "x.ibp", 100)

    def blocks() -> Iterator[np.ndarray]:
        yield numbered_rows(300, seed=9)
        raise error

    with pytest.raises(error):
        write_feature_file(tmp_path / "x.ibp", blocks(), unit_codec())
    assert [path.name for path in tmp_path.iterdir()] == ["x.ibp"]
    assert same_bits(all_rows(FeatureFile(tmp_path / "x.ibp")).numpy(), rows)


def test_killed_writer_leaves_no_file_that_is_taken_as_whole(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from some_rows import *; from gnn_ibp.feature_writer import *\n"
        "def blocks():\n"
        "    yield numbered_rows(3000)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_feature_file(sys.argv[1], blocks(), unit_codec())\n"
    )
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parent)])
    }
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "x.ibp")], env=env, check=False)
    assert killed.returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".partial"
    with pytest.raises(FormatError, match=r"never finished|empty"):
        FeatureFile(left)
