"""Constant evaluation of graphs, using the compute definition of each operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorpy.graph.ir import Array, Graph
from ansorpy.graph.ops import Op, TensorType
from ansorpy.graph.ops.names import Names
from ansorpy.graph.passes.channels_last import channels_last
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import placeholder

__all__ = ["constant_values"]


def constant_values(graph: Graph) -> list[Array]:
    """The outputs of *graph* in order; none may depend on an input.

    Operators are computed in float64 and rounded to their types.
    """
    stored = channels_last(graph)  # the layout that definitions are written for
    values = dict(stored.constants)
    for node in stored.nodes:
        operands = [values[name] for name in node.inputs]
        found = node.op.evaluate(operands)
        if found is None:
            found = _defined(node.op, operands, stored.types[node.output])
        values[node.output] = found
    return [values[output.value] for output in stored.outputs]


def _defined(op: Op, operands: Sequence[Array], kind: TensorType) -> Array:
    """``op(*operands)``, of type *kind*, computed from the definition of *op*."""
    args = [placeholder(a.shape, as_dtype(a.dtype), name=f"x{n}") for n, a in enumerate(operands)]
    stage = op.define(args, Names())
    given = {arg.name: array for arg, array in zip(args, operands, strict=True)}
    (result,) = run_dag(ComputeDAG([stage], args), given, DType.FLOAT64)
    with np.errstate(all="ignore"):
        return np.asarray(result.reshape(kind.shape), kind.dtype.numpy)
