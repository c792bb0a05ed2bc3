"""Emit a whole loop program as one LLVM module."""

from __future__ import annotations

from ansorpy.codegen.accesses import buffers_used
from ansorpy.codegen.llvm.emit.affine import Symbol, symbol
from ansorpy.codegen.llvm.emit.expressions import EXPRESSIONS
from ansorpy.codegen.llvm.emit.functions import (
    SCRATCH,
    THREADS,
    emit_entry,
    main_parameters,
    open_function,
    own_buffers,
)
from ansorpy.codegen.llvm.emit.indices import INDICES
from ansorpy.codegen.llvm.emit.module import Module, Tables
from ansorpy.codegen.llvm.emit.statements import STATEMENTS
from ansorpy.codegen.passes.expand_functions import expand_functions
from ansorpy.codegen.passes.expand_instructions import expand_instructions
from ansorpy.codegen.passes.guarded_vectors import guarded_vectors
from ansorpy.codegen.passes.hoist_guards import hoist_guards
from ansorpy.codegen.passes.limit_loops import limit_loops
from ansorpy.codegen.passes.prefetch_constants import prefetch_constants
from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.codegen.passes.split_sized_vectors import split_sized_vectors
from ansorpy.codegen.storage import StoragePlan, plan_storage
from ansorpy.codegen.vectors import loop_lanes
from ansorpy.errors import CodegenError
from ansorpy.ir.analysis.overwrite import may_overlap
from ansorpy.ir.expr import size_var
from ansorpy.ir.loops import Program
from ansorpy.target import Target

__all__ = ["emit_llvm", "emit_module"]


def emit_llvm(program: Program, target: Target, symbol: str, *, prefetch: bool = False) -> str:
    """The unoptimised LLVM IR of *program*: a module that defines *symbol* (kernel ABI).

    With *prefetch*, the code assumes that constants lie outside a core's own caches, and prefetches
    them.

    Raises:
        CodegenError: The program uses features that no CPU has (block loops, shared memory).
    """
    return emit_module(program, target, symbol, prefetch)[0]


def emit_module(
    program: Program, target: Target, symbol: str, prefetch: bool
) -> tuple[str, StoragePlan]:
    """The module's text, and the storage plan of the program's buffers."""
    if not target.triple:
        raise CodegenError(
            f"target {target.name} is not an LLVM target", hint="use its own code generator"
        )
    overlapping = may_overlap(program)
    program = split_sized_vectors(expand_instructions(program), target, masked=True)
    program = promote(hoist_guards(program), target, in_full=bool(program.dims))
    program = guarded_vectors(limit_loops(hoist_guards(program)), target)
    if prefetch:
        program = prefetch_constants(program, target)
    plan = plan_storage(program, target)
    # Chosen before expansion: intermediate types (sines reduce in float64) must not affect lanes.
    lanes = loop_lanes(program.body, target)
    program = expand_functions(program)
    tables = Tables(EXPRESSIONS, INDICES, STATEMENTS)
    module = Module(symbol, target, plan, tables, lanes, overlapping)
    _emit_main(module, program, f"{symbol}.main")
    emit_entry(module, program, f"{symbol}.main")
    return module.render(), plan


def _emit_main(module: Module, program: Program, name: str) -> None:
    parameters = main_parameters(program, module, buffers_used(program.body))
    own = len(program.params)
    declared = [parameter.declaration for parameter in parameters[:own]]
    declared += [f"i64 %size{k}" for k in range(len(program.dims))]
    declared += [parameter.declaration for parameter in parameters[own:]]
    declared += [f"ptr {SCRATCH}", f"i32 {THREADS}"]
    e = open_function(
        module,
        f"internal void @{name}({', '.join(declared)})",
        parameters,
        own_buffers(program.body),
    )
    for k, dim in enumerate(program.dims):
        e.env[size_var(dim)] = symbol(Symbol(f"%size{k}", dim.low, dim.high, 0))
    e.statement(program.body)
    e.text.emit("ret void")
