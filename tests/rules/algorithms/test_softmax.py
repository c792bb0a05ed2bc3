"""Which sums are weighted by a softmax, and how they are taken apart."""

from __future__ import annotations

import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.algorithms.softmax import find_weighted_sums
from tests import workloads
from tests.rules.algorithms.weighted_sums import attends, softmax_then_product
from tests.rules.attentions import heads_attend


def unnormalised(shift: Expr | None = None) -> list[Tensor]:
    """A product with exponentials that are not relative to their maximum, or to another one."""
    x, v = placeholder((5, 7), name="x"), placeholder((7, 3), name="v")
    a, b, c = (reduce_axis(7, name=name) for name in "abc")
    top = compute((5,), lambda i: ap.max(x[i, a] * 2.0, axis=a), name="top")
    e = compute((5, 7), lambda i, j: ap.exp(x[i, j] - top[i]), name="e")
    total = compute((5,), lambda i: ap.sum(e[i, b], axis=b), name="total")
    mixed = compute((5, 3), lambda i, o: ap.sum(e[i, c] * v[c, o], axis=c), name="mixed")
    out = compute((5, 3), lambda i, o: mixed[i, o] / total[i], name="out")
    return [x, v, out]


def with_weights_as_output() -> list[Tensor]:
    given = softmax_then_product((5, 7), 3)
    product = given[-1]
    assert isinstance(product, ComputeOp)
    [weights] = [op for op in ComputeDAG.of(given).computes if op.name.startswith("softmax")]
    return [*given, weights]


@pytest.mark.parametrize(
    ("tensors", "found"),
    [
        (workloads.attention(2, 5, 7, 3), 1),
        (heads_attend(2, 5, 7, 3, 4, masks=((1, 3, 5, 7), (2, 1, 1, 7)), guarded=True), 1),
        (attends(5, 7, 3), 1),
        (attends(5, 7, 3, scale=0.25, keys_first=True), 1),
        (softmax_then_product((2, 5, 7), 3), 1),
        (softmax_then_product((5, 7), 3, dtype="float16", guarded=True), 1),
        (attends(5, 7, 3, scale=-0.25), 0),  # the largest score has the smallest weight
        (with_weights_as_output(), 0),
        (unnormalised(), 0),
        (workloads.softmax(4, 8), 0),
        (workloads.double_matmul(8), 0),
    ],
)
def test_which_definitions_have_one(tensors: list[Tensor], found: int) -> None:
    assert len(find_weighted_sums(ComputeDAG.of(tensors))) == found


def test_its_stages_are_known_by_what_they_compute() -> None:
    dag = ComputeDAG.of(heads_attend(2, 5, 7, 3, 4, masks=((2, 1, 1, 7),)))
    [weighted] = find_weighted_sums(dag)
    assert weighted.keys.extent == 7 and [a.extent for a in weighted.rows] == [2, 3, 5]
    assert [a.extent for a in weighted.columns] == [4]
    along = {op.name: dim for op, dim in weighted.along.items()}
    assert along == {"raised": 3, "masked": 3, "matmul": 3, "k": 3, "v": 2}
    assert weighted.scale is None


def test_the_weight_is_what_the_exponential_is_multiplied_by() -> None:
    [weighted] = find_weighted_sums(ComputeDAG.of(softmax_then_product((5, 7), 3)))
    assert weighted.raised.name == "exp" and weighted.weight is not weighted.read
    [weighted] = find_weighted_sums(ComputeDAG.of(attends(5, 7, 3, scale=0.25)))
    assert weighted.scale is not None and weighted.scale.value == 0.25


def test_keys_that_are_projected_in_the_definition_stay_whole() -> None:
    """Every block of rows would compute their sums again."""
    x, w = placeholder((7, 4), name="x"), placeholder((4, 3), name="w", constant=True)
    d = reduce_axis(4, name="d")
    k = compute((7, 3), lambda j, e: ap.sum(x[j, d] * w[d, e], axis=d), name="k")
    q, v = placeholder((5, 3), name="q"), placeholder((7, 3), name="v")
    r, *over = reduce_axis(3, name="r"), *(reduce_axis(7, name=name) for name in "abc")
    s = compute((5, 7), lambda i, j: ap.sum(q[i, r] * k[j, r], axis=r), name="s")
    top = compute((5,), lambda i: ap.max(s[i, over[0]], axis=over[0]), name="top")
    e = compute((5, 7), lambda i, j: ap.exp(s[i, j] - top[i]), name="e")
    total = compute((5,), lambda i: ap.sum(e[i, over[1]], axis=over[1]), name="total")
    mixed = compute(
        (5, 3), lambda i, o: ap.sum(e[i, over[2]] * v[over[2], o], axis=over[2]), name="mixed"
    )
    out = compute((5, 3), lambda i, o: mixed[i, o] / total[i], name="out")
    [weighted] = find_weighted_sums(ComputeDAG.of([x, w, q, v, out]))
    assert {op.name for op in weighted.along} == {"e", "s"}
