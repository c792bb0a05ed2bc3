"""Networks that users compile compute what they do without a backend, in one segment each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch
from torch import nn

from ansorpy.torch_backend import Backend
from tests.torch_backend.compared import agrees
from tests.torch_backend.networks import (
    Decoder,
    DepthwiseBlock,
    Encoder,
    ResidualBlock,
    UNet,
    ViT,
)

Case = tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]

CASES: dict[str, Case] = {
    "residual": (lambda: ResidualBlock(8), lambda: (torch.randn(1, 8, 7, 7),)),
    "depthwise": (lambda: DepthwiseBlock(6), lambda: (torch.randn(2, 6, 9, 9),)),
    "vit": (ViT, lambda: (torch.randn(2, 3, 16, 16),)),
    "encoder": (Encoder, lambda: (torch.randint(50, (2, 7)), torch.ones(2, 7))),
    "unet": (UNet, lambda: (torch.randn(1, 3, 8, 8),)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_network_is_one_segment(name: str, backend: Backend) -> None:
    make, inputs = CASES[name]
    agrees(backend, make().eval(), *inputs())
    [graph] = backend.graphs
    assert [segment.failure for segment in graph.segments] == [""] and not graph.eager


def test_a_decoder_writes_its_cache(backend: Backend) -> None:
    model = Decoder().eval()
    compiled = torch.compile(model, backend=backend)
    keys = torch.zeros(1, 2, 12, 8)
    values = torch.zeros(1, 2, 12, 8)
    ids = torch.randint(50, (1, 1))
    for place in range(3):
        agrees(backend, model, ids, keys, values, torch.tensor([place]), compiled=compiled)
        with torch.no_grad():
            ids = compiled(ids, keys, values, torch.tensor([place]))
    assert keys[0, 0, :3].all(1).all() and len(backend.graphs) == 1


def test_recurrent_layers_if_torch_captures_them(backend: Backend) -> None:
    """By default, it runs a module that calls one as a whole."""

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.lstm = nn.Embedding(20, 8), nn.LSTM(8, 8, bidirectional=True)
            self.head = nn.Linear(16, 3)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.lstm(self.words(ids))[0]).softmax(-1)

    ids = torch.randint(20, (5, 2))
    agrees(backend, Tagger().eval(), ids)
    assert not backend.graphs
    torch._dynamo.reset()
    with torch._dynamo.config.patch(allow_rnn=True):
        agrees(backend, Tagger().eval(), ids)
    assert all(segment.model is not None for segment in backend.graphs[0].segments)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_element_types(dtype: torch.dtype, backend: Backend) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)).to(dtype)
    agrees(backend, model.eval(), torch.randn(5, 6).to(dtype), rtol=2e-2, atol=2e-2)
    assert not backend.graphs[0].eager
