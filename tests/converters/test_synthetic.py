"""The built-in data set: reproducible, shaped like real graphs, worth compressing and learning."""

import numpy as np
import pytest

from gnn_ibp import IBPCodec
from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.converters.synthetic import NUM_CLASSES, ROWS_PER_BLOCK, draw_splits, synthetic

NUM_NODES = 20_000


@pytest.fixture(scope="module")
def parts() -> DatasetParts:
    return synthetic(NUM_NODES)


@pytest.fixture(scope="module")
def x(parts: DatasetParts) -> np.ndarray:
    return np.concatenate(list(parts.features["x"].blocks()))


def test_the_same_seed_gives_the_same_data_and_another_seed_other(parts: DatasetParts, x: np.ndarray) -> None:
    again, other = synthetic(NUM_NODES), synthetic(NUM_NODES, seed=1)
    np.testing.assert_array_equal(again.edge_index, parts.edge_index)
    np.testing.assert_array_equal(again.labels, parts.labels)
    np.testing.assert_array_equal(np.concatenate(list(again.features["x"].blocks())), x)
    assert not np.array_equal(other.labels, parts.labels)
    assert other.edge_index.shape != parts.edge_index.shape or (other.edge_index != parts.edge_index).any()
    assert (next(iter(other.features["x"].blocks())) != x[:ROWS_PER_BLOCK]).any()


def test_edges_have_no_loops_and_no_duplicates_and_name_nodes_that_exist(parts: DatasetParts) -> None:
    source, target = parts.edge_index
    assert (source != target).all()
    assert len(np.unique(source.astype(np.int64) * NUM_NODES + target)) == len(source)
    assert parts.edge_index.min() == 0 and parts.edge_index.max() == NUM_NODES - 1
    assert parts.edge_index.dtype == np.int32


def test_degrees_have_a_power_law_tail_in_both_directions(parts: DatasetParts) -> None:
    assert 11 < len(parts.edge_index[0]) / NUM_NODES < 12
    for ends, fall in zip(parts.edge_index, (2 / 3, 1 / 2), strict=True):
        degree = np.sort(np.bincount(ends, minlength=NUM_NODES))[::-1]
        assert degree[0] > 50 * degree.mean()
        assert degree[: NUM_NODES // 4].sum() > 0.45 * degree.sum()
        # a tail of exponent 1 + 1 / fall: the degree at rank r falls like r^-fall
        assert degree[20] / degree[2000] == pytest.approx(100**fall, rel=0.35)


def test_classes_are_uneven_and_neighbours_alike_more_often_than_by_chance(parts: DatasetParts) -> None:
    sizes = np.bincount(parts.labels, minlength=NUM_CLASSES)
    assert sizes.min() > 0 and sizes.max() > 5 * sizes.min()
    source, target = parts.edge_index
    same = (parts.labels[source] == parts.labels[target]).mean()
    chance = ((sizes / NUM_NODES) ** 2).sum()
    assert 0.35 < same < 0.55 and chance < 0.05


def test_splits_are_disjoint_and_cover_60_20_20(parts: DatasetParts) -> None:
    assert [len(parts.splits[name]) for name in ("train", "val", "test")] == [12_000, 4_000, 4_000]
    assert len(np.unique(np.concatenate(list(parts.splits.values())))) == NUM_NODES


def test_large_graphs_are_trained_on_a_tenth() -> None:
    splits = draw_splits(3_000_000, 0)
    assert [len(splits[name]) for name in ("train", "val", "test")] == [300_000, 60_000, 60_000]
    assert len(np.unique(np.concatenate(list(splits.values())))) == 420_000


def test_features_save_as_much_as_averaged_word_vectors(x: np.ndarray) -> None:
    packed = IBPCodec.fit(x).encode(x)
    assert 0.10 < packed.saved < 0.14


def test_neighbours_tell_the_class_where_features_alone_do_not(parts: DatasetParts, x: np.ndarray) -> None:
    train, test = parts.splits["train"], parts.splits["test"]
    source, target = parts.edge_index
    degree = np.maximum(np.bincount(target, minlength=NUM_NODES), 1)

    def accuracy(rows: np.ndarray) -> float:
        rows = rows / rows.std(axis=0)
        means = np.stack([rows[train][parts.labels[train] == c].mean(axis=0) for c in range(NUM_CLASSES)])
        scores = rows[test] @ means.T - (means**2).sum(axis=1) / 2
        return float((scores.argmax(axis=1) == parts.labels[test]).mean())

    alone = accuracy(x)
    mean = np.zeros_like(x)
    np.add.at(mean, target, x[source] / degree[target, None])
    together = accuracy(x + 1.5 * mean)
    assert 0.35 < alone < 0.65
    assert together > alone + 0.1


def test_a_sample_is_made_of_rows_of_the_data(parts: DatasetParts, x: np.ndarray) -> None:
    sample = np.asarray(parts.features["x"].sample(seed=3))
    assert {row.tobytes() for row in sample[:100]} <= {row.tobytes() for row in x}


def test_one_node_is_a_graph_and_none_is_not() -> None:
    one = synthetic(1)
    assert one.edge_index.shape == (2, 0)
    assert sum(len(block) for block in one.features["x"].blocks()) == 1
    with pytest.raises(ValueError, match="at least 1"):
        synthetic(0)
