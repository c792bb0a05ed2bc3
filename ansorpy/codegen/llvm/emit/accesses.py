"""Loads and stores of one lane or many; their form depends on the offsets of the lanes.

Equal offsets: one scalar access.  Consecutive: one vector access.  Within a few vectors' reach:
vector loads and shuffles.  Anything else: gather or scatter.  Guarded accesses and the inactive
lanes of a tail never touch memory that the program does not touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.addresses import (
    address,
    alignment,
    flatten,
    lane_pointers,
    walked,
)
from ansorpy.codegen.llvm.emit.affine import Affine
from ansorpy.codegen.llvm.emit.conversions import from_stored, to_stored
from ansorpy.codegen.llvm.emit.module import MAX_VECTOR_BYTES, ZERO_BYTES, mangled
from ansorpy.codegen.llvm.emit.shuffles import assembled, windows
from ansorpy.codegen.llvm.emit.text import (
    Value,
    element_bytes,
    mask_bits,
    storage_type,
    type_of,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import least
from ansorpy.ir.loops import Buffer
from ansorpy.ir.sizes import fixed

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter, Place

__all__ = ["Access", "access", "any_of", "load", "load_rows", "load_stored", "store"]


@dataclass(frozen=True, slots=True)
class Access:
    """One use of a buffer: the flat element offset, and whether it is known to be in bounds.

    ``dtype`` is the buffer's type, or a word type if several elements are read as one word.
    """

    buffer: Buffer
    place: Place
    offset: Affine
    in_bounds: bool
    dtype: DType

    @property
    def element(self) -> str:
        return storage_type(self.dtype)

    @property
    def size(self) -> int:
        return element_bytes(self.dtype)

    @property
    def align(self) -> int:
        """Bytes by which each element is aligned: parts of a word need not be aligned as it is."""
        return min(self.place.align, self.size)


def access(e: Emitter, buffer: Buffer, indices: list[Affine]) -> Access:
    """Resolve ``buffer[indices]`` in the current environment."""
    place = e.places[buffer]
    inside = True
    for index, extent in zip(indices, buffer.shape, strict=True):
        low, high = index.bounds()
        inside = inside and low >= 0 and high < least(extent)
    return Access(buffer, place, flatten(e, place, indices), inside, buffer.dtype)


def load(e: Emitter, use: Access) -> Value:
    """Load the element, or one per lane, in the type it is computed in."""
    return from_stored(e, load_stored(e, use), use.dtype)


def load_stored(e: Emitter, use: Access) -> Value:
    """Like :func:`load`, but the value keeps its form in memory."""
    offset = use.offset
    if offset.has_vector_symbol:
        return _gather(e, use)
    if offset.lanes is None or e.lanes is None:
        return _load_at(e, use, offset.const, 0)
    lanes = e.vector.constants(offset)
    first = lanes[0]
    if all(lane == first for lane in lanes):
        return _load_at(e, use, first, 0)
    if _consecutive(lanes):
        return _load_consecutive(e, use, first)
    if _lane_guard(e, use) is None:
        found = windows(lanes, e.vector.width)
        if found is not None:
            parts = [_load_at(e, use, start, width) for start, width in found]
            return assembled(e, parts, found, lanes)
    return _gather(e, use)


def load_rows(e: Emitter, use: Access, starts: Sequence[int]) -> list[Value]:
    """Load ``len(starts)`` consecutive elements from each start, in their form in memory."""
    return [_load_at(e, use, start, len(starts)) for start in starts]


def _lane_guard(e: Emitter, use: Access) -> Value | None:
    return None if use.in_bounds else e.lane_guard()


def _load_at(e: Emitter, use: Access, const: int, lanes: int) -> Value:
    """Load *lanes* consecutive elements (0: a scalar) at constant *const* from the base."""
    kind = type_of(use.element, lanes)
    guard = None if use.in_bounds else _any_lane(e)
    if guard is None:
        base = address(e, use.place, use.offset, use.size)
        shift = const * use.size
        align = alignment(use.place, use.offset, const, use.size)
    else:
        base = _guarded_address(e, use, const, guard)
        shift, align = 0, use.align
    known = e.scope.loads.get(use.buffer, base, shift, kind)
    if known is not None:
        return known
    pointer = _at(e, base, shift)
    value = e.text.value(use.element, lanes, f"load {kind}, ptr {pointer}, align {align}")
    e.scope.loads.loaded(use.buffer, base, shift, max(1, lanes) * use.size, value)
    return value


def _at(e: Emitter, base: str, shift: int) -> str:
    """*base* plus a constant number of bytes, emitted next to its use so that it folds into it."""
    return e.text.define(f"getelementptr i8, ptr {base}, i64 {shift}") if shift else base


def _guarded_address(e: Emitter, use: Access, const: int, guard: Value) -> str:
    """The address if *guard* holds, else that of a block of zeros, so that a read needs no branch.

    The select is emitted in the outermost scope where the guard is available; offsets that inner
    loops add then walk over zeros instead of memory that must not be touched.
    """
    terms = use.offset.terms
    inner = {s: c for s, c in terms.items() if s.level > guard.level}
    low, high = Affine(inner, 0).bounds()
    if low < 0 or (high + 1) * use.size + MAX_VECTOR_BYTES > ZERO_BYTES:
        inner = {}
    outer = {s: c for s, c in terms.items() if s not in inner}
    base, level = walked(e, use.place.pointer, 0, outer, use.size)
    if const:
        base = e.pure(level, f"getelementptr i8, ptr {base}, i64 {const * use.size}")
    level = max(level, guard.level)
    text = f"select i1 {guard.text}, ptr {base}, ptr {e.module.zeros()}"
    return walked(e, e.pure(level, text), level, inner, use.size)[0]


def _any_lane(e: Emitter) -> Value | None:
    """A scalar condition that holds if any lane may read."""
    uniform, lane = e.uniform_guard(), e.lane_guard()
    if lane is None:
        return uniform
    some = any_of(e, lane)
    return some if uniform is None else e.both(uniform, some, 0)


def any_of(e: Emitter, mask: Value) -> Value:
    """True if at least one lane of *mask* is true."""
    name = e.module.declare(f"llvm.vector.reduce.or.{mangled(mask.type)}", "i1", mask.type)
    return Value("i1", e.pure(mask.level, f"call i1 @{name}({mask.typed})"), 0, mask.level)


def _load_consecutive(e: Emitter, use: Access, first: int) -> Value:
    """Emit one vector load, masked where some lanes must not be read."""
    guard = _lane_guard(e, use)
    if guard is None and (e.vector.is_full or _room(e, use, first)):
        return _load_at(e, use, first, e.vector.width)
    uniform = None if use.in_bounds else e.uniform_guard()
    if uniform is None:
        base = address(e, use.place, use.offset, use.size)
        shift = first * use.size
    else:
        base = _guarded_address(e, use, first, uniform)
        shift = 0
    mask = _active(e, guard)
    kind = f"<{e.vector.width} x {use.element}>"
    pointer = _at(e, base, shift)
    name = e.module.declare(
        f"llvm.masked.load.{mangled(kind)}.p0", kind, f"ptr, i32, {mask.type}, {kind}"
    )
    text = (
        f"call {kind} @{name}(ptr {pointer}, i32 {use.align}, {mask.typed}, {kind} zeroinitializer)"
    )
    return e.text.value(use.element, e.vector.width, text)


def _room(e: Emitter, use: Access, first: int) -> bool:
    """True if a full vector from *first* stays inside the buffer for all symbol values."""
    low, high = Affine(use.offset.terms, first).bounds()
    return use.in_bounds and low >= 0 and high + e.vector.width <= use.place.size


def _active(e: Emitter, guard: Value | None) -> Value:
    """The active lanes, without those that *guard* excludes."""
    if guard is None:
        return e.vector.mask
    if e.vector.is_full:
        return guard
    return e.both(guard, e.vector.mask, e.vector.width)


def _pointers_and_mask(e: Emitter, use: Access, *, guarded: bool) -> tuple[Value, Value]:
    pointers = lane_pointers(e, use.place, use.offset, use.element)
    mask = _active(e, e.lane_guard() if guarded else None)
    uniform = e.uniform_guard() if guarded else None
    if uniform is not None:
        mask = e.both(mask, uniform, e.vector.width)
    return pointers, mask


def _gather(e: Emitter, use: Access) -> Value:
    pointers, mask = _pointers_and_mask(e, use, guarded=not use.in_bounds)
    kind = f"<{e.vector.width} x {use.element}>"
    name = e.module.declare(
        f"llvm.masked.gather.{mangled(kind)}.v{e.vector.width}p0", kind,
        f"{pointers.type}, i32, {mask.type}, {kind}",
    )  # fmt: skip
    text = (
        f"call {kind} @{name}({pointers.typed}, i32 {use.align}, {mask.typed}, "
        f"{kind} zeroinitializer)"
    )
    return e.text.value(use.element, e.vector.width, text)


def store(e: Emitter, use: Access, value: Value) -> None:
    """Write *value*; memory of inactive lanes stays unchanged.

    Uniform guards have already become branches around the store; here only lanes are masked.  If
    several lanes share one address, the last active lane wins.
    """
    stored = to_stored(e, value, use.buffer.dtype)
    e.scope.written.add(use.buffer)
    if e.lanes is None or not (use.offset.is_vector or stored.lanes or e.lane_guard()):
        _store_at(e, use, use.offset.const, stored)
        return
    lanes = e.vector.constants(use.offset)
    first, guard = lanes[0], e.lane_guard()
    if not use.offset.has_vector_symbol and guard is None:
        if all(lane == first for lane in lanes):
            _store_at(e, use, first, _lane(e, stored, e.vector.active - 1))
            return
        if _consecutive(lanes) and (e.vector.is_full or _may_spill_over(e, use, first)):
            _store_at(e, use, first, e.widened(stored, e.vector.width))
            return
    _store_masked(e, use, stored, lanes, guard)


def _lane(e: Emitter, value: Value, lane: int) -> Value:
    if not value.lanes:
        return value
    return e.text.value(value.element, 0, f"extractelement {value.typed}, i64 {lane}")


def _may_spill_over(e: Emitter, use: Access, first: int) -> bool:
    """True if the inactive lanes fall into the padding after a register tile's row."""
    if not use.place.in_registers or use.offset.terms or len(use.place.strides) < 1:
        return False
    row = use.place.strides[-2] if len(use.place.strides) > 1 else use.place.size
    column = first % row
    ends_row = column + e.vector.active == use.buffer.shape[-1]
    return ends_row and column + e.vector.width <= fixed(row)


