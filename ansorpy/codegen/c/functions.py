"""Generate elementary functions in C from the expressions that approximate them.

Their errors are the same as in other generated code (:mod:`ansorpy.ir.elementary.table`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ansorpy.codegen.c.emitter import Emitter, Unit
from ansorpy.codegen.c.expressions import EXPRESSIONS
from ansorpy.codegen.c.prelude import HELPERS, Helper, elementary_name
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.c.types import register_type
from ansorpy.codegen.c.vector.accesses import vector_of
from ansorpy.codegen.c.vector.helpers import vector_helper
from ansorpy.codegen.c.vector.lanes import Lanes
from ansorpy.codegen.c.vector.values import vector
from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.clike.sharing import sharing
from ansorpy.codegen.clike.writer import Tables
from ansorpy.codegen.storage import StoragePlan
from ansorpy.codegen.unsupported import buffer_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS
from ansorpy.ir.expr import BinaryOp, Load, Var, as_expr
from ansorpy.ir.loops import Buffer, Scope

__all__ = ["prelude"]


def prelude(used: Iterable[str]) -> str:
    """The text of the helpers *used*, each after the helpers it calls."""
    found: dict[str, str] = {}

    def add(name: str) -> None:
        if name in found:
            return
        helper = _helper(name)
        for other in helper.needs:
            add(other)
        found[name] = helper.text

    for name in sorted(used, key=_rank):
        add(name)
    types = sorted(text for text in found.values() if text.startswith("typedef"))
    functions = [text for text in found.values() if not text.startswith("typedef")]
    return "\n\n".join([*(["\n".join(types)] if types else []), *functions])


def _rank(name: str) -> tuple[bool, int, str]:
    """Sort key: scalar functions in the order of the prelude, then vector functions."""
    known = list(HELPERS)
    return name not in HELPERS, known.index(name) if name in HELPERS else 0, name


def _helper(name: str) -> Helper:
    scalar, _, lanes = name.rpartition("x")
    if name in HELPERS:
        return HELPERS[name]
    if name in _ELEMENTARY:
        return _elementary(name, 0)
    return _elementary(scalar, int(lanes)) if scalar in _ELEMENTARY else vector_helper(name)


_ELEMENTARY = {elementary_name(fn, dtype): (fn, dtype) for fn, dtype in APPROXIMATIONS}


@cache
def _elementary(name: str, width: int) -> Helper:
    """A function of scalars, or of vectors of *width* lanes."""
    fn, dtype = _ELEMENTARY[name]
    e = Emitter(Unit("", Style(), _NOTHING, Tables(EXPRESSIONS, {})))
    lane = Var("lane")
    if width:
        e.lanes = Lanes(width, width, {lane: as_expr(0)}, {lane: tuple(range(width))})
    operands = [_operand(name, dtype, lane) for name in ("xy" if fn is BinaryOp.POW else "x")]
    value = APPROXIMATIONS[fn, dtype].build(*operands)
    with sharing(e, value, is_safe=True):
        e.known.update((x, Code(buffer_of(x).name)) for x in operands)
        result = vector(e, value) if width else e.value(value)
        e.line(f"return {result.text};")
    kind = vector_of(e, dtype) if width else register_type(dtype)
    parameters = ", ".join(f"{kind} {buffer_of(x).name}" for x in operands)
    whole = f"{name}x{width}" if width else name
    head = f"static inline {kind} {whole}({parameters}) {{"
    error = APPROXIMATIONS[fn, dtype].error
    about = f"// Off by at most {error} units in the last place, where a * b + c is rounded once."
    return Helper("\n".join([about, head, *e.lines, "}"]), tuple(e.helpers))


_NOTHING = StoragePlan({}, {}, frozenset(), {}, 0, 0)


def _operand(name: str, dtype: DType, lane: Var) -> Load:
    return Load(Buffer(name, (1,), dtype, Scope.LOCAL), (lane,))
