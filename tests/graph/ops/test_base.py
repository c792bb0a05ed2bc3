"""What every operator says of itself: its rows, and its form in other storage orders."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from ansorpy.graph import ops
from ansorpy.graph.constants import constant_values
from ansorpy.graph.custom import Custom
from ansorpy.graph.ir import Graph, GraphBuilder, Output
from ansorpy.graph.ops import Op, TensorType, Transpose
from ansorpy.graph.ops.sizes import SizesOp
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.symbols import Dim
from tests.graph.ops.samples import SAMPLES, Sample


def test_every_operator_has_a_sample() -> None:
    classes = {
        c for c in (*vars(ops).values(), Custom) if isinstance(c, type) and issubclass(c, Op)
    }
    concrete = {c for c in classes if not c.__abstractmethods__ and not issubclass(c, SizesOp)}
    assert {type(sample.op) for sample in SAMPLES} == concrete


def network(sample: Sample, perm: tuple[int, ...] | None) -> Graph:
    """The operator of *sample*, its first operand transposed into place by the network."""
    builder = GraphBuilder()
    names = []
    for n, array in enumerate(sample.arrays()):
        held = array
        if n == 0 and perm is not None:
            held = np.ascontiguousarray(array.transpose(np.argsort(perm)))
        names.append(builder.add_input(f"x{n}", TensorType(held.shape, as_dtype(held.dtype))))
    if perm is not None:
        names[0] = builder.emit(Transpose(perm), names[:1], "turned")
    return builder.finish([Output("y", builder.emit(sample.op, names, "y.1"))])


def value(sample: Sample, perm: tuple[int, ...] | None) -> Any:
    graph = network(sample, perm)
    arrays = sample.arrays()
    if perm is not None:
        arrays[0] = np.ascontiguousarray(arrays[0].transpose(np.argsort(perm)))
    given = dict(zip(graph.inputs, arrays, strict=True))
    known = Graph((), graph.outputs, graph.nodes, graph.types, {**graph.constants, **given})
    [found] = constant_values(known)
    return found


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_an_operator_computes_the_same_whatever_order_its_operand_is_stored_in(
    sample: Sample,
) -> None:
    want = value(sample, None)
    kind = sample.op.infer([TensorType(a.shape, as_dtype(a.dtype)) for a in sample.arrays()])
    assert (want.shape, as_dtype(want.dtype)) == (kind.shape, kind.dtype)
    rank = sample.arrays()[0].ndim
    for perm in list(permutations(range(rank)))[1::5]:
        np.testing.assert_allclose(value(sample, perm), want, rtol=1e-6, err_msg=str(perm))


FOLDED = [sample for sample in SAMPLES if sample.op.evaluate(sample.arrays()) is not None]


@pytest.mark.parametrize("sample", FOLDED, ids=str)
def test_what_is_evaluated_in_numpy_equals_the_definition(sample: Sample) -> None:
    found = sample.op.evaluate(sample.arrays())
    assert found is not None
    np.testing.assert_allclose(found, sample.defined(), rtol=1e-6)


def test_dimensions_of_operands_that_are_not_read_count() -> None:
    n = Dim("n", 1, 9)
    kind = TensorType((dim_extent(n), 4), DType.FLOAT32)
    assert Custom("com.example.Rows", len, operands=(kind, True)).dims == (n,)
