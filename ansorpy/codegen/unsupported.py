"""What emitters do not support, with the errors that all of them raise."""

from __future__ import annotations

from typing import NoReturn

from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import BinaryOp, Function, Load, Reduce
from ansorpy.ir.loops import Buffer, For, Stmt
from ansorpy.ir.text.printer import text

__all__ = ["buffer_of", "gpu_loop", "gpu_statement", "refuse_reduction", "undefined"]


def undefined(fn: Function | BinaryOp, dtype: DType) -> CodegenError:
    """The error for *fn* on values of *dtype*, for which it is not defined."""
    if fn is BinaryOp.POW:
        return CodegenError(
            f"a power of {dtype.value} values is not defined, but for exponents from 1 to 63",
            hint="give a constant exponent, or convert both operands to a float type first",
        )
    return CodegenError(
        f"{fn.value} of {dtype.value} values is not defined",
        hint="convert the operand to a float type first",
    )


def gpu_loop(loop: For) -> CodegenError:
    """The error for *loop* over blocks or threads in a program for CPUs."""
    return CodegenError(
        f"loop {loop.var.name} is {loop.kind.value}, which has no meaning on a CPU",
        hint="block and thread loops need a CUDA target",
    )


def gpu_statement(stmt: Stmt) -> CodegenError:
    """The error for *stmt* in a program for CPUs."""
    return CodegenError(
        f'only threads of a GPU block can run "{text(stmt)}"', hint="choose a CUDA target"
    )


def buffer_of(load: Load) -> Buffer:
    """The buffer that *load* reads.

    Raises:
        CodegenError: It reads a tensor of the definition.
    """
    if not isinstance(load.source, Buffer):
        raise CodegenError(
            f"the program reads {load.source.name}, which is a tensor of the definition, "
            "not a buffer",
            hint="lower the schedule to a loop program first",
        )
    return load.source


def refuse_reduction(emitter: object, expr: Reduce) -> NoReturn:
    """Raise the error for *expr*, which lowering turns into loops; an entry of emitters' tables."""
    raise CodegenError(
        "a reduction expression cannot be emitted",
        hint="lower it to loops around a Store with reduce=... first",
    )
