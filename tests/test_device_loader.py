"""Minibatches of a store on a device: made on side streams, handed over by events, the same as on the CPU."""

import gc
import multiprocessing
import threading

import numpy as np
import pytest
import small_dataset
import torch
from lazy_cuda import LazyCuda
from watched_cuda import WatchedCuda, address

from gnn_ibp.device import staged_rows
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.loader import Loader
from gnn_ibp.minibatch import MiniBatch
from gnn_ibp.samplers import NeighborSampler


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return small_dataset.make(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture
def cuda():
    return WatchedCuda()


@pytest.fixture
def store(dataset, cuda):
    return FeatureStore(dataset, cuda, cache_bytes="12KiB", host_bytes="8KiB")


def make(store, **settings):
    sampler = settings.pop("sampler", NeighborSampler(store.dataset, [4, 3], seed=1))
    settings = {"batch_size": 64, "shuffle": True, **settings}
    return Loader(store, sampler, store.dataset.split["train"], **settings)


def same(a, b):
    assert len(a.tensors) == len(b.tensors) == 6
    return all(torch.equal(one, other) for one, other in zip(a.tensors, b.tensors, strict=True))


@pytest.fixture(scope="module")
def expected(dataset):
    """Two epochs of the store on the CPU."""
    loader = make(FeatureStore(dataset))
    return [list(loader), list(loader)]


@pytest.mark.parametrize("tiers", [(0, 0), ("12KiB", "8KiB"), (0, "1MiB")])
@pytest.mark.parametrize(("prefetch", "num_threads"), [(0, None), (1, 1), (4, 3)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_batches_are_those_of_the_cpu(dataset, cuda, expected, tiers, prefetch, num_threads):
    loader = make(FeatureStore(dataset, cuda, *tiers), prefetch=prefetch, num_threads=num_threads)
    for epoch in expected:
        assert all(same(got, want) for got, want in zip(loader, epoch, strict=True))


@pytest.mark.parametrize(("prefetch", "num_threads"), [(1, 1), (2, 2), (5, 3)])
def test_the_thread_that_trains_waits_for_no_event(store, cuda, prefetch, num_threads):
    cuda.waited.clear()  # filling the caches waited
    num_batches = len(list(make(store, prefetch=prefetch, num_threads=num_threads)))
    assert cuda.waits[threading.get_ident()] == 0
    assert cuda.waits.total() >= num_batches  # for counts, on the threads that prepare


@pytest.mark.parametrize("own_stream", [False, True])
def test_batch_is_made_on_a_side_stream_and_handed_over_by_its_event(store, cuda, own_stream):
    consumer = cuda.stream() if own_stream else None
    batches = iter(make(store, prefetch=3, num_threads=2))
    for _ in range(5):
        cuda.joined.clear(), cuda.shared.clear()
        if consumer:
            with consumer:
                batch = next(batches)
        else:
            batch = next(batches)
        ((stream, event),) = cuda.joined
        assert stream is consumer
        assert event.stream not in (consumer, None)
        assert {cuda.made_on[address(tensor)] for tensor in batch.tensors} == {event.stream}
        assert {(address(tensor), consumer) for tensor in batch.tensors} <= set(cuda.shared)
        assert event.number > max(cuda.made_at[address(tensor)] for tensor in batch.tensors)


def test_streams_are_kept_from_epoch_to_epoch(store, cuda):
    loader = make(store, prefetch=4, num_threads=2)
    for _ in range(4):
        for _ in loader:
            pass
    streams = {event.stream for _, event in cuda.joined}
    assert 1 <= len(streams) <= 2


def test_without_prefetch_all_is_done_on_the_caller_s_thread_and_stream(store, cuda):
    threads = threading.active_count()
    with cuda.stream() as stream:
        for batch in make(store, prefetch=0):
            assert {cuda.made_on[address(tensor)] for tensor in batch.tensors} == {stream}
            assert threading.active_count() == threads
        assert {on for _, on in cuda.shared} <= {stream}
    assert not cuda.joined


def test_leaving_early_leaves_no_thread_and_no_work_on_the_device(store, cuda):
    before, streams = threading.active_count(), set()
    for _ in make(store, prefetch=3, num_threads=2):
        streams = {cuda.made_on[place] for place in cuda.made_on} - {None}
        break
    gc.collect()
    assert threading.active_count() == before
    waited = [event.stream for event in cuda.waited if event.waited_by == threading.get_ident()]
    assert streams and streams <= set(waited)


def test_memory_stays_flat_over_many_epochs(store, cuda):
    loader = make(store, prefetch=3, num_threads=2, batch_size=100)
    free = []
    for _ in range(50):
        for batch in loader:
            smallest = batch.x.nbytes
            del batch
        free.append(cuda.free_bytes() + cuda.free_pinned_bytes())
    assert (
        free[4] - free[-1] < smallest / 2
    )  # what reads keep grows with the largest minibatch, and ends there


def test_to_data_and_layers_read_no_value_of_the_device(store, expected):
    batch = next(iter(make(store)))
    without_values = MiniBatch(batch.x.to("meta"), batch.labels.to("meta"), batch.sample.apply(to_meta))
    data, want = without_values.to_data(), expected[0][0].to_data()
    for name in ("x", "y", "n_id", "e_id", "edge_index"):
        assert data[name].device.type == "meta"
        assert data[name].shape == want[name].shape
        assert torch.equal(batch.to_data()[name], want[name])
    assert without_values.y.shape == (batch.batch_size,)
    assert [layer.indices.shape for layer in without_values.layers] == [
        layer.indices.shape for layer in expected[0][0].layers
    ]


def to_meta(tensor):
    return tensor.to("meta")


class Wrong:
    """Draws a node that is none in the third minibatch."""

    def __init__(self, sampler):
        self.sampler = sampler

    def sample(self, seeds, *, epoch=0, batch=0):
        sample = self.sampler.sample(seeds, epoch=epoch, batch=batch)
        if batch == 2:
            sample.node_ids[-1] = small_dataset.NUM_NODES
        return sample


@pytest.mark.parametrize("prefetch", [0, 3])
def test_bad_id_is_an_index_error_after_the_good_batches(store, cuda, expected, prefetch):
    loader = make(store, prefetch=prefetch, sampler=Wrong(NeighborSampler(store.dataset, [4, 3], seed=1)))
    batches = iter(loader)
    assert same(next(batches), expected[0][0]) and same(next(batches), expected[0][1])
    with pytest.raises(IndexError, match=r"is 500, the valid range is 0 to 499"):
        next(batches)
    assert next(batches, None) is None
    assert all(same(a, b) for a, b in zip(make(store), expected[0], strict=True))


@pytest.mark.parametrize("prefetch", [0, 3])
def test_damaged_file_is_told_by_the_thread_that_met_it(tmp_path, cuda, prefetch):
    dataset = small_dataset.make(tmp_path / "copy")
    store = FeatureStore(dataset, cuda, cache_bytes=0, host_bytes=0)
    path = tmp_path / "copy" / "x.ibp"
    path.write_bytes(path.read_bytes()[:6000])
    with pytest.raises(FormatError, match=r"x\.ibp"):
        list(make(store, prefetch=prefetch))
    gc.collect()
    assert not [t for t in threading.enumerate() if t.name.startswith("gnn_ibp.Loader")]


def _load(loader, queue):
    queue.put([[tensor.numpy() for tensor in batch.tensors] for batch in loader])


def test_loader_works_on_in_a_forked_child_without_the_device(store, expected):
    loader = make(store)
    assert same(next(iter(loader)), expected[0][0])
    loader.set_epoch(1)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_load, args=(loader, queue))
    child.start()
    batches = queue.get(timeout=240)
    child.join()
    for got, want in zip(batches, expected[0], strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(got, want.tensors, strict=True))


def test_graph_without_features_or_labels_is_loaded_onto_the_device(tmp_path, cuda):
    bare = small_dataset.Dataset.from_arrays(
        tmp_path / "bare", edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3
    )
    (batch,) = Loader(FeatureStore(bare, cuda), NeighborSampler(bare, [2]), torch.arange(3), 4)
    assert batch.x is None and batch.y is None
    assert batch.n_id.tolist() == [0, 1, 2]
    assert address(batch.n_id) in cuda.made_on


@pytest.mark.parametrize(("prefetch", "num_threads"), [(0, None), (1, 1), (3, 2)])
@pytest.mark.parametrize("tiers", [(0, 0), ("12KiB", "8KiB")])
def test_nothing_is_taken_before_the_device_has_made_it(dataset, expected, tiers, prefetch, num_threads):
    cuda = LazyCuda()
    loader = make(FeatureStore(dataset, cuda, *tiers), prefetch=prefetch, num_threads=num_threads)
    for epoch in expected:
        assert all(same(got, want) for got, want in zip(loader, epoch, strict=True))
    assert (cuda.num_put_off > 0) == (prefetch > 0)


@pytest.mark.parametrize("pin_bytes", [None, 0, 16 << 10])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_of_the_disk_pass_through_few_small_buffers_unharmed(dataset, expected, pin_bytes, monkeypatch):
    monkeypatch.setattr(staged_rows, "BUFFER_BYTES", 4 << 10)  # a minibatch takes more than there are
    store = FeatureStore(dataset, LazyCuda(pin_bytes=pin_bytes), cache_bytes=0, host_bytes=0)
    loader = make(store, prefetch=3, num_threads=2)
    for epoch in expected:
        assert all(same(got, want) for got, want in zip(loader, epoch, strict=True))


def test_batch_that_is_taken_on_a_side_stream_is_complete_there(dataset, expected):
    cuda = LazyCuda()
    store = FeatureStore(dataset, cuda, "12KiB", "8KiB")
    with cuda.stream():
        batch = next(iter(make(store, prefetch=1, max_batches=1)))
        assert not same(batch, expected[0][0])  # the thread did not wait
        cuda.event().wait()
    assert same(batch, expected[0][0])


@pytest.mark.parametrize(("processors", "prefetch"), [(1, 2), (5, 5), (64, 8)])
def test_a_device_has_more_prepared_ahead(dataset, store, monkeypatch, processors, prefetch):
    monkeypatch.setattr("gnn_ibp.ops.num_threads", lambda: processors)
    assert make(store).prefetch == prefetch
    assert make(FeatureStore(dataset)).prefetch == 2, "on the CPU"
    assert make(store, prefetch=0).prefetch == 0
