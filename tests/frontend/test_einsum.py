"""Einsum of random equations against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph.ops import Attention, MatMul
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import assert_same_as_onnxruntime, compiled
from tests.graph.nets import Net

SIZES = dict(zip("abcdefgh", (2, 3, 1, 5, 7, 4, 2, 3), strict=True))


def shape(term: str) -> tuple[int, ...]:
    return tuple(SIZES[label] for label in term)


@pytest.mark.parametrize("equation", [
    "ab,bd->ad", "ab,ab->ab", "ab,db->ad", "abd,abe->ade", "abd,dbe->eb", "ab->ba", "ab->",
    "abd->b",
    "ab,d->dab", "a,a->", "abd,ab,ad->d", "ab,bd,de->ae", "abc,cde->abde", "aab->ba", "abde,ae->bd",
    "ba,ea", "abd", "a b d , d e -> a e",
])  # fmt: skip
def test_equations(equation: str) -> None:
    left = equation.replace(" ", "").partition("->")[0]
    shapes = [shape(term) for term in left.split(",")]
    model = operator_model("Einsum", shapes, equation=equation)
    assert_same_as_onnxruntime(model, np.random.default_rng(1))


@pytest.mark.parametrize(
    "equation", ["...ad,...de->...ae", "...ad->...d", "a...,a...->...", "...a,ad"]
)
@pytest.mark.parametrize("more", [(), (3,), (3, 2)])
def test_ellipses(equation: str, more: tuple[int, ...]) -> None:
    left = equation.partition("->")[0].split(",")
    shapes = []
    for term in left:
        before, dots, after = term.partition("...")
        shapes.append((*shape(before), *(more if dots else ()), *shape(after)))
    model = operator_model("Einsum", shapes, equation=equation)
    assert_same_as_onnxruntime(model, np.random.default_rng(1))


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij,jk->ik", [(3, 1), (4, 5)]), ("bij,bjk->ik", [(2, 3, 4), (1, 4, 5)]),
    ("ij,jk,jl->ikl", [(2, 1), (1, 4), (3, 5)]), ("...ij,...jk->...ik", [(2, 3, 4), (1, 1, 6)]),
])  # fmt: skip
def test_axes_of_one_element_broadcast(equation: str, shapes: list[tuple[int, ...]]) -> None:
    model = operator_model("Einsum", shapes, equation=equation)
    assert_same_as_onnxruntime(model, np.random.default_rng(1))


@pytest.mark.parametrize("seed", range(20))
def test_random_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    terms = ["".join(rng.permutation(list("abdef"))[: rng.integers(1, 5)]) for _ in range(2)]
    labels = sorted({*terms[0], *terms[1]})
    wanted = "".join(rng.permutation(labels)[: rng.integers(0, len(labels) + 1)])
    equation = f"{','.join(terms)}->{wanted}"
    model = operator_model("Einsum", [shape(term) for term in terms], equation=equation)
    assert_same_as_onnxruntime(model, rng)


def test_products_of_an_attention_are_one() -> None:
    net = Net(q=(2, 5, 8), k=(2, 7, 8), v=(2, 7, 8))
    scores = net.op("Einsum", "q", "k", equation="bid,bjd->bij")
    mixed = net.op("Einsum", net.op("Softmax", scores, axis=-1), "v", equation="bij,bjd->bid")
    model = net.model(mixed)
    assert sum(isinstance(n.op, MatMul) for n in load(model).nodes) == 2
    network = assert_same_as_onnxruntime(model, np.random.default_rng(1))
    assert [c.name.split("_")[-2] for c in network.calls] == [Attention.__name__.lower()]


@pytest.mark.parametrize("equation", ["ab->ac", "abd,b->a"])
def test_what_does_not_fit_is_refused(equation: str) -> None:
    count = equation.count(",") + 1
    one = node("Einsum", ["x", "z"][:count], ["y"], equation=equation)
    model = graph_model([one, node("Flatten", ["y"], ["f"])], {"x": (2, 3), "z": (2, 3)}, ["f"])
    model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 2
    with pytest.raises(UnsupportedModel):
        compiled(model)
