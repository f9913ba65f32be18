"""Conversions that are killed: gone on with, to the same bytes; or redone; or left to who is at it."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kill_conversion import NUM_NODES, convert, make_everything_small, parts

from gnn_ibp.conversion import feature_conversion
from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.conversion.folder import ConversionFolder
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import FormatError, SettingsError
from gnn_ibp.journal import Journal

PROGRAM = Path(__file__).with_name("kill_conversion.py")
ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `kill_conversion` changes is undone after each test."""
    from gnn_ibp.conversion import row_stream
    from gnn_ibp.edges import csc_output, edge_sort_plan, edge_stream, run_files

    for module, name in (
        (edge_stream, "BLOCK_EDGES"),
        (run_files, "CHECKPOINT_EDGES"),
        (csc_output, "CHECKPOINT_RECORDS"),
        (feature_conversion, "CHECKPOINT_BYTES"),
        (row_stream, "BLOCK_BYTES"),
        (edge_sort_plan.EdgeSortPlan, "run_records"),
        (edge_sort_plan.EdgeSortPlan, "load_records"),
        (edge_sort_plan.EdgeSortPlan, "shift"),
        (edge_sort_plan.EdgeSortPlan, "held"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    make_everything_small()
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # no power fails here


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a conversion that nobody stops, its edges sorted in memory."""
    out = tmp_path_factory.mktemp("whole") / "ds"
    write_dataset(parts(), out, ConversionSettings(undirected=True))
    dataset = Dataset.open(out)
    assert {dataset.row_format(name) for name in dataset.features} == {1, 2}
    return contents(out)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def start(out: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    return subprocess.Popen([sys.executable, str(PROGRAM), str(out)], env=environment)


def kill_at_random(out: Path, rng: random.Random) -> bool:
    """Starts the conversion and kills it at a random moment after it began; whether it was too late."""
    child = start(out)
    try:
        while child.poll() is None and not out.with_name(f".{out.name}.converting").exists():
            time.sleep(0.001)
        assert not child.returncode
        time.sleep(rng.random() ** 2 * 1.5)
    finally:
        child.kill()
        child.wait()
    return out.exists()


def check_kills(folder: Path, whole: dict[str, bytes], num_kills: int, seed: int) -> None:
    rng = random.Random(seed)
    left = num_kills
    while left:
        out = folder / f"ds{left}"
        for _ in range(min(left, rng.randint(1, 4))):  # one after the other, each going on from the last
            left -= 1
            if kill_at_random(out, rng):
                break
        if not out.exists():
            convert(out)
        assert contents(out) == whole
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] in (
            [],
            [f".{out.name}.converting"],
        )


def test_a_conversion_that_is_killed_goes_on_to_the_same_bytes(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    check_kills(tmp_path, whole, 3, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_change_no_byte(tmp_path: Path, whole: dict[str, bytes]) -> None:
    check_kills(tmp_path, whole, 50, seed=1)


class Stop(BaseException):
    """Ends a conversion at once, as a kill does."""


def stop_at_write(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """From the journal's `number`-th entry on nothing more is done, and nothing is cleaned up."""
    put, seen = Journal.put, [0]

    def stopping(self: Journal, stage: str, **state: Any) -> None:
        seen[0] += 1
        if seen[0] > number:
            raise Stop
        put(self, stage, **state)

    monkeypatch.setattr(Journal, "put", stopping)
    monkeypatch.setattr(ConversionFolder, "__exit__", lambda self, *_: os.close(self._lock))


def test_stopped_before_each_entry_of_its_journal_it_goes_on_to_the_same_bytes(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(0, 200, 5):
        out = tmp_path / f"ds{number}"
        with monkeypatch.context() as patched:
            stop_at_write(patched, number)
            try:
                convert(out)
            except Stop:
                pass
            else:
                break
        said = convert(out)
        assert contents(out) == whole
        assert any("going on" in line for line in said) == (number > 0)
    assert number > 20


def test_what_is_left_of_another_source_or_other_settings_is_redone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (seed, undirected) in enumerate([(1, True), (0, False)]):
        out, expected = tmp_path / f"ds{number}", tmp_path / f"expected{number}"
        with monkeypatch.context() as patched, pytest.raises(Stop):
            stop_at_write(patched, 12)
            convert(out)
        said = convert(out, seed, undirected=undirected)
        assert "settings: redone" in said[0] and str(out) in said[0]
        write_dataset(parts(seed), expected, ConversionSettings(undirected=undirected))
        assert contents(out) == contents(expected)


def test_a_damaged_journal_is_not_gone_on_with(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, pytest.raises(Stop):
        stop_at_write(patched, 12)
        convert(tmp_path / "ds")
    journal = tmp_path / ".ds.converting" / "work" / "journal.json"
    journal.write_bytes(journal.read_bytes()[:-10])
    assert "settings: redone" in convert(tmp_path / "ds")[0]
    assert contents(tmp_path / "ds") == whole


def test_arrays_that_nothing_tells_apart_are_never_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).standard_normal((NUM_NODES, 16)).astype(np.float32)
    with monkeypatch.context() as patched, pytest.raises(Stop):
        stop_at_write(patched, 2)
        Dataset.from_arrays(tmp_path / "ds", x=x)
    dataset = Dataset.from_arrays(tmp_path / "ds", x=-x)
    out = np.empty_like(x)
    dataset.feature_file().read(np.arange(NUM_NODES), out)
    np.testing.assert_array_equal(out, -x)


def test_after_ctrl_c_it_goes_on_and_after_bad_input_nothing_is_left(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = feature_conversion.FeatureConversion._blocks

    def interrupted(self: Any, first_row: int) -> Iterator[Any]:
        yield next(blocks(self, first_row))
        raise error

    for error in (KeyboardInterrupt(), OSError(28, "No space left on device"), ValueError("bad rows")):
        with monkeypatch.context() as patched, pytest.raises(type(error)):
            patched.setattr(feature_conversion.FeatureConversion, "_blocks", interrupted)
            convert(tmp_path / "ds")
        assert (tmp_path / ".ds.converting").exists() != isinstance(error, ValueError)
    convert(tmp_path / "ds")
    assert contents(tmp_path / "ds") == whole and len(list(tmp_path.iterdir())) == 1


def test_what_was_done_outlives_a_disk_that_is_too_full_to_go_on(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, pytest.raises(Stop):
        stop_at_write(patched, 12)
        convert(tmp_path / "ds")
    with monkeypatch.context() as patched, pytest.raises(SettingsError, match="of disk, 0 B are free"):
        patched.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
        convert(tmp_path / "ds")
    assert "going on" in convert(tmp_path / "ds")[0]
    assert contents(tmp_path / "ds") == whole


@pytest.mark.parametrize("damage", ["missing", "cut short"])
def test_files_that_a_failing_power_took_are_named_and_made_anew(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    with monkeypatch.context() as patched, pytest.raises(Stop):
        stop_at_write(patched, 12)
        convert(tmp_path / "ds")
    path = max((tmp_path / ".ds.converting").rglob("*.*"), key=lambda path: path.stat().st_size)
    if damage == "missing":
        path.unlink()
    else:
        os.truncate(path, 100)
    with pytest.raises(FormatError, match=rf"{path.name} is cut short: .* start anew"):
        convert(tmp_path / "ds")
    convert(tmp_path / "ds")
    assert contents(tmp_path / "ds") == whole


def test_of_two_processes_one_converts_and_the_other_is_told(tmp_path: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "ds"
    child = start(out)
    try:
        owner = tmp_path / ".ds.converting" / "owner"
        while not (owner.exists() and owner.read_text()):
            assert child.poll() is None
            time.sleep(0.001)
        child.send_signal(signal.SIGSTOP)
        with pytest.raises(RuntimeError, match=rf"ds is being made by another process, number {child.pid}"):
            convert(out)
        child.send_signal(signal.SIGCONT)
        assert child.wait(240) == 0
    finally:
        child.kill()
        child.wait()
    assert contents(out) == whole
    with pytest.raises(FileExistsError, match="exists; choose another folder, or remove it"):
        convert(out)
