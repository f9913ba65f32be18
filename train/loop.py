"""The loop: one pass over the train nodes after the other, and the weights that validate best."""

import copy
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy

from gnn_ibp.loader import Loader
from gnn_ibp.progress import progress
from gnn_ibp.tiers import Stats, subtract
from gnn_ibp.train.dropout import dropout_keys
from gnn_ibp.train.evaluate import sampled_accuracy
from gnn_ibp.train.loss_sum import LossSum, look_every
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.pace import Pace

if TYPE_CHECKING:  # the loop itself needs no library for command lines
    from gnn_ibp.train.config import Config


@dataclass(frozen=True)
class Epoch:
    """What one pass over the train nodes gave; as a dict it is an entry of the report's `epochs`.

    loss: mean over the seed nodes. val_acc: None where there was no validation.
    best: whether the weights of this moment are the best so far.
    seconds: sample and fetch are those of the threads that prepare minibatches, train those of the model
    (those that the loop spent on giving a device its work, and waiting for it), wait those it waited for
    minibatches, total those of the pass; validate comes after it.
    sources: counters of the tiers, of the pass alone.
    """

    epoch: int
    loss: float
    val_acc: float | None
    best: bool
    seconds: dict[str, float]
    batches: int
    sources: Stats

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def fit(model: GraphSAGE, loader: Loader, val_loader: Loader | None, config: "Config") -> Iterator[Epoch]:
    """Trains `model`, an epoch per step of this iterator; at its end the model has the best weights.

    Best are those of the highest validation accuracy, the earliest of equals; without validation the last.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    best_acc, best_weights = -1.0, None
    for number in range(1, config.epochs + 1):
        epoch = train_epoch(model, loader, optimizer, number, config.seed)
        if val_loader is None:
            epoch = replace(epoch, best=True)
        elif number % config.eval_every == 0 or number == config.epochs:
            began = time.perf_counter()
            val_acc = sampled_accuracy(model, val_loader, "validate")
            seconds = {**epoch.seconds, "validate": time.perf_counter() - began}
            epoch = replace(epoch, val_acc=val_acc, best=val_acc > best_acc, seconds=seconds)
            if epoch.best:
                best_acc, best_weights = val_acc, copy.deepcopy(model.state_dict())
        yield epoch
    if best_weights:
        model.load_state_dict(best_weights)


def train_epoch(
    model: GraphSAGE,
    loader: Loader,
    optimizer: torch.optim.Optimizer,
    number: int,
    seed: int,
) -> Epoch:
    """Trains `model` on the minibatches of epoch `number`.

    Nothing depends on when or by which thread a minibatch was prepared. On a device nothing waits for its
    work but `Pace` and the looks at the losses. Raises FloatingPointError when a loss is no finite number.
    """
    model.train()
    loader.set_epoch(number)
    before, started = loader.store.stats(), time.perf_counter()
    pace = Pace(loader.store.cuda)
    losses = LossSum(number, look_every(loader.store.device))
    train_s = 0.0
    with progress(f"epoch {number}", len(loader)) as bar:
        for at, batch in enumerate(loader):
            began = time.perf_counter()
            keys = dropout_keys(seed, number, at, len(model.convs) - 1)
            assert batch.x is not None and batch.y is not None, "labelled_nodes looked"
            loss = cross_entropy(model(batch.x, batch.layers, keys), batch.y)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.add(loss, batch.batch_size)
            pace.step()
            train_s += time.perf_counter() - began
            bar.update()
    began = time.perf_counter()
    pace.finish()  # the last steps are part of the epoch
    mean_loss = losses.mean()
    train_s += time.perf_counter() - began
    seconds = {**loader.seconds, "train": train_s, "total": time.perf_counter() - started}
    sources = subtract(loader.store.stats(), before)
    return Epoch(number, mean_loss, None, False, seconds, len(loader), sources)
