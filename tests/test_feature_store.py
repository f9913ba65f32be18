"""The store serves exact rows, whatever is cached, to the contract of PyG's feature stores."""

import multiprocessing
import pickle

import numpy as np
import pytest
import small_dataset
import torch
from torch_geometric.data import Data, TensorAttr
from torch_geometric.loader import NodeLoader
from watched_cuda import WatchedCuda

from gnn_ibp.budget import parse_bytes
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.graph_store import GraphStore
from gnn_ibp.samplers import NeighborSampler


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return small_dataset.make(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture(params=["cpu", "device"])
def store(dataset, request):
    """On the device, some rows are in its cache, some in host memory, some in neither."""
    if request.param == "cpu":
        return FeatureStore(dataset, cache_bytes="16KiB")
    return FeatureStore(dataset, WatchedCuda(), cache_bytes="16KiB", host_bytes="8KiB")


IDS = torch.tensor([3, 499, 3, 0, 250])


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        IDS.int(),
        IDS.numpy(),
        IDS.tolist(),
        IDS.numpy().astype(np.uint16),
        torch.empty(0, dtype=torch.int64),
    ],
)
def test_rows_come_for_ids_of_any_integer_type(store, ids):
    x = store[None, "x", ids]
    assert x.dtype == torch.float32
    assert x[:, 0].tolist() == [float(i) for i in ids]


@pytest.mark.parametrize("name", ["x", "y", "group"])
def test_read_only_ids_are_taken_without_a_warning(store, name, recwarn):
    ids = IDS.numpy().copy()
    ids.flags.writeable = False
    torch.set_warn_always(True)  # not once in the process
    try:
        got = store[None, name, ids]
    finally:
        torch.set_warn_always(False)
    assert torch.equal(got, store[None, name, IDS])
    assert not recwarn.list


def test_every_way_to_ask_gives_the_same_rows(store):
    want = store[None, "x", IDS]
    assert torch.equal(store.get_tensor(group_name=None, attr_name="x", index=IDS), want)
    assert torch.equal(store[TensorAttr(None, "x", IDS)], want)
    assert torch.equal(store[None, "x"][IDS], want)
    assert torch.equal(store.view(None, "x")[IDS], want)
    everything = store[None, "x"]()
    assert torch.equal(everything[IDS], want)
    assert torch.equal(store[None, "x", slice(None)], everything)
    assert torch.equal(store[None, "x", slice(10, 20, 3)], everything[10:20:3])
    assert torch.equal(store[None, "x", 7], everything[7])
    assert torch.equal(store.multi_get_tensor([TensorAttr(None, "x", IDS)])[0], want)
    as_given = store.get_tensor(group_name=None, attr_name="x", index=IDS.numpy(), convert_type=True)
    assert isinstance(as_given, np.ndarray)


def test_everything_the_data_set_holds_is_served(store, dataset):
    assert torch.equal(store[None, "y", IDS], dataset.y[IDS])
    assert store[None, "year", IDS].dtype == torch.int16
    assert store[None, "year", IDS].tolist() == IDS.tolist()
    assert store[None, "image", IDS].shape == (5, 2, 3)
    assert store[None, "group", IDS].tolist() == (IDS % 3).tolist()
    assert store.get_tensor_size(None, "x") == (500, 16)
    assert store.get_tensor_size(None, "year") == (500,)
    assert {attr.attr_name for attr in store.get_all_tensor_attrs()} == {"x", "y", "year", "image", "group"}


def test_attributes_are_fresh_objects_because_loaders_write_into_them(store):
    for attr in store.get_all_tensor_attrs():
        attr.index = IDS
    assert not any(attr.is_set("index") for attr in store.get_all_tensor_attrs())


def test_edge_features_come_by_e_id(store, dataset):
    e_id = torch.tensor([0, 17, 3999])
    data = store.add_edge_features(Data(e_id=e_id))
    place = data.edge_attr[:, 0].long()
    # what stands at these places of the CSC is what came at those places of the input
    generator = torch.Generator().manual_seed(0)
    torch.randn(small_dataset.NUM_NODES, 16, generator=generator)
    edge_index = torch.randint(499, (2, small_dataset.NUM_EDGES), generator=generator)
    assert edge_index[0, place].tolist() == dataset.graph.indices[e_id.numpy()].tolist()


