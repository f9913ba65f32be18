"""Dropout's random numbers: those of (seed, epoch, batch, layer, position), the same on every device."""

import numpy as np
import torch
from torch import Tensor

STEPS = 1 << 16
"""Shares of dropped values are multiples of 1 / STEPS: a draw is one of so many numbers."""

PER_WORD = 4
"""Draws in one word of 64 bits."""


def dropout_keys(seed: int, epoch: int, batch: int, num_keys: int) -> list[int]:
    """64-bit keys of the dropout in one minibatch, one per hidden layer; batch: its number in the epoch.

    Nothing else goes in: whoever starts at this minibatch draws what a run from the beginning draws.
    """
    state = np.random.SeedSequence([seed, epoch, batch]).generate_state(max(num_keys, 1), np.uint64)
    return [int(key) for key in state[:num_keys]]


def kept(key: int, drop: int, size: int, device: torch.device) -> Tensor:
    """bool (size,): which values stay where `drop` of 65536 go, as `ops.relu_dropout` tells it, in torch.

    Draw i is bits 16 * (i % 4) and up of output i // 4 + 1 of SplitMix64 seeded with `key`; it keeps its
    value if it is at least `drop`. Torch's int64 wraps like the kernels' uint64. Its generators would do
    neither: what they draw differs between the CPU and a GPU, and from one GPU to another.
    """
    words = torch.arange(1, -(-size // PER_WORD) + 1, device=device)
    words.mul_(_int64(0x9E3779B97F4A7C15)).add_(_int64(key))
    words.bitwise_xor_(_shifted(words, 30)).mul_(_int64(0xBF58476D1CE4E5B9))
    words.bitwise_xor_(_shifted(words, 27)).mul_(_int64(0x94D049BB133111EB))
    words.bitwise_xor_(_shifted(words, 31))
    words.bitwise_xor_(
        _int64(0x8000800080008000)
    )  # signed numbers have no other order than unsigned ones now
    return words.view(torch.int16)[:size] >= drop - STEPS // 2


def _int64(value: int) -> int:
    """The signed number of the same 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def _shifted(words: Tensor, num_bits: int) -> Tensor:
    """words >> num_bits, with zeros coming in."""
    return (words >> num_bits).bitwise_and_((1 << 64 - num_bits) - 1)
