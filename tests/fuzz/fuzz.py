"""Damages files and does with them all that can be done: `fuzz.py FOLDER FIRST_SEED LAST_SEED`.

Run by test_fuzz_files.py with kernels that AddressSanitizer and UBSan watch. Each seed is one file, the same
at every run: most are feature files, every `DATASET_EVERY`th is one of a whole data set. FOLDER keeps those
that broke a promise. Prints what was seen as one line of JSON; the exit status is 1 where something broke.
"""

import faulthandler
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from check_dataset import check_dataset, contents
from check_file import Seen, check_file
from damage import DAMAGES
from damaged_dataset import DamagedDataset
from forgery import forge
from good_files import good_files

from gnn_ibp.dataset import Dataset

HANG_S = 120
MAX_BROKEN = 5
DATASET_EVERY = 12


@dataclass
class Counts:
    """files: looked at; refused: when they were opened; rows: read and right; broken: promises.

    version_2_rows: of `rows`, those of feature files in version 2 of the row format.
    """

    files: int = 0
    datasets: int = 0
    refused: int = 0
    rows: int = 0
    version_2_rows: int = 0
    broken: int = 0


class Fuzzer:
    """Works in the folder `scratch`. what, subject: how the last file was damaged, and where it is."""

    def __init__(self, scratch: Path) -> None:
        self.files = good_files(scratch)
        self.dataset = DamagedDataset(scratch / "dataset")
        self.truth = contents(Dataset.open(self.dataset.path))
        self.path = scratch / "fuzzed.ibp"
        self.what, self.subject = "", self.path

    def run(self, seed: int) -> Seen:
        rng = Random(seed)
        return self._dataset(rng) if seed % DATASET_EVERY == 0 else self._file(rng)

    def _file(self, rng: Random) -> Seen:
        good, forged = rng.choice(self.files), rng.random() < 0.5
        damage = rng.choice(DAMAGES)
        data = forge(rng, good.data) if forged else damage(rng, good, self.files)
        self.what = f"{good.name}, {'forged' if forged else damage.__name__}"
        self.subject = self.path
        self.path.write_bytes(data)
        changed = not forged and all(data != file.data for file in self.files)
        return check_file(self.path, data, rng, changed=changed)

    def _dataset(self, rng: Random) -> Seen:
        self.dataset.restore()
        self.subject = self.dataset.path
        forged = rng.random() < 0.5
        self.what = self.dataset.forge(rng) if forged else self.dataset.damage(rng)
        changed = not forged and not self.dataset.restored
        return check_dataset(self.dataset.path, self.truth, rng, changed=changed)


def fuzz(folder: Path, scratch: Path, first_seed: int, last_seed: int) -> Counts:
    fuzzer, counts = Fuzzer(scratch), Counts()
    for seed in range(first_seed, last_seed):
        signal.alarm(HANG_S)
        (folder / "seed").write_text(str(seed))
        try:
            seen = fuzzer.run(seed)
        except Exception:
            counts.broken += 1
            keep(fuzzer.subject, folder / f"broken-{seed}")
            print(f"seed {seed}: {fuzzer.what}\n{traceback.format_exc()}", file=sys.stderr)
            if counts.broken == MAX_BROKEN:
                break
            continue
        counts.files += 1
        counts.datasets += seed % DATASET_EVERY == 0
        counts.refused += seen.refused
        counts.rows += seen.num_rows
        counts.version_2_rows += seen.num_rows * (seen.version == 2)
    signal.alarm(0)
    return counts


def keep(subject: Path, target: Path) -> None:
    if subject.is_dir():
        shutil.copytree(subject, target)
    else:
        shutil.copy(subject, target.with_suffix(subject.suffix))


def main(folder: Path, first_seed: int, last_seed: int) -> int:
    faulthandler.register(signal.SIGALRM, chain=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else folder
    with tempfile.TemporaryDirectory(dir=memory) as scratch:
        counts = fuzz(folder, Path(scratch), first_seed, last_seed)
    print(json.dumps(asdict(counts)))
    return 1 if counts.broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
