"""State while emitting one C function: what a writer of C has, and where buffers are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ansorpy.codegen.c.registers import Piece
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.c.types import register_type
from ansorpy.codegen.c.vector.lanes import Lanes
from ansorpy.codegen.c.words import WORDS
from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.clike.sharing import named_once
from ansorpy.codegen.clike.writer import Writer
from ansorpy.codegen.storage import StoragePlan
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.loops import Buffer, For, Stmt

__all__ = ["Emitter", "Tables", "Unit"]


@dataclass(frozen=True)
class Tables:
    """The functions that emit each kind of node."""

    values: Mapping[type[Expr], Callable[[Emitter, Any], Code]]
    statements: Mapping[type[Stmt], Callable[[Emitter, Any], None]]


@dataclass
class Unit:
    """What all functions of one program share; their names start with *symbol*.

    Args:
        overlapping: Parameters whose arrays may overlap in a call.
        conflicting: Parallel loops that must run serially.
        lanes: Those of vector loops, by their variables.
        variables: Register tiles that are not arrays, by the offsets of their parts.
        read: Buffers that some expression reads.
        helpers: Functions of the prelude that are called; grows while functions are emitted.
        functions: Texts of those that the program's main function calls; grows likewise.
    """

    symbol: str
    style: Style
    storage: StoragePlan
    tables: Tables
    overlapping: frozenset[Buffer] = frozenset()
    conflicting: frozenset[For] = frozenset()
    lanes: Mapping[Var, int] = field(default_factory=dict)
    variables: Mapping[Buffer, Mapping[int, Piece]] = field(default_factory=dict)
    read: frozenset[Buffer] = frozenset()
    helpers: dict[str, None] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    regions: int = 0


class Emitter(Writer):
    """Emits the body of one function.

    ``arrays`` are local buffers declared as C arrays of their shape; all other buffers are
    pointers to their first element.
    """

    def __init__(self, unit: Unit) -> None:
        super().__init__(WORDS, unit.style.indices, unit.helpers)
        self.unit = unit
        self.arrays: set[Buffer] = set()
        self.pieces: dict[Buffer, dict[int, str]] = {}
        """Names of the variables of register tiles in scope, by the offsets of their elements."""
        self.lanes: Lanes | None = None
        self.chunk: int | None = None
        """The first iteration in the chunk of a vector loop that is emitted, also as a scalar."""
        self.guards: tuple[Expr, ...] = ()
        """Conditions that differ between lanes and hold where the current value is used."""
        self.in_region = False
        self.is_first = False
        """True where a block was just opened, for the next statement alone: a declaration then
        needs no block of its own."""

    def value(self, expr: Expr) -> Code:
        known = self.known.get(expr)
        if known is not None:
            return known
        return named_once(self, expr, self.unit.tables.values[type(expr)](self, expr))

    def statement(self, stmt: Stmt) -> None:
        """Emit *stmt*.

        Raises:
            CodegenError: A CPU cannot run it.
        """
        emit = self.unit.tables.statements.get(type(stmt))
        if emit is None:
            raise CodegenError(
                f"a {type(stmt).__name__} statement has no meaning on a CPU",
                hint="block and thread loops need a CUDA target",
            )
        emit(self, stmt)

    @contextmanager
    def guarded(self, cond: Expr) -> Iterator[None]:
        """Inside, values are used only in lanes in which *cond* holds."""
        before, self.guards = self.guards, (*self.guards, cond)
        yield
        self.guards = before

    def declaring(self) -> AbstractContextManager[None]:
        """The block that a declaration and the statements it is for need."""
        return nullcontext() if self.is_first else self.block("")

    def type_name(self, dtype: DType) -> str:
        return register_type(dtype)

    def integer_call(self, name: str, wide: bool, *operands: Code) -> str:
        is_long = wide or self.unit.style.word_bits == 64
        helper = f"{name}_{'i64' if is_long else 'i32'}"
        self.need(helper)
        return f"{helper}({', '.join(x.text for x in operands)})"
