"""What opening and verifying a feature file promises about bytes that nobody should trust."""

import os
from pathlib import Path

import numpy as np
import pytest
from bad_ibp2_files import encoded_row, golden_file, put_row
from file_parts import FileParts
from ibp2_broken_rules import DENSE, SPARSE
from make_bad_files import FOLDER, all_cases, forged
from some_rows import STORED, numbered_file, numbered_rows, same_bits, unit_codec2

from gnn_ibp.codec import CODECS
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.errors import ForeignFileError, FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import ROWS_AT, BlockSums, checksum
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.rows import Bytes

CASES = all_cases()


def use(path: Path) -> None:
    """Opens, verifies, and reads every row both ways."""
    with FeatureFile(path) as file:
        damages = file.verify()
        if damages:
            raise FormatError(str(damages[0]))
        list(file.decoded_blocks())
        file.read(np.arange(file.num_rows), np.empty((file.num_rows, *file.row_shape), file.dtype))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ibp")), ids=lambda path: path.stem)
def test_kept_bad_file_is_refused_and_told_why(path: Path) -> None:
    with pytest.raises(FormatError) as refusal:
        use(path)
    assert path.name in str(refusal.value)
    assert CASES[path.stem][1] in str(refusal.value)


def test_every_case_has_a_kept_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.ibp")} == set(CASES)


def test_forging_nothing_gives_a_good_file(tmp_path: Path) -> None:
    numbered_file(tmp_path / "good.ibp", 41, block_bytes=1024)
    (tmp_path / "same.ibp").write_bytes(forged(tmp_path / "good.ibp", lambda parts: None))
    use(tmp_path / "same.ibp")


def test_forging_no_row_of_version_2_gives_a_good_file(tmp_path: Path) -> None:
    for golden in (DENSE, SPARSE):
        parts = golden_file(tmp_path, golden)
        put_row(parts, encoded_row(golden))
        (tmp_path / "same.ibp").write_bytes(parts.signed())
        use(tmp_path / "same.ibp")


def test_malformed_row_is_named_by_random_reads(tmp_path: Path) -> None:
    with FeatureFile(FOLDER / "row-too-greedy.ibp") as file:
        out = np.empty((1, 20), np.float32)
        file.read([2], out)
        with pytest.raises(FormatError, match=r"row-too-greedy.ibp: block 0 \(rows 0 to \d+\).* row 1 "):
            file.read([1], out)


@pytest.mark.parametrize("stored", STORED)
def test_no_changed_byte_crashes_or_changes_sequential_rows(tmp_path: Path, stored: str) -> None:
    """Every byte of a small file in turn, and single bits of it, is changed."""
    path = tmp_path / "x.ibp"
    file, rows = numbered_file(path, 40, stored=stored, block_bytes=512)
    good = path.read_bytes()
    every = np.concatenate([np.arange(0, ROWS_AT, 97), np.arange(ROWS_AT, len(good), 7)])
    for at in every.tolist():
        changed = bytearray(good)
        changed[at] ^= 1 << at % 8 if at % 2 else 0xFF
        path.write_bytes(changed)
        try:
            file = FeatureFile(path)
        except FormatError:
            continue
        assert file.verify(), f"byte {at} is under no checksum"
        with pytest.raises(FormatError):
            list(file.decoded_blocks())
        out = np.empty_like(rows)
        try:
            file.read(np.arange(40), out)
        except FormatError as error:
            assert "x.ibp: block" in str(error)


@pytest.mark.parametrize("stored", STORED)
def test_every_cut_is_refused_with_both_lengths(tmp_path: Path, stored: str) -> None:
    path = tmp_path / "x.ibp"
    numbered_file(path, 40, stored=stored)
    good = path.read_bytes()
    for size in [1, 7, 11, 60, *range(4000, len(good), 61)]:
        path.write_bytes(good[:size])
        with pytest.raises(FormatError, match=f"{size} are there"):
            FeatureFile(path)


def test_rows_of_versions_to_come_name_the_program_that_reads_them(tmp_path: Path) -> None:
    class Version3(IBPCodec):
        version = 3

    for read_since, newer in (("9.1.0", "gnn_ibp 9.1.0 or a newer one"), ("", "a newer gnn_ibp")):
        Version3.read_since = read_since
        write_feature_file(tmp_path / "x.ibp", numbered_rows(40), Version3.raw(80))
        with pytest.raises(ForeignFileError, match=rf"x\.ibp: .*version 3.* reads 1 and 2; use {newer}$"):
            FeatureFile(tmp_path / "x.ibp")


