"""What the machine gives a run: a device, threads, and the versions of what computes."""

import os
import platform
from pathlib import Path

import torch

import gnn_ibp
from gnn_ibp import ops
from gnn_ibp.cuda import Cuda
from gnn_ibp.device import word
from gnn_ibp.stages import processors
from gnn_ibp.train.precision import has_instructions


def open_device(wanted: str) -> Cuda | None:
    """What --device names, as `gnn_ibp.device.word.open_device` opens it; says why "auto" takes the CPU."""
    cuda = word.open_device(wanted)
    if cuda is None and wanted == "auto":
        print(f"device: the CPU, because {Cuda.available()}")
    return cuda


def device_facts(cuda: Cuda | None) -> dict[str, str]:
    """Which device was taken, and its name, as they are stored with a run."""
    if cuda:
        return {"device": str(cuda.device), "device_name": cuda.name}
    return {"device": "cpu", "device_name": processor_name()}


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor as Linux names it; its architecture where that is not told."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def warn_without_bfloat16() -> None:
    """Says so where the processor has no instructions for bfloat16."""
    if not has_instructions():
        print(
            "warning: this processor has no instructions for bfloat16: --precision bfloat16 rounds numbers "
            "and is slower than float32 here",
            flush=True,
        )


def fix_threads(loader_threads: int | None) -> dict[str, int]:
    """Sets the threads of this process for good; returns their numbers as they are stored with a run.

    torch's own number, which OMP_NUM_THREADS sets, changes the order of its sums; ours does not.
    """
    threads = loader_threads or processors()
    ops.set_num_threads(threads)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(processors())
    return {"threads": threads, "torch_threads": torch.get_num_threads()}


def versions() -> dict[str, str]:
    """Versions of the program and of what its numbers depend on."""
    return {
        "version": gnn_ibp.__version__,
        "torch_version": str(torch.__version__),
        "python_version": platform.python_version(),
    }
