"""The AVX-512 level bit for bit where no processor has it: its very lines, over instructions in plain C++."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from row_cases import golden_cases, ibp2_golden_cases, ibp2_reference_cases, reference_cases

from gnn_ibp import ops

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "kernels"
SOURCES = ["encode_rows.cpp", "gather_decode.cpp", "simd_level.cpp", "thread_pool.cpp"]


@pytest.mark.slow
def test_rows_are_encoded_and_decoded_bit_for_bit(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None or "avx2" not in ops.simd_levels():
        pytest.skip("the AVX-512 level was not tested: a C++ compiler and a processor with AVX2 are needed")
    program, file = tmp_path / "check_rows", tmp_path / "cases"
    names = [*SOURCES, *sorted(path.name for path in (KERNELS / "cpu").glob("ibp*.cpp"))]
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-DGNN_IBP_EMULATED_AVX512"]
    command = [compiler, *flags, f"-I{KERNELS}", f"-I{HERE}", HERE / "check_rows.cpp"]
    command += [KERNELS / "cpu" / name for name in names]
    built = subprocess.run([*command, "-o", program], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    version2 = [*ibp2_golden_cases(), *ibp2_reference_cases(tables_per_length=8)]
    cases = [*golden_cases(), *reference_cases(rows_per_case=20), *version2]
    file.write_bytes(b"".join(case.tobytes() for case in cases))
    environment = os.environ | {"GNN_IBP_SIMD": "avx512"}
    run = subprocess.run([program, file], capture_output=True, text=True, env=environment)
    assert run.stdout.startswith(f"{len(cases)} cases"), run.stderr
