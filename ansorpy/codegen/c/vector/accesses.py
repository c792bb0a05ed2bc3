"""Loads and stores of all lanes; their form depends on the offsets of the lanes."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.codegen.c.arithmetic import helper_call
from ansorpy.codegen.c.elements import element, variable_of
from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.types import short_name
from ansorpy.codegen.c.vector.helpers import vector_type
from ansorpy.codegen.c.vector.lanes import Lanes
from ansorpy.codegen.clike.code import COMPARE, UNARY, Code
from ansorpy.codegen.clike.indices import flat_index, index
from ansorpy.codegen.unsupported import buffer_of
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.builders import all_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, Load, Select, Var, as_expr, walk
from ansorpy.ir.extents import least
from ansorpy.ir.loops import Buffer, Store

__all__ = [
    "Access", "access", "is_safe", "lane_by_lane", "load", "narrowed", "scalar", "splat",
    "steps_of", "store", "vector_of",
]  # fmt: skip


@dataclass(frozen=True)
class Access:
    """Offsets of the lanes of an access: *start* is that of the first lane, *steps* are the
    distances of the active lanes from it, or None if they are not constant."""

    buffer: Buffer
    start: Expr
    steps: tuple[int, ...] | None

    @property
    def is_one_element(self) -> bool:
        return self.steps is not None and not any(self.steps)

    @property
    def is_consecutive(self) -> bool:
        return self.steps == tuple(range(len(self.steps or ())))


def access(e: Emitter, buffer: Buffer, indices: tuple[Expr, ...]) -> Access:
    """Resolve an access in the current chunk."""
    return Access(buffer, *steps_of(e, flat_index(e, buffer, indices)))


def steps_of(e: Emitter, flat: Expr) -> tuple[Expr, tuple[int, ...] | None]:
    """The value of an index in the first lane, and by how much each active lane differs from it;
    None if that is not constant."""
    start = e.simplified(e.vector.in_lane(flat, 0))
    return start, _steps(e, flat, start, e.vector)


def _steps(e: Emitter, flat: Expr, start: Expr, lanes: Lanes) -> tuple[int, ...] | None:
    form, total = linear(flat), [0] * lanes.active
    for atom, c in form.terms.items():
        if isinstance(atom, Var) and atom in lanes.steps:
            each = lanes.steps[atom]
            total = [n + c * (each[k] - each[0]) for k, n in enumerate(total)]
        elif lanes.varies(atom):
            return _apart(e, flat, start, lanes)
    return tuple(total)


def _apart(e: Emitter, flat: Expr, start: Expr, lanes: Lanes) -> tuple[int, ...] | None:
    """The steps of an index that is not a linear form of the loop's variables."""
    found = []
    for k in range(lanes.active):
        step = e.simplified(e.simplified(lanes.in_lane(flat, k)) - start)
        if not isinstance(step, Const):
            return None
        found.append(int(step.value))
    return tuple(found)


def is_safe(e: Emitter, expr: Expr) -> bool:
    """True if *expr* may be computed in all lanes, also in those where no guard holds."""
    return not e.guards or all(_is_inside(e, x) for x in walk(expr) if isinstance(x, Load))


def _is_inside(e: Emitter, expr: Load) -> bool:
    """True when bounds prove that all lanes read elements of the buffer."""
    found = zip((e.bounds(i) for i in expr.indices), buffer_of(expr).shape, strict=True)
    return all(low >= 0 and high < least(extent) for (low, high), extent in found)


def load(e: Emitter, expr: Load) -> Code:
    """All lanes of a load, in the type they are computed in."""
    buffer = buffer_of(expr)
    found = access(e, buffer, expr.indices)
    name = variable_of(e, buffer, found.start)
    if name is not None and found.is_consecutive:
        return _read(e, Code(name), buffer.dtype)
    if not is_safe(e, expr):
        return lane_by_lane(e, expr, guarded=True)
    if found.is_one_element:
        return splat(e, scalar(e, e.vector.in_lane(expr, 0)), buffer.dtype)
    if found.is_consecutive:
        return _read(e, _consecutive(e, found), buffer.dtype)
    return lane_by_lane(e, expr)


def splat(e: Emitter, x: Code, dtype: DType) -> Code:
    """A computed scalar repeated in all lanes; a condition becomes -1 or 0."""
    if dtype is DType.BOOL:
        x = Code(f"-{x.at(UNARY + 1)}")
    return helper_call(e, f"splat_{vector_of(e, dtype)}", x)


