"""LossSum: the losses of an epoch, left on the device and looked at now and then."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

LOOK_EVERY = 32
"""Minibatches between two looks at losses outside the CPU: each waits until the device has computed them."""


def look_every(device: torch.device) -> int:
    """Minibatches between two looks at losses on `device`: on the CPU a bad loss is told as it comes."""
    return 1 if device.type == "cpu" else LOOK_EVERY


class Sums(NamedTuple):
    """loss: each seed node's, added up. num_seeds, num_batches: how many seed nodes and minibatches."""

    loss: float = 0.0
    num_seeds: int = 0
    num_batches: int = 0

    @property
    def mean(self) -> float:
        """Loss per seed node."""
        return self.loss / self.num_seeds


NOTHING = Sums()


class LossSum:
    """The losses of epoch `epoch`, added in double precision in the order of the minibatches.

    look_every: minibatches between two looks; the sum does not depend on it.
    before: of the minibatches that came before.
    """

    def __init__(self, epoch: int, look_every: int, before: Sums = NOTHING) -> None:
        self.epoch = epoch
        self.look_every = look_every
        self._seen = before
        self._unseen: list[Tensor] = []
        self._seeds_of_unseen: list[int] = []

    def add(self, loss: Tensor, num_seeds: int) -> None:
        """The mean loss of the next minibatch, a tensor of one number. Raises as `look` does."""
        self._unseen.append(loss.detach())
        self._seeds_of_unseen.append(num_seeds)
        if len(self._unseen) >= self.look_every:
            self.look()

    def look(self) -> None:
        """Adds up what was put off. Raises FloatingPointError for a loss that is no finite number."""
        if not self._unseen:
            return
        for value, num_seeds in zip(torch.stack(self._unseen).tolist(), self._seeds_of_unseen, strict=True):
            seen = self._seen
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"the loss is {value} in epoch {self.epoch}, minibatch {seen.num_batches}: lower --lr, "
                    "or look for NaN and huge values among the features (--normalize standard brings columns "
                    "to one scale)"
                )
            self._seen = Sums(seen.loss + value * num_seeds, seen.num_seeds + num_seeds, seen.num_batches + 1)
        self._unseen.clear()
        self._seeds_of_unseen.clear()

    def sums(self) -> Sums:
        """Of all there are, which are looked at first."""
        self.look()
        return self._seen
