"""Stores and loaders among threads and processes: forks while threads run, many readers, many epochs."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import small_dataset
import torch
from some_rows import in_threads
from torch_geometric.loader import NodeLoader

from gnn_ibp.dataset import Dataset
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.fork_lock import ForkLock
from gnn_ibp.graph_store import GraphStore
from gnn_ibp.loader import Loader
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.tiers import subtract

HANG_S = 240
NUM_COLUMNS = 1024


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return small_dataset.make(tmp_path_factory.mktemp("data") / "small")


def fork(work: Callable[[], bool]) -> bool:
    """What `work` returns in a forked child; a failure where it does not end."""
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.001)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


@contextmanager
def running(work: Callable[[int], None], num_threads: int) -> Iterator[None]:
    """Threads that call `work`, each with its number, over and over."""
    stop = threading.Event()

    def repeat(number: int) -> None:
        while not stop.is_set():
            work(number)

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(num_threads)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def reads_right(store: FeatureStore, seed: int, num_ids: int = 200) -> bool:
    """Whether rows at random are exact: from the cache and the file (x), and from a file alone (year)."""
    ids = torch.randint(small_dataset.NUM_NODES, (num_ids,), generator=torch.Generator().manual_seed(seed))
    right = [np.array_equal(store.read("x", ids).numpy()[:, 0], ids.numpy())]
    right.append(np.array_equal(store.read("year", ids).numpy(), ids.numpy()))
    return all(right)


def test_a_lock_held_by_another_thread_is_free_in_the_child() -> None:
    lock, held, done = ForkLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    def take() -> bool:
        with lock, lock:
            return True

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert fork(take)
    with ForkLock() as _:
        assert fork(take)
    done.set()
    thread.join()
    assert take()


def test_a_forked_child_reads_through_the_caches_of_its_parent(dataset: Dataset) -> None:
    store = FeatureStore(dataset, cache_bytes="16KiB")
    before = store.stats()

    def child() -> bool:
        store[None, "x", torch.arange(small_dataset.NUM_NODES)]
        return subtract(store.stats(), before)["cache"]["hits"] == store.caches()["cache"].num_rows > 0

    assert fork(child)
    assert store.stats() == before, "a child counts for itself"


def test_children_forked_in_the_middle_of_reads_get_exact_rows(dataset: Dataset) -> None:
    store = FeatureStore(dataset, cache_bytes="16KiB")
    sampler = NeighborSampler(GraphStore(dataset), [4, 3], seed=1)
    seeds = torch.arange(20)
    expected = sampler.sample(seeds, batch=3)

    def work(number: int) -> None:
        assert reads_right(store, number, 2000)
        sampler.sample(seeds, batch=number)

    def child() -> bool:
        sample = sampler.sample(seeds, batch=3)
        return reads_right(store, 5) and torch.equal(sample.node_ids, expected.node_ids)

    with running(work, 4):
        assert all(fork(child) for _ in range(15))


WITHOUT_THREADS = """
import os, resource, numpy as np
from gnn_ibp import IBPCodec, ops

