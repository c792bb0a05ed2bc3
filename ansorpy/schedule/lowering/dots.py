"""Sums of products of 8- or 16-bit values as sums of dot products of 32-bit words.

Recognises these sums and builds the operators that replace them::

    C[i, j] = sum_k A[i, k] * B[k, j]
                                       B.words[q, j] = word(B[4 q, j] .. B[4 q + 3, j])
                                -->    C[i, j] = sum_q dot(word(A[i, 4 q] ..), B.words[q, j])

Instructions that multiply unsigned by signed bytes also serve operands of equal type: one operand
is moved by 128, and 128 times the sum of the other is subtracted again (exact modulo 2**32).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ansorpy.ir.builders import select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    AxisKind,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Var,
    as_expr,
    walk,
)
from ansorpy.ir.extents import least
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor, compute
from ansorpy.schedule.lowering.dag_edit import fresh_axes

__all__ = ["DotForm", "dot_form", "function_for", "in_words"]

_OFFSET = 128
Naming = Callable[[str], str]


@dataclass(frozen=True)
class DotForm:
    """A reduction that sums products of ``left`` and ``right`` over ``axis`` (and others)."""

    left: Load
    right: Load
    axis: Axis

    @property
    def types(self) -> tuple[DType, DType]:
        return self.left.dtype, self.right.dtype


def dot_form(op: Tensor) -> DotForm | None:
    """*op* as a sum of narrow products, or None.

    The axis of the sum must be the only one that indexes its dimension of each operand.
    """
    match op:
        case ComputeOp(
            body=Reduce(
                ReduceKind.SUM,
                Binary(BinaryOp.MUL, Cast(_, Load() as a), Cast(_, Load() as b)),
                axes,
            )
        ):
            pass
        case _:
            return None
    narrow = {(dot.left, dot.right, dot.result) for dot in DOTS.values()}
    integers = {DType.INT8, DType.UINT8} >= {a.dtype, b.dtype} and op.dtype is DType.INT32
    if not integers and (a.dtype, b.dtype, op.dtype) not in narrow:
        return None
    terms = 32 // a.dtype.bits
    along = [
        k for k in axes if least(k.extent) >= terms and None not in (_along(a, k), _along(b, k))
    ]
    return DotForm(a, b, max(along, key=lambda k: least(k.extent))) if along else None


def _along(load: Load, axis: Axis) -> int | None:
    """The dimension that *axis* alone indexes, if *axis* is in no other index."""
    found = [d for d, index in enumerate(load.indices) if axis in set(walk(index))]
    return found[0] if len(found) == 1 and load.indices[found[0]] is axis else None


def function_for(form: DotForm, there: Collection[Function]) -> Function | None:
    """The dot product to use among those that are *there*; an operand may be moved to fit."""
    exact = [fn for fn, dot in DOTS.items() if {dot.left, dot.right} == set(form.types)]
    exact = [fn for fn in exact if fn in there]
    if exact:
        return exact[0]
    moved = DType.BFLOAT16 not in form.types and Function.DOT_U8S8 in there
    return Function.DOT_U8S8 if moved else None


def in_words(
    op: ComputeOp, form: DotForm, fn: Function, constant: Sequence[Tensor], name: Naming
) -> tuple[ComputeOp, list[ComputeOp]]:
    """The replacement of *op*, and the new operators it reads, producers first.

    Args:
        constant: Tensors known at bind time, when they are laid out as words.
        name: Makes names for the new operators.
    """
    words = _Words(op, form, fn, name)
    loads = [form.left, form.right]
    moved = words.moved(loads, [load.source in constant for load in loads])
    parts = []
    for n, load in enumerate(loads):
        keep = n != moved and load.source not in constant
        parts.append(words.operand(load, n == moved, in_place=keep))
    kinds = [words.kind(load, n == moved) for n, load in enumerate(loads)]
    if kinds[0] is not DOTS[fn].left:
        parts.reverse()
    reduction = words.reduction(parts)
    if moved is None:
        return ComputeOp(op.name, op.shape, op.axes, words.axes, reduction, op.attrs), words.made
    inner = ComputeOp(name(f"{op.name}.dot"), op.shape, op.axes, words.axes, reduction, op.attrs)
    taken_off = words.correction(loads[1 - moved], loads[moved].dtype)
    words.made.append(inner)
    axes = fresh_axes(op.axes)
    body = substitute(taken_off, dict(zip(op.axes, axes, strict=True)))
    final = ComputeOp(op.name, op.shape, axes, (), Load(inner, axes) + body)
    return final, words.made


class _Words:
    """The new operators that replace one sum."""

    def __init__(self, op: ComputeOp, form: DotForm, fn: Function, name: Naming) -> None:
        self.op, self.form, self.fn, self.name = op, form, fn, name
        self.terms = DOTS[fn].terms
        self.count = -(-form.axis.extent // self.terms)
        self.word = Axis(form.axis.name, self.count, AxisKind.REDUCE)
        self.axes = tuple(self.word if k is form.axis else k for k in op.reduce_axes)
        self.made: list[ComputeOp] = []
        self.laid_out: dict[tuple[Tensor, int, bool], ComputeOp] = {}

    def moved(self, loads: Sequence[Load], constant: Sequence[bool]) -> int | None:
        """The operand to move by 128 so that the types fit, preferably not a constant one."""
        dot = DOTS[self.fn]
        if {load.dtype for load in loads} == {dot.left, dot.right}:
            return None
        return 0 if constant[1] or not constant[0] else 1

    @staticmethod
    def kind(load: Load, moved: bool) -> DType:
        other = {DType.INT8: DType.UINT8, DType.UINT8: DType.INT8}
        return other[load.dtype] if moved else load.dtype

    def operand(self, load: Load, moved: bool, *, in_place: bool) -> Expr:
        """The word of *load* at the word axis: read in place, or from a new stage."""
        dim = _along(load, self.form.axis)
        assert dim is not None
        whole = load.source.shape[-1] == self.form.axis.extent == self.count * self.terms
        if in_place and dim == len(load.indices) - 1 and whole:
            return self._joined(load, self.word)
        made = self._stage(load, dim, moved)
        indices = (self.word if d == dim else index for d, index in enumerate(load.indices))
        return Load(made, tuple(indices))

    def _joined(self, load: Load, at: Expr, moved: bool = False) -> Expr:
        parts = []
        for n in range(self.terms):
            k = at * self.terms + n
            part = substitute(load, {self.form.axis: k})
            if moved:
                step = _OFFSET if load.dtype is DType.INT8 else -_OFFSET
                part = (part.astype(DType.INT32) + step).astype(self.kind(load, True))
            if self.count * self.terms > fixed(self.form.axis.extent):
                part = select(k < self.form.axis.extent, part, as_expr(0, part.dtype))
            parts.append(part)
        return Call(Function.WORD, tuple(parts))

    def _stage(self, load: Load, dim: int, moved: bool) -> ComputeOp:
        """The words of the elements that *load* reads along *dim*.

        A tensor that is read twice is laid out once.
        """
        source = load.source
        assert isinstance(source, ComputeOp | PlaceholderOp)
        if (source, dim, moved) in self.laid_out:
            return self.laid_out[source, dim, moved]
        shape = tuple(self.count if d == dim else n for d, n in enumerate(source.shape))

        def body(*at: Expr) -> Expr:
            here = Load(source, tuple(self.form.axis if d == dim else i for d, i in enumerate(at)))
            return self._joined(here, at[dim], moved)

        made = compute(shape, body, name=self.name(f"{source.name}.words"))
        self.made.append(made)
        self.laid_out[source, dim, moved] = made
        return made

    def reduction(self, parts: Sequence[Expr]) -> Reduce:
        return Reduce(ReduceKind.SUM, Call(self.fn, tuple(parts)), self.axes)

    def correction(self, other: Load, moved: DType) -> Expr:
        """The negative of the amount that moving an operand of type *moved* adds to every sum."""
        scale = -_OFFSET if moved is DType.INT8 else _OFFSET
        reduce = fresh_axes(self.op.reduce_axes, AxisKind.REDUCE)
        used = {e for index in other.indices for e in walk(index)}
        space = tuple(axis for axis in self.op.axes if axis in used)
        fresh = fresh_axes(space)
        old, new = (*space, *self.op.reduce_axes), (*fresh, *reduce)
        mapping: dict[Var, Expr] = dict(zip(old, new, strict=True))
        value = substitute(other, mapping).astype(DType.INT32) * scale
        own = fresh or (Axis("one", 1, AxisKind.SPACE),)
        shape = tuple(axis.extent for axis in own)
        made = ComputeOp(
            self.name(f"{self.op.name}.offset"), shape, own, reduce, sum_over(value, reduce)
        )
        self.made.append(made)
        return Load(made, space or (as_expr(0),))
