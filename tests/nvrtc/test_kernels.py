"""Every CUDA kernel compiles for every architecture, without warnings or spills, and takes what it took."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nvrtc
import pytest
from resource_table import RESOURCES, read_table, table_of

SPILLING = """
extern "C" __global__ void __launch_bounds__(1024) spilling(const unsigned* from, unsigned* to, int step) {
  __shared__ unsigned sums[256];
  unsigned values[100], sum = 0;
#pragma unroll
  for (int i = 0; i < 100; ++i) values[i] = from[i * step + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 100; ++i) sum = sum * values[i] ^ values[99 - i];
  sums[threadIdx.x & 255] = sum;
  __syncthreads();
  to[threadIdx.x] = sums[threadIdx.x * 7 & 255];
}
"""


def cases() -> Iterator[Any]:
    """Module and architecture; those of row format version 2, which take 7 s each, for most by `slow`."""
    for module in nvrtc.modules():
        for architecture in nvrtc.ARCHITECTURES:
            is_slow = "ibp2" in module and architecture != "sm_90"
            yield pytest.param(module, architecture, marks=[pytest.mark.slow] if is_slow else [])


CASES = list(cases())


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    try:
        nvrtc.version()
    except nvrtc.NvrtcMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def compiled(library: None, request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, str], Future]]:
    """The cases that are tested, compiled side by side."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    wanted = {(some["module"], some["architecture"]) for some in parameters if "architecture" in some}
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        yield {case: threads.submit(nvrtc.compile_module, *case) for case in sorted(wanted)}


@pytest.mark.parametrize("module, architecture", CASES)
def test_kernels_compile_without_warnings_and_spills(compiled, module: str, architecture: str):
    result = compiled[module, architecture].result()
    assert result.warnings == []
    assert result.resources
    for kernel, resources in result.resources.items():
        assert (kernel, resources.spill_bytes, resources.stack_bytes) == (kernel, 0, 0)


@pytest.mark.parametrize("module, architecture", CASES)
def test_kernels_take_what_the_committed_table_says(compiled, module: str, architecture: str):
    committed = read_table()
    if committed["nvrtc"] != nvrtc.version():  # the number of registers is the compiler's choice
        pytest.skip(f"{RESOURCES.name} is of NVRTC {committed['nvrtc']}, this one is {nvrtc.version()}")
    found = table_of({(module, architecture): compiled[module, architecture].result()})[module]
    wanted = {kernel: {architecture: row[architecture]} for kernel, row in committed[module].items()}
    assert found == wanted, "look at the difference; if it is wanted: make gpu-resources"


def test_table_is_of_all_kernel_files():
    assert read_table().keys() == {"nvrtc", *nvrtc.modules()}


def test_a_spilling_kernel_is_seen():
    (resources,) = nvrtc.compile_source(SPILLING, "sm_90").resources.values()
    assert resources.spill_bytes > 0
    assert resources.registers == 64
    assert resources.shared_bytes == 1024


def test_a_warning_is_seen():
    source = 'extern "C" __global__ void idle(int* to) { int unused; *to = 1; }'
    warnings = nvrtc.compile_source(source, "sm_90").warnings
    assert '"unused" was declared but never referenced' in warnings[0]


def test_a_faulty_kernel_is_refused_with_the_compilers_log():
    with pytest.raises(nvrtc.CompileError, match='identifier "missing" is undefined'):
        nvrtc.compile_source('extern "C" __global__ void faulty(int* to) { *to = missing; }', "sm_90")


def test_a_changed_header_is_compiled_again(tmp_path: Path):
    source = '#include "value.h"\nextern "C" __global__ void store(int* to) { *to = VALUE; }'
    (tmp_path / "value.h").write_text("#define VALUE 1\n")
    nvrtc.compile_source(source, "sm_90", tmp_path)
    (tmp_path / "value.h").write_text("#define VALUE missing\n")
    with pytest.raises(nvrtc.CompileError):
        nvrtc.compile_source(source, "sm_90", tmp_path)


def test_table_is_written_as_it_is_read():
    assert RESOURCES.read_text() == json.dumps(read_table(), indent=1) + "\n"
