"""Shorthands for the nodes that importers and passes often append to a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.graph.ir import Array, GraphBuilder
from ansorpy.graph.ops import Cast, Elementwise, Fn, Op, Reshape, Shape
from ansorpy.ir.dtypes import DType

__all__ = ["Emits", "EmitsBeside"]


class Emits(ABC):
    """Appends nodes to ``builder`` that compute parts of one value and are named after it."""

    builder: GraphBuilder

    @abstractmethod
    def emit(self, op: Op, inputs: Sequence[str]) -> str:
        """Append ``op(*inputs)``; return the name of its value."""

    @abstractmethod
    def literal(self, array: Array, dtype: DType) -> str:
        """A constant of *dtype*."""

    def apply(self, fn: Fn, *inputs: str, params: tuple[float, ...] = ()) -> str:
        """Emit ``fn`` of *inputs*; at least one computed input must have the rank of the result.

        If none has, the first one is reshaped, so that definitions can write constants as literals
        and rows, which add no dimensions.
        """
        rank = max(len(self.builder.types[i].shape) for i in inputs)
        computed = [i for i in inputs if i not in self.builder.constants]
        if computed and all(len(self.builder.types[i].shape) < rank for i in computed):
            shape = self.builder.types[computed[0]].shape
            raised = self.reshape(computed[0], (1,) * (rank - len(shape)) + shape)
            inputs = tuple(raised if i == computed[0] else i for i in inputs)
        return self.emit(Elementwise(fn, params), inputs)

    def cast(self, value: str, dtype: DType) -> str:
        if self.builder.types[value].dtype is dtype:
            return value
        return self.emit(Cast(dtype), [value])

    def reshape(self, value: str, shape: Shape) -> str:
        if self.builder.types[value].shape == shape:
            return value
        return self.emit(Reshape(shape), [value])


@dataclass(frozen=True)
class EmitsBeside(Emits):
    """Appends nodes with which a pass replaces the node that computes the value *name*."""

    builder: GraphBuilder
    name: str

    def emit(self, op: Op, inputs: Sequence[str]) -> str:
        return self.builder.emit(op, inputs, self.name)

    def literal(self, array: Array, dtype: DType) -> str:
        return self.builder.share_constant(f"{self.name}.const", np.asarray(array, dtype.numpy))
