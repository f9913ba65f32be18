"""What the machine gives a run: threads, and the versions of what computes."""

import os
import platform

import torch

import gnn_ibp
from gnn_ibp import ops


def processors() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fix_threads(loader_threads: int | None) -> dict[str, int]:
    """Sets the threads of this process for good; returns their numbers as they are stored with a run.

    torch's own number changes the order of its sums, ours does not.
    """
    threads = loader_threads or processors()
    ops.set_num_threads(threads)
    torch.set_num_threads(processors())
    return {"threads": threads, "torch_threads": torch.get_num_threads()}


def versions() -> dict[str, str]:
    """Versions of the program and of what its numbers depend on."""
    return {
        "version": gnn_ibp.__version__,
        "torch_version": str(torch.__version__),
        "python_version": platform.python_version(),
    }
