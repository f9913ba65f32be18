"""Minibatches come in order, exact, and the same however they are prepared."""

import gc
import sys
import threading
import time

import numpy as np
import pytest
import small_dataset
import torch
from torch_geometric.loader import NodeLoader
from watched_cuda import WatchedCuda

from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.graph_store import GraphStore
from gnn_ibp.loader import Loader
from gnn_ibp.samplers import NeighborSampler


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return small_dataset.make(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture(scope="module", params=["cpu", "device"])
def store(dataset, request):
    if request.param == "cpu":
        return FeatureStore(dataset, cache_bytes="16KiB")
    return FeatureStore(dataset, WatchedCuda(), cache_bytes="16KiB", host_bytes="8KiB")


@pytest.fixture(scope="module")
def sampler(dataset):
    return NeighborSampler(GraphStore(dataset), [4, 3], seed=1)


def make(store, sampler, **settings):
    settings = {"batch_size": 64, "shuffle": True, **settings}
    return Loader(store, sampler, store.dataset.split["train"], **settings)


def contents(batch):
    return (batch.x, batch.y, batch.n_id, batch.e_id, batch.sample.indptr, batch.sample.indices)


def same(a, b):
    return all(torch.equal(one, other) for one, other in zip(contents(a), contents(b), strict=True))


@pytest.mark.parametrize(("prefetch", "num_threads"), [(1, 1), (2, 2), (5, 3), (50, 8)])
def test_batches_do_not_depend_on_prefetch_and_threads(store, sampler, prefetch, num_threads):
    plain = make(store, sampler, prefetch=0)
    ahead = make(store, sampler, prefetch=prefetch, num_threads=num_threads)
    for _ in range(2):
        batches = list(zip(plain, ahead, strict=True))
        assert len(batches) == len(plain) == 5
        assert all(same(a, b) for a, b in batches)


def test_rows_belong_to_their_nodes_also_in_kept_batches(store, sampler, dataset):
    batches = list(make(store, sampler))
    for batch in batches:
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)
        assert torch.equal(batch.y, dataset.y[batch.n_id[: batch.batch_size]])


def test_memory_of_batches_is_reused(dataset, sampler):
    loader = make(FeatureStore(dataset), sampler, prefetch=1, num_threads=1)
    places = set()
    for _ in range(4):
        for batch in loader:
            places.add(batch.x.untyped_storage().data_ptr())
            del batch
    gc.collect()
    assert len(places) <= 5


def test_every_seed_comes_once_an_epoch(store, sampler, dataset):
    loader = make(store, sampler)
    for _ in range(2):
        seeds = torch.cat([batch.n_id[: batch.batch_size] for batch in loader])
        assert torch.equal(seeds.sort().values, dataset.split["train"])


def test_epochs_differ_and_can_be_repeated(store, sampler):
    loader = make(store, sampler)
    first, second = list(loader), list(loader)
    assert not same(first[0], second[0])
    loader.set_epoch(1)
    assert all(same(a, b) for a, b in zip(loader, first, strict=True))
    assert all(same(a, b) for a, b in zip(loader, second, strict=True))


def test_order_is_kept_without_shuffle(store, sampler, dataset):
    loader = make(store, sampler, shuffle=False, drop_last=True)
    seeds = [batch.n_id[: batch.batch_size] for batch in loader]
    assert len(loader) == len(seeds) == 4
    assert torch.equal(torch.cat(seeds), dataset.split["train"][:256])


def test_read_only_seeds_are_taken_without_a_warning(store, sampler, recwarn):
    seeds = np.arange(10)
    seeds.flags.writeable = False
    torch.set_warn_always(True)  # not once in the process
    try:
        (batch,) = Loader(store, sampler, seeds, batch_size=10)
    finally:
        torch.set_warn_always(False)
    assert batch.n_id[:10].tolist() == seeds.tolist()
    assert not recwarn.list


def test_max_batches_ends_the_epoch_and_nothing_more_is_read(dataset, sampler):
    store = FeatureStore(dataset, cache_bytes=0)
    batches = list(make(store, sampler, max_batches=2, prefetch=4))
    assert len(batches) == 2
    assert store.stats()["disk"]["lookups"] == sum(len(batch.n_id) for batch in batches)
    assert all(same(a, b) for a, b in zip(batches, make(store, sampler), strict=False))


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("first", [0, 1, 4, 5])
def test_a_pass_begins_anywhere_and_nothing_is_done_for_what_comes_before(
    dataset, sampler, prefetch, first, monkeypatch
):
    store, numbers = FeatureStore(dataset, cache_bytes=0), []
    loader, whole = make(store, sampler, prefetch=prefetch), list(make(store, sampler).batches(3))
    sample = sampler.sample
    monkeypatch.setattr(sampler, "sample", lambda *args, **at: numbers.append(at) or sample(*args, **at))
    batches = list(loader.batches(3, first))
    assert len(batches) == len(whole) - first
    assert all(same(a, b) for a, b in zip(batches, whole[first:], strict=True))
    assert sorted(at["batch"] for at in numbers) == list(range(first, 5))
    assert {at["epoch"] for at in numbers} <= {3}


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_a_pass_ends_where_no_more_is_wanted_and_nothing_is_read_in_vain(dataset, sampler, prefetch):
    store = FeatureStore(dataset, cache_bytes=0)
    loader = make(store, sampler, prefetch=prefetch)
    batches = list(loader.batches(1, 1, lambda number: number < 3))
    assert len(batches) == 2
    assert store.stats()["disk"]["lookups"] == sum(len(batch.n_id) for batch in batches)
    assert len(list(loader.batches(1, 2, lambda number: False))) == 1  # it always comes on
    assert not list(loader.batches(1, 5, lambda number: False))


