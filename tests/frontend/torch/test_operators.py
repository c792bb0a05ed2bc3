"""Translations of ATen operators: onnxruntime computes from them what torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

from ansorpy.frontend.onnx import load
from ansorpy.frontend.torch.arrays import array_of
from ansorpy.frontend.torch.decompositions import decompositions
from ansorpy.frontend.torch.translate import is_operator, refusal, translate
from ansorpy.frontend.torch.whole import attention, interpolate
from tests.graph.executor import compiled, run_network
from tests.peer import peer


def captured(function: Callable[..., Any], *inputs: torch.Tensor) -> torch.fx.Graph:
    with torch.no_grad():
        made = make_fx(
            lambda *given: tree_leaves(function(*given)),
            decomposition_table=decompositions(),
            tracing_mode="fake",
        )(*inputs)
    made.graph.eliminate_dead_code()
    return made.graph


def demand_same(function: Callable[..., Any], *inputs: torch.Tensor) -> None:
    graph = captured(function, *inputs)
    assert {n.name: why for n in graph.nodes if is_operator(n) and (why := refusal(n))} == {}
    found = translate(graph, "operators")
    load(found.model)
    session = peer(found.model)
    arrays = session.run(None, {one.name: array_of(inputs[one.number]) for one in found.inputs})
    for array, want in zip(arrays, tree_leaves(function(*inputs)), strict=True):
        got = torch.from_numpy(array.copy())
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


UNARY: list[Callable[[torch.Tensor], torch.Tensor]] = [
    torch.abs, torch.ceil, torch.cos, torch.erf, torch.exp, torch.expm1, torch.floor, torch.isinf,
    torch.isnan, torch.logical_not, torch.neg, torch.reciprocal, torch.relu, torch.round,
    torch.sigmoid, torch.sign, torch.sin, torch.tan, torch.tanh, torch.trunc, F.elu, F.gelu,
    F.hardswish, F.leaky_relu, F.mish, F.relu6, F.selu, F.silu, F.softplus, torch.atan,
]  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_functions_of_elements(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    demand_same(function, torch.cat([drawn(20) * 3, torch.tensor([0.0, 0.5, 1.5, 20.0, 1e-6])]))


@pytest.mark.parametrize("name", ["log", "log1p", "log2", "log10", "sqrt", "rsqrt"])
def test_functions_of_positive_elements(name: str) -> None:
    demand_same(getattr(torch, name), torch.tensor([1e-7, 1e-3, 0.3, 1.0, 7.5, 1e6]))


INTS = torch.tensor([-7, -4, -1, 0, 3, 9]), torch.tensor([3, -3, 2, 5, -2, 4])
ARITHMETIC: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    torch.add, torch.sub, torch.mul, torch.div, torch.fmod, torch.remainder, torch.maximum,
    torch.minimum, torch.eq, torch.ne, torch.lt, torch.ge, torch.logical_xor,
    lambda a, b: torch.add(a, b, alpha=2), lambda a, b: torch.div(a, b, rounding_mode="floor"),
    lambda a, b: torch.div(a, b, rounding_mode="trunc"), lambda a, b: a.where(b > 0, b),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ARITHMETIC)))
def test_arithmetic_promotes_types(number: int) -> None:
    function = ARITHMETIC[number]
    demand_same(function, *INTS)
    demand_same(function, INTS[0] / 2, INTS[1] / 3)
    demand_same(function, INTS[0].to(torch.int32), INTS[1] / 3)


Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]
X, IMAGE, PLACES = drawn(3, 4, 5), drawn(2, 4, 7, 6), torch.tensor([[2, 0], [1, -1]])
CASES: dict[str, Case] = {
    "reductions": (lambda x: (x.sum(), x.mean(1), x.amax((0, 2)), x.prod(-1, keepdim=True)), (X,)),
    "truths": (lambda x: ((x > 0).any(1), (x > 0).all(), x.bool().any()), (X,)),
    "extremes": (lambda x: (*x.max(1), *x.min(-1, True), x.argmax(), x.argmin(0)), (X,)),
    "variances": (lambda x: (x.var(1), x.std(), *torch.var_mean(x, (0, 1), correction=0)), (X,)),
    "norms": (lambda x: (x.norm(), torch.linalg.vector_norm(x, 1, 1)), (X,)),
    "scans": (lambda x: (x.cumsum(1), x.logsumexp(0)), (X,)),
    "orders": (lambda x: (*x.topk(2, 1), *x.sort(-1, descending=True)), (X,)),
    "softmax": (lambda x: (x.softmax(1), x.log_softmax(-1)), (X,)),
    "shapes": (lambda x: (x.view(4, 15), x.mT.reshape(-1), x[:, None].squeeze(1), x[1:, ::2]),
               (X,)),
    "splits": (lambda x: (*x.split(2, 1), *x.unbind(0), *x.chunk(3, -1)), (X,)),
    "copies": (lambda x: (x.repeat(2, 1, 1), x.roll(1, 0), x.flip(1), x.tril(), x.diagonal()),
               (X,)),
    "pads": (lambda x: (F.pad(x, (1, 2), value=3.0), F.pad(x, (-1, 1, 0, 1))), (X,)),
    "mirrors": (lambda x: (F.pad(x, (1, 2), "reflect"), F.pad(x, (2, 1), "replicate")), (X,)),
    "parts": (lambda x: (x.slice_scatter(x[:, :2], 1, 1, 3), x.select_scatter(x[0], 0, 2),
                         x.slice_scatter(x[:, :2], 1, -6, 2)), (X,)),
    "index": (lambda x, i: (x[i], x[:, i], x[i, :, i], x[:, i, i], x[i, 1]), (X, PLACES)),
    "index_put": (lambda x, i: x.index_put((i,), x[0]).index_put((i, i), x[0, 0], True),
                  (X, PLACES)),
    "masks": (lambda x: (x.masked_fill(x > 0, 2.0), x.clamp(-0.5, 0.5), x.clamp_min(0)), (X,)),
    "gather": (lambda x, i: (x.gather(1, i[None].abs()), x.index_select(1, i[0])), (X, PLACES)),
    "scatter": (lambda x, i: (x.scatter(1, i[None].abs(), 1.5),
                              x.scatter_add(1, i[None].abs(), x[:, :2, :2])), (X, PLACES)),
    "created": (lambda x: (x + torch.arange(5), torch.full_like(x, 2), x.new_ones(3) * 2,
                           torch.arange(1, 2, 0.25) + x.sum()), (X,)),
    "casts": (lambda x: (x.int(), x.double() * 2, x.bool(), x.half().float()), (X,)),
    "products": (lambda x: (x @ x.mT, torch.einsum("bij,bkj->bik", x, x),
                            torch.baddbmm(x @ x.mT, x, x.mT, beta=0.5, alpha=2)), (X,)),
    "convs": (lambda x, w: (F.conv2d(x, w, None, 2, 1, 2), F.conv2d(x, w[:, :2], None, groups=2)),
              (IMAGE, drawn(6, 4, 3, 2))),
    "transposed": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2),
                   (IMAGE, drawn(4, 2, 3, 3), drawn(4))),
    "pools": (lambda x: (F.max_pool2d(x, 3, 2, 1),
                         F.avg_pool2d(x, 2, 1, 1, count_include_pad=False),
                         F.max_pool2d(x[0], (2, 3), ceil_mode=True)), (IMAGE,)),
    "adaptive": (lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (7, 2)),
                            F.adaptive_avg_pool2d(x, (3, 4))), (IMAGE,)),
    "groups": (lambda x, a, b: F.group_norm(x, 2, a, b), (IMAGE, drawn(4), drawn(4) + 1)),
    "layers": (lambda x, a, b: (F.layer_norm(x, (4, 5)), F.layer_norm(x, (5,), a, b)),
               (X, drawn(5), drawn(5) + 1)),
    "shuffled": (lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x[..., :6, :], 2)), (IMAGE,)),
    "grids": (lambda x, g: F.grid_sample(x, g.tanh(), align_corners=True),
              (IMAGE, drawn(2, 3, 3, 2))),
    "attention": (attention, (drawn(3, 3, 4, 5), drawn(3, 3, 4, 5), drawn(3, 3, 4, 5),
                              drawn(3, 4, 4))),
    "attention_with_hidden_rows": (attention, (drawn(3, 3, 4, 5), drawn(3, 3, 2, 5),
                                               drawn(3, 3, 2, 5), drawn(4, 1))),
    "attention_without_heads": (attention, (X, X, X, drawn(3, 4, 4))),
    "booleans": (lambda x, b: (b < x, x >= b, b > 0.5, b <= True, b.lt(b.flip(0)), b != x),
                 (torch.tensor([0.25, 0.5, 1.0, -1.0]), torch.tensor([True, False, True, False]))),
    "embedding": (lambda w, i: F.embedding(i.abs(), w), (drawn(5, 3), PLACES)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operators(name: str) -> None:
    function, inputs = CASES[name]
    demand_same(function, *inputs)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (torch.lgamma, "no translation"),
        (lambda x: torch.view_as_real(x + 1j), "element type torch.complex64"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=3), "divisor_override=3"),
        (lambda x: F.max_pool2d(x, 2, return_indices=True)[1], "only training needs"),
    ],
)  # fmt: skip
def test_what_has_no_translation_is_refused(function: Callable[..., Any], why: str) -> None:
    graph = captured(function, drawn(2, 4, 6))
    assert any(why in (refusal(node) or "") for node in graph.nodes if is_operator(node))


def test_angles_of_zeros_and_infinities() -> None:
    numbers = torch.tensor([0.0, -0.0, 1.5, -2.0, torch.inf, -torch.inf, torch.nan])
    demand_same(
        torch.atan2, *(part.flatten() for part in torch.meshgrid(numbers, numbers, indexing="ij"))
    )


def compiled_as(function: Callable[..., Any], x: torch.Tensor, tolerance: float) -> None:
    """Compare *function*, compiled, with torch: onnxruntime is wider, or reads ONNX otherwise."""
    found = translate(captured(function, x), "operators")
    [given] = found.inputs
    arrays = run_network(compiled(found.model), {given.name: array_of(x)})
    for array, want in zip(arrays, tree_leaves(function(x)), strict=True):
        got = torch.from_numpy(array.copy())
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64], ids=str)
def test_quotients_of_the_least_and_largest_integers_are_rounded_down(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    ends = [limits.min, limits.min + 1, 0, 7, limits.max - 1, limits.max]
    divisors = (3, 5) if dtype == torch.uint8 else (3, -3, 5, -7)
    compiled_as(lambda x: [x // d for d in divisors], torch.tensor(ends, dtype=dtype), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
def test_quotients_of_floats_are_rounded_down_as_if_they_were_exact(dtype: torch.dtype) -> None:
    """1 // 0.1 is 9: the tenth is a little more, and the nearest quotient 10."""
    tenths = torch.cat([torch.arange(-30, 31) / 10, torch.tensor([1e-7, -1e-7, torch.inf])])
    divisors = (0.1, -0.3, torch.inf, 0.0)
    compiled_as(lambda x: [x // torch.full_like(x, d) for d in divisors], tenths.to(dtype), 0)
    compiled_as(lambda x: (x // 0.1, x.double() // 0.1), tenths.to(dtype), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
def test_quotients_by_powers_of_2_need_no_remainder(dtype: torch.dtype) -> None:
    def halved(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x // 2, x // -0.25, x // 1, x[3] // 4

    ends = torch.tensor([0.0, -0.0, -1.0, 1.0, torch.inf, -torch.inf, torch.nan])
    x = torch.cat([torch.arange(-30, 31) / 10, ends]).to(dtype)
    compiled_as(halved, x, 0)
    assert all(
        node.op_type != "Mod" for node in translate(captured(halved, x), "").model.graph.node
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
def test_logarithms_of_powers_of_their_base_are_whole(dtype: torch.dtype) -> None:
    """That of 8192 is 13, not a little less."""
    exponents = torch.arange(-12, 16, dtype=torch.float64)
    ends = torch.tensor([0.0, torch.inf, -1.0, torch.nan])
    powers = torch.cat([2**exponents, 10.0 ** torch.arange(-3, 5), ends]).to(dtype)
    compiled_as(lambda x: [torch.log2(x).floor(), torch.log10(x).floor()], powers, 0)


def test_the_sign_of_no_number_is_0() -> None:
    compiled_as(torch.sign, torch.tensor([torch.nan, -torch.inf, -0.0, 0.5]), 0)


def test_variances_in_half_precision_do_not_overflow() -> None:
    compiled_as(lambda x: torch.var_mean(x, -1), (drawn(2, 4096) * 5).half(), 1e-3)


def test_factors_of_halves_are_not_rounded() -> None:
    x = torch.tensor([6e4, 1.0]).half()
    compiled_as(lambda x: (x * 1e-8, x / 1e5, x * (x[1].float() * 1e-8)), x, 1e-5)


def test_the_first_factor_of_halves_is_rounded() -> None:
    def scaled(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        one = x[1].float()
        return (
            (one * 1e5) / x, (one * 1e-8) * x, torch.div(one * 1000.3, x, rounding_mode="floor"),
            torch.div(one * 1000.3, x, rounding_mode="trunc"),
        )  # fmt: skip

    compiled_as(scaled, torch.tensor([6e4, 1.0, 0.1, 1.7]).half(), 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_quotients_are_cut_as_torch_does(dtype: torch.dtype) -> None:
    """Those of 16-bit floats are rounded before, but not if there is one divisor."""

    def cut(x: torch.Tensor) -> list[torch.Tensor]:
        divisors = 84.5, 0.1, -3, x[-1], x[-1:], x.flip(0), x[0].float() / 3
        return [torch.div(x, d, rounding_mode="trunc").float() for d in divisors]

    compiled_as(cut, torch.tensor([253.0, 7.3, -0.3, 1.0, 507.0, 84.5]).to(dtype), 0)


def test_of_no_elements_all_but_not_any_are_true() -> None:
    compiled_as(lambda x: (x.any(0), x.all(0)), torch.ones(0, 3, dtype=torch.bool), 0)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_are_resized_by_factors(mode: str, corners: bool) -> None:
    """In float32, one factor gives a row too many, the other one too few."""
    image = drawn(1, 1, 25, 25)
    compiled_as(lambda x: interpolate(x, None, [1.16, 2.12], mode, corners), image, 1e-4)
