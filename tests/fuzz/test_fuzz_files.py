"""Files that lie: exact rows or FormatError, never an access outside of an array, a crash or a hang."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from file_model import FileModel
from good_files import good_files
from sanitized_build import build_extension, python_with

from gnn_ibp.feature_file import FeatureFile

ALL_RAW = {"numbers", "no-rows", "no-rows-2", "no-columns", "no-columns-2", "no-columns-in-place", "noise-2"}
FUZZ = Path(__file__).resolve().parent / "fuzz.py"


def fuzz(folder: Path, first_seed: int, last_seed: int) -> dict[str, int]:
    """What came of the files of these seeds; those that broke a promise are kept in `folder`."""
    folder.mkdir()
    numbers = [str(first_seed), str(last_seed)]
    command, environment = python_with(build_extension(), FUZZ, [str(folder), *numbers])
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seed = folder / "seed"
    last = f"; the last seed was {seed.read_text()}" if seed.exists() else ""
    assert done.returncode == 0, f"see {folder}{last}\n{done.stderr[-8000:]}"
    counts: dict[str, int] = json.loads(done.stdout)
    print(counts)
    return counts


@pytest.mark.timeout(900)  # a cold build of the kernels on a busy machine
def test_damaged_files_give_exact_rows_or_an_error(tmp_path: Path) -> None:
    counts = fuzz(tmp_path / "fuzz", 0, 2000)
    assert counts["files"] == 2000
    assert counts["refused"] > 1000
    assert counts["rows"] > 80_000, "the files are too damaged to reach what reads rows"
    assert counts["version_2_rows"] > 15_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_damaged_files_give_exact_rows_or_an_error(tmp_path: Path) -> None:
    build_extension()
    with ThreadPoolExecutor(2) as threads:
        halves = [threads.submit(fuzz, tmp_path / str(at), at, at + 50_000) for at in (1_000_000, 2_000_000)]
        counts = [half.result() for half in halves]
    total = {name: sum(count[name] for count in counts) for name in counts[0]}
    print(total)
    assert total["files"] == 100_000
    assert total["rows"] > 5_000_000
    assert total["version_2_rows"] > 1_000_000


def test_the_oracle_reads_good_files_right(tmp_path: Path) -> None:
    for good in good_files(tmp_path):
        path = tmp_path / "good.ibp"
        path.write_bytes(good.data)
        model = FileModel(good.data)
        with FeatureFile(path) as file:
            out = np.empty((file.num_rows, file.row_bytes), np.uint8)
            rows = file.row_type.from_bytes(out)
            torch.cat([*file.decoded_blocks(), rows[:0]], out=rows)
            assert model.blocks_sound
            assert model.rows() == [row.tobytes() for row in out]
            assert (file.num_raw_rows < file.num_rows) == (good.name not in ALL_RAW)
