"""Elementary functions as C functions, from the expressions that approximate them.

They have the same errors as in other generated code (:mod:`ansorpy.ir.elementary.table`).
"""

from __future__ import annotations

from functools import cache

from ansorpy.codegen.c.emitter import Emitter, Tables, Unit
from ansorpy.codegen.c.expressions import EXPRESSIONS
from ansorpy.codegen.c.prelude import HELPERS, Helper, elementary_name
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.c.types import register_type
from ansorpy.codegen.clike.sharing import sharing
from ansorpy.codegen.storage import StoragePlan
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS
from ansorpy.ir.expr import BinaryOp, Function, Load
from ansorpy.ir.loops import Buffer, Scope

__all__ = ["prelude"]


def prelude(used: dict[str, None]) -> str:
    """The text of the helpers *used*, and of those they call."""
    known = {**HELPERS, **_elementary()}
    wanted: set[str] = set()
    pending = list(used)
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += known[name].needs
    return "\n\n".join(helper.text for name, helper in known.items() if name in wanted)


@cache
def _elementary() -> dict[str, Helper]:
    return {
        elementary_name(fn, dtype): _helper(fn, dtype, found.error)
        for (fn, dtype), found in APPROXIMATIONS.items()
    }


def _helper(fn: Function | BinaryOp, dtype: DType, error: float) -> Helper:
    nothing = StoragePlan({}, {}, frozenset(), {}, 0, 0)
    e = Emitter(Unit("", Style(), nothing, Tables(EXPRESSIONS, {})))
    operands: list[Load] = []
    for name in "xy" if fn is BinaryOp.POW else "x":
        operand = Buffer(name, (), dtype, Scope.LOCAL)
        e.arrays.add(operand)
        e.names.give(operand)
        operands.append(Load(operand, ()))
    value = APPROXIMATIONS[fn, dtype].build(*operands)
    with sharing(e, value, is_safe=True):
        e.line(f"return {e.value(value).text};")
    kind, name = register_type(dtype), elementary_name(fn, dtype)
    parameters = ", ".join(f"{kind} {e.place(e.buffer_of(x))}" for x in operands)
    head = f"static inline {kind} {name}({parameters}) {{"
    about = f"// Off by at most {error} units in the last place, where a * b + c is rounded once."
    return Helper("\n".join([about, head, *e.lines, "}"]), tuple(e.helpers))
