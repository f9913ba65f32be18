"""What the tests on a GPU share. Without a usable one they are skipped, and the reason is shown.

GNN_IBP_GPU=simt runs them on the CPU harness instead, with fewer rows: the tests themselves are tested so.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gnn_ibp.cuda import Cuda

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("gpu")


@pytest.fixture(scope="session")
def simulated() -> bool:
    """Whether the CPU harness stands in for the GPU."""
    return os.environ.get("GNN_IBP_GPU") == "simt"


@pytest.fixture(scope="session")
def opened(simulated: bool) -> Any:
    """The device, opened once."""
    if simulated:
        from simt_cuda import SimtCuda

        return SimtCuda()
    problem = Cuda.available()
    if problem:
        pytest.skip(f"needs a GPU: {problem}")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before cuBLAS is used: for equal sums
    torch.set_float32_matmul_precision("highest")  # some containers ask for less
    return Cuda.open()


@pytest.fixture
def cuda(opened: Any, simulated: bool) -> Iterator[Any]:
    """The device. What a test leaves running on it, or broken, is found before the next test begins."""
    yield opened
    if not simulated:
        torch.cuda.synchronize(opened.device)


@pytest.fixture
def big(cuda: Any, simulated: bool) -> Any:
    """The device, for tests of sizes that the harness does not reach."""
    if simulated:
        pytest.skip("needs the memory of a GPU")
    return cuda