def scalar(e: Emitter, expr: Expr) -> Code:
    """Emit *expr*, which contains no variable of the vector loop, as a scalar."""
    with e.in_one_lane():
        return e.value(e.simplified(expr))


def lane_by_lane(e: Emitter, expr: Expr, *, guarded: bool = False) -> Code:
    """Build a vector from one scalar per lane.

    If *guarded*, lanes that the surrounding selects do not choose are 0 and not computed.
    """
    texts: list[str] = []
    repeated = e.repeated
    if guarded:
        e.repeated = frozenset()  # a name would be computed outside of the select of its lane
    for k in range(e.vector.width):
        one = e.vector.in_lane(expr, k)
        if guarded:
            conditions = [e.vector.in_lane(cond, k) for cond in e.guards]
            one = Select(all_of(*conditions), one, as_expr(0, expr.dtype))
        found = scalar(e, one)
        texts.append(f"-{found.at(UNARY + 1)}" if expr.dtype is DType.BOOL else found.text)
    e.repeated = repeated
    return Code(f"({vector_of(e, expr.dtype)}){{{', '.join(texts)}}}", UNARY)


def _consecutive(e: Emitter, found: Access) -> Code:
    """Load the active lanes, or a full vector if it stays inside the buffer."""
    kind, lanes = stored_vector(e, found.buffer.dtype), e.vector
    place = Code(f"&{e.place(found.buffer)}[{index(e, found.start).text}]")
    end = e.bounds(found.start)[1] + lanes.width
    if lanes.active == lanes.width or end <= least(found.buffer.span):
        return helper_call(e, f"load_{kind}", place)
    return helper_call(e, f"load_part_{kind}", place, Code(str(lanes.active)))


def _read(e: Emitter, x: Code, dtype: DType) -> Code:
    """Convert elements from their form in memory to the type they are computed in."""
    if dtype.is_half:
        return helper_call(e, f"from_{short_name(dtype)}x{e.vector.width}", x)
    if dtype is DType.BOOL:
        wide = f"__builtin_convertvector({x.text}, {vector_of(e, DType.INT32)})"
        return Code(f"{wide} != 0", COMPARE)
    return x


def narrowed(e: Emitter, x: Code, dtype: DType) -> Code:
    """Convert computed values to their form in memory."""
    if dtype.is_half:
        return helper_call(e, f"to_{short_name(dtype)}x{e.vector.width}", x)
    if dtype is DType.BOOL:
        return Code(f"__builtin_convertvector({x.at(UNARY)} & 1, {stored_vector(e, dtype)})")
    return x


def vector_of(e: Emitter, dtype: DType) -> str:
    """The C vector type in which values of *dtype* are computed."""
    computed = {DType.BOOL: DType.INT32}.get(dtype, DType.FLOAT32 if dtype.is_half else dtype)
    return _vector(e, computed)


def stored_vector(e: Emitter, dtype: DType) -> str:
    """The C vector type of elements of *dtype* in memory."""
    stored = {DType.BOOL: DType.UINT8}.get(dtype, DType.UINT16 if dtype.is_half else dtype)
    return _vector(e, stored)


def _vector(e: Emitter, dtype: DType) -> str:
    found = vector_type(dtype, e.vector.width)
    e.need(found)
    return found


def store(e: Emitter, s: Store, value: Code) -> None:
    """Write the active lanes; if they share an element, the last one wins."""
    found = access(e, s.buffer, s.indices)
    stored = narrowed(e, value, s.buffer.dtype)
    name = variable_of(e, s.buffer, found.start)
    if name is not None and found.is_consecutive:
        e.line(f"{name} = {stored.text};")
        return
    kind = stored_vector(e, s.buffer.dtype)
    if found.is_consecutive:
        place = Code(f"&{e.place(s.buffer)}[{index(e, found.start).text}]")
        part = [] if e.vector.active == e.vector.width else [Code(str(e.vector.active))]
        word = "store_part" if part else "store"
        e.line(f"{helper_call(e, f'{word}_{kind}', place, stored, *part).text};")
        return
    last = e.vector.active - 1
    with e.block(""):
        made = e.names.fresh("t")
        e.line(f"const {kind} {made} = {stored.text};")
        for k in (last,) if found.is_one_element else range(last + 1):
            e.line(f"{_element(e, s, k)} = {made}[{k}];")


def _element(e: Emitter, s: Store, lane: int) -> str:
    with e.in_one_lane() as lanes:
        return element(e, s.buffer, [lanes.in_lane(i, lane) for i in s.indices])
