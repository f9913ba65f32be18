"""The loop: one pass over the train nodes after the other, and the weights that validate best."""

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from torch.nn.functional import cross_entropy

from gnn_ibp.loader import Loader
from gnn_ibp.progress import progress
from gnn_ibp.tiers import Stats, subtract
from gnn_ibp.train.checkpoints import Checkpoints
from gnn_ibp.train.dropout import dropout_keys
from gnn_ibp.train.evaluate import sampled_accuracy
from gnn_ibp.train.loss_sum import LossSum, look_every
from gnn_ibp.train.pace import Pace
from gnn_ibp.train.training import Training

if TYPE_CHECKING:  # the loop itself needs no library for command lines
    from gnn_ibp.train.config import Config


@dataclass(frozen=True)
class Epoch:
    """What one pass over the train nodes gave; as a dict it is an entry of the report's `epochs`.

    loss: mean over the seed nodes. val_acc: None where there was no validation.
    best: whether the weights of this moment are the best so far.
    seconds: sample and fetch are those of the threads that prepare minibatches, train those of the model
    (those that the loop spent on giving a device its work, and waiting for it), wait those it waited for
    minibatches, total those of the pass; checkpoint and validate are beside it.
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


def fit(
    training: Training,
    loader: Loader,
    val_loader: Loader | None,
    config: "Config",
    checkpoints: Checkpoints | None = None,
) -> Iterator[Epoch]:
    """Trains until the last epoch, one per step of this iterator; at its end the model has the best weights.

    Best are those of the highest validation accuracy, the earliest of equals; without validation the last.
    """
    while training.epoch <= config.epochs:
        epoch = train_epoch(training, loader, config.seed, checkpoints)
        is_last = training.epoch == config.epochs
        if is_last and checkpoints:
            checkpoints.write()  # before the validation: with more epochs it may be none
        if val_loader is None:
            epoch = replace(epoch, best=True)
        elif is_last or training.epoch % config.eval_every == 0:
            epoch = _validated(epoch, training, val_loader)
        training.next_epoch()
        yield epoch
    if training.best_weights:
        training.model.load_state_dict(training.best_weights)


def _validated(epoch: Epoch, training: Training, val_loader: Loader) -> Epoch:
    began = time.perf_counter()
    val_acc = sampled_accuracy(training.model, val_loader, "validate")
    seconds = {**epoch.seconds, "validate": time.perf_counter() - began}
    best = val_acc > training.best_acc
    if best:
        training.best_acc, training.best_weights = val_acc, copy.deepcopy(training.model.state_dict())
    return replace(epoch, val_acc=val_acc, best=best, seconds=seconds)


def train_epoch(
    training: Training, loader: Loader, seed: int, checkpoints: Checkpoints | None = None
) -> Epoch:
    """Trains on what is left of the epoch under way.

    Nothing depends on when or by which thread a minibatch was prepared. Raises FloatingPointError when a loss
    is no finite number.
    """
    training.model.train()
    if training.batch == 0:
        training.before = training.sources(loader.store)

    def more(batch: int) -> bool:
        return checkpoints is None or not checkpoints.due(batch)

    with progress(f"epoch {training.epoch}", len(loader)) as bar:
        bar.update(training.batch)
        while training.batch < len(loader):
            _train_batches(training, loader, seed, more, bar)
            if checkpoints and checkpoints.due(training.batch):
                checkpoints.write()
    sources = subtract(training.sources(loader.store), training.before)
    return Epoch(training.epoch, training.losses.mean, None, False, training.seconds, len(loader), sources)


def _train_batches(
    training: Training, loader: Loader, seed: int, more: Callable[[int], bool], bar: Any
) -> None:
    """Trains on minibatches of the epoch under way until `more` says no, as `Loader.batches` asks it.

    On a device nothing waits for its work but `Pace` and the looks at the losses.
    """
    started, train_s = time.perf_counter(), 0.0
    model, optimizer, epoch = training.model, training.optimizer, training.epoch
    pace = Pace(loader.store.cuda)
    losses = LossSum(epoch, look_every(loader.store.device), training.losses)
    for at, batch in enumerate(loader.batches(epoch, training.batch, more), training.batch):
        began = time.perf_counter()
        keys = dropout_keys(seed, epoch, at, len(model.convs) - 1)
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
    training.losses = losses.sums()
    now = time.perf_counter()
    training.add_seconds({**loader.seconds, "train": train_s + now - began, "total": now - started})
