"""Negative edges for PyG's link loaders, drawn from a key instead of torch's global generator."""

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.sampler import NegativeSampling


class KeyedNegativeSampling(NegativeSampling):  # type: ignore[misc]
    """PyG's `NegativeSampling`, whose draws in one batch follow from `key`."""

    generator: torch.Generator

    def sample(
        self, num_samples: int, endpoint: Literal["src", "dst"], num_nodes: int | None = None
    ) -> Tensor:
        """int64 (num_samples,): nodes, uniformly or by the weights of their endpoint."""
        weight = self.src_weight if endpoint == "src" else self.dst_weight
        if weight is None:
            assert num_nodes is not None
            return torch.randint(num_nodes, (num_samples,), generator=self.generator)
        if num_nodes is not None and weight.numel() != num_nodes:
            raise ValueError(
                f"{endpoint}_weight has {weight.numel()} entries, the graph has {num_nodes} nodes"
            )
        return torch.multinomial(weight, num_samples, replacement=True, generator=self.generator)


def keyed_negatives(sampling: NegativeSampling, key: int) -> KeyedNegativeSampling:
    """`sampling` with its draws bound to `key` (0 to 2^64 - 1)."""
    keyed = KeyedNegativeSampling(sampling.mode, sampling.amount, sampling.src_weight, sampling.dst_weight)
    keyed.generator = torch.Generator().manual_seed(key >> 1)
    return keyed
