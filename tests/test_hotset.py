"""Hot sets: hottest first, the same every time."""

import numpy as np
import pytest
import torch

from gnn_ibp.graph import Graph
from gnn_ibp.hotset import degree_hot_set, hottest_first, presample, visited_then_degree
from gnn_ibp.sample import Sample


class EchoSampler:
    """Visits the seeds and, for each of them, the node 7 places on; keeps what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[int], int, int]] = []

    def sample(self, seeds: torch.Tensor, *, epoch: int = 0, batch: int = 0) -> Sample:
        self.calls.append((seeds.tolist(), epoch, batch))
        node_ids = torch.cat([seeds, torch.tensor([7])])
        none = torch.empty(0, dtype=torch.int64)
        return Sample(
            node_ids, torch.zeros(len(seeds) + 1, dtype=torch.int64), none, none, [len(seeds), 1], [0]
        )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_degree_is_how_often_a_node_can_be_sampled(dtype: type) -> None:
    graph = Graph(np.array([0, 7, 7, 7, 7, 7, 7]), np.array([4, 4, 1, 4, 0, 1, 5], dtype))
    assert degree_hot_set(graph).tolist() == [4, 1, 0, 5, 2, 3]


def test_degree_of_a_graph_without_edges() -> None:
    graph = Graph(np.zeros(4, np.int64), np.empty(0, np.int32))
    assert degree_hot_set(graph).tolist() == [0, 1, 2]


def test_presampled_nodes_come_most_visited_first() -> None:
    hot = presample(EchoSampler(), torch.tensor([3, 3, 20, 1, 3]), batch_size=2)
    assert hot.tolist() == [3, 7, 1, 20]
    assert hot.dtype == np.int64


def test_presampling_takes_read_only_seeds_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    seeds = np.arange(5)
    seeds.setflags(write=False)
    assert len(presample(EchoSampler(), seeds)) == 6
    assert not recwarn.list


def test_presampling_covers_every_seed_once_an_epoch_and_repeats_itself() -> None:
    seeds = np.arange(100, 110, dtype=np.int32)
    first, second = EchoSampler(), EchoSampler()
    assert (
        presample(first, seeds, 4, num_epochs=2).tolist()
        == presample(second, seeds, 4, num_epochs=2).tolist()
    )
    assert first.calls == second.calls
    assert [(epoch, batch) for _, epoch, batch in first.calls] == [(e, b) for e in (0, 1) for b in (0, 1, 2)]
    for epoch in (0, 1):
        visited = [seed for call, number, _ in first.calls if number == epoch for seed in call]
        assert sorted(visited) == seeds.tolist()
        assert visited != seeds.tolist()


def test_presampling_ends_after_the_batches_that_are_asked_for() -> None:
    some = EchoSampler()
    presample(some, np.arange(100, 110), 4, num_epochs=2, max_batches=2)
    assert [(epoch, batch) for _, epoch, batch in some.calls] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_no_seeds_make_no_hot_set() -> None:
    assert presample(EchoSampler(), torch.empty(0, dtype=torch.int64)).tolist() == []


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="batch_size is 0"):
        presample(EchoSampler(), [1], batch_size=0)
    with pytest.raises(ValueError, match="num_epochs is 0"):
        presample(EchoSampler(), [1], num_epochs=0)
    with pytest.raises(ValueError, match="max_batches is 0"):
        presample(EchoSampler(), [1], max_batches=0)


@pytest.mark.parametrize("top", [0, 3, 70_000, 2**31 - 1])
def test_hottest_come_first_and_ties_by_position(top: int) -> None:
    rng = np.random.default_rng(0)
    heat = (rng.random(1_100_000) ** 8 * top).astype(np.int32)
    found = hottest_first(heat)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.argsort(-heat.astype(np.int64), kind="stable"))


def test_no_heat_makes_no_order() -> None:
    assert hottest_first(np.empty(0, np.int32)).tolist() == []


def test_heat_that_32_bits_cannot_count_stays_hottest() -> None:
    class Hub:
        def out_degree(self) -> np.ndarray:
            return np.array([2**40, 5, 7])

    assert visited_then_degree(np.array([0, 2**30, 3], np.int32), Hub()).tolist() == [1, 2, 0]


def test_visited_nodes_come_before_all_others() -> None:
    rng = np.random.default_rng(1)
    graph = Graph(np.array([0] + 300 * [5000]), rng.integers(0, 300, 5000).astype(np.int32))
    visits = rng.integers(0, 4, 300).astype(np.int32)
    visited = np.flatnonzero(visits)
    wanted = np.concatenate([visited[np.argsort(-visits[visited], kind="stable")], degree_hot_set(graph)])
    _, first = np.unique(wanted, return_index=True)
    assert visited_then_degree(visits, graph).tolist() == wanted[np.sort(first)].tolist()
