"""The CPU kernels on processors that this machine is not: built by their compiler, run by an emulator."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from row_cases import (
    RowCase,
    golden_cases,
    ibp2_golden_cases,
    ibp2_reference_cases,
    kernel_cases,
    reference_cases,
)

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "kernels"
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a whole build, then an emulator


@dataclass(frozen=True)
class Machine:
    """A processor: the compiler that builds for it, what runs the program, the SIMD levels it has."""

    name: str
    compiler: str
    emulator: tuple[str, ...]
    levels: str

    @property
    def missing(self) -> list[str]:
        return [tool for tool in (self.compiler, self.emulator[0]) if shutil.which(tool) is None]


X86, ARM = "x86_64-linux-gnu-g++", "aarch64-linux-gnu-g++"
MACHINES = [
    Machine("aarch64", ARM, ("qemu-aarch64",), "portable neon"),
    Machine("x86-64 without AVX, BMI", X86, ("qemu-x86_64", "-cpu", "Nehalem"), "portable"),
    Machine("x86-64 with BMI2, AVX2", X86, ("qemu-x86_64", "-cpu", "max"), "portable bmi2 avx2"),
]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds the checker and all CPU kernels by a compiler, once."""
    folder = tmp_path_factory.mktemp("machines")

    def built(compiler: str) -> Path:
        program = folder / compiler
        if not program.exists():
            sources = [HERE / "check_rows.cpp", *sorted((KERNELS / "cpu").glob("*.cpp"))]
            command = [compiler, *FLAGS, f"-I{KERNELS}", *sources, "-o", program]
            run = subprocess.run(command, capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
        return program

    return built


@pytest.fixture(scope="module")
def cases() -> list[RowCase]:
    version1 = [*golden_cases(), *reference_cases(rows_per_case=20), *kernel_cases(rows_per_case=5000)]
    return [*version1, *ibp2_golden_cases(), *ibp2_reference_cases(tables_per_length=8)]


@pytest.mark.parametrize("machine", MACHINES, ids=[machine.name for machine in MACHINES])
def test_rows_are_encoded_and_decoded_bit_for_bit(
    machine: Machine, build: Callable[[str], Path], cases: list[RowCase], tmp_path: Path
):
    run = check(machine, build, cases, tmp_path)
    assert run.returncode == 0, run.stderr
    num_rows = sum(len(case.rows) for case in cases)
    assert run.stdout == f"{len(cases)} cases, {num_rows} rows: {machine.levels}\n"


@pytest.mark.parametrize("machine", MACHINES, ids=[machine.name for machine in MACHINES])
def test_a_row_that_is_stored_otherwise_is_noticed(
    machine: Machine, build: Callable[[str], Path], tmp_path: Path
):
    for case in (next(golden_cases()), next(ibp2_golden_cases())):
        wrong = bytes([case.stored[0][0] ^ 1]) + case.stored[0][1:]
        run = check(machine, build, [replace(case, stored=[wrong, *case.stored[1:]])], tmp_path)
        assert (run.returncode, run.stderr) == (1, "encoded row 0 is wrong\n")


@pytest.mark.parametrize("machine", MACHINES, ids=[machine.name for machine in MACHINES])
def test_a_good_row_that_is_called_damaged_is_noticed(
    machine: Machine, build: Callable[[str], Path], tmp_path: Path
):
    case = next(ibp2_golden_cases())
    run = check(machine, build, [replace(case, damaged=case.stored[:1])], tmp_path)
    assert (run.returncode, run.stderr) == (1, "damaged row 0 is taken for a good one\n")


def check(
    machine: Machine, build: Callable[[str], Path], cases: list[RowCase], folder: Path
) -> "subprocess.CompletedProcess[str]":
    """Runs the checker on a machine; skips the test where its tools are missing."""
    if machine.missing:
        pytest.skip(f"{machine.name} was not tested: {' and '.join(machine.missing)} are not installed")
    file = folder / "cases"
    file.write_bytes(b"".join(case.tobytes() for case in cases))
    return subprocess.run([*machine.emulator, build(machine.compiler), file], capture_output=True, text=True)
