"""What graphs need beyond their operators: strides, open sizes, numbers, modes of torch, copies."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch
import torch.nn.functional as F
from torch import nn

from ansorpy.torch_backend import Backend
from tests.torch_backend.compared import agrees


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T.exp().relu().unfold(0, 2, 1),
        lambda x: torch.as_strided(x.T.exp()[1:][:, 2:], (3, 2), (2, 1)) + 1,
    ],
    ids=["of a result", "of its part"],
)
def test_memory_that_is_read_by_strides(
    backend: Backend, function: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """The results of torch are transposed, as its input is; those of segments are not."""
    agrees(backend, function, torch.randn(5, 6))
    assert [*backend.graphs[0].eager] == ["as_strided.default"]


def test_only_an_operator_that_the_importer_refuses_is_left_to_torch(backend: Backend) -> None:
    """There is no arc cosine of float64."""
    weights = torch.randn(4, 4, dtype=torch.float64)
    agrees(
        backend, lambda x: torch.acos((x @ weights).tanh()) @ weights,
        torch.randn(3, 4, dtype=torch.float64),
    )  # fmt: skip
    [graph] = backend.graphs
    assert [*graph.eager] == ["acos.default"]
    assert [segment.failure for segment in graph.segments] == ["", ""]


def test_a_norm_may_have_wider_weights_than_data(backend: Backend) -> None:
    model = nn.Sequential(nn.Linear(8, 8).bfloat16(), nn.LayerNorm(8), nn.Linear(8, 4).bfloat16())
    for weight in (model[1].weight, model[1].bias):
        nn.init.normal_(weight)
    agrees(backend, model.eval(), torch.randn(3, 8).bfloat16(), rtol=2e-2, atol=2e-2)
    [graph] = backend.graphs
    assert not graph.eager and [segment.failure for segment in graph.segments] == [""]


def test_a_product_of_open_sizes_is_a_dimension(backend: Backend) -> None:
    """The segment behind lgamma gets no tensor of either size."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(x.flatten()).relu()

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for rows in (3, 700):
        agrees(backend, function, torch.rand(rows, 40) + 1, compiled=compiled)
    [segment] = backend.graphs[0].segments
    assert segment.packed == 2 and not segment.failure


def test_an_image_is_resized_to_the_size_of_another(backend: Backend) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, y.shape[2:]) + y

    compiled = torch.compile(function, backend=backend, dynamic=True)
    agrees(backend, function, torch.randn(1, 2, 3), torch.randn(1, 2, 7), compiled=compiled)


def test_a_part_from_an_open_place_on_is_overwritten(backend: Backend) -> None:
    def function(x: torch.Tensor, n: int) -> torch.Tensor:
        y = x.clone()
        y[n:] = 1
        return y

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for n in (2, 4):
        agrees(backend, function, torch.randn(6, 3), n, compiled=compiled)


def test_fractions_that_change_are_compiled(backend: Backend) -> None:
    """From the second on, torch makes them operands; roots of sizes are numbers, too."""

    def function(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor / x.shape[-1] ** 0.5

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for factor in (0.5, 0.7, 0.9):
        agrees(backend, function, torch.randn(4, 5), factor, compiled=compiled)
    assert not backend.graphs[-1].eager


def test_attention_is_cast_as_torch_does(backend: Backend) -> None:
    """The functions of elements around it are not, so that its operands have several types."""
    values = nn.Linear(8, 8)

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x.cos(), x.sin(), values(x))

    with torch.autocast("cpu", torch.bfloat16):
        agrees(backend, function, torch.randn(2, 3, 4, 8), rtol=2e-2, atol=2e-2)


def test_circular_pads_are_compiled(backend: Backend) -> None:
    model = nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular").eval()
    agrees(backend, model, torch.randn(1, 2, 6))
    assert not backend.graphs[0].eager


def test_a_compiled_module_is_copied(backend: Backend) -> None:
    compiled = torch.compile(nn.Linear(4, 3).requires_grad_(False), backend=backend)
    x = torch.randn(2, 4)
    want = compiled(x)
    torch.testing.assert_close(copy.deepcopy(compiled)(x), want)
