"""State while writing one function in C or CUDA C: lines, names, ranges and named values.

A writer knows no node types: the functions that emit them take it as their first argument.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ansorpy.codegen.clike.code import Code
from ansorpy.codegen.clike.comments import in_comment
from ansorpy.codegen.clike.line_breaks import laid_out
from ansorpy.codegen.clike.names import Names, Words
from ansorpy.codegen.unsupported import gpu_statement
from ansorpy.ir.analysis.interval import Bounder, Interval
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Var, size_var
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import Buffer, Stmt
from ansorpy.ir.rewrite.simplify import Simplifier
from ansorpy.ir.symbols import Dim

__all__ = ["IndexTypes", "Tables", "Writer"]


@dataclass(frozen=True)
class IndexTypes:
    """The C types of index arithmetic: ``narrow`` where bounds prove that it suffices.

    Args:
        narrow: Usually the type of a machine word.
        most: The largest value of the narrow type.
        wide: A 64-bit type.
        suffix: Suffix of literals of the wide type.
    """

    narrow: str
    most: int
    wide: str
    suffix: str

    def of(self, wide: bool) -> str:
        """The wide or the narrow type."""
        return self.wide if wide else self.narrow


@dataclass(frozen=True)
class Tables:
    """The functions that emit each kind of node; they take the writer as their first argument."""

    values: Mapping[type[Expr], Callable[[Any, Any], Code]]
    statements: Mapping[type[Stmt], Callable[[Any, Any], None]]


class Writer(ABC):
    """Writes the body of one function; see the module's docstring."""

    def __init__(
        self, words: Words, indices: IndexTypes, helpers: dict[str, None], tables: Tables
    ) -> None:
        self.indices = indices
        self.helpers = helpers
        self.tables = tables
        self.lines: list[str] = []
        self.names = Names(words)
        self.ranges: dict[Var, tuple[Extent, Extent]] = {}
        """Changed by :meth:`bind` and :meth:`unbind` only."""
        self._simplifier: Simplifier | None = None
        self.variables: dict[Var, Code] = {}
        self.known: dict[Expr, Code] = {}
        """Named values of the current statement, with their names."""
        self.repeated: frozenset[Expr] = frozenset()
        """Values of the current statement that get a name when first emitted."""
        self._depth = 1

    @abstractmethod
    def value(self, expr: Expr) -> Code:
        """Emit *expr* as C."""

    def statement(self, stmt: Stmt) -> None:
        """Emit *stmt*.

        Raises:
            CodegenError: The machine cannot run it.
        """
        emit = self.tables.statements.get(type(stmt))
        if emit is None:
            raise gpu_statement(stmt)
        emit(self, stmt)

    @abstractmethod
    def type_name(self, dtype: DType) -> str:
        """The C type in which values of *dtype* are computed."""

    @abstractmethod
    def integer_call(self, name: str, wide: bool, *operands: Code) -> str:
        """Call ``floor_div``, ``floor_mod``, ``min``, ``max`` or ``abs`` on index arithmetic."""

    def line(self, text: str) -> None:
        """Emit one line, indented to the block's depth; a long line is continued on the next."""
        self.lines += laid_out(text, "  " * self._depth)

    @contextmanager
    def block(self, opening: str, comment: str = "") -> Iterator[None]:
        """Emit ``opening {  // comment``, the lines emitted inside, and ``}``."""
        start = f"{opening} {{" if opening else "{"
        self.line(f"{start}  // {in_comment(comment)}" if comment else start)
        self._depth += 1
        with self.names.block():
            yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Emit the lines of this context into the ``else`` of the block that was just closed."""
        self.lines.pop()
        with self.block("} else"):
            yield

    def bind(self, var: Var, known: tuple[Extent, Extent], code: Code | None = None) -> None:
        """Give *var* the range *known*, and the text *code* unless it is never written."""
        self.ranges[var] = known
        if code is not None:
            self.variables[var] = code
        self._simplifier = None

    def unbind(self, var: Var) -> None:
        """Undo :meth:`bind`."""
        del self.ranges[var]
        self.variables.pop(var, None)
        self._simplifier = None

    @contextmanager
    def variable(self, var: Var, code: Code, known: tuple[Extent, Extent]) -> Iterator[None]:
        """Bind *var* to *code*, with the range *known*, inside the context."""
        outside = self._simplifier
        self.bind(var, known, code)
        yield
        self.unbind(var)
        self._simplifier = outside

    def size(self, dim: Dim) -> str:
        """Name the size of *dim*; returns the declaration of a parameter for it."""
        var, is_wide = size_var(dim), dim.high > self.indices.most
        name = self.names.give(var)
        self.bind(var, (dim.low, dim.high), Code(name, wide=is_wide))
        return f"{self.indices.of(is_wide)} {name}"

    @property
    def _arithmetic(self) -> Simplifier:
        """Kept while the ranges stay the same, because unrolled statements share expressions."""
        if self._simplifier is None:
            self._simplifier = Simplifier(self.ranges)
        return self._simplifier

    def simplified(self, e: Expr) -> Expr:
        """*e* as simple as the variables' ranges allow."""
        return self._arithmetic.expr(e)

    def bounds(self, e: Expr) -> Interval:
        """The lowest and the highest value of *e*, which is an integer or a boolean."""
        return self._arithmetic.known.bounds(e)

    def need(self, helper: str) -> None:
        """Include *helper*, a function of the prelude, in the output."""
        self.helpers[helper] = None

    def may_wrap(self, e: Expr) -> bool:
        """Return whether arithmetic in *e*, an integer, may overflow its type."""
        known = Bounder(self.ranges)
        known.bounds(e)
        return known.overflows

    def fits(self, e: Expr) -> bool:
        """Return whether *e* is always in the range of the narrow index type."""
        low, high = self.bounds(e)
        return low >= -self.indices.most and high <= self.indices.most

    def place(self, buffer: Buffer) -> str:
        """The name of the array that holds *buffer*."""
        return self.names.of(buffer)
