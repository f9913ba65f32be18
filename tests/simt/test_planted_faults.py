"""The harness finds faults that were planted for it, each by the check named beside it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from host_build import SANITIZERS
from host_module import HostModule
from kernel_launch import LaunchError, Options, Readable, Undefined
from numpy.typing import NDArray
from sanitized_module import SanitizedModule

SOURCE = Path(__file__).parent / "kernels" / "faults.cu"
THREADS, BLOCKS, INPUT_BYTES = 64, 2, 2048
CORRECT = ("ok_exchange", "ok_shuffle_after_exit", "ok_guarded_read", "ok_ring", "ok_atomic")
COUNTS_UP = ("ok_atomic", "lost_update", "shared_left_by_last_block")  # their output starts as zeros
RANDOM = [Options(order="random", seed=seed) for seed in range(8)]

MEETINGS = {
    "divergent_shuffle": r"divergent collective: thread 0 at __shfl_down_sync.*thread 1 at __shfl_up_sync",
    "shuffle_in_branch": r"deadlock.*\n  threads 0-0 at __syncthreads",
    "shuffle_from_exited": r"thread 2 reads lane 0, which is not taking part \(.*it is exited\)",
    "shuffle_outside_mask": r"thread 0 reads lane 1, which is not taking part",
    "not_in_own_mask": r"the calling lane 16 is not in its own mask 0000ffff",
    "shuffle_width_12": r"shuffle width 12 is not a power of two",
    "masks_disagree": r"deadlock.*\n.*\n  threads 1-1 at __ballot_sync\(mask ffffffff\)",
    "barrier_in_branch": r"divergent barrier",
    "barrier_missed": r"deadlock",
    "copy_misaligned": r"cp.async: .* is not aligned to 16 bytes",
}
ADDRESS = {
    "global_out_of_bounds": r"(?s)block 0 thread 63:.*heap-buffer-overflow.*faults.cu:\d+",
    "shared_out_of_bounds": "use-after-poison",
    "misaligned_store": "misaligned address",
    "shift_by_32": "shift exponent 32 is too large",
    "signed_overflow": "signed integer overflow",
    "read_beside_row": "use-after-poison",
    "copy_beside_row": "cp.async reads 16 bytes out of bounds",
    "copy_out_of_bounds": "cp.async reads 16 bytes out of bounds",
    "copy_not_waited": "use-after-poison",
    "copy_waited_one_short": "use-after-poison",
    "copy_not_committed": "use-after-poison",
    "copy_into_what_is_read": "use-after-poison",
    "copy_twice_into_one_place": "where a copy is under way",
}
SCHEDULES = (
    "missing_syncthreads",
    "missing_syncwarp",
    "copy_seen_by_neighbour",
    "copy_into_what_is_read",
    "blocks_race",
)
FILLS = ("shared_not_written", "shared_left_by_last_block", "output_hole")
EAGER_COPIES = ("copy_not_waited", "copy_waited_one_short", "copy_not_committed")
RACES = (
    "missing_syncthreads",
    "missing_syncwarp",
    "shuffle_is_no_fence",
    "copy_seen_by_neighbour",
    "copy_into_what_is_read",
    "blocks_race",
    "lost_update",
)
UNDEFINED = ("shared_not_written", "output_hole", "local_not_written", "copy_not_waited")


@cache
def _module(sanitizer: str | None) -> HostModule | SanitizedModule:
    return HostModule(SOURCE) if sanitizer is None else SanitizedModule(SOURCE, sanitizer)


def _run(kernel: str, options: Options = Options(), sanitizer: str | None = None) -> NDArray[np.uint32]:  # noqa: B008
    """What the kernel leaves in `out`, which holds options.fill before."""
    fill = 0 if kernel in COUNTS_UP else options.fill
    out = np.full(THREADS, fill * 0x01010101, np.uint32)
    arguments: list[object] = [out if kernel in COUNTS_UP else Undefined(out)]
    if kernel.startswith("copy_") or kernel in ("ok_guarded_read", "ok_ring", "read_beside_row"):
        data = np.arange(INPUT_BYTES // 4, dtype=np.uint32)
        guarded = kernel in ("ok_guarded_read", "read_beside_row", "copy_beside_row")
        arguments.insert(0, Readable(data, [(512, 1024)]) if guarded else data)
    blocks = BLOCKS if kernel in ("blocks_race", "shared_left_by_last_block") else 1
    _module(sanitizer).launch(kernel, blocks, THREADS, arguments, options)
    return out


def _needs(sanitizer: str) -> None:
    missing = SANITIZERS[sanitizer].missing
    if missing:
        pytest.skip(missing)


@pytest.mark.parametrize(("kernel", "message"), MEETINGS.items(), ids=MEETINGS.keys())
def test_meeting_fault_is_named_with_thread_and_line(kernel: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        _run(kernel)
    assert str(caught.value).startswith("block 0 thread ") and "faults.cu:" in str(caught.value)


@pytest.mark.parametrize(("kernel", "message"), ADDRESS.items(), ids=ADDRESS.keys())
def test_address_sanitizer_finds(kernel: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        _run(kernel, RANDOM[0], sanitizer="address")


@pytest.mark.parametrize("kernel", SCHEDULES)
def test_schedules_disagree_on(kernel: str) -> None:
    forward = _run(kernel)
    assert any(
        not np.array_equal(_run(kernel, other), forward) for other in [Options(order="reverse"), *RANDOM]
    )


@pytest.mark.parametrize("kernel", FILLS)
def test_fills_of_fresh_memory_disagree_on(kernel: str) -> None:
    assert not np.array_equal(_run(kernel), _run(kernel, Options(fill=0x5A)))


@pytest.mark.parametrize("kernel", EAGER_COPIES)
def test_eager_and_late_copies_disagree_on(kernel: str) -> None:
    assert not np.array_equal(_run(kernel), _run(kernel, Options(eager_copies=True)))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", RACES)
def test_thread_sanitizer_finds(kernel: str) -> None:
    with pytest.raises(LaunchError, match="ThreadSanitizer: data race"):
        _run(kernel, Options(order="random"), sanitizer="thread")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", UNDEFINED)
def test_memory_sanitizer_finds(kernel: str) -> None:
    _needs("memory")
    with pytest.raises(LaunchError, match=r"undefined bits|use-of-uninitialized-value"):
        _run(kernel, sanitizer="memory")


def _same_always(kernel: str, run: Callable[[Options], NDArray[np.uint32]], options: list[Options]) -> None:
    written = 16 if kernel == "ok_shuffle_after_exit" else THREADS
    expected = _run(kernel)[:written]
    for other in options:
        assert np.array_equal(run(other)[:written], expected), other


@pytest.mark.parametrize("kernel", CORRECT)
def test_correct_twin_passes_every_schedule_fill_and_address_sanitizer(kernel: str) -> None:
    changed = [Options(order="reverse"), Options(fill=0x5A), Options(eager_copies=True)]
    _same_always(kernel, lambda options: _run(kernel, options), [*changed, *RANDOM])
    _same_always(kernel, lambda options: _run(kernel, options, "address"), [Options(), RANDOM[0]])


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["thread", "memory"])
@pytest.mark.parametrize("kernel", CORRECT)
def test_correct_twin_passes_sanitizer(kernel: str, sanitizer: str) -> None:
    _needs(sanitizer)
    if sanitizer == "memory" and kernel == "ok_shuffle_after_exit":
        pytest.skip("leaves half of its output undefined")
    _same_always(kernel, lambda options: _run(kernel, options, sanitizer), [Options(order="random")])


def test_every_planted_fault_is_looked_for() -> None:
    found = {*MEETINGS, *ADDRESS, *SCHEDULES, *FILLS, *EAGER_COPIES, *RACES, *UNDEFINED}
    assert found | set(CORRECT) == set(_module(None).kernels)