def test_a_program_of_version_1_is_told_which_one_reads_version_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ibp"
    write_feature_file(path, numbered_rows(40), unit_codec2())
    monkeypatch.delitem(CODECS, 2)
    with pytest.raises(ForeignFileError, match=r"version 2, .* reads 1; use gnn_ibp 0\.1\.0 or a newer"):
        FeatureFile(path)


def test_the_preamble_of_version_1_is_as_it_was(tmp_path: Path) -> None:
    numbered_file(tmp_path / "x.ibp", 40)
    numbered_file(tmp_path / "y.ibp", 40, "version 2")
    start, start2 = (path.read_bytes()[40:4088] for path in (tmp_path / "x.ibp", tmp_path / "y.ibp"))
    assert not any(start) and start2.rstrip(b"\0") == b"0.1.0"


def test_rows_of_version_2_are_never_in_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"layout is 'in-place'.*version 2 do not; take 'condensed'"):
        write_feature_file(tmp_path / "x.ibp", numbered_rows(40), unit_codec2(), layout="in-place")
    numbered_file(tmp_path / "x.ibp", 40, "in-place")
    parts = FileParts.of((tmp_path / "x.ibp").read_bytes())
    parts.fields["codec"], parts.sections["params"] = 2, bytearray(unit_codec2().params)
    (tmp_path / "x.ibp").write_bytes(parts.signed())
    with pytest.raises(FormatError, match=r"x\.ibp is damaged: .*in place.* version 2 never are"):
        FeatureFile(tmp_path / "x.ibp")


def test_verify_names_block_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.ibp"
    file, rows = numbered_file(path, 500)
    assert file.verify() == []
    data = bytearray(path.read_bytes())
    data[ROWS_AT + 2 * 4096 + 17] ^= 4
    path.write_bytes(data)
    (damage,) = FeatureFile(path).verify()
    assert damage.block == 2
    sizes = -(-file.stored_sizes(np.arange(500)) // 4) * 4
    ends = np.cumsum(sizes)
    assert damage.first_row == np.searchsorted(ends, 2 * 4096, side="right")
    assert damage.last_row == np.searchsorted(ends, 3 * 4096 - 1, side="right")
    assert f"rows {damage.first_row} to {damage.last_row}" in str(damage)
    assert len(rows) > damage.last_row


def test_verify_finds_damage_in_every_block_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.ibp"
    file, _ = numbered_file(path, 500)
    data = bytearray(path.read_bytes())
    for block in range(file.num_blocks):
        data[ROWS_AT + block * 4096] ^= 1
    path.write_bytes(data)
    assert [damage.block for damage in FeatureFile(path).verify()] == list(range(file.num_blocks))


def test_verifying_reads_every_block_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 500)
    read_into, places = DiskFile.read_into, []

    def counted(file: DiskFile, at: int, out: Bytes) -> None:
        places.append(at)
        read_into(file, at, out)

    monkeypatch.setattr(DiskFile, "read_into", counted)
    assert file.verify() == []
    assert places == [ROWS_AT + block * 4096 for block in range(file.num_blocks)]


def test_sequential_rows_before_a_damaged_block_are_right(tmp_path: Path) -> None:
    path = tmp_path / "x.ibp"
    _, rows = numbered_file(path, 500)
    data = bytearray(path.read_bytes())
    data[ROWS_AT + 4 * 4096] ^= 1
    path.write_bytes(data)
    seen = 0
    with pytest.raises(FormatError, match="block 4 "):
        for block in FeatureFile(path).decoded_blocks():
            assert same_bits(block.numpy(), rows[seen : seen + len(block)])
            seen += len(block)
    assert seen > 0


def test_block_sums_do_not_depend_on_how_bytes_come() -> None:
    data = np.random.default_rng(0).integers(0, 256, 1000, np.uint8)
    whole = BlockSums(64)
    whole.add(data)
    pieces = BlockSums(64)
    for piece in np.split(data, [0, 1, 63, 64, 130, 700]):
        pieces.add(piece)
    expected = [checksum(data[at : at + 64]) for at in range(0, 1000, 64)]
    assert pieces.finish().tolist() == whole.finish().tolist() == expected


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        FeatureFile(tmp_path / "pipe")
