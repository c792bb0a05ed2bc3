"""Vectorized loops: contiguous lanes are loaded or stored together if that is provably legal.

::

    for j in 0..4  # vectorized        -->    vec<4>(&tile[x * 4]) = vec<4>(&A[i * 64 + x * 4]);
      tile[x * 4 + j] = A[i, x * 4 + j]

A vector access has 2 to 16 bytes, and bounds and coefficients must prove that its address is a
multiple of its size.  All other accesses of a loop are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ansorpy.codegen.accesses import free_vars
from ansorpy.codegen.clike.code import ADD, UNARY, Code
from ansorpy.codegen.clike.indices import flat_index
from ansorpy.codegen.clike.sharing import sharing
from ansorpy.codegen.cuda.emit.assignment import assignment
from ansorpy.codegen.cuda.emit.copies import LEAST_BYTES, constant_store, copied, source_of
from ansorpy.codegen.cuda.emit.elements import element, position
from ansorpy.codegen.cuda.emit.emitter import C_TYPES, Emitter
from ansorpy.codegen.cuda.launch.plan import ALIGNMENT
from ansorpy.codegen.unsupported import buffer_of
from ansorpy.ir.analysis.affine import divisor_of, linear
from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.builders import all_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Compare, CompareOp, Expr, Load, Select, Var, as_expr, children, is_zero
from ansorpy.ir.loops import AsyncCopy, Buffer, For, ForKind, Scope, Store
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed

__all__ = ["transposed_loop", "vector_loop"]

_WIDTHS = (16, 8, 4, 2)

WORD = 4
"""Bytes of a register."""

_Guards = tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True)
class _Lanes:
    """A vectorized loop around one store, executed *width* iterations at a time.

    ``moved`` holds the vector loads, each with the conditions that its lanes share; ``stores`` is
    true if the store is a vector store.
    """

    var: Var
    extent: int
    store: Store
    width: int
    moved: Mapping[Load, _Guards]
    stores: bool

    @property
    def saved(self) -> float:
        """Accesses saved per iteration."""
        return (len(self.moved) + self.stores) * (1 - 1 / self.width)


def vector_loop(e: Emitter, s: For) -> None:
    """Emit the vectorized loop *s*."""
    body = s.body
    if isinstance(body, AsyncCopy):
        body = constant_store(body) or body
    if isinstance(body, Store):
        lanes = _best(e, s, body)
        if lanes is not None:
            found = lanes
            _in_chunks(e, s, found.width, lambda start, at: _at_once(e, found, start, at))
            return
    if isinstance(body, AsyncCopy):
        copy, width = body, _copied_width(e, s, body)
        if width > 1:
            _in_chunks(e, s, width, lambda start, at: _copy(e, s.var, copy, width, start))
            return
    e.statement(For(s.var, s.extent, ForKind.UNROLLED, body))


def transposed_loop(e: Emitter, s: For) -> bool:
    """Emit the loop *s* around a vectorized copy of bytes if it can load words across those stored.

    ::

        for j in 0..4  # unrolled           -->    for k: rows[k] = word_at(&B[...]);
          for k in 0..16  # vectorized             turned(columns, rows);
            tile[j, k] = B[k, j]                   for j: vec<4>(&tile[...]) = columns[j];
    """
    inner = s.body
    found = _turned(e, s, inner) if isinstance(inner, For) else None
    if found is None or not isinstance(inner, For):
        return False
    store, load, cond = found
    depth = fixed(inner.extent)
    e.need("turned")
    with e.names.block():
        rows, columns = e.names.fresh("rows"), e.names.fresh("columns")
        e.line(f"unsigned {rows}[{depth}];")
        k, j = e.names.give(inner.var), e.names.give(s.var)
        e.line("#pragma unroll")
        with (
            e.block(f"for (int {k} = 0; {k} < {depth}; ++{k})"),
            e.variable(inner.var, Code(k), (0, depth - 1)),
        ):
            source = _address(e, buffer_of(load), load.indices, {s.var: as_expr(0)})
            guards = () if cond is None else ((cond, True),)
            e.line(f"{rows}[{k}] = {_guarded(e, guards, f'word_at({source})', 'unsigned')};")
        e.line(f"Vec<unsigned, {depth // WORD}> {columns}[{WORD}];")
        e.line(f"turned({columns}, {rows});")
        e.line("#pragma unroll")
        with (
            e.block(f"for (int {j} = 0; {j} < {WORD}; ++{j})"),
            e.variable(s.var, Code(j), (0, WORD - 1)),
        ):
            target = _address(e, store.buffer, store.indices, {inner.var: as_expr(0)})
            e.line(f"vec<{depth // WORD}>((unsigned*){target}) = {columns}[{j}];")
    return True


def _address(e: Emitter, buffer: Buffer, indices: tuple[Expr, ...], at: Mapping[Var, Expr]) -> str:
    """The address of an element where variables have the values *at*."""
    moved = tuple(substitute(i, at) for i in indices)
    return f"&{e.place(buffer)}[{position(e, buffer, moved)}]"


def _turned(e: Emitter, s: For, inner: For) -> tuple[AsyncCopy | Store, Load, Expr | None] | None:
    """The copy in *inner* that loads vectors along *s* and stores them along *inner*, if any."""
    body = inner.body
    if inner.kind is not ForKind.VECTORIZED or not isinstance(body, AsyncCopy | Store):
        return None
    if isinstance(body, Store) and body.reduce is not None:
        return None
    value = body.value
    cond: Expr | None = None
    if isinstance(value, Select) and is_zero(value.other):
        cond, value = value.cond, value.then
    if not isinstance(value, Load) or value.source is body.buffer or body.buffer.dtype.bytes > 1:
        return None
    parts = [_for_all(part, s.var) for part in (() if cond is None else conjuncts(cond))]
    if None in parts:
        return None
    cond = all_of(*(part for part in parts if part is not None)) if parts else None
    width, depth = fixed(s.extent), fixed(inner.extent)
    with (
        e.variable(s.var, Code(""), (0, width - 1)),
        e.variable(inner.var, Code(""), (0, depth - 1)),
    ):
        loads = _moves(e, s.var, buffer_of(value), value.indices, width)
        stores = _moves(e, inner.var, body.buffer, body.indices, depth)
    return (body, value, cond) if (width, depth % width) == (WORD, 0) and loads and stores else None


def _for_all(cond: Expr, var: Var) -> Expr | None:
    """*cond* without *var*, if it is the same for all bytes of a word along *var*; else None."""
    if var not in free_vars(cond):
        return cond
    is_order = isinstance(cond, Compare) and cond.op is CompareOp.LT
    if not isinstance(cond, Compare) or not is_order or cond.a.dtype is not DType.INT64:
        return None
    room = linear(cond.b - cond.a)
    others = [c * divisor_of(atom) for atom, c in room.terms.items() if atom is not var]
    if room.terms.get(var) != -1 or any(n % WORD for n in (*others, room.const)):
        return None
    return substitute(cond, {var: as_expr(0)})


def _in_chunks(e: Emitter, s: For, width: int, write: Callable[[Expr, Code], None]) -> None:
    """Emit all iterations of *s*, *width* at a time; *write* gets the first of them, also as C."""
    if width == s.extent:
        write(as_expr(0), Code("0"))
        return
    start = Var(f"{s.var.name}.start")
    with e.names.block():
        name = e.names.give(start)
        e.line("#pragma unroll")
        with (
            e.block(f"for (int {name} = 0; {name} < {s.extent}; {name} += {width})"),
            e.variable(start, Code(name), (0, s.extent - width)),
        ):
            write(start, Code(name))


def _copied_width(e: Emitter, s: For, copy: AsyncCopy) -> int:
    """The largest number of lanes that one asynchronous copy can move, at least 1."""
    load, cond = source_of(copy)
    if cond is not None and s.var in free_vars(cond):
        return 1
    with e.variable(s.var, Code(""), (0, s.extent - 1)):
        for width in _WIDTHS:
            whole = s.extent % width == 0 and width * copy.buffer.dtype.bytes >= LEAST_BYTES
            if whole and all(
                _moves(e, s.var, buffer, indices, width)
                for buffer, indices in (
                    (copy.buffer, copy.indices),
                    (buffer_of(load), load.indices),
                )
            ):
                return width
    return 1


def _copy(e: Emitter, var: Var, copy: AsyncCopy, width: int, start: Expr) -> None:
    """Start copying *width* iterations from *start*."""
    load, cond = source_of(copy)
    target = _vec(e, copy.buffer, copy.indices, width, {var: start})
    source = _vec(e, buffer_of(load), load.indices, width, {var: start})
    e.line(copied(e, f"&{target}", f"&{source}", cond))


def _best(e: Emitter, s: For, store: Store) -> _Lanes | None:
    """The lanes that save the most accesses; None if none are saved."""
    loads = _loads(s.var, store.value)
    with e.variable(s.var, Code(""), (0, s.extent - 1)):
        tried = [_lanes(e, s, store, loads, width) for width in _WIDTHS if s.extent % width == 0]
    best = max(tried, key=lambda lanes: lanes.saved, default=None)
    return best if best is not None and best.saved else None


def _lanes(e: Emitter, s: For, store: Store, loads: Mapping[Load, _Guards], width: int) -> _Lanes:
    moved = {
        load: guards
        for load, guards in loads.items()
        if _moves(e, s.var, buffer_of(load), load.indices, width)
    }
    stores = _moves(e, s.var, store.buffer, store.indices, width)
    return _Lanes(s.var, fixed(s.extent), store, width, moved, stores)


def _loads(var: Var, root: Expr) -> dict[Load, _Guards]:
    """The loads in *root* that all lanes or no lanes execute, and the conditions guarding them."""
    found: dict[Load, _Guards | None] = {}
    seen: set[tuple[Expr, _Guards | None]] = set()

    def visit(e: Expr, guards: _Guards | None) -> None:
        if (e, guards) in seen:
            return
        seen.add((e, guards))
        if isinstance(e, Load):
            found[e] = guards if e not in found or found[e] == guards else None
        elif isinstance(e, Select):
            visit(e.cond, guards)
            varies = guards is None or var in free_vars(e.cond)
            for side, taken in ((e.then, True), (e.other, False)):
                visit(side, None if varies or guards is None else (*guards, (e.cond, taken)))
        else:
            for inner in children(e):
                visit(inner, guards)

    visit(root, ())
    return {load: guards for load, guards in found.items() if guards is not None}


def _moves(e: Emitter, var: Var, buffer: Buffer, indices: tuple[Expr, ...], width: int) -> bool:
    """Return whether *width* lanes access contiguous, suitably aligned elements.

    A parameter that is part of another tensor may start at any element.
    """
    size = width * buffer.dtype.bytes
    part = buffer.scope is Scope.GLOBAL and buffer.strides is not None
    if buffer.scope is Scope.LOCAL or size > ALIGNMENT or part:
        return False
    form = linear(flat_index(e, buffer, indices))
    if form.terms.get(var) != 1 or form.const % width:
        return False
    others = [(atom, c) for atom, c in form.terms.items() if atom is not var]
    return all(
        c * divisor_of(atom) % width == 0 and var not in free_vars(atom) for atom, c in others
    )


def _at_once(e: Emitter, lanes: _Lanes, start: Expr, first: Code) -> None:
    """Emit *width* iterations from *start*, whose C code is *first*."""
    store, width = lanes.store, lanes.width
    whole = {lanes.var: start}
    target = _vec(e, store.buffer, store.indices, width, whole) if lanes.stores else None
    source = _copied_load(store, lanes.moved)
    if target is not None and source is not None:
        found = _vec(e, buffer_of(source), source.indices, width, whole)
        kind = f"Vec<{C_TYPES[source.dtype]}, {width}>"
        e.line(f"{target} = {_guarded(e, lanes.moved[source], found, kind)};")
        return
    before, e.in_lanes = e.in_lanes, dict(e.in_lanes)
    lane = e.names.fresh(lanes.var.name)
    for load, guards in lanes.moved.items():
        name = e.names.fresh(f"{e.place(buffer_of(load))}_{width}")
        kind = f"Vec<{C_TYPES[load.dtype]}, {width}>"
        found = _vec(e, buffer_of(load), load.indices, width, whole)
        e.line(f"const {kind} {name} = {_guarded(e, guards, found, kind)};")
        e.in_lanes[load] = Code(f"{name}.at[{lane}]")
    made = _target(e, lanes, target)
    e.line("#pragma unroll")
    at = Code(lane) if first.text == "0" else Code(f"{first.text} + {lane}", ADD)
    with (
        e.block(f"for (int {lane} = 0; {lane} < {width}; ++{lane})"),
        e.variable(lanes.var, at, (0, lanes.extent - 1)),
        sharing(e, store.value),
    ):
        one = element(e, store.buffer, store.indices) if made is None else f"{made}.at[{lane}]"
        e.line(f"{assignment(e, one, store)};")
    e.in_lanes = before
    if made is not None:
        e.line(f"{target} = {made};")


def _copied_load(store: Store, moved: Mapping[Load, _Guards]) -> Load | None:
    """The load whose value *store* copies unchanged, or zeros where its guard fails; else None."""
    match store.value:
        case Load() as load if store.reduce is None:
            return load if load in moved else None
        case Select(_, Load() as load, other) if store.reduce is None and is_zero(other):
            return load if load in moved else None
        case _:
            return None


def _target(e: Emitter, lanes: _Lanes, place: str | None) -> str | None:
    """Declare the vector that collects the lanes' results; None if there is no vector store."""
    if place is None:
        return None
    buffer = lanes.store.buffer
    name = e.names.fresh(f"{e.place(buffer)}_{lanes.width}")
    begun = "" if lanes.store.reduce is None else f" = {place}"
    e.line(f"Vec<{C_TYPES[buffer.dtype]}, {lanes.width}> {name}{begun};")
    return name


def _vec(
    e: Emitter, buffer: Buffer, indices: tuple[Expr, ...], width: int, at: Mapping[Var, Expr]
) -> str:
    """All lanes of an access as one vector lvalue."""
    e.need("vec")
    return f"vec<{width}>({_address(e, buffer, indices, at)})"


def _guarded(e: Emitter, guards: _Guards, found: str, kind: str) -> str:
    """*found* if all of *guards* hold, else zeros, which are never used."""
    if not guards:
        return found
    with sharing(e):
        conditions = [
            e.value(cond).at(UNARY) if taken else f"!{e.value(cond).at(UNARY + 1)}"
            for cond, taken in guards
        ]
    return f"{' && '.join(conditions)} ? {found} : {kind}{{}}"
