"""A definition in float16, computed and summed in float32, as networks in float16 are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, Load, Reduce, Select
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor, compute
from ansorpy.schedule.lowering.dag_edit import with_body

__all__ = ["in_half"]


def in_half(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The definition *tensors* (placeholders, then one output) with float16 inputs and output.

    Stages that only move values keep float16, so that tensor cores can read their results; all
    others widen what they read and compute in float32.
    """
    *given, out = tensors
    became: dict[Tensor, Tensor] = {
        op: PlaceholderOp(op.name, op.shape, DType.FLOAT16, op.constant)
        for op in given
        if isinstance(op, PlaceholderOp) and op.dtype is DType.FLOAT32
    }
    for op in ComputeDAG.of(tensors).computes:
        moves = _moves(op.body) and all(_is_half(became, source) for source in loads_of(op))
        became[op] = with_body(op, _Half(became, moves=moves).expr(op.body))
    return [*(became.get(op, op) for op in given), _narrowed(became[out])]


def _is_half(became: Mapping[Tensor, Tensor], source: Tensor) -> bool:
    return became.get(source, source).dtype is DType.FLOAT16


def _moves(e: Expr) -> bool:
    """Whether *e* is a value that is read, or zero beside the border."""
    match e:
        case Load() | Const():
            return True
        case Select(_, then, other):
            return _moves(then) and _moves(other)
    return False


class _Half(Rewriter):
    """Reads the new tensors; widens their values unless the stage only *moves* them."""

    def __init__(self, became: dict[Tensor, Tensor], *, moves: bool) -> None:
        super().__init__()
        self._became = became
        self._moves = moves

    def leave(self, e: Expr) -> Expr:
        match e:
            case Load(source, indices) if source in self._became:
                assert isinstance(source, Tensor)
                read = Load(self._became[source], indices)
                return read if self._moves else read.astype(e.dtype)
            case Const(value, DType.FLOAT32) if self._moves:
                return Const(value, DType.FLOAT16)
        return e


def _narrowed(out: Tensor) -> Tensor:
    """*out* in float16: a sum is narrowed by a stage of its own."""
    assert isinstance(out, ComputeOp)
    if out.dtype is DType.FLOAT16:
        return out
    if not isinstance(out.body, Reduce):
        return with_body(out, out.body.astype(DType.FLOAT16))
    return compute(
        out.shape, lambda *i: out[i].astype(DType.FLOAT16), name="half",
        names=tuple(axis.name for axis in out.axes),
    )  # fmt: skip