def _store_at(e: Emitter, use: Access, const: int, value: Value) -> None:
    base = address(e, use.place, use.offset, use.size)
    align = alignment(use.place, use.offset, const, use.size)
    pointer = _at(e, base, const * use.size)
    e.text.emit(f"store {value.typed}, ptr {pointer}, align {align}")
    e.scope.loads.stored(use.buffer, base, const * use.size, max(1, value.lanes) * use.size, value)


def _store_masked(
    e: Emitter, use: Access, value: Value, lanes: list[int], guard: Value | None
) -> None:
    """Store the active lanes: a single one, consecutive ones, or scattered."""
    value = e.widened(value, e.vector.width)
    mask = _active(e, guard)
    if _is_held_in_registers(e, use, lanes):
        # All of the old vector is stored again, whether any lane is active or not.
        old = _load_at(e, replace(use, in_bounds=True), lanes[0], e.vector.width)
        blend = f"select {mask.typed}, {value.typed}, {old.typed}"
        _store_at(e, use, lanes[0], e.text.value(value.element, value.lanes, blend))
        return
    e.scope.loads.forget(use.buffer)
    chosen = [k for k, bit in enumerate(mask_bits(mask) or ()) if bit]
    if len(chosen) == 1 and not use.offset.has_vector_symbol:
        # LLVM 22 writes four bytes when it turns a truncating one-lane store into a scalar one.
        _store_at(e, use, lanes[chosen[0]], _lane(e, value, chosen[0]))
    elif not use.offset.has_vector_symbol and _consecutive(lanes):
        _store_run(e, use, value, lanes[0], mask)
    else:
        _scatter(e, use, value, mask)


