"""Open and call generated functions: parameters, buffer places, the kernel's entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansorpy.codegen.llvm.emit.affine import Affine, Symbol, symbol
from ansorpy.codegen.llvm.emit.emitter import Emitter, Place
from ansorpy.codegen.llvm.emit.indices import scalar
from ansorpy.codegen.llvm.emit.module import Module
from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.codegen.storage import StoragePlan
from ansorpy.ir.expr import Var, as_expr, size_var
from ansorpy.ir.extents import least
from ansorpy.ir.loops import Alloc, Buffer, For, ForKind, Program, Role, Scope, Stmt, substatements
from ansorpy.ir.strides import ALIGNMENT_BYTES

__all__ = [
    "SCRATCH", "TEAM", "THREADS", "Parameter", "emit_entry", "main_parameters", "open_function",
    "own_buffers",
]  # fmt: skip

SCRATCH = "%scratch"
"""Start of the thread's scratch memory; in the main function, that of thread 0."""
THREADS = "%threads"
TEAM = "ansorpy_team"
"""``void ansorpy_team(void (*piece)(ptr data, i64 number, i64 pieces), ptr data, i32 threads)``
calls *piece* once for each number below ``pieces``, which depends on *threads*
(:mod:`ansorpy.codegen.llvm.threads.team`)."""


@dataclass(frozen=True)
class Parameter:
    """A buffer that a generated function receives as a pointer.

    ``apart``: it does not overlap the buffer of any other parameter.
    """

    buffer: Buffer
    name: str
    align: int
    writes: bool
    apart: bool

    @property
    def declaration(self) -> str:
        alias = "noalias " if self.apart else ""
        access = "" if self.writes else "readonly "
        size = least(self.buffer.span) * self.buffer.dtype.bytes
        there = f"dereferenceable({size}) " if size > 0 else ""
        return f"ptr {alias}{access}align {self.align} {there}{self.name}"


def own_buffers(stmt: Stmt) -> Iterable[Buffer]:
    """Local buffers of the function that runs *stmt*, without those of parallel regions."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        if isinstance(top, For) and top.kind is ForKind.PARALLEL:
            continue
        if isinstance(top, Alloc) and top.buffer.scope is Scope.LOCAL:
            yield top.buffer
        stack.extend(substatements(top))


def open_function(
    module: Module, signature: str, parameters: Iterable[Parameter], locals_: Iterable[Buffer]
) -> Emitter:
    """Start a function and assign a place to every parameter and local buffer."""
    text = FunctionText(signature)
    module.functions.append(text)
    e = Emitter(module, text)
    for parameter in parameters:
        buffer = parameter.buffer
        e.places[buffer] = Place(parameter.name, buffer.steps, least(buffer.span), parameter.align)
    for buffer in locals_:
        e.places[buffer] = _local_place(e, module.storage, buffer)
    return e


def _local_place(e: Emitter, plan: StoragePlan, buffer: Buffer) -> Place:
    size = plan.size(buffer)
    on_stack = buffer in plan.stack
    if on_stack:
        pointer = e.text.fresh()
        e.allocas.append(
            f"  {pointer} = alloca [{size * buffer.dtype.bytes} x i8], align {ALIGNMENT_BYTES}"
        )
    else:
        pointer = e.pure(0, f"getelementptr i8, ptr {SCRATCH}, i64 {plan.scratch[buffer]}")
    return Place(pointer, plan.strides(buffer), size, ALIGNMENT_BYTES, on_stack)


def emit_entry(module: Module, program: Program, main: str) -> None:
    """Emit ``int32 symbol(void *const *args, void *workspace, int32 threads)`` around *main*.

    If the program has dimensions, the argument after its buffers points to their sizes (int64).
    """
    text = FunctionText(f"i32 @{module.symbol}(ptr %args, ptr %workspace, i32 {THREADS})")
    module.functions.append(text)
    arguments = []
    for position in range(len(program.params)):
        slot = text.define(f"getelementptr ptr, ptr %args, i64 {position}")
        arguments.append(f"ptr {text.define(f'load ptr, ptr {slot}')}")
    if program.dims:
        slot = text.define(f"getelementptr ptr, ptr %args, i64 {len(program.params)}")
        sizes = text.define(f"load ptr, ptr {slot}")
    env: dict[Var, Affine] = {}
    for position, dim in enumerate(program.dims):
        slot = text.define(f"getelementptr i64, ptr {sizes}, i64 {position}")
        size = text.define(f"load i64, ptr {slot}")
        arguments.append(f"i64 {size}")
        env[size_var(dim)] = symbol(Symbol(size, dim.low, dim.high, 0))
    e = Emitter(module, text)
    e.env = env
    for offset in (*module.storage.shared.values(), module.storage.shared_bytes):
        value = scalar(e, e.index(as_expr(offset)))[0]
        arguments.append(f"ptr {text.define(f'getelementptr i8, ptr %workspace, i64 {value}')}")
    arguments.append(f"i32 {THREADS}")
    text.emit(f"call void @{main}({', '.join(arguments)})")
    text.emit("ret i32 0")


def main_parameters(
    program: Program, module: Module, written: Mapping[Buffer, bool]
) -> list[Parameter]:
    """Parameters of the main function: the program's, then its workspace buffers."""
    found = []
    for position, param in enumerate(program.params):
        is_constant = param.role is Role.CONSTANT
        align = ALIGNMENT_BYTES if is_constant else param.buffer.dtype.bytes
        writes = written.get(param.buffer, False)
        apart = param.buffer not in module.overlapping
        found.append(Parameter(param.buffer, f"%arg{position}", align, writes, apart))
    apart = not module.storage.shares_bytes
    for position, buffer in enumerate(module.storage.shared):
        found.append(Parameter(buffer, f"%shared{position}", ALIGNMENT_BYTES, True, apart))
    return found
