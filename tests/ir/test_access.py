from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable

import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.access import Access, accesses
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis
from tests.ir.scalar import value
from tests.ir.workloads import ALL, conv, gather, matmul, reshape


def of(dag: ComputeDAG, reader: str, producer: str) -> Access:
    [found] = [
        a
        for op, reads in accesses(dag).items()
        for a in reads
        if (op.name, a.producer.name) == (reader, producer)
    ]
    return found


def read(fn: Callable[..., Expr], *extents: int, size: int) -> tuple[tuple[Axis, ...], Access]:
    """The axes and the access ``x[fn(i, j, ...)]`` of an op of *extents*."""
    x = placeholder((size,), name="x")
    y = compute(extents, lambda *i: x[fn(*i)], name="y")
    return y.axes, accesses(ComputeDAG([y]))[y][0]


def test_a_matrix_product() -> None:
    dag = matmul()
    a = of(dag, "y", "x")
    y = next(op for op in dag.computes if op.name == "y")
    (i, _), [k] = y.axes, y.reduce_axes
    assert [dict(t[0]) for t in a.terms if t] == [{i: 1}, {k: 1}]
    assert a.injective and a.broadcast
    assert of(dag, "z", "y").injective and not of(dag, "z", "y").broadcast


def test_windows_overlap() -> None:
    a = of(conv(stride=2), "conv", "padded")
    assert not a.injective and a.broadcast
    assert of(conv(), "z", "bias").broadcast


def test_a_gather_is_opaque() -> None:
    a = of(gather(5, 4), "y", "table")
    assert a.terms[0] is None and not a.injective


def test_reshapes_are_seen_through() -> None:
    a = of(reshape(6, 4), "flat", "x")
    assert a.terms == (None, None) and a.injective


INDICES: list[tuple[Callable[..., Expr], tuple[int, ...]]] = [
    (lambda i: i // 4, (24,)),
    (lambda i: i % 4, (24,)),
    (lambda i: (i + 3) // 4 * 2, (11,)),
    (lambda i, j: (i * 4 + j) // 4, (5, 7)),
    (lambda i, j: i * 2 + j, (5, 3)),
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
    points = itertools.product(*(range(e) for e in extents))
    seen = [value(access.indices[0], dict(zip(axes, p, strict=True))) for p in points]
    assert not access.injective or len(set(seen)) == len(seen)
    if access.injective is False and len(set(seen)) == len(seen):
        pytest.fail("isl should have found this injective")


@pytest.mark.parametrize("make", ALL)
def test_every_definition_can_be_asked_about(make: Callable[[], ComputeDAG]) -> None:
    dag = make()
    found = accesses(dag)
    assert accesses(dag) is found
    assert all(found[op] or not dag.reads(op) for op in dag.computes)


def test_plain_affine_definitions_do_not_load_isl() -> None:
    code = (
        "import sys, tests.ir.workloads as w; from ansorpy.ir.access import accesses;"
        "accesses(w.softmax()); assert 'islpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_space_axis_of_extent_one_is_no_broadcast() -> None:
    x = placeholder((4,), name="x")
    k = reduce_axis(4, name="k")
    y: ComputeOp = compute((1,), lambda i: b.sum(x[k], k), name="y")
    assert not accesses(ComputeDAG([y]))[y][0].broadcast
