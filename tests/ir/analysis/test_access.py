"""Access relations, and that the answers read off coefficients are those of isl."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Mapping

import islpy
import numpy as np
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.analysis.access import Access, accesses, domain_of, reads
from ansorpy.ir.analysis.isl import without_inputs
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, Expr, walk
from ansorpy.ir.tensor import ComputeOp, compute, placeholder
from tests.ir.scalar import value
from tests.ir.workloads import ALL, conv, gather, matmul, reshape
from tests.properties.random_operators import random_definition


def of(dag: ComputeDAG, reader: str, tensor: str) -> Access:
    ops = {op.name: op for op in dag.ops}
    op = ops[reader]
    assert isinstance(op, ComputeOp)
    [found] = reads(op, ops[tensor])
    return found


def read(fn: Callable[..., Expr], *extents: int, size: int) -> tuple[tuple[Axis, ...], Access]:
    """The axes and the access ``x[fn(i, j, ...)]`` of an op of *extents*."""
    x = placeholder((size,), name="x")
    y = compute(extents, lambda *i: x[fn(*i)], name="y")
    return y.axes, accesses(y)[0]


def test_a_matrix_product() -> None:
    dag = matmul()
    a = of(dag, "y", "x")
    y = next(op for op in dag.computes if op.name == "y")
    (i, _), [k] = y.axes, y.reduce_axes
    assert [dict(t[0]) for t in a.terms if t] == [{i: 1}, {k: 1}]
    assert a.moving == {i, k} and a.is_injective and not a.is_once
    assert str(a.relation.map) == (
        "{ y[i, j, k] -> x[i, k] : 0 <= i <= 4 and 0 <= j <= 2 and 0 <= k <= 6 }"
    )
    assert of(dag, "z", "y").is_injective


def test_windows_overlap() -> None:
    a = of(conv(stride=2), "conv", "padded")
    assert not a.is_injective


def test_guards_limit_what_is_read() -> None:
    padded = of(conv(n=7, c=3), "padded", "x")
    assert padded.guard is not None and padded.is_once
    assert str(padded.relation.map) == (
        "{ padded[h, v, ch] -> x[-1 + h, -1 + v, ch] : 0 < h <= 7 and 0 < v <= 7 and 0 <= ch <= 2 }"
    )


def test_a_side_of_a_selection_reads_where_it_is_taken() -> None:
    x = placeholder((8,), name="x")
    y = compute(
        (8,), lambda i: b.select(i < 3, x[i], b.select(i < 6, x[7 - i] * 2.0, x[0])), name="y"
    )
    found = [str(access.relation.map) for access in accesses(y)]
    assert found == [
        "{ y[i] -> x[i] : 0 <= i <= 2 }",
        "{ y[i] -> x[7 - i] : 3 <= i <= 5 }",
        "{ y[i] -> x[0] : 6 <= i <= 7 }",
    ]


def test_a_load_that_two_sides_share_is_read_on_both() -> None:
    x = placeholder((8,), name="x")

    def shared(i: Expr) -> Expr:
        load = x[i]
        return b.select(i < 3, load, b.select(i < 6, load + 1.0, 0.0))

    [access] = accesses(compute((8,), shared, name="y"))
    assert access.relation.map.is_equal(islpy.Map("{ y[i] -> x[i] : 0 <= i <= 5 }"))


def test_a_guard_may_make_a_read_unique() -> None:
    x = placeholder((4,), name="x")
    spread = compute((8,), lambda i: b.select((i % 2).equal(0), x[i // 2], 0.0), name="spread")
    [access] = accesses(spread)
    assert not access.is_injective and access.is_once


def test_a_gather_is_opaque() -> None:
    a = of(gather(5, 4), "y", "table")
    i, j = a.axes
    assert a.terms[0] is None and not a.is_injective and not a.is_once
    assert a.moving == {i, j} and not a.relation.exact
    assert str(a.relation.map) == (
        "{ y[i, j] -> table[o0, j] : 0 <= i <= 2 and 0 <= j <= 3 and 0 <= o0 <= 4 }"
    )


def test_reshapes_are_seen_through() -> None:
    a = of(reshape(6, 4), "flat", "x")
    assert a.terms == (None, None) and a.is_injective and a.is_once


def test_sums_are_recognised_however_they_are_written() -> None:
    (i, j), access = read(lambda i, j: i // 4 * 4 + i % 4 + b.minimum(j, 9) * 8, 8, 5, size=64)
    assert access.terms == (({i: 1, j: 8}, 0),)
    (i,), access = read(lambda i: b.select(i < 8, i + 3, 0), 8, size=64)
    assert access.shifts == ((i, 3),)
    (i, _), access = read(lambda i, j: i // 2, 8, 5, size=64)
    assert access.terms == (None,) and access.moving == {i}


INDICES: list[tuple[Callable[..., Expr], tuple[int, ...]]] = [
    (lambda i: i // 4, (24,)),
    (lambda i: i % 4, (24,)),
    (lambda i: (i + 3) // 4 * 2, (11,)),
    (lambda i, j: (i * 4 + j) // 4, (5, 7)),
    (lambda i, j: i * 2 + j, (5, 3)),
    (lambda i, j: i * 3 + j, (5, 3)),
    (lambda i, j: i * 3 + j * 2, (2, 3)),
    (lambda i, j, k: i * 6 + j * 2 - k, (3, 3, 2)),
    (lambda i, j: i - j + 4, (5, 5)),
    (lambda i, j: b.minimum(i + j, 6), (7, 4)),
    (lambda i, j: b.maximum(i, j), (4, 6)),
    (lambda i, j: i // 2 + j % 3, (7, 7)),
    (lambda i, j: (i * 7 + j) % 5, (4, 7)),
    (lambda i, j: b.select(i < j, i, j), (4, 4)),
    (lambda i: (i * i) % 7, (6,)),
    (lambda i: 3 - i // 2, (7,)),
]


@pytest.mark.parametrize(("fn", "extents"), INDICES)
def test_injectivity_is_what_counting_says(
    fn: Callable[..., Expr], extents: tuple[int, ...]
) -> None:
    axes, access = read(fn, *extents, size=64)
    seen = dict[tuple[int, ...], int]()
    for point in itertools.product(*(range(e) for e in extents)):
        at: dict[Expr, int] = dict(zip(axes, point, strict=True))
        key = tuple(v for axis, v in at.items() if axis in access.moving)
        seen[key] = value(access.indices[0], at)
    assert access.is_injective is (len(set(seen.values())) == len(seen))


@pytest.mark.parametrize("make", ALL)
def test_every_definition_can_be_asked_about(make: Callable[[], ComputeDAG]) -> None:
    dag = make()
    for op in dag.computes:
        assert accesses(op) is accesses(op)
        assert {a.tensor for a in accesses(op)} == set(dag.reads(op))


@pytest.mark.parametrize("seed", range(40))
def test_what_coefficients_say_is_what_isl_says(seed: int) -> None:
    for op in random_definition(np.random.default_rng(seed)).computes:
        for access in accesses(op):
            is_as_isl_says(access)


def is_as_isl_says(access: Access) -> None:
    domain = domain_of(access.reader)
    for index, terms in zip(access.indices, access.terms, strict=True):
        assert terms is None or is_sum(access, index, terms)
    for d, index in enumerate(access.indices):
        for axis in (axis for axis in access.axes if axis.extent > 1):
            occurs = axis in set(walk(index))
            known = 0 if not occurs and domain.affine(index) is None else domain.step(index, axis)
            assert access.step(d, axis) == known
    relation = domain.access(access.indices, access.tensor.shape)
    if relation.exact:
        fixed = [n for n, axis in enumerate(access.axes) if axis not in access.moving]
        assert access.is_injective is without_inputs(relation.map, fixed).is_injective()
        assert access.is_once is access.relation.map.is_injective()
    else:
        assert not access.is_injective and not access.is_once


def is_sum(access: Access, index: Expr, terms: tuple[Mapping[Axis, int], int]) -> bool:
    """Whether *index* is the sum that *terms* make, at every point of the reader."""
    domain, total = (
        domain_of(access.reader),
        terms[1] + sum((axis * c for axis, c in terms[0].items()), start=access.axes[0] * 0),
    )
    here, there = domain.affine(index), domain.affine(total)
    assert here is not None and there is not None
    return bool(domain.box.is_subset(here.eq_set(there)))


def test_plain_definitions_do_not_load_isl() -> None:
    code = (
        "import sys, tests.ir.workloads as w; from ansorpy.ir.analysis.access import accesses\n"
        "for op in w.softmax().computes:\n"
        "    assert [a.is_injective and a.moving and a.shifts for a in accesses(op)]\n"
        "assert 'islpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
