"""LossSum: the losses of an epoch, left on the device and looked at now and then."""

import math

import torch
from torch import Tensor

LOOK_EVERY = 32
"""Minibatches between two looks at losses outside the CPU: each waits until the device has computed them."""


def look_every(device: torch.device) -> int:
    """Minibatches between two looks at losses on `device`: on the CPU a bad loss is told as it comes."""
    return 1 if device.type == "cpu" else LOOK_EVERY


class LossSum:
    """The losses of epoch `epoch`, added in double precision in the order of the minibatches.

    look_every: minibatches between two looks; the sum does not depend on it.
    """

    def __init__(self, epoch: int, look_every: int) -> None:
        self.epoch = epoch
        self.look_every = look_every
        self._sum = 0.0
        self._num_seeds = 0
        self._num_seen = 0
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
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"the loss is {value} in epoch {self.epoch}, minibatch {self._num_seen}: lower --lr, or "
                    "look for NaN and huge values among the features (--normalize standard brings columns to "
                    "one scale)"
                )
            self._sum += value * num_seeds
            self._num_seeds += num_seeds
            self._num_seen += 1
        self._unseen.clear()
        self._seeds_of_unseen.clear()

    def mean(self) -> float:
        """Per seed node; looks at all there are first."""
        self.look()
        return self._sum / self._num_seeds
