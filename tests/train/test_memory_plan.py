"""The memory budget is divided by its rules: never more than there is; the least that is named suffices."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_ibp.errors import SettingsError
from gnn_ibp.train.memory_plan import MemoryPlan, Needs, plan_memory

MIB = 1 << 20
sizes = st.integers(0, 1 << 34)


@st.composite
def needs(draw: st.DrawFn) -> Needs:
    names = ("program", "labels", "index", "indptr", "indices", "staging", "minibatches", "model", "choosing")
    return Needs(
        **{name: draw(sizes) for name in names},
        num_rows=draw(st.integers(0, 1 << 28)),
        row_bytes=draw(st.integers(0, 4096)),
        hot_id_bytes=draw(st.sampled_from([4, 8])),
        filling_row=draw(st.integers(1, 60)),
        device_cache=draw(st.just(0) | sizes),
    )


def peaks(need: Needs, plan: MemoryPlan) -> list[int]:
    """What is held while hot rows are chosen, while the cache is filled, while the model trains."""
    held = need.program + need.labels + need.index + need.staging + plan.parts["topology"]
    filling = (need.hot_id_bytes + 1) * need.num_rows + need.filling_row * plan.hot_rows
    if not plan.hot_rows:
        return [held + need.minibatches + need.model + plan.cache]
    return [
        held + need.choosing,
        held + plan.cache + filling,
        held + need.minibatches + need.model + plan.cache,
    ]


@given(need=needs(), extra=sizes, cache=st.none() | sizes)
def test_nothing_exceeds_the_budget(need: Needs, extra: int, cache: int | None) -> None:
    budget = need.total(0, cache or 0) + extra
    plan = plan_memory(need, budget, cache)
    assert sum(plan.parts.values()) + plan.left == budget
    assert plan.left >= 0 and min(plan.parts.values()) >= 0
    assert max(peaks(need, plan)) <= budget
    assert plan.parts["topology"] == need.indptr + (0 if plan.mapped else need.indices)
    assert plan.cache == plan.parts["cache"] == (plan.cache if cache is None else cache)


@given(need=needs(), cache=st.none() | sizes)
def test_the_smallest_budget_that_is_named_suffices_and_less_does_not(need: Needs, cache: int | None) -> None:
    with pytest.raises(SettingsError) as caught:
        plan_memory(need, -1, cache)
    named = int(re.findall(r"training needs (\d+)MiB", str(caught.value))[0]) * MIB
    plan = plan_memory(need, named, cache)
    assert plan.cache == (plan.cache if cache is None else cache)
    with pytest.raises(SettingsError):
        plan_memory(need, named - 17 * MIB, cache)


@given(need=needs(), extra=sizes, more=sizes)
def test_more_budget_takes_nothing_away(need: Needs, extra: int, more: int) -> None:
    budget = need.total(0, 0) + extra
    small = plan_memory(need, budget, None)
    large = plan_memory(need, budget + more, None)
    assert large.mapped <= small.mapped
    if large.mapped == small.mapped:
        assert large.cache >= small.cache


SOME = Needs(
    program=400 * MIB,
    labels=10 * MIB,
    index=5 * MIB,
    indptr=8 * MIB,
    indices=100 * MIB,
    staging=0,
    minibatches=200 * MIB,
    model=50 * MIB,
    num_rows=1_000_000,
    row_bytes=440,
    choosing=92 * MIB,
    hot_id_bytes=4,
    filling_row=20,
)


def test_the_topology_comes_before_a_cache_of_no_given_size() -> None:
    plan = plan_memory(SOME, 790 * MIB, None)
    assert not plan.mapped and 0 < plan.cache <= 17 * MIB
    assert plan_memory(SOME, 770 * MIB, None).mapped


def test_the_topology_comes_after_a_cache_of_a_given_size() -> None:
    assert plan_memory(SOME, 790 * MIB, 50 * MIB).mapped
    assert not plan_memory(SOME, 830 * MIB, 50 * MIB).mapped


def test_a_cache_of_all_rows_leaves_the_rest() -> None:
    plan = plan_memory(SOME, 4096 * MIB, None)
    assert plan.cache == SOME.largest_cache and plan.hot_rows == SOME.num_rows
    assert plan.left > 2048 * MIB


def test_an_asked_cache_that_does_not_fit_is_told_with_the_remedy() -> None:
    with pytest.raises(SettingsError, match=r"budget is 800 MiB, training needs \d+MiB.*--cache-bytes"):
        plan_memory(SOME, 800 * MIB, 500 * MIB)