def _is_held_in_registers(e: Emitter, use: Access, lanes: list[int]) -> bool:
    """True if the lanes lie in a register tile, which a masked store would force into memory."""
    is_fixed = use.place.in_registers and not use.offset.terms and _consecutive(lanes)
    return is_fixed and lanes[0] + e.vector.width <= use.place.size


def _consecutive(lanes: list[int]) -> bool:
    return all(lane == lanes[0] + k for k, lane in enumerate(lanes))


def _store_run(e: Emitter, use: Access, value: Value, first: int, mask: Value) -> None:
    base = address(e, use.place, use.offset, use.size)
    pointer = _at(e, base, first * use.size)
    name = e.module.declare(
        f"llvm.masked.store.{mangled(value.type)}.p0", "void",
        f"{value.type}, ptr, i32, {mask.type}",
    )  # fmt: skip
    e.text.emit(f"call void @{name}({value.typed}, ptr {pointer}, i32 {use.size}, {mask.typed})")


def _scatter(e: Emitter, use: Access, value: Value, mask: Value) -> None:
    pointers = lane_pointers(e, use.place, use.offset, use.element)
    name = e.module.declare(
        f"llvm.masked.scatter.{mangled(value.type)}.v{value.lanes}p0", "void",
        f"{value.type}, {pointers.type}, i32, {mask.type}",
    )  # fmt: skip
    e.text.emit(f"call void @{name}({value.typed}, {pointers.typed}, i32 {use.size}, {mask.typed})")
