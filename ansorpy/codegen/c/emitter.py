"""State while emitting one C function: a C writer that also tracks buffers and vector lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from ansorpy.codegen.c.registers import Piece
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.c.types import register_type
from ansorpy.codegen.c.vector.lanes import Lanes
from ansorpy.codegen.c.words import WORDS
from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.clike.sharing import named_once
from ansorpy.codegen.clike.writer import Tables, Writer
from ansorpy.codegen.storage import StoragePlan
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.loops import Buffer, For

__all__ = ["Emitter", "Unit"]


@dataclass
class Unit:
    """State that all functions of one program share; their names start with *symbol*.

    Args:
        overlapping: Parameters whose arrays may overlap in a call.
        conflicting: Parallel loops that run serially, with all parallel loops inside them.
        lanes: Number of lanes of each vector loop, by its variable.
        variables: The pieces, by offset, of register tiles that are variables instead of arrays.
        read: Buffers that some expression reads.
        helpers: Functions of the prelude that are called; grows while functions are emitted.
        functions: Texts of the functions that the main function calls; grows as well.
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
        super().__init__(WORDS, unit.style.indices, unit.helpers, unit.tables)
        self.unit = unit
        self.arrays: set[Buffer] = set()
        self.pieces: dict[Buffer, dict[int, str]] = {}
        """Names of the variables of register tiles in scope, by the offsets of their elements."""
        self.lanes: Lanes | None = None
        self.chunk: int | None = None
        """First iteration of the chunk of a vector loop being emitted, vector or scalar."""
        self.guards: tuple[Expr, ...] = ()
        """Conditions that differ between lanes and hold where the current value is used."""
        self.in_region = False
        self.is_first = False
        """True right after a block was opened for a single statement: if that is a declaration, it
        needs no block of its own."""

    def value(self, expr: Expr) -> Code:
        known = self.known.get(expr)
        if known is not None:
            return known
        return named_once(self, expr, self.tables.values[type(expr)](self, expr))

    @property
    def vector(self) -> Lanes:
        """The lanes of the vector loop being emitted; there must be one."""
        assert self.lanes is not None
        return self.lanes

    @contextmanager
    def in_one_lane(self) -> Iterator[Lanes]:
        """Within this context, code for one lane at a time is emitted; gives the lanes."""
        lanes, self.lanes = self.vector, None
        yield lanes
        self.lanes = lanes

    @contextmanager
    def guarded(self, cond: Expr) -> Iterator[None]:
        """Within this context, values are used only in lanes where *cond* holds."""
        before, self.guards = self.guards, (*self.guards, cond)
        yield
        self.guards = before

    def declaring(self) -> AbstractContextManager[None]:
        """Open a block for a declaration and the statements that use it, if one is needed."""
        return nullcontext() if self.is_first else self.block("")

    def type_name(self, dtype: DType) -> str:
        return register_type(dtype)

    def integer_call(self, name: str, wide: bool, *operands: Code) -> str:
        is_long = wide or self.unit.style.word_bits == 64
        helper = f"{name}_{'i64' if is_long else 'i32'}"
        self.need(helper)
        return f"{helper}({', '.join(x.text for x in operands)})"
