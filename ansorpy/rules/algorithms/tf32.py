"""Mark products of float32 values that tensor cores may round to TF32, if the user allows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.task import Precision
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.gpu.mma_choice import best_choice, has_mma_sync
from ansorpy.schedule.lowering.dag_edit import replace_ops
from ansorpy.target import Target

__all__ = ["Tf32"]

ERROR = 2.0**-10
"""Error of two factors with 11 significant bits each, relative to the largest result."""


@dataclass(frozen=True)
class Tf32(Algorithm):
    """The same definition with its float32 products marked: their factors may be rounded to TF32.

    The rule for tensor cores rounds them; other kernels would gain nothing from rounding.
    """

    asked_by: ClassVar[Precision | None] = "tf32"

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        if not has_mma_sync(target):
            return
        products = [op for op in dag.computes if op not in dag.constant_ops and _is_product(op)]
        if products:
            new: dict[Tensor, ComputeOp] = {op: _marked(op) for op in products}
            yield Definition("tf32", replace_ops(dag, new)[0], ERROR)


def _is_product(op: ComputeOp) -> bool:
    found = best_choice(op)
    return found is not None and found.by.types[1] is DType.FLOAT32


def _marked(op: ComputeOp) -> ComputeOp:
    attrs = replace(op.attrs, rounds_to_tf32=True, error=op.attrs.error + ERROR)
    return replace(op, attrs=attrs)
