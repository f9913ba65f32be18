"""The mean loss does not depend on when the losses are looked at; a bad one is named."""

import pytest
import torch

from gnn_ibp.train.loss_sum import LOOK_EVERY, LossSum, look_every


def test_mean_is_the_same_digit_for_digit_however_seldom_one_looks() -> None:
    losses = torch.rand(75, generator=torch.Generator().manual_seed(0))
    means = set()
    for every in (1, 2, LOOK_EVERY, 1000):
        total = LossSum(1, every)
        for at, loss in enumerate(losses):
            total.add(loss, 1024 - at)
        means.add(total.sums().mean)
    wanted = 0.0
    for at, loss in enumerate(losses.tolist()):
        wanted += loss * (1024 - at)
    assert means == {wanted / sum(1024 - at for at in range(75))}


@pytest.mark.parametrize("every", [1, 3, LOOK_EVERY])
@pytest.mark.parametrize("bad", [torch.nan, -torch.inf])
def test_bad_loss_names_epoch_and_minibatch(every: int, bad: float) -> None:
    losses = LossSum(4, every)
    message = f"the loss is {bad} in epoch 4, minibatch 40: lower --lr"
    with pytest.raises(FloatingPointError, match=message):
        for at in range(50):
            losses.add(torch.tensor(bad if at == 40 else 1.0), 10)
        losses.sums()


def test_losses_off_the_cpu_are_seldom_looked_at() -> None:
    assert look_every(torch.device("cpu")) == 1
    assert look_every(torch.device("cuda", 1)) == LOOK_EVERY
    losses = LossSum(1, LOOK_EVERY)
    for _ in range(LOOK_EVERY - 1):  # a tensor without values cannot be looked at
        losses.add(torch.empty((), device="meta"), 10)
    with pytest.raises(RuntimeError):
        losses.add(torch.empty((), device="meta"), 10)


def test_losses_keep_no_history() -> None:
    losses, weight = LossSum(1, LOOK_EVERY), torch.ones((), requires_grad=True)
    losses.add(2 * weight, 3)
    assert not any(loss.requires_grad for loss in losses._unseen)
    assert losses.sums().mean == 2.0
