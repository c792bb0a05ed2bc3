"""What expressions are made of: no kind is missing in a table."""

from __future__ import annotations

from ansorpy.ir import expr
from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.builders import select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.expr import Expr, Var, children, walk
from ansorpy.ir.operands import LABELS, with_operands
from ansorpy.ir.tensor import compute, placeholder, reduce_axis


def test_every_kind_of_expression_is_rebuilt_from_its_operands() -> None:
    x, k = placeholder((4,), name="x"), reduce_axis(4, name="k")
    op = compute(
        (4,), lambda i: sum_over(select(i < k, abs(x[i] + x[k]).astype("int32"), 1), k), name="y"
    )
    nodes = [e for e in walk(op.body) if not isinstance(e, Var)]
    kinds = {type(e) for e in nodes}
    declared = {kind for kind in vars(expr).values() if isinstance(kind, type)}
    assert kinds == LABELS.keys()
    assert kinds == {e for e in declared if issubclass(e, Expr) and not issubclass(e, Var)} - {Expr}
    for e in nodes:
        if children(e):
            again = with_operands(e, children(e))
            assert again is not e and same_structure(again, e)
