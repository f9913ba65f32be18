"""A store on a device serves what a store on the CPU serves, and leaves other processes alone."""

import gc
import multiprocessing
import pickle
import weakref

import numpy as np
import pytest
import small_dataset
import torch
from torch.utils.data import DataLoader
from torch_geometric.data import Data
from watched_cuda import WatchedCuda, address

from gnn_ibp.dataset import Dataset
from gnn_ibp.device import word
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.row_type import DTYPES

NUM_NODES = small_dataset.NUM_NODES
IDS = torch.tensor([3, 499, 3, 0, 250])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return small_dataset.make(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture
def cuda():
    return WatchedCuda()


@pytest.fixture
def store(dataset, cuda):
    return FeatureStore(dataset, cuda, cache_bytes="12KiB", host_bytes="8KiB")


def same_bits(a, b):
    """Whether two tensors have dtype, shape and bits in common; NaN equals itself."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.contiguous().view(-1).view(torch.uint8).equal(b.contiguous().view(-1).view(torch.uint8))


@pytest.mark.parametrize("host_bytes", [0, 1, "4KiB", "1MiB"])
@pytest.mark.parametrize("cache_bytes", [0, 1, "12KiB", "1MiB"])
@pytest.mark.parametrize("hot_set", [None, torch.tensor([5, 3, 499, *range(10, 300)])])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_two_caches_give_the_same_rows(dataset, cuda, cache_bytes, host_bytes, hot_set):
    store = FeatureStore(dataset, cuda, cache_bytes, host_bytes, hot_set)
    plain = FeatureStore(dataset, cache_bytes=0)
    ids = torch.randint(NUM_NODES, (500,), generator=torch.Generator().manual_seed(1))
    assert same_bits(store.read("x", ids), plain.read("x", ids))
    stats = store.stats()
    assert list(stats) == ["cache", "host", "disk"]
    assert stats["cache"]["lookups"] == len(ids)
    assert stats["host"]["lookups"] == stats["cache"]["misses"]
    assert stats["disk"]["lookups"] == stats["host"]["misses"] == stats["disk"]["hits"]
    assert all(tier["hits"] + tier["misses"] == tier["lookups"] for tier in stats.values())


def test_rows_are_made_on_the_device_on_the_caller_s_stream(store, cuda):
    ids = cuda.upload(IDS)
    with cuda.stream() as stream:
        x = store.read("x", ids)
        y, year = store.labels(IDS), store[None, "year", ids]
        assert all(cuda.made_on[address(tensor)] is stream for tensor in (x, y, year))
    assert cuda.made_on[address(store[None, "group", ids])] is None


def test_everything_comes_back_on_the_device(store, dataset, cuda):
    plain = FeatureStore(dataset)
    edges = torch.tensor([0, 17, 3999])
    for name in ("x", "y", "year", "image", "group", "edge_attr"):
        for ids in (edges % 500, 7, slice(3, 400, 50), None):
            got = store[None, name, ids] if ids is not None else store[None, name]()
            want = plain[None, name, ids] if ids is not None else plain[None, name]()
            assert same_bits(got, want)
            assert address(got) in cuda.made_on
    data = store.add_edge_features(Data(e_id=cuda.upload(edges)))
    assert same_bits(data.edge_attr, plain[None, "edge_attr", edges])


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_back_bit_for_bit(tmp_path, cuda, name):
    dtype = DTYPES[name]
    bits = torch.randint(256, (60, 24 * dtype.itemsize), generator=torch.Generator().manual_seed(0))
    x = bits.to(torch.uint8) % 2 if dtype == torch.bool else bits.to(torch.uint8)
    x[::2, dtype.itemsize :] = x[0, dtype.itemsize :].clone()  # half of the rows are alike
    x = x.view(dtype).view(60, 4, 6)
    dataset = Dataset.from_arrays(tmp_path / "ds", edge_index=torch.zeros(2, 0, dtype=torch.int64), x=x)
    store = FeatureStore(dataset, cuda, "1KiB", "2KiB", torch.arange(60))
    ids = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    assert same_bits(store.read("x", ids), x[ids])


@pytest.mark.filterwarnings("ignore:rows of .* are decoded by the CPU:UserWarning")
@pytest.mark.parametrize("shape", [(), (1,), (3,), (7,), (602,), (0,)])
def test_rows_of_any_length_come_back(tmp_path, cuda, shape):
    for dtype in (torch.float32, torch.uint8):
        x = torch.randint(256, (50, *shape), generator=torch.Generator().manual_seed(0)).to(dtype)
        dataset = Dataset.from_arrays(
            tmp_path / str(dtype), edge_index=torch.zeros(2, 0, dtype=torch.int64), x=x
        )
        store = FeatureStore(dataset, cuda, "8KiB", "4KiB", torch.arange(20))
        assert same_bits(store.read("x", torch.arange(50)), x)


def test_auto_is_half_of_the_device_s_free_memory(dataset):
    small = WatchedCuda(device_bytes=24 << 10)
    store = FeatureStore(dataset, small, host_bytes=0)
    assert small.free_bytes() >= 12 << 10
    assert 0 < store.rows("x").caches[0].nbytes <= 12 << 10


def test_more_than_the_device_has_is_told(dataset):
    with pytest.raises(MemoryError, match="cache_bytes"):
        FeatureStore(dataset, WatchedCuda(device_bytes=4 << 10), cache_bytes="1MiB")


def test_host_bytes_need_a_device(dataset, monkeypatch):
    with pytest.raises(ValueError, match=r"on the CPU there is no host tier.*give the memory to cache_bytes"):
        FeatureStore(dataset, "cpu", host_bytes="1GiB")
    monkeypatch.setattr(word.Cuda, "available", classmethod(lambda cls: "no GPU"))
    assert FeatureStore(dataset, "auto").device == torch.device("cpu")
    with pytest.raises(ValueError, match="no GPU was found, and on the CPU"):
        FeatureStore(dataset, "auto", host_bytes="1GiB")
    assert FeatureStore(dataset, "auto", host_bytes="0 B").cuda is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_gpu_that_is_not_there_is_an_error_with_its_cause(dataset):
    with pytest.raises(RuntimeError, match="cannot be used"):
        FeatureStore(dataset, "cuda")


@pytest.mark.parametrize("name", ["x", "y", "group", "edge_attr"])
@pytest.mark.parametrize("bad", [-1, 4000, 2**40])
def test_bad_id_on_the_device_is_the_cpu_s_index_error(store, dataset, cuda, name, bad):
    ids = torch.tensor([1, 2, bad, -5])
    with pytest.raises(IndexError) as on_cpu:
        FeatureStore(dataset)[None, name, ids]
    with pytest.raises(IndexError) as on_device:
        store[None, name, cuda.upload(ids)]
    assert str(on_device.value) == str(on_cpu.value)
    assert store.stats()["cache"]["lookups"] == 0
    assert same_bits(store[None, name, IDS], FeatureStore(dataset)[None, name, IDS])


def test_report_shows_three_tiers_and_what_both_caches_hold(store):
    store[None, "x", torch.arange(NUM_NODES)]
    lines = store.report().splitlines()
    words = ["tier", "cache", "host", "disk", "PCIe:", "cache:", "host:"]
    assert [line.split()[0] for line in lines] == words
    assert list(store.caches()) == ["cache", "host"]
    assert all("rows instead of" in line for line in lines[5:])


def test_damage_on_disk_is_told_with_row_and_file_and_the_store_lives_on(tmp_path, cuda):
    small_dataset.make(tmp_path / "copy")
    store = FeatureStore(tmp_path / "copy", cuda, cache_bytes=0, host_bytes=0)
    path = tmp_path / "copy" / "x.ibp"
    good = path.read_bytes()
    ids = torch.arange(NUM_NODES)
    want = store.read("x", ids)
    before = store.stats()
    path.write_bytes(good[: len(good) // 2])  # the file is cut while it is open
    with pytest.raises(FormatError, match=r"x\.ibp"):
        store.read("x", ids)
    assert store.stats() == before
    path.write_bytes(good)
    assert same_bits(store.read("x", ids), want)


def test_memory_of_the_device_goes_with_the_store(dataset, cuda):
    free = cuda.free_bytes()
    store = FeatureStore(dataset, cuda, "12KiB", "8KiB")
    x = store.read("x", IDS)
    assert cuda.free_bytes() < free
    gone = weakref.ref(store.rows("x"))
    del store
    gc.collect()
    assert gone() is None
    assert cuda.free_bytes() == free - x.nbytes
    del x
    assert cuda.free_bytes() == free


def test_memory_of_the_device_stays_flat(store, cuda):
    held = set()
    for _ in range(20):
        store.read("x", IDS)
        store[None, "image", IDS]
        held.add(cuda.free_bytes())
    assert len(held) == 1


# ---- other processes ----------------------------------------------------------------------------------


def test_pickled_store_carries_the_word_of_its_device_and_no_rows(store):
    pickled = pickle.dumps(store)
    assert len(pickled) < 2000
    again = pickle.loads(pickled)
    assert same_bits(again[None, "x", IDS], store[None, "x", IDS])


def test_unpickling_opens_no_device_before_the_first_use(dataset, monkeypatch):
    class Counted(WatchedCuda):
        num_opened = 0

        @classmethod
        def open(cls, device="cuda"):
            cls.num_opened += 1
            return cls()

    monkeypatch.setattr(word, "Cuda", Counted)
    pickled = pickle.dumps(FeatureStore(dataset, "cuda:0", "12KiB", "8KiB"))
    again = pickle.loads(pickled)
    assert (Counted.num_opened, "device='cuda:0'" in repr(again)) == (1, True)
    assert again[None, "x", IDS][:, 0].tolist() == IDS.tolist()
    assert again[None, "year", IDS].tolist() == IDS.tolist()
    assert Counted.num_opened == 2
    assert again.stats()["host"]["lookups"] > 0


def _serve(store, queue):
    try:
        rows = {name: store[None, name, IDS].numpy() for name in ("x", "y", "year", "image")}
        queue.put((store.cuda is None, str(store.device), store.stats(), rows))
    except BaseException as error:
        queue.put(error)


def _ask_child(store, method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_serve, args=(store, queue))
    child.start()
    answer = queue.get(timeout=240)
    child.join()
    assert child.exitcode == 0
    if isinstance(answer, BaseException):
        raise answer
    return answer


@pytest.mark.parametrize("used", [True, False])
def test_forked_child_reads_the_files_into_cpu_memory(store, used):
    if used:
        store[None, "x", IDS]
    before = store.stats()
    on_cpu, device, stats, rows = _ask_child(store, "fork")
    assert on_cpu and device == "cpu"
    assert stats["disk"]["hits"] == 3 * len(IDS) and list(stats) == ["cache", "disk"]
    assert store.stats() == before
    for name, got in rows.items():
        assert np.array_equal(got, store[None, name, IDS].numpy())


def _drop(holder, cuda, queue):
    store = holder.pop()
    assert store.read("x", IDS)[:, 0].tolist() == IDS.tolist()
    del store
    gc.collect()
    queue.put(object.__getattribute__(cuda, "_device_memory").free_bytes())


def test_forked_child_frees_nothing_of_the_parent_s(dataset, cuda):
    holder = [FeatureStore(dataset, cuda, "12KiB", "8KiB")]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_drop, args=(holder, cuda, queue))
    child.start()
    assert queue.get(timeout=240) == cuda.free_bytes()
    child.join()


class Rows(torch.utils.data.Dataset):
    """Rows of a store, looked up in the worker."""

    def __init__(self, store):
        self.store = store

    def __len__(self):
        return 4

    def __getitem__(self, at):
        assert self.store.cuda is None and self.store.device.type == "cpu"
        return self.store[None, "x", at], self.store[None, "y", at]


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_worker_of_a_dataloader_leaves_the_device_alone(dataset, method, monkeypatch):
    cuda = WatchedCuda()
    store = FeatureStore(dataset, cuda, "12KiB", "8KiB")
    loader = DataLoader(Rows(store), batch_size=2, num_workers=2, multiprocessing_context=method)
    launches = len(cuda.launches)
    x, y = (torch.cat(parts) for parts in zip(*loader, strict=True))
    assert len(cuda.launches) == launches
    assert same_bits(x, store.read("x", torch.arange(4)))
    assert same_bits(y, store.labels(torch.arange(4)))
