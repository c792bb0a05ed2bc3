"""State while emitting one kernel: lines, names, ranges, and the indices bound so far.

The emitter knows no node types; :mod:`.indices`, :mod:`.expressions` and :mod:`.statements` emit
them, in functions that take the emitter first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from ansorpy.codegen.cuda.layout import laid_out
from ansorpy.codegen.cuda.names import Names
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, Var
from ansorpy.ir.interval import bounds
from ansorpy.ir.loops import Buffer, ForKind, Stmt

__all__ = [
    "ADD", "AND", "ATOM", "C_TYPES", "COMPARE", "Code", "Emitter", "MULTIPLY", "OR", "POSTFIX",
    "TERNARY", "Tables", "UNARY", "register_type",
]  # fmt: skip

TERNARY, OR, AND, COMPARE, ADD, MULTIPLY, UNARY, POSTFIX, ATOM = range(1, 10)
"""Precedence levels of C operators; higher binds tighter."""

INT_MAX = (1 << 31) - 1

C_TYPES = {
    DType.FLOAT64: "double", DType.FLOAT32: "float", DType.FLOAT16: "float16",
    DType.BFLOAT16: "bfloat16", DType.INT64: "long long", DType.INT32: "int",
    DType.INT16: "short", DType.INT8: "signed char", DType.UINT64: "unsigned long long",
    DType.UINT32: "unsigned", DType.UINT16: "unsigned short", DType.UINT8: "unsigned char",
    DType.BOOL: "bool",
}  # fmt: skip
"""C types of elements in memory."""

_HALF = (DType.FLOAT16, DType.BFLOAT16)


def register_type(dtype: DType) -> str:
    """The C type in which values of *dtype* are computed."""
    return "float" if dtype in _HALF else C_TYPES[dtype]


class Code(NamedTuple):
    """A C expression: its text, the precedence of its outermost operator, and whether it is a
    64-bit integer."""

    text: str
    level: int = ATOM
    wide: bool = False

    def at(self, level: int) -> str:
        """The text as an operand of an operator with precedence *level*."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True)
class Tables:
    """The functions that emit expressions and statements."""

    value: Callable[[Emitter, Expr], Code]
    statement: Callable[[Emitter, Stmt], None]


class Emitter:
    """Emits the body of one kernel; see the module's docstring."""

    def __init__(
        self,
        tables: Tables,
        extents: Mapping[ForKind, int],
        written: frozenset[Buffer],
        helpers: dict[str, None],
    ) -> None:
        self.tables = tables
        self.extents = extents
        self.written = written
        self.helpers = helpers
        self.lines: list[str] = []
        self.names = Names()
        self.ranges: dict[Var, tuple[int, int]] = {}
        self.variables: dict[Var, Code] = {}
        self.bound: dict[ForKind, int] = {}
        self.in_first = False
        """True inside a condition that only the first thread satisfies."""
        self.known: dict[Expr, Code] = {}
        """Named values of the current statement, with their names."""
        self.repeated: frozenset[Expr] = frozenset()
        """Values of the current statement that get a name when first emitted."""
        self.in_lanes: dict[Load, Code] = {}
        """Vector loads of the current vector loop, as the code of one lane."""
        self.adding: list[Buffer] = []
        """Accumulators in scope to which instructions add asynchronously."""
        self._depth = 1

    def value(self, expr: Expr) -> Code:
        """Emit *expr* as C."""
        return self.tables.value(self, expr)

    def statement(self, stmt: Stmt) -> None:
        """Emit *stmt*."""
        self.tables.statement(self, stmt)

    def line(self, text: str) -> None:
        """Emit one line, indented to the block's depth; long ones are continued."""
        self.lines += laid_out(text, "  " * self._depth)

    @contextmanager
    def block(self, opening: str, comment: str = "") -> Iterator[None]:
        """Emit ``opening {  comment``, the lines emitted inside, and ``}``."""
        self.line(f"{opening} {{  {comment}" if comment else f"{opening} {{")
        self._depth += 1
        with self.names.block():
            yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def variable(self, var: Var, code: Code, known: tuple[int, int]) -> Iterator[None]:
        """Bind *var* to *code*, with the range *known*, inside the context."""
        self.variables[var], self.ranges[var] = code, known
        yield
        del self.variables[var], self.ranges[var]

    @property
    def left_out(self) -> list[ForKind]:
        """Indices that no loop here binds: only the first thread or block along them acts."""
        return [kind for kind, n in self.extents.items() if n > 1 and kind not in self.bound]

    def by_the_first(self) -> AbstractContextManager[None]:
        """Have code emitted inside run once, not in each thread and block along unbound indices."""
        kinds = [] if self.in_first else self.left_out
        return self._first(kinds) if kinds else nullcontext()

    @contextmanager
    def _first(self, kinds: list[ForKind]) -> Iterator[None]:
        with self.block(f"if ({' && '.join(f'{kind.value} == 0' for kind in kinds)})"):
            self.in_first = True
            yield
            self.in_first = False

    def need(self, helper: str) -> None:
        """Include a function of the prelude."""
        self.helpers[helper] = None

    def fits(self, e: Expr) -> bool:
        """Return whether *e* is always in the range of ``int``."""
        low, high = bounds(e, self.ranges)
        return low >= -INT_MAX and high <= INT_MAX

    def buffer_of(self, load: Load) -> Buffer:
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

    def place(self, buffer: Buffer) -> str:
        return self.names.of(buffer)
