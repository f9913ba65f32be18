"""How many threads a kernel call may use."""

from gnn_ibp import _kernels


def set_num_threads(num_threads: int) -> None:
    """Threads that one kernel call may use, the caller included."""
    if num_threads < 1:
        raise ValueError(f"num_threads is {num_threads}, it must be at least 1")
    _kernels.set_num_threads(num_threads)


def num_threads() -> int:
    """Threads that one kernel call may use; by default the processors this process may run on."""
    return _kernels.num_threads()
