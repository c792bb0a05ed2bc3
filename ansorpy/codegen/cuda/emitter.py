"""The state of writing one kernel: its lines, names, ranges and the indices bound so far.

The emitter knows no node kind; :mod:`.indices`, :mod:`.expressions` and :mod:`.statements` write
them, each function taking the emitter first.
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
"""How tightly operators of C bind."""

INT_MAX = (1 << 31) - 1

C_TYPES = {
    DType.FLOAT64: "double", DType.FLOAT32: "float", DType.FLOAT16: "float16",
    DType.BFLOAT16: "bfloat16", DType.INT64: "long long", DType.INT32: "int",
    DType.INT16: "short", DType.INT8: "signed char", DType.UINT64: "unsigned long long",
    DType.UINT32: "unsigned", DType.UINT16: "unsigned short", DType.UINT8: "unsigned char",
    DType.BOOL: "bool",
}  # fmt: skip
"""How an element is stored."""

_HALF = (DType.FLOAT16, DType.BFLOAT16)


def register_type(dtype: DType) -> str:
    """The C type values of *dtype* are computed in."""
    return "float" if dtype in _HALF else C_TYPES[dtype]


class Code(NamedTuple):
    """An expression of C: its text, how tightly its outermost operator binds, and whether it is
    an integer of 64 bits."""

    text: str
    level: int = ATOM
    wide: bool = False

    def at(self, level: int) -> str:
        """The text as an operand of an operator that binds like *level*."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True)
class Tables:
    """What writes expressions and statements."""

    value: Callable[[Emitter, Expr], Code]
    statement: Callable[[Emitter, Stmt], None]


class Emitter:
    """Writes the body of one kernel; see the module's docstring."""

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
        """True under a condition that lets only the first thread in."""
        self.known: dict[Expr, Code] = {}
        """Values of the present statement that have a name."""
        self.repeated: frozenset[Expr] = frozenset()
        """Those of the present statement that get one when they are met."""
        self.in_lanes: dict[Load, Code] = {}
        """Loads of the present vector loop that were loaded at once, by lane."""
        self.adding: list[Buffer] = []
        """The sums in scope that instructions add to which are done later."""
        self._depth = 1

    def value(self, expr: Expr) -> Code:
        """*expr* in C."""
        return self.tables.value(self, expr)

    def statement(self, stmt: Stmt) -> None:
        """Write *stmt*."""
        self.tables.statement(self, stmt)

    def line(self, text: str) -> None:
        """Write one line, indented as deep as the block is; what is too long is continued."""
        self.lines += laid_out(text, "  " * self._depth)

    @contextmanager
    def block(self, opening: str, comment: str = "") -> Iterator[None]:
        """``opening {  comment``, what is written inside, ``}``."""
        self.line(f"{opening} {{  {comment}" if comment else f"{opening} {{")
        self._depth += 1
        with self.names.block():
            yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def variable(self, var: Var, code: Code, known: tuple[int, int]) -> Iterator[None]:
        """*var* is *code*, and in the range *known*, inside."""
        self.variables[var], self.ranges[var] = code, known
        yield
        del self.variables[var], self.ranges[var]

    @property
    def left_out(self) -> list[ForKind]:
        """The indices that nothing around binds: only the first thread or block counts."""
        return [kind for kind, n in self.extents.items() if n > 1 and kind not in self.bound]

    def by_the_first(self) -> AbstractContextManager[None]:
        """What is written inside is done once, not by each thread and block left out."""
        kinds = [] if self.in_first else self.left_out
        return self._first(kinds) if kinds else nullcontext()

    @contextmanager
    def _first(self, kinds: list[ForKind]) -> Iterator[None]:
        with self.block(f"if ({' && '.join(f'{kind.value} == 0' for kind in kinds)})"):
            self.in_first = True
            yield
            self.in_first = False

    def need(self, helper: str) -> None:
        """Have a function of the prelude written."""
        self.helpers[helper] = None

    def fits(self, e: Expr) -> bool:
        """True when *e* is always in the range of ``int``."""
        low, high = bounds(e, self.ranges)
        return low >= -INT_MAX and high <= INT_MAX

    def buffer_of(self, load: Load) -> Buffer:
        """What *load* reads.

        Raises:
            CodegenError: A tensor of the definition.
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
