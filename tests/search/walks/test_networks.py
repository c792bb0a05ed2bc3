"""Networks side by side: one call computes what each would alone."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch
from torch import nn

from ansorpy.search.walks.networks import perceptrons


@pytest.mark.parametrize("sizes", [(3, 2), (3, 5, 4, 2)])
def test_each_network_has_its_own_outputs_and_weights(sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    net, rows = perceptrons(sizes, 4, nn.Tanh), torch.randn(7, 3)
    assert net(rows).shape == (7, 4, 2)
    net(rows)[:, 1].sum().backward()
    for weights in net.parameters():
        of_each = weights.grad.reshape(4, -1).abs().sum(1) > 0
        assert of_each.tolist() == [False, True, False, False]
