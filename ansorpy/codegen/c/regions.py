"""Parallel loops in C: functions that compute a range of iterations, divided among threads.

Each thread reads the team's size inside the parallel region, so the work is complete even if the
system gives fewer threads than requested.  Without threads these are ordinary loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.types import storage_type
from ansorpy.codegen.clike.code import MULTIPLY, Code
from ansorpy.codegen.clike.comments import layout_comment
from ansorpy.codegen.clike.indices import index
from ansorpy.codegen.regions import Region
from ansorpy.ir.expr import Binary, BinaryOp, Expr, SizeVar, Var, as_expr
from ansorpy.ir.extents import prod_of
from ansorpy.ir.loops import Buffer, For, ForKind

__all__ = ["defined", "parallel_loop", "pointer"]


def parallel_loop(e: Emitter, loop: For) -> None:
    """Emit *loop* and the parallel loops directly in it; parallel loops deeper inside, and all
    inside a loop whose iterations may conflict, run serially."""
    name = f"{e.unit.symbol}_part{e.unit.regions + 1}"
    region = Region.of(name, loop, e.names, e.variables)
    is_team = e.unit.style.threads == "openmp" and region.total != 1
    if loop in e.unit.conflicting:
        e.line("// serial: iterations may write the same element")
    if e.in_region or not is_team or loop in e.unit.conflicting:
        _serially(e, loop)
        return
    e.unit.regions += 1
    e.unit.functions.append(_function(e, region))
    _call(e, region)


def _serially(e: Emitter, loop: For) -> None:
    before, e.in_region = e.in_region, e.in_region or loop in e.unit.conflicting
    e.statement(For(loop.var, loop.extent, ForKind.SERIAL, loop.body))
    e.in_region = before


def pointer(e: Emitter, buffer: Buffer, *, is_written: bool) -> str:
    """Declare a parameter for the first element of *buffer*."""
    access = "" if is_written else "const "
    alone = "" if buffer in e.unit.overlapping else "restrict "
    name = f"{access}{storage_type(buffer.dtype)} *{alone}{e.names.give(buffer)}"
    return f"{name} {layout_comment(buffer)}"


def _function(e: Emitter, region: Region) -> str:
    inner = Emitter(e.unit)
    inner.in_region = True
    parameters = [pointer(inner, b, is_written=w) for b, w in region.buffers.items()]
    for var in region.variables:
        known, wide = e.ranges[var], e.variables[var].wide
        name = inner.names.give(var)
        inner.bind(var, known, Code(name, wide=wide))
        parameters.append(f"{e.indices.of(wide)} {name}")
    parameters += ["unsigned char *scratch", "int64_t begin", "int64_t end"]
    counter = inner.names.fresh("iteration")
    with inner.block(f"for (int64_t {counter} = begin; {counter} < end; ++{counter})"):
        _decompose(inner, region, counter)
        inner.is_first = True
        inner.statement(region.body)
    sizes = [inner.variables[var].text for var in region.variables if isinstance(var, SizeVar)]
    return defined(region.name, parameters, inner.lines, ["scratch", *sizes])


def defined(
    name: str, parameters: Sequence[str], lines: Sequence[str], maybe: Iterable[str]
) -> str:
    """The text of a function of *lines*; parameters named in *maybe* may be unused."""
    text = "\n".join(lines)
    unused = [f"  (void){word};" for word in maybe if not re.search(rf"\b{word}\b", text)]
    inside = ",\n    ".join(parameters)
    return "\n".join([f"static void {name}(\n    {inside}) {{", *unused, *lines, "}"])


def _decompose(inner: Emitter, region: Region, counter: str) -> None:
    """Declare the variables of the region's loops, computed from the iteration number."""
    flat = Var(counter)
    wide = inner.unit.style.word_bits < 64
    inner.bind(flat, (0, region.total - 1), Code(counter, wide=wide))
    for n, loop in enumerate(region.loops):
        step = prod_of(other.extent for other in region.loops[n + 1 :])
        inner.bind(loop.var, (0, loop.extent - 1))
        if loop.extent == 1:
            inner.variables[loop.var] = Code("0")
            continue
        expr: Expr = flat if step == 1 else Binary(BinaryOp.FLOORDIV, flat, as_expr(step))
        if step * loop.extent != region.total:
            expr = Binary(BinaryOp.FLOORMOD, expr, as_expr(loop.extent))
        name = inner.names.give(loop.var)
        inner.line(f"const {inner.indices.narrow} {name} = {_cut(inner, index(inner, expr))};")
        inner.variables[loop.var] = Code(name)


def _cut(inner: Emitter, found: Code) -> str:
    return f"({inner.indices.narrow})({found.text})" if found.wide else found.text


def _call(e: Emitter, region: Region) -> None:
    """Run the region on a team; each thread has a share of the iterations and its own scratch."""
    given = [*(_address(e, b) for b in region.buffers),
             *(e.variables[var].text for var in region.variables)]  # fmt: skip
    each, total = e.unit.storage.thread_bytes, index(e, as_expr(region.total)).at(MULTIPLY)
    e.lines.append("#ifdef _OPENMP")
    e.lines.append("#pragma omp parallel num_threads(threads) if (threads > 1)")
    with e.block(""):
        e.line("const int64_t number = omp_get_thread_num(), count = omp_get_num_threads();")
        share = [f"{total} * number / count", f"{total} * (number + 1) / count"]
        scratch = f"scratch + {each} * number" if each else "scratch"
        _invoke(e, region, [*given, scratch, *share])
    e.lines.append("#else")
    e.line("(void)threads;")
    _invoke(e, region, [*given, "scratch", "0", total])
    e.lines.append("#endif")


def _invoke(e: Emitter, region: Region, arguments: Sequence[str]) -> None:
    e.line(f"{region.name}({', '.join(arguments)});")


def _address(e: Emitter, buffer: Buffer) -> str:
    """The address of the first element, for arrays of any number of dimensions."""
    name = e.place(buffer)
    return f"&{name}{'[0]' * len(buffer.shape)}" if buffer in e.arrays else name