def test_seed_changes_the_order(store, sampler):
    a, b = make(store, sampler, seed=0), make(store, sampler, seed=1)
    assert not torch.equal(next(iter(a)).n_id[:64], next(iter(b)).n_id[:64])


def test_leaving_early_leaves_no_threads(store, sampler):
    before = threading.active_count()
    for _ in make(store, sampler, prefetch=3):
        break
    gc.collect()
    assert threading.active_count() == before


class Failing:
    def __init__(self, sampler):
        self.sampler = sampler

    def sample(self, seeds, *, epoch=0, batch=0):
        if batch == 2:
            raise OSError("the disk is gone")
        return self.sampler.sample(seeds, epoch=epoch, batch=batch)


@pytest.mark.parametrize("prefetch", [0, 3])
def test_error_reaches_the_consumer_after_the_good_batches(store, sampler, prefetch):
    iterator = iter(make(store, Failing(sampler), prefetch=prefetch))
    next(iterator), next(iterator)
    with pytest.raises(OSError, match="the disk is gone"):
        next(iterator)


def test_seconds_are_told_per_epoch(store, sampler):
    loader = make(store, sampler)
    for _ in loader:
        pass
    assert all(0 < seconds < 300 for seconds in loader.seconds.values())
    assert set(loader.seconds) == {"sample", "fetch", "wait"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"prefetch": -1}, "prefetch is -1"),
        ({"num_threads": 0}, "num_threads is 0"),
        ({"max_batches": 0}, "max_batches is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
    ],
)
def test_settings_out_of_range_are_refused(store, sampler, settings, words):
    with pytest.raises(ValueError, match=words):
        make(store, sampler, **settings)


@pytest.mark.parametrize("name", ["batch_size", "prefetch", "num_threads", "max_batches", "seed"])
def test_settings_that_are_no_ints_are_refused(store, sampler, name):
    with pytest.raises(TypeError, match=rf"{name} is 1\.5, an int is wanted"):
        make(store, sampler, **{name: 1.5})
    make(store, sampler, **{name: np.int64(1)})


@pytest.mark.parametrize("shuffle", [False, True])
def test_epochs_that_cannot_be_are_refused(store, sampler, shuffle):
    loader = make(store, sampler, shuffle=shuffle)
    with pytest.raises(ValueError, match="epoch is -1"):
        loader.set_epoch(-1)
    with pytest.raises(ValueError, match="epoch is -1"):
        loader.batches(-1)
    assert len(list(loader)) == len(loader)


def loader_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("gnn_ibp.Loader")]


def test_a_pass_may_be_collected_by_one_of_its_threads(store, dataset, monkeypatch):
    """As garbage: the thread cannot wait for itself."""
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    inside, forgotten = threading.Event(), threading.Event()

    class Collecting:
        def sample(self, seeds, *, epoch=0, batch=0):
            if batch > 1:
                inside.set()
                forgotten.wait(30)
                gc.collect()
            return NeighborSampler(dataset, [2]).sample(seeds, epoch=epoch, batch=batch)

    def leave():
        batches = iter(make(store, Collecting(), batch_size=16, prefetch=4, num_threads=2))
        next(batches)
        inside.wait(30)
        circle = [batches]
        circle.append(circle)

    gc.disable()
    try:
        leave()
    finally:
        gc.enable()
    forgotten.set()
    deadline = time.monotonic() + 30
    while loader_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not loader_threads()
    assert not ignored


def test_seeds_that_are_no_nodes_are_refused(store, sampler):
    with pytest.raises(IndexError, match=r"ids\[1\] is 500"):
        Loader(store, sampler, torch.tensor([0, 500]), batch_size=4)


def test_to_data_is_what_pyg_s_loader_gives(store, sampler, dataset):
    graph = GraphStore(dataset)
    ours = next(iter(make(store, sampler, shuffle=False))).to_data()
    loader = NodeLoader(
        (store, graph),
        node_sampler=sampler,
        input_nodes=dataset.split["train"],
        batch_size=64,
        filter_per_worker=False,
    )
    theirs = next(iter(loader))
    for name in ("batch_size", "num_sampled_nodes", "num_sampled_edges"):
        assert type(ours[name]) is type(theirs[name])
    assert torch.equal(ours.x[:, 0].long(), ours.n_id)
    assert torch.equal(ours.y[: ours.batch_size], theirs.y[: theirs.batch_size])
    for data in (ours, theirs):  # every edge is one of the graph's
        source, target = data.n_id[data.edge_index]
        assert source.tolist() == dataset.graph.indices[data.e_id.numpy()].tolist()
        indptr = torch.from_numpy(dataset.graph.indptr)
        assert torch.all((indptr[target] <= data.e_id) & (data.e_id < indptr[target + 1]))
    assert ours.validate()
