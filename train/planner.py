"""Planner: a run's memory, planned from a few minibatches, and anew where larger ones are met."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.dataset import Dataset
from gnn_ibp.sample import SampleShape
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train.config import Config
from gnn_ibp.train.memory_plan import plan_memory
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.needs import MARGIN_PERCENT, batch_needs, largest_minibatch, needs_of_run


class Planner:
    """To be made when labels and splits are in memory, and nothing else of the data set.

    plan: what of the budget goes to whom. on_device: the model trains on one, which has a cache of
    `device_cache` bytes. Raises SettingsError where the budget does not suffice.
    """

    def __init__(
        self,
        config: Config,
        budget: int,
        ds: Dataset,
        nodes: Mapping[str, Tensor],
        model: GraphSAGE,
        prefetch: int,
        on_device: bool,
        device_cache: int,
    ) -> None:
        cache_name = "host" if on_device else "cache"
        asked = config.asked_bytes(f"{cache_name}_bytes")
        self._divide = partial(plan_memory, budget=budget, cache=asked, cache_name=cache_name)
        self._batch_needs = partial(
            batch_needs,
            model,
            ds.features["x"].row_type,
            prefetch=prefetch,
            threads=ops.num_threads(),
            on_device=on_device,
            checkpoints=config.checkpoint is not None,
        )
        sampler = NeighborSampler(ds.mapped_graph(), list(config.fanout), seed=config.seed)
        shape = largest_minibatch(sampler, nodes, config.batch_size)
        self._needs = needs_of_run(
            ds,
            nodes,
            self._batch_needs(shape),
            raw=config.raw,
            hot_rows=config.hot_set != "none" and (asked != 0 or device_cache > 0),
            on_device=on_device,
            device_cache=device_cache,
        )
        self.plan = self._divide(self._needs)

    def plan_again(self, drawn: SampleShape | None) -> bool:
        """Makes room for minibatches as large as `drawn`; whether `plan` is another one now.

        The topology stays where it is, the cache, which is not filled yet, becomes smaller. Raises
        SettingsError where the budget does not suffice for them.
        """
        if drawn is None or sum(self._batch_needs(drawn)) <= self._needs.training:
            return False
        batches = self._batch_needs(drawn.times(MARGIN_PERCENT))
        self._needs = replace(self._needs, **batches._asdict())
        self.plan = self._divide(self._needs, mapped=self.plan.mapped)
        return True