def test_edge_features_come_by_e_id_also_where_one_has_this_name(tmp_path):
    path, edges = tmp_path / "ds", torch.tensor([[0, 1, 2], [1, 2, 0]])
    features = {"e_id": torch.tensor([2, 2, 2]), "z": torch.arange(3)}
    dataset = Dataset.from_arrays(path, edge_index=edges, num_nodes=3, edge_features=features)
    data = FeatureStore(dataset).add_edge_features(Data(e_id=torch.tensor([0, 1])))
    assert data.e_id.tolist() == [2, 2]
    assert data.z.tolist() == dataset.graph.edge_perm[:2].tolist()


def test_edge_features_come_through_pygs_loader(store, dataset):
    graph = GraphStore(dataset)
    loader = NodeLoader(
        (store, graph),
        node_sampler=NeighborSampler(graph, [3, 3]),
        input_nodes=dataset.split["train"],
        batch_size=100,
        transform=store.add_edge_features,
        filter_per_worker=False,
    )
    for batch in loader:
        assert batch.edge_attr.shape == (batch.num_edges, 1)
        assert torch.equal(batch.edge_attr, store[None, "edge_attr", batch.e_id])
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)


@pytest.mark.parametrize("cache_bytes", [0, 1, "2KiB", "3KiB", "16KiB", "1MiB"])
@pytest.mark.parametrize("hot_set", ["degree", None, torch.tensor([5, 3, 499])])
@pytest.mark.filterwarnings("ignore:a cache of")
def test_any_cache_gives_the_same_rows_and_keeps_its_budget(dataset, cache_bytes, hot_set):
    store = FeatureStore(dataset, cache_bytes=cache_bytes, hot_set=hot_set)
    plain = FeatureStore(dataset, cache_bytes=0)
    ids = torch.randint(500, (2000,), generator=torch.Generator().manual_seed(1))
    assert torch.equal(store[None, "x", ids], plain[None, "x", ids])
    assert store[None, "x", ids][:, 0].tolist() == ids.tolist()
    (cache,) = store.rows("x").caches
    assert cache.nbytes <= parse_bytes(cache_bytes)
    stats = store.stats()
    assert stats["cache"]["lookups"] == 4000
    assert stats["cache"]["hits"] + stats["cache"]["misses"] == 4000
    assert stats["disk"]["lookups"] == stats["cache"]["misses"]


def test_misses_of_the_cache_are_lookups_of_the_disk_for_all_features_together(dataset):
    store = FeatureStore(dataset, cache_bytes="16KiB")
    for name in ("x", "year", "image", "edge_attr"):
        store[None, name, IDS]
    stats = store.stats()
    assert stats["cache"]["lookups"] == 20
    assert stats["cache"]["misses"] == stats["disk"]["lookups"] >= 15


def test_given_ids_are_what_is_cached(dataset):
    store = FeatureStore(dataset, cache_bytes="1MiB", hot_set=torch.tensor([5, 3, 499]))
    store[None, "x", torch.tensor([3, 5, 499, 0])]
    assert store.stats()["cache"]["hits"] == 3


def test_report_shows_tiers_and_what_the_cache_holds(dataset):
    store = FeatureStore(dataset, cache_bytes="16KiB")
    assert store.report().startswith("tier")  # before the first lookup there is no rate, and no exception
    store[None, "x", IDS]
    cache, disk = store.report().splitlines()[1:3]
    assert cache.split()[:2] == ["cache", "5"]
    assert disk.startswith("disk")
    assert "rows instead of" in store.report()


def test_raw_twin_gives_the_same_rows(dataset):
    assert torch.equal(FeatureStore(dataset, raw=True)[None, "x"](), FeatureStore(dataset)[None, "x"]())


