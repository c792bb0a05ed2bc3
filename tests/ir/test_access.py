from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.access import Access, accesses, box_extent
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.printer import text
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


def read(fn: Callable[..., Expr], *extents: int, size: int) -> Access:
    """The access ``x[fn(i, j, ...)]`` of an op of *extents*."""
    x = placeholder((size,), name="x")
    y = compute(extents, lambda *i: x[fn(*i)], name="y")
    return accesses(ComputeDAG([y]))[y][0]


def test_a_matrix_product() -> None:
    a = of(matmul(), "y", "x")
    i, j = a.reader.axes
    [k] = a.reader.reduce_axes
    assert [dict(t[0]) for t in a.terms if t] == [{i: 1}, {k: 1}]
    assert a.injective and a.broadcast and a.exact and not a.identity and not a.strided
    assert [box_extent(a, d, {i: 2, j: 3, k: 4}) for d in (0, 1)] == [2, 4]
    assert of(matmul(), "z", "y").identity and not of(matmul(), "z", "y").broadcast


def test_windows_overlap_and_extents_are_affine() -> None:
    a = of(conv(stride=2), "conv", "padded")
    assert a.strided and not a.injective and a.broadcast and a.exact
    assert [text(e) for e in a.extents] == ["h * 2 + kh - 2", "v * 2 + kw - 2", "kc"]
    sizes = dict.fromkeys((*a.reader.axes, *a.reader.reduce_axes), 2)
    assert [box_extent(a, d, sizes) for d in range(3)] == [4, 4, 2]
    assert of(conv(), "z", "bias").broadcast
    # A guard keeps the padded border from being read, so no box touches more than there is.
    assert text(of(conv(7), "padded", "x").extents[0]) == "min(h, 7)"


def test_a_gather_is_opaque() -> None:
    a = of(gather(5, 4), "y", "table")
    assert a.terms[0] is None and not a.exact and not a.injective
    assert text(a.extents[0]) == "5" and text(a.extents[1]) == "j"


def test_reshapes_are_seen_through() -> None:
    a = of(reshape(6, 4), "flat", "x")
    assert a.terms == (None, None) and a.injective
    i = a.reader.axes[0]
    assert [box_extent(a, 0, {i: n}) for n in (1, 2, 5, 6, 24)] == [1, 2, 2, 3, 6]
    assert [box_extent(a, 1, {i: n}) for n in (1, 2, 24)] == [1, 4, 4]


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


def spans(access: Access, sizes: Mapping[Axis, int]) -> int:
    """The widest span of the index over all positions of a box of *sizes*."""
    axes = list(sizes)
    widest = 0
    for origin in itertools.product(*(range(a.extent - sizes[a] + 1) for a in axes)):
        box = [range(o, o + sizes[a]) for o, a in zip(origin, axes, strict=True)]
        values = [
            value(access.indices[0], dict(zip(axes, point, strict=True)))
            for point in itertools.product(*box)
        ]
        widest = max(widest, max(values) - min(values) + 1)
    return widest


@pytest.mark.parametrize(("fn", "extents"), INDICES)
def test_extents_bound_every_box_and_are_exact_when_they_say_so(
    fn: Callable[..., Expr], extents: tuple[int, ...]
) -> None:
    access = read(fn, *extents, size=64)
    attained = True
    for sizes in itertools.product(*(range(1, e + 1) for e in extents)):
        box = dict(zip(access.reader.axes, sizes, strict=True))
        want, found = spans(access, box), box_extent(access, 0, box)
        assert found >= want, (text(access.extents[0]), sizes)
        attained &= found == want
    assert attained or not access.exact


@pytest.mark.parametrize(("fn", "extents"), INDICES)
def test_injectivity_is_what_counting_says(
    fn: Callable[..., Expr], extents: tuple[int, ...]
) -> None:
    access = read(fn, *extents, size=64)
    points = itertools.product(*(range(e) for e in extents))
    axes = access.reader.axes
    seen = [value(access.indices[0], dict(zip(axes, p, strict=True))) for p in points]
    assert not access.injective or len(set(seen)) == len(seen)
    if access.injective is False and len(set(seen)) == len(seen):
        pytest.fail("isl should have found this injective")


class Many:
    """A column of sizes, as schedules use them: no truth value."""

    def __init__(self, values: npt.ArrayLike):
        self.values: npt.NDArray[np.int64] = np.asarray(values)

    def __bool__(self) -> bool:
        raise TypeError("no truth value")

    def __add__(self, other: object) -> Many:
        return Many(self.values + raw(other))

    def __sub__(self, other: object) -> Many:
        return Many(self.values - raw(other))

    def __mul__(self, other: object) -> Many:
        return Many(self.values * raw(other))

    def __floordiv__(self, other: object) -> Many:
        return Many(self.values // raw(other))


def raw(x: Any) -> Any:
    return x.values if isinstance(x, Many) else x


def smaller(a: object, c: object) -> Many:
    return Many(np.minimum(raw(a), raw(c)))


@pytest.mark.parametrize(("fn", "extents"), INDICES)
def test_columns_give_what_each_row_gives(
    fn: Callable[..., Expr], extents: tuple[int, ...]
) -> None:
    access = read(fn, *extents, size=9)
    rows = list(itertools.product(*(range(1, e + 1) for e in extents)))
    axes = access.reader.axes
    columns = {a: Many([row[n] for row in rows]) for n, a in enumerate(axes)}
    found = box_extent(access, 0, columns, smaller)
    want = [box_extent(access, 0, dict(zip(axes, row, strict=True))) for row in rows]
    values = found.values if isinstance(found, Many) else np.full(len(rows), found)
    assert values.tolist() == want


@pytest.mark.parametrize("make", ALL)
def test_every_definition_can_be_asked_about(make: Callable[[], ComputeDAG]) -> None:
    dag = make()
    found = accesses(dag)
    assert accesses(dag) is found
    for op in dag.computes:
        whole = {a: a.extent for a in (*op.axes, *op.reduce_axes)}
        for access in found[op]:
            for d, extent in enumerate(access.producer.shape):
                assert 1 <= box_extent(access, d, whole) <= extent


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
