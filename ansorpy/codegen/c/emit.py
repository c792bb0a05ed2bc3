"""Emit a loop program as C11."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.codegen.accesses import buffers_read, buffers_used
from ansorpy.codegen.c.emitter import Emitter, Unit
from ansorpy.codegen.c.expressions import EXPRESSIONS
from ansorpy.codegen.c.functions import prelude
from ansorpy.codegen.c.regions import defined, pointer
from ansorpy.codegen.c.registers import vector_plan, written_out
from ansorpy.codegen.c.statements import STATEMENTS
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.c.words import WORDS
from ansorpy.codegen.clike.code import ADD, Code
from ansorpy.codegen.clike.comments import in_comment
from ansorpy.codegen.clike.indices import index
from ansorpy.codegen.clike.line_breaks import laid_out
from ansorpy.codegen.clike.names import identifier
from ansorpy.codegen.clike.writer import Tables
from ansorpy.codegen.passes.expand_instructions import expand_instructions
from ansorpy.codegen.passes.expand_powers import expand_powers
from ansorpy.codegen.passes.hoist_guards import hoist_guards
from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.codegen.passes.split_sized_vectors import split_sized_vectors
from ansorpy.codegen.passes.store_once import stored_once
from ansorpy.codegen.storage import StoragePlan, plan_storage
from ansorpy.ir.analysis.overwrite import may_overlap
from ansorpy.ir.expr import as_expr, size_var
from ansorpy.ir.loops import Program, Scope, Seq, Stmt
from ansorpy.ir.prove import conflicting_loops
from ansorpy.ir.rewrite.simplify import simplify_stmt
from ansorpy.target import Target

__all__ = ["CFunctions", "CSource", "emit_c", "translation_unit"]


@dataclass(frozen=True)
class CFunctions:
    """The C functions of one program; a file of several programs defines their ``helpers`` once."""

    symbol: str
    helpers: tuple[str, ...]
    functions: str
    style: Style


@dataclass(frozen=True)
class CSource(CFunctions):
    """The functions of a program, and the memory that a call needs."""

    storage: StoragePlan

    @property
    def text(self) -> str:
        """The translation unit."""
        return translation_unit([self])


def translation_unit(sources: Sequence[CFunctions]) -> str:
    """The text of a C file that defines all of *sources*; their symbols must differ."""
    used = dict.fromkeys(name for source in sources for name in source.helpers)
    is_threaded = any("omp parallel" in source.functions for source in sources)
    parts = [
        "#include <float.h>\n#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"
        "#include <string.h>",
        *(["#ifdef _OPENMP\n#include <omp.h>\n#endif"] if is_threaded else []),
        _ASSUMPTIONS,
        *([_VECTORS] if any(source.style.vectors for source in sources) else []),
        *([_SIZED] if any(_SIZES in source.functions for source in sources) else []),
        prelude(used),
        *(source.functions for source in sources),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_ASSUMPTIONS = """\
#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__) || \\
    defined _M_FP_FAST || FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2
#error "compile without -ffast-math or -ffinite-math-only, with arithmetic in operands' types"
#endif
_Static_assert(sizeof(int) == 4 && (int32_t)UINT32_MAX == -1, "int has 32 bits and wraps");"""


_SIZES = "(const int64_t *)args["
_SIZED = """\
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // it takes loops over sizes for empty
#endif"""


_VECTORS = """\
#if !defined __GNUC__
#error "vectors need an extension of GCC and Clang"
#endif
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed to static functions only"""


def emit_c(program: Program, target: Target, symbol: str, style: Style | None = None) -> CSource:
    """Emit *program* as C that defines ``int32_t symbol(void *const *args, void *workspace,
    int32_t threads)`` (kernel ABI); *target* gives the registers and caches.

    If the program has dimensions, the argument after its buffers points to their sizes (int64).

    Raises:
        CodegenError: The program uses a feature that no CPU has (block loops, shared memory).
    """
    style = style or Style()
    overlapping = may_overlap(program)
    program = _prepared(program, target, style)
    lanes, tiles = vector_plan(program.body, target if style.vectors else None)
    unit = Unit(
        identifier(symbol, WORDS),
        style,
        plan_storage(program, target),
        Tables(EXPRESSIONS, STATEMENTS),
        overlapping,
        conflicting_loops(program) if style.threads != "none" else frozenset(),
        lanes,
        tiles,
        buffers_read(program.body),
    )
    parts = [_body(unit, program), _entry(unit, program)]
    text = "\n\n".join([*unit.functions, *parts])
    return CSource(unit.symbol, tuple(unit.helpers), text, style, unit.storage)


def _prepared(program: Program, target: Target, style: Style) -> Program:
    """Run the passes that precede emission, in order."""
    program = split_sized_vectors(expand_instructions(program), target, masked=False)
    program = promote(hoist_guards(expand_powers(program)), target, in_full=bool(program.dims))
    if style.threads != "none":
        program = stored_once(program)
    program = written_out(program, vectors=style.vectors)
    return program.with_body(simplify_stmt(program.body))


def _body(unit: Unit, program: Program) -> str:
    """The function that takes the arrays by name; the regions it calls are added to
    ``unit.functions``."""
    e = Emitter(unit)
    written = buffers_used(program.body)
    parameters = [
        pointer(e, param.buffer, is_written=written.get(param.buffer, False))
        for param in program.params
    ]
    parameters += [f"const {e.size(dim)}" for dim in program.dims]
    parameters += ["unsigned char *workspace", "unsigned char *scratch", "int32_t threads"]
    for part in program.body.body if isinstance(program.body, Seq) else (program.body,):
        _stage(e, part)
    names = [*(e.place(param.buffer) for param in program.params), "workspace", "scratch"]
    names += [e.variables[size_var(dim)].text for dim in program.dims]
    return defined(f"{unit.symbol}_body", parameters, e.lines, [*names, "threads"])


def _stage(e: Emitter, part: Stmt) -> None:
    """Emit a statement of the program below a comment that names the buffers it computes."""
    made = [
        buffer.name
        for buffer, is_written in buffers_used(part).items()
        if is_written and buffer.scope is not Scope.LOCAL
    ]
    if made:
        e.line(f"// {in_comment(', '.join(made))}")
    e.is_first = False
    e.statement(part)


def _entry(unit: Unit, program: Program) -> str:
    arguments = [f"args[{n}]" for n in range(len(program.params))]
    e = Emitter(unit)
    for n, dim in enumerate(program.dims):
        size = Code(f"({_SIZES}{len(program.params)}])[{n}]", wide=True)
        e.bind(size_var(dim), (dim.low, dim.high), size)
        arguments.append(size.text)
    shared = index(e, as_expr(unit.storage.shared_bytes)).at(ADD)
    scratch = "workspace" if shared == "0" else f"(unsigned char *)workspace + {shared}"
    call = f"{unit.symbol}_body({', '.join([*arguments, 'workspace', scratch, 'threads'])});"
    head = f"int32_t {unit.symbol}(void *const *args, void *workspace, int32_t threads) {{"
    return "\n".join([head, *laid_out(call, "  "), "  return 0;", "}"])
