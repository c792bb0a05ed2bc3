"""Classes of similar definitions, which have the same structure but different shapes.

A class is a definition without sizes and strides: the operators and the edges between them, the
form of every expression, types, kinds of axes, and which extents are 1.  Sizes count only if they
change the kind of computation: in a window, an index that combines a space axis and a reduce axis
(``i*2 + r``), the extent of the reduce axis and the factors count, so that a 3x3 convolution and a
7x7 or strided one are in different classes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.expr import (
    Axis,
    AxisKind,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    children,
    walk,
)
from ansorpy.ir.extents import Extent
from ansorpy.ir.sizes import fixed
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["anchor_name", "class_hash"]

_FACTORS = frozenset({BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.FLOORMOD})


def class_hash(dag: ComputeDAG) -> str:
    """32 hexadecimal digits, equal for definitions that differ only in names and sizes.

    Values of floating-point constants and of attributes do not count.

    >>> from ansorpy.ir.builders import sum
    >>> from ansorpy.ir.tensor import compute, placeholder, reduce_axis
    >>> def product(n, m):
    ...     a, b = placeholder((n, 8), name="a"), placeholder((8, m), name="b")
    ...     k = reduce_axis(8, name="k")
    ...     c = compute((n, m), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="c")
    ...     return ComputeDAG([c])
    >>> small, large, row = (class_hash(product(*shape)) for shape in ((4, 7), (60, 9), (1, 9)))
    >>> small == large, small == row
    (True, False)
    """
    numbers = {op: n for n, op in enumerate(dag.ops)}
    shape = {
        "ops": [_described(op, numbers) for op in numbers],
        "args": [numbers[op] for op in dag.args],
        "outputs": [numbers[op] for op in dag.outputs],
    }
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def anchor_name(dag: ComputeDAG) -> str:
    """What the stage with the most operations does, equal for operators of one kind.

    It names the reduction, its axes, the tensors read, and whether windows overlap, so that all
    2-d convolutions have one name, whatever their windows and whatever is fused with them.

    >>> from ansorpy.ir.builders import sum
    >>> from ansorpy.ir.tensor import compute, placeholder, reduce_axis
    >>> a, b = placeholder((4, 8), name="a"), placeholder((8, 5), name="b")
    >>> k = reduce_axis(8, name="k")
    >>> c = compute((4, 5), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="c")
    >>> anchor_name(ComputeDAG([c]))
    'sum of 2 tensors, 2 + 1 axes'
    """
    op = max(dag.computes, key=flops)
    reduced = [e.kind.value for e in walk(op.body) if isinstance(e, Reduce)]
    name = f"{reduced[0] if reduced else 'map'} of {len(loads_of(op))} tensors"
    name += f", {len(op.axes)} + {len(op.reduce_axes)} axes"
    return f"{name}, windows" if any(True for _ in _windows(op)) else name


def _described(op: Tensor, numbers: Mapping[Tensor, int]) -> list[Any]:
    dims = [_size(extent) for extent in op.shape]
    if isinstance(op, PlaceholderOp):
        return ["placeholder", dims, op.dtype.value, op.constant]
    assert isinstance(op, ComputeOp), f"{type(op).__name__} is not an operator"
    windows = {axis for e in _windows(op) for axis in _axes(e)}
    reduced = [fixed(a.extent) if a in windows else _size(a.extent) for a in op.reduce_axes]
    form = _Form(op, numbers)
    body = form.number(op.body, False)
    routine = [] if op.routine is None else [op.routine.name, op.routine.settings]
    return ["compute", dims, reduced, body, form.rows, sorted(op.attrs.stated()), *routine]


def _size(extent: Extent) -> str:
    return "1" if extent == 1 else "n"


def _windows(op: ComputeOp) -> Iterator[Expr]:
    """The windows among the integer expressions of *op*: its indices and operands of compares."""
    for e in walk(op.body):
        integers = (
            e.indices if isinstance(e, Load) else (e.a, e.b) if isinstance(e, Compare) else ()
        )
        yield from (part for part in integers if _is_window(part))


def _is_window(e: Expr) -> bool:
    """True if a step along some space axis rereads elements that other reduce steps have read.

    A nonlinear index (a quotient of the sum, in transposed convolutions) counts as a window too.
    """
    kinds: dict[AxisKind, list[int]] = {kind: [] for kind in AxisKind}
    for atom, step in linear(e).terms.items():
        if isinstance(atom, Axis):
            span = 1 if atom.kind is AxisKind.SPACE else fixed(atom.extent) - 1
            kinds[atom.kind].append(abs(step) * span)
        elif {AxisKind.SPACE, AxisKind.REDUCE} <= {axis.kind for axis in _axes(atom)}:
            return True
    steps, spans = kinds[AxisKind.SPACE], kinds[AxisKind.REDUCE]
    return bool(steps and spans) and min(steps) <= sum(spans)


def _axes(e: Expr) -> set[Axis]:
    """The axes *e* is computed from, without those used only in indices of loads."""
    seen, stack = set[Expr](), [e]
    while stack:
        part = stack.pop()
        if part not in seen and not isinstance(part, Load):
            seen.add(part)
            stack.extend(children(part))
    return {part for part in seen if isinstance(part, Axis)}


class _Form:
    """Numbers the distinct forms of an operator's expressions, operands first."""

    def __init__(self, op: ComputeOp, tensors: Mapping[Tensor, int]):
        self.rows: list[list[Any]] = []
        self._tensors = tensors
        self._axes = {axis: n for n, axis in enumerate((*op.axes, *op.reduce_axes))}
        self._by_node: dict[tuple[Expr, bool], int] = {}
        self._by_row: dict[tuple[Any, ...], int] = {}

    def number(self, e: Expr, in_window: bool) -> int:
        """The number of *e*'s form; if *in_window*, factors count."""
        key = (e, in_window)
        if key not in self._by_node:
            row = self._row(e, in_window)
            number = self._by_row.setdefault(tuple(row), len(self.rows))
            if number == len(self.rows):
                self.rows.append(row)
            self._by_node[key] = number
        return self._by_node[key]

    def _row(self, e: Expr, in_window: bool) -> list[Any]:
        factor = _factor(e) if in_window else None
        if factor is not None:
            scaled, what, number = factor
            return ["factor", what, self.number(scaled, True), number]
        match e:
            case Axis():
                return ["axis", self._axes[e]]
            case Load(source, indices) if isinstance(source, Tensor):
                return ["load", self._tensors[source], *map(self._integer, indices)]
            case Compare(cmp, a, b):
                return ["compare", cmp.value, self._integer(a), self._integer(b)]
            case _:
                parts = (self.number(part, in_window) for part in children(e))
                return [type(e).__name__, _what(e), *parts]

    def _integer(self, e: Expr) -> int:
        return self.number(e, _is_window(e))


def _factor(e: Expr) -> tuple[Expr, str, int] | None:
    """(operand, operator, number) if *e* multiplies or divides an operand by a number."""
    match e:
        case Binary(op, a, Const(value)) | Binary(BinaryOp.MUL as op, Const(value), a):
            return (a, op.value, int(value)) if op in _FACTORS else None
    return None


def _what(e: Expr) -> str:
    """A key that distinguishes *e* from other expressions of its class, without operands."""
    match e:
        case Binary(op):
            return op.value
        case Call(fn):
            return fn.value
        case Cast(kind) | Const(_, kind):
            return kind.value
        case Reduce(kind):
            return kind.value
        case Select():
            return ""
    raise ValueError(f"a {type(e).__name__} is bound nowhere in the definition")
