"""Definitions that several stages compute."""

from __future__ import annotations

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis

__all__ = ["product", "row_sums"]


def product(kind: str, n: int, m: int, k: int, *, by_columns: bool = False) -> list[Tensor]:
    """A matrix product of operands of type *kind*; narrow types have float32 sums.

    The second one is ``[k, m]``, or *by_columns* ``[m, k]``, as the weights of a layer are.
    """
    a = placeholder((n, k), kind, name="A")
    b = placeholder((m, k) if by_columns else (k, m), kind, name="B")
    r, total = reduce_axis(k, name="k"), "int32" if kind == "int8" else "float32"

    def at(i: Expr, j: Expr) -> Expr:
        left, right = a[i, r], b[j, r] if by_columns else b[r, j]
        if kind != total:
            left, right = left.astype(total), right.astype(total)
        return ap.sum(left * right, axis=r)

    return [a, b, compute((n, m), at, name="C")]


def row_sums(n: int, m: int) -> list[Tensor]:
    """The sum of each row, shared by threads."""
    x, k = placeholder((n, m), name="X"), reduce_axis(m, name="k")
    return [x, compute((n,), lambda i: ap.sum(x[i, k], axis=k), name="S")]