@pytest.mark.parametrize(
    ("ids", "error", "words"),
    [
        (torch.tensor([0, -1]), IndexError, "ids[1] is -1"),
        (torch.tensor([500]), IndexError, "ids[0] is 500"),
        (torch.tensor([2**40]), IndexError, "0 to 499"),
        (torch.ones(500, dtype=torch.bool), TypeError, "nonzero"),
        (torch.tensor([1.0]), TypeError, "float"),
        (torch.tensor([[1]]), ValueError, "one dimension"),
        (500, IndexError, "500"),
    ],
)
@pytest.mark.parametrize("name", ["x", "y", "group"])
def test_bad_ids_are_told_before_any_work(store, name, ids, error, words):
    with pytest.raises(error) as caught:
        store[None, name, ids]
    assert words in str(caught.value)
    assert store.stats()["cache"]["lookups"] == 0


def test_hot_set_by_degree_keeps_no_topology_in_memory(dataset):
    fresh = Dataset.open(dataset.path)
    store = FeatureStore(fresh, cache_bytes="8KiB")
    assert "graph" not in vars(fresh)
    fresh.graph.check()
    again = FeatureStore(fresh, cache_bytes="8KiB")
    for one, other in zip(store.caches().values(), again.caches().values(), strict=True):
        np.testing.assert_array_equal(one.source.slot_of, other.source.slot_of)


def test_unknown_names_are_told_with_those_there_are(store):
    with pytest.raises(KeyError, match="did you mean 'year'"):
        store[None, "yaer", IDS]
    with pytest.raises(KeyError, match="homogeneous"):
        store["paper", "x", IDS]


def test_store_is_read_only(store):
    with pytest.raises(TypeError, match="read-only"):
        store.put_tensor(torch.zeros(5), group_name=None, attr_name="z", index=None)
    with pytest.raises(TypeError, match="read-only"):
        store.remove_tensor(group_name=None, attr_name="x", index=None)


def test_settings_that_make_no_sense_are_refused(dataset):
    with pytest.raises(ValueError, match="cache_bytes"):
        FeatureStore(dataset, host_bytes="1GiB")
    with pytest.raises(ValueError, match=r'possible are "auto", "cpu"'):
        FeatureStore(dataset, device="gpu")
    with pytest.raises(ValueError, match="cannot read 'much'"):
        FeatureStore(dataset, cache_bytes="much")
    with pytest.raises(ValueError, match="did you mean 'degree'"):
        FeatureStore(dataset, hot_set="degre")


def test_pickled_store_carries_no_rows(dataset):
    store = FeatureStore(dataset, cache_bytes="1MiB")
    pickled = pickle.dumps(store)
    assert len(pickled) < 2000
    again = pickle.loads(pickled)
    assert torch.equal(again[None, "x", IDS], store[None, "x", IDS])
    assert again.stats()["cache"]["hits"] == 5


def _read_in_child(store, ids, queue):
    queue.put((store[None, "x", ids].numpy(), store[None, "y", ids].numpy()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_store_works_in_a_child_process(dataset, method):
    store = FeatureStore(dataset, cache_bytes="16KiB")
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    store[None, "x", IDS]  # threads have been started here
    child = context.Process(target=_read_in_child, args=(store, IDS, queue))
    child.start()
    x, y = queue.get(timeout=240)
    child.join()
    assert np.array_equal(x, store[None, "x", IDS].numpy())
    assert np.array_equal(y, store[None, "y", IDS].numpy())


def test_damage_is_told_and_not_served(dataset, tmp_path):
    small_dataset.make(tmp_path / "copy")
    path = tmp_path / "copy" / "x.ibp"
    content = bytearray(path.read_bytes())
    content[5000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.ibp.*block 0"):
        FeatureStore(tmp_path / "copy", cache_bytes="1MiB")  # filling compares checksums


def test_damaged_topology_is_told_where_degrees_are_counted(tmp_path):
    small_dataset.make(tmp_path / "copy")
    path = tmp_path / "copy" / "indices.npy"
    indices = np.load(path)
    indices[100] = -7
    np.save(path, indices)
    with pytest.raises(FormatError, match=r"copy: the edges of node \d+ are damaged"):
        FeatureStore(tmp_path / "copy")


def test_graphs_without_features_or_labels_are_legal(tmp_path):
    Dataset.from_arrays(tmp_path / "bare", edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    store = FeatureStore(tmp_path / "bare")
    assert store.get_all_tensor_attrs() == []
    assert store.stats() == {}
    assert store.num_nodes == 3
