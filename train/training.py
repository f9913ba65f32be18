"""Training: how far a training has come. What is in here is all that a killed one needs to go on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.tiers import Stats, total
from gnn_ibp.train.loss_sum import NOTHING, Sums
from gnn_ibp.train.model import GraphSAGE

State = dict[str, Any]
"""Tensors and plain types."""


@dataclass
class Training:
    """A model, its optimizer, and where they are in the epochs.

    There is no state of a random generator: weights are drawn before the training begins; what is drawn in it
    depends on the seed and on the numbers of epoch and minibatch.

    epoch: the one under way, from 1. losses: of its minibatches that are done. seconds: spent on them, by
    part.
    before: counters of the tiers when the epoch began. earlier: what processes before this one counted.
    best_acc, best_weights: of the best validation so far; there are none before the first.
    epochs: those that are complete, as they stand in the report. resumed: where processes went on.
    """

    model: GraphSAGE
    optimizer: torch.optim.Optimizer
    epoch: int = 1
    losses: Sums = NOTHING
    seconds: dict[str, float] = field(default_factory=dict)
    before: Stats = field(default_factory=dict)
    earlier: Stats = field(default_factory=dict)
    best_acc: float = -1.0
    best_weights: dict[str, Tensor] | None = None
    epochs: list[dict[str, Any]] = field(default_factory=list)
    resumed: list[dict[str, int]] = field(default_factory=list)

    @property
    def batch(self) -> int:
        """How many minibatches of the epoch under way are done."""
        return self.losses.num_batches

    def sources(self, store: FeatureStore) -> Stats:
        """Counters of the tiers since the training began, those of earlier processes included."""
        return total([self.earlier, store.stats()])

    def add_seconds(self, seconds: Mapping[str, float]) -> None:
        """Of the epoch under way."""
        for part, more in seconds.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + more

    def next_epoch(self) -> None:
        """The epoch under way is complete."""
        self.epoch += 1
        self.losses, self.seconds = NOTHING, {}

    def state(self, store: FeatureStore) -> State:
        """What `restore` takes; not a copy. `store`: the one that minibatches are read from."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best_weights": self.best_weights,
            "best_acc": self.best_acc,
            "epoch": self.epoch,
            "losses": tuple(self.losses),
            "seconds": self.seconds,
            "before": self.before,
            "sources": self.sources(store),
            "epochs": self.epochs,
            "resumed": self.resumed,
        }

    def restore(self, state: State) -> None:
        """Goes on from where `state` was taken, on whatever device the model is."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.best_weights, self.best_acc = state["best_weights"], state["best_acc"]
        self.epoch, self.losses, self.seconds = state["epoch"], Sums(*state["losses"]), state["seconds"]
        self.before, self.earlier = state["before"], state["sources"]
        self.epochs = state["epochs"]
        self.resumed = [*state["resumed"], {"epoch": self.epoch, "batch": self.batch}]
