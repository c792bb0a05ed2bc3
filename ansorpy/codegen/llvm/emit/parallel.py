"""Parallel loops: the body outlined into a function that a team of threads runs.

The collapsed iteration space is cut into contiguous pieces, one per thread
(:mod:`ansorpy.codegen.llvm.threads.team`).  With one thread, the function is called directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.affine import Affine, Symbol, constant, symbol
from ansorpy.codegen.llvm.emit.functions import SCRATCH, TEAM, THREADS, Parameter, open_function
from ansorpy.codegen.llvm.emit.indices import scalar
from ansorpy.codegen.llvm.emit.loops import counted_loop, serial_loop
from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.codegen.regions import Region
from ansorpy.codegen.storage import allocated
from ansorpy.ir.expr import Binary, BinaryOp, Expr, Var, as_expr
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import For, Scope

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["emit_parallel"]


def emit_parallel(e: Emitter, loop: For) -> None:
    """Outline *loop* and call the function; inside another parallel loop it runs serially."""
    if e.in_region:
        serial_loop(e, loop)
        return
    region = Region.of(e.module.region_name(), loop, e.places, e.env)
    _emit_body(e, region)
    if region.total != 1:
        _emit_piece(e, region)
    _emit_call(e, region)
    for buffer, writes in region.buffers.items():
        if writes:
            e.scope.loads.forget(buffer)
            e.scope.written.add(buffer)


def _emit_body(e: Emitter, region: Region) -> None:
    """Emit the function that runs iterations ``begin .. end - 1``."""
    parameters = [
        Parameter(b, f"%b{k}", e.places[b].align, writes, b not in e.module.overlapping)
        for k, (b, writes) in enumerate(region.buffers.items())
    ]
    declared = [parameter.declaration for parameter in parameters]
    declared += [f"i64 %x{k}" for k in range(len(region.variables))]
    declared += [f"ptr {SCRATCH}", "i64 %begin", "i64 %end"]
    # Nested parallel loops run in this function, so it has their locals, too.
    own = [b for b in allocated(region.body) if b.scope is Scope.LOCAL and b not in e.places]
    signature = f"internal void @{region.name}({', '.join(declared)})"
    inner = open_function(e.module, signature, parameters, own)
    inner.in_region = True
    for k, var in enumerate(region.variables):
        inner.env[var] = _received(e.env[var], k)

    def body(index: Affine) -> None:
        with inner.bound(_decomposed(inner, region, index)):
            inner.statement(region.body)

    counted_loop(inner, region.total, "iteration", body, begin="%begin", end="%end")
    inner.text.emit("ret void")


def _received(outside: Affine, position: int) -> Affine:
    if outside.is_constant:
        return outside
    low, high = outside.bounds()
    return symbol(Symbol(f"%x{position}", low, high, 0))


def _decomposed(inner: Emitter, region: Region, index: Affine) -> dict[Var, Affine]:
    """Split the collapsed iteration number into one value per loop."""
    flat = Var("iteration")
    values: dict[Var, Affine] = {}
    with inner.bound({flat: index}):
        step: Extent = 1
        for position, loop in reversed(list(enumerate(region.loops))):
            expr: Expr = flat if step == 1 else Binary(BinaryOp.FLOORDIV, flat, as_expr(step))
            if position and loop.extent != 1:
                expr = Binary(BinaryOp.FLOORMOD, expr, as_expr(loop.extent))
            values[loop.var] = inner.index(expr) if loop.extent != 1 else constant(0)
            step = step * loop.extent
    return values


def _is_sized(region: Region) -> bool:
    """True if the number of iterations depends on the sizes of dimensions."""
    return not isinstance(region.total, int)


def _slots(region: Region) -> list[str]:
    """Types of a piece's arguments: pointers, variables and the number of iterations if it depends
    on sizes, scratch memory."""
    numbers = len(region.variables) + _is_sized(region)
    return [*["ptr"] * len(region.buffers), *["i64"] * numbers, "ptr"]


def _emit_piece(e: Emitter, region: Region) -> None:
    """Emit the function that runs one piece on any thread.

    It unpacks the arguments, computes the piece's iterations, and calls the body.
    """
    text = FunctionText(f"internal void @{region.name}.piece(ptr %data, i64 %number, i64 %pieces)")
    e.module.functions.append(text)
    arguments = []
    for position, kind in enumerate(_slots(region)):
        slot = text.define(f"getelementptr i8, ptr %data, i64 {8 * position}")
        arguments.append((kind, text.define(f"load {kind}, ptr {slot}, align 8")))
    passed = [f"{kind} {name}" for kind, name in arguments[: -1 - _is_sized(region)]]
    memory = arguments[-1][1]
    total = arguments[-2][1] if _is_sized(region) else str(region.total)
    begin = _cut(text, "%number", total)
    end = _cut(text, text.define("add i64 %number, 1"), total)
    bytes_ = text.define(f"mul i64 %number, {e.module.storage.thread_bytes}")
    scratch = text.define(f"getelementptr i8, ptr {memory}, i64 {bytes_}")
    some = text.define(f"icmp ult i64 {begin}, {end}")
    text.branch_if(some, "work", "done")
    text.start_block("work")
    passed += [f"ptr {scratch}", f"i64 {begin}", f"i64 {end}"]
    text.emit(f"call void @{region.name}({', '.join(passed)})")
    text.branch("done")
    text.start_block("done")
    text.emit("ret void")


def _cut(text: FunctionText, number: str, total: str) -> str:
    """The first of the *total* iterations that belongs to piece *number*."""
    return text.define(f"udiv i64 {text.define(f'mul i64 {number}, {total}')}, %pieces")


def _emit_call(e: Emitter, region: Region) -> None:
    passed = [f"ptr {e.places[buffer].pointer}" for buffer in region.buffers]
    passed += [f"i64 {scalar(e, e.env[var])[0]}" for var in region.variables]
    total = scalar(e, e.index(as_expr(region.total)))[0]
    if region.total == 1:
        _call_directly(e, region, passed, total)
        return
    text = e.text
    alone = e.pure(0, f"icmp eq i32 {THREADS}, 1")
    direct, team, done = (text.fresh_label(hint) for hint in ("alone", "team", "joined"))
    text.branch_if(alone, direct, team)
    text.start_block(direct)
    _call_directly(e, region, passed, total)
    text.branch(done)
    text.start_block(team)
    _fork(e, region, [*passed, *([f"i64 {total}"] if _is_sized(region) else []), f"ptr {SCRATCH}"])
    text.branch(done)
    text.start_block(done)
    text.continue_here()


def _call_directly(e: Emitter, region: Region, passed: Sequence[str], total: str) -> None:
    arguments = [*passed, f"ptr {SCRATCH}", "i64 0", f"i64 {total}"]
    e.text.emit(f"call void @{region.name}({', '.join(arguments)})")


def _fork(e: Emitter, region: Region, passed: Sequence[str]) -> None:
    text = e.text
    data = text.fresh()
    e.allocas.append(f"  {data} = alloca [{8 * len(passed)} x i8], align 8")
    for position, argument in enumerate(passed):
        slot = text.define(f"getelementptr i8, ptr {data}, i64 {8 * position}")
        text.emit(f"store {argument}, ptr {slot}, align 8")
    e.module.declare(TEAM, "void", "ptr, ptr, i32")
    text.emit(f"call void @{TEAM}(ptr @{region.name}.piece, ptr {data}, i32 {THREADS})")
