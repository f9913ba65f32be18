"""Trains in a process that cannot take much more memory than its budget: BUDGET TRAIN-ARGS...

BUDGET is a size, or `smallest`: that which the errors name, until there is none. The first line printed names
the memory cgroup in which the process is limited, for the caller to remove, or RLIMIT_DATA where none can be
made below the process's own. That one counts memory which nobody touches, too: what the program has of it
when it begins, and the stacks of threads to come. The last line is the budget that sufficed.
"""

import os
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from memory_group import MemoryGroup

from gnn_ibp.budget import parse_bytes, used_memory
from gnn_ibp.errors import SettingsError
from gnn_ibp.train.config import config_from_args
from gnn_ibp.train.run import train

SLACK_BYTES = 24 << 20
"""What the system needs for the process's own memory, and for files in use."""

STACKS_BYTES = 48 << 20
"""Of threads that are to come, where a stack is 1 MiB."""

Limit = Callable[[int], None]
"""Limits what the process has from now on, to a memory budget."""


def by_cgroup() -> Limit | None:
    """Moves this process to a cgroup of its own, which counts what is taken from now on."""
    held = used_memory()
    group = MemoryGroup.make(f"gnn-ibp-test-{os.getpid()}")
    if group is None:
        return None
    try:
        group.enter()
    except OSError:
        group.remove()
        return None
    print(group.folder, flush=True)
    return lambda budget: group.limit(budget - held + SLACK_BYTES)


def by_data() -> Limit:
    beside = data_bytes() - used_memory() + STACKS_BYTES + SLACK_BYTES
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    print("RLIMIT_DATA", flush=True)
    return lambda budget: resource.setrlimit(resource.RLIMIT_DATA, (budget + beside, most))


def data_bytes() -> int:
    """What RLIMIT_DATA limits."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024


def run_in_smallest(limit: Limit, args: list[str]) -> int:
    budget = used_memory()  # the first error is about the conversion, the next one about training
    for _ in range(3):
        try:
            train(config_from_args([*args, "--memory-budget", str(budget)]))
        except SettingsError as error:
            (named,) = re.findall(r"needs (\d+MiB)", str(error))
            budget = parse_bytes(named)
            limit(budget)
        else:
            return budget
    raise AssertionError("the smallest budget is named again and again")


if __name__ == "__main__":
    limit, (size, *args) = by_cgroup() or by_data(), sys.argv[1:]
    if size == "smallest":
        print(run_in_smallest(limit, args))
    else:
        limit(parse_bytes(size))
        train(config_from_args([*args, "--memory-budget", size]))
        print(parse_bytes(size))
