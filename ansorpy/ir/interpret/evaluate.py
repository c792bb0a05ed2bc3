"""Evaluation of scalar expressions on whole arrays of iteration points at once.

Every variable is an int or an int64 array; the arrays of one frame broadcast together.  A mask
marks the points at which an expression is needed: the side that a select does not take is not read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ansorpy.arrays import Masks
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Function,
    Load,
    Select,
    SizeVar,
    Var,
    children,
)
from ansorpy.ir.extents import Extent
from ansorpy.ir.interpret.numerics import BINARY, COMPARE, FUNCTIONS, Value, convert
from ansorpy.ir.loops import Buffer
from ansorpy.ir.sizes import fixed_all
from ansorpy.ir.tensor import Tensor

__all__ = ["Evaluator", "Frame", "Mask", "flat_index"]

Mask = Masks | None


@dataclass
class Frame:
    """Values of variables, and of sub-expressions that occur more than once."""

    env: Mapping[Var, Value]
    memo: dict[tuple[Expr, int], tuple[Mask, Value]] = field(default_factory=dict)


Code = Callable[[Frame, Mask], Value]


class Evaluator(ABC):
    """Compiles expressions to closures; a subclass defines how elements are read.

    If *wide*, every float is a float64, whatever its declared type.
    """

    def __init__(self, *, wide: bool = False):
        self.wide = wide
        self._code: dict[Expr, Code] = {}

    def value(self, e: Expr, frame: Frame, mask: Mask = None) -> Value:
        """The value of *e* at every point of *frame*; arbitrary where *mask* is False."""
        code = self._code.get(e)
        if code is None:
            code = self._compile_root(e)
        return code(frame, mask)

    @abstractmethod
    def load(
        self, source: Tensor | Buffer, indices: tuple[Value, ...], frame: Frame, mask: Mask
    ) -> Value:
        """The elements of *source* at *indices*."""

    def _compile_root(self, root: Expr) -> Code:
        uses: Counter[Expr] = Counter()
        pending = [root]
        while pending:
            e = pending.pop()
            uses[e] += 1
            if uses[e] == 1:
                pending.extend(children(e))
        return self._compile(root, {e for e, n in uses.items() if n > 1})

    def _compile(self, e: Expr, shared: set[Expr]) -> Code:
        code = self._code.get(e)
        if code is None:
            code = _COMPILERS[type(e)](self, e, shared)
            if e in shared and not isinstance(e, Var | Const):
                code = _remembered(e, code)
            self._code[e] = code
        return code

    def _const(self, e: Const, shared: set[Expr]) -> Code:
        constant: Value = e.value
        if e.type is DType.INT64:
            constant = int(e.value)
        elif e.type is not DType.BOOL:
            constant = convert(e.value, e.type, wide=self.wide)[()]
        return lambda frame, mask: constant

    def _var(self, e: Var, shared: set[Expr]) -> Code:
        return lambda frame, mask: frame.env[e]

    def _binary(self, e: Binary, shared: set[Expr]) -> Code:
        a, b, apply = self._compile(e.a, shared), self._compile(e.b, shared), BINARY[e.op]
        return lambda frame, mask: apply(a(frame, mask), b(frame, mask))

    def _compare(self, e: Compare, shared: set[Expr]) -> Code:
        a, b, apply = self._compile(e.a, shared), self._compile(e.b, shared), COMPARE[e.op]
        return lambda frame, mask: apply(a(frame, mask), b(frame, mask))

    def _call(self, e: Call, shared: set[Expr]) -> Code:
        args = [self._compile(a, shared) for a in e.args]
        apply = FUNCTIONS[e.fn]
        if self.wide and e.fn in _ON_BITS:
            return _narrowly(e, apply, args[0])
        return lambda frame, mask: apply(*(a(frame, mask) for a in args))

    def _cast(self, e: Cast, shared: set[Expr]) -> Code:
        x, to, wide = self._compile(e.x, shared), e.type, self.wide
        return lambda frame, mask: convert(x(frame, mask), to, wide=wide)[()]

    def _load(self, e: Load, shared: set[Expr]) -> Code:
        indices = [self._compile(i, shared) for i in e.indices]
        source = e.source

        def read(frame: Frame, mask: Mask) -> Value:
            return self.load(source, tuple(i(frame, mask) for i in indices), frame, mask)

        return read

    def _select(self, e: Select, shared: set[Expr]) -> Code:
        cond, then, other = (self._compile(x, shared) for x in (e.cond, e.then, e.other))

        def choose(frame: Frame, mask: Mask) -> Value:
            wanted = cond(frame, mask)
            if np.ndim(wanted) == 0:
                return then(frame, mask) if wanted else other(frame, mask)
            taken = wanted if mask is None else wanted & mask
            left = ~wanted if mask is None else ~wanted & mask
            return np.where(wanted, then(frame, taken), other(frame, left))

        return choose


_ON_BITS = (Function.BITS, Function.FROM_BITS)


def _narrowly(e: Call, apply: Callable[[Value], Value], x: Code) -> Code:
    """A function of the bits of a number, which has them only in its declared type."""
    given, made = e.args[0].dtype, e.dtype

    def code(frame: Frame, mask: Mask) -> Value:
        return convert(apply(convert(x(frame, mask), given)[()]), made, wide=True)[()]

    return code


def _remembered(e: Expr, code: Code) -> Code:
    def recall(frame: Frame, mask: Mask) -> Value:
        found = frame.memo.get((e, id(mask)))
        if found is None:
            # Keep the mask alive with the value, so that no other object gets its id.
            found = frame.memo[e, id(mask)] = (mask, code(frame, mask))
        return found[1]

    return recall


_COMPILERS: dict[type[Expr], Callable[..., Code]] = {
    Const: Evaluator._const, Var: Evaluator._var, Axis: Evaluator._var, SizeVar: Evaluator._var,
    Binary: Evaluator._binary, Compare: Evaluator._compare, Call: Evaluator._call,
    Cast: Evaluator._cast, Load: Evaluator._load, Select: Evaluator._select,
}  # fmt: skip


def flat_index(
    shape: Sequence[Extent],
    indices: Sequence[Value],
    mask: Mask,
    refused: Callable[[str], Exception],
) -> Value:
    """The row-major position of elements; any valid position where *mask* is False.

    *refused* makes the error for an index out of bounds, given the words that say where it is.
    """
    flat: Value = 0
    for d, (index, extent) in enumerate(zip(indices, fixed_all(shape), strict=True)):
        wrong = _out_of_bounds(index, extent, mask)
        if wrong is not None:
            raise refused(f"at {wrong} in dimension {d}, which has {extent} elements")
        flat = flat * extent + (index if mask is None else np.clip(index, 0, max(extent - 1, 0)))
    return flat


def _out_of_bounds(index: Value, extent: int, mask: Mask) -> Any:
    """The first value of *index* outside ``[0, extent)`` where *mask* is True, or None."""
    if np.ndim(index) == 0 and mask is None:
        return None if 0 <= index < extent else index
    wrong = (np.asarray(index) < 0) | (np.asarray(index) >= extent)
    if mask is not None:
        wrong = wrong & mask
    if not wrong.any():
        return None
    return np.broadcast_to(index, wrong.shape)[wrong][0]