rows = np.random.default_rng(0).integers(0, 9, (20_000, 16), np.int32)
codec = IBPCodec.fit(rows[:100])
ops.set_num_threads(1)
packed = codec.encode(rows)
codec.decode(packed)
ops.set_num_threads(4)
num_threads = len(os.listdir("/proc/self/task"))
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (6 << 20), held + (6 << 20)))  # less than a thread's stack
assert (codec.decode(packed) == rows).all()
assert len(os.listdir("/proc/self/task")) == num_threads, "there was room for threads"
"""


def test_work_is_done_where_no_thread_can_be_started() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_THREADS], check=True)


@pytest.mark.parametrize("lock", ["_lock", "_readers._lock", "rows._lock"])
def test_no_lock_of_a_store_is_taken_in_a_child(dataset: Dataset, lock: str) -> None:
    """Whichever a thread of the parent holds."""
    store = FeatureStore(dataset, cache_bytes="16KiB")
    owner = store.rows("x") if lock == "rows._lock" else store._readers if "." in lock else store
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with owner._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    right = fork(lambda: reads_right(store, 1) and store[None, "group", torch.tensor([4])].tolist() == [1])
    done.set()
    thread.join()
    assert right


def test_workers_forked_while_our_loader_runs_give_exact_batches(dataset: Dataset) -> None:
    store = FeatureStore(dataset, cache_bytes="16KiB")
    graph = GraphStore(dataset)
    sampler = NeighborSampler(graph, [4, 3], seed=1)
    ours = Loader(store, sampler, dataset.split["train"], batch_size=4, prefetch=4, num_threads=3)
    forked = NodeLoader(
        (store, graph),
        node_sampler=sampler,
        input_nodes=dataset.split["val"],
        batch_size=50,
        num_workers=2,
        filter_per_worker=True,
        timeout=HANG_S,
        multiprocessing_context="fork",
    )
    for batch in ours:
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)
        for other in forked:
            assert torch.equal(other.x[:, 0].long(), other.n_id)
        break


@pytest.mark.parametrize(
    ("rounds", "num_ids"), [(20, 500), pytest.param(625, 5000, marks=[pytest.mark.slow])]
)
def test_sixteen_threads_get_exact_rows_from_one_store(dataset: Dataset, rounds: int, num_ids: int) -> None:
    """16 threads x rounds x ids x two features: 320,000 rows; 10^8 in the slow run."""
    store = FeatureStore(dataset, cache_bytes="16KiB")
    wrong: list[int] = []

    def work(number: int) -> None:
        for round in range(rounds):
            if not reads_right(store, number * rounds + round, num_ids):
                wrong.append(number)

    in_threads(work, 16)
    assert not wrong
    stats = store.stats()
    assert stats["cache"]["lookups"] == 16 * rounds * num_ids * 2
    assert stats["cache"]["hits"] > 0 and stats["disk"]["hits"] > 0


def private_bytes() -> int:
    """Memory of this process that is no file's; what was freed is given back first."""
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("Anonymous")))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def wide_dataset(path: Path) -> Dataset:
    """Rows of 4 KiB: a batch has a MiB, so that one that stays behind in each epoch shows."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1, (400, NUM_COLUMNS)).astype(np.float32)
    return Dataset.from_arrays(
        path, edge_index=rng.integers(0, 400, (2, 3000)), x=x, split={"train": np.arange(100)}
    )


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_memory_descriptors_and_threads_stay_flat_over_50_epochs(tmp_path: Path, num_workers: int) -> None:
    dataset = wide_dataset(tmp_path / "wide")
    store = FeatureStore(dataset, cache_bytes="256KiB")
    graph = GraphStore(dataset)
    sampler = NeighborSampler(graph, [4, 3], seed=1)
    ours = Loader(store, sampler, dataset.split["train"], batch_size=50, prefetch=2)
    pygs = NodeLoader(
        (store, graph),
        node_sampler=sampler,
        input_nodes=dataset.split["train"],
        batch_size=50,
        num_workers=num_workers,
        filter_per_worker=False,
    )
    early, late = [], []
    for epoch in range(1, 51):
        for number, batch in enumerate(ours):
            assert batch.x.shape[1] == NUM_COLUMNS
            if epoch % 5 == 4 and number == 1:
                break  # an epoch that is left early leaves nothing behind either
        sampler.set_epoch(epoch)
        for batch in pygs:
            assert batch.x.shape[1] == NUM_COLUMNS
        del batch
        if epoch in (10, 11, 12, 48, 49, 50):
            (early if epoch < 20 else late).append((private_bytes(), descriptors(), threads()))
    memory, files, running_threads = map(max, zip(*early, strict=True))
    assert max(used for used, _, _ in late) <= memory + (8 << 20)
    assert max(used for _, used, _ in late) <= files
    assert max(used for _, _, used in late) <= running_threads
