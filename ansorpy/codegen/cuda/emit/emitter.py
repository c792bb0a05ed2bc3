"""State while emitting one kernel: a C writer that also tracks the thread indices bound so far.

:mod:`.expressions` and :mod:`.statements` emit the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ansorpy.codegen.clike.code import UNARY, Code
from ansorpy.codegen.clike.indices import index, is_index
from ansorpy.codegen.clike.sharing import named_once
from ansorpy.codegen.clike.writer import IndexTypes, Tables, Writer
from ansorpy.codegen.cuda.emit.words import WORDS
from ansorpy.codegen.cuda.launch.plan import BoxedTensor
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load
from ansorpy.ir.extents import Extent, most
from ansorpy.ir.loops import AsyncCopy, Buffer, ForKind

__all__ = ["C_TYPES", "Emitter", "register_type"]

C_TYPES = {
    DType.FLOAT64: "double", DType.FLOAT32: "float", DType.FLOAT16: "float16",
    DType.BFLOAT16: "bfloat16", DType.INT64: "long long", DType.INT32: "int",
    DType.INT16: "short", DType.INT8: "signed char", DType.UINT64: "unsigned long long",
    DType.UINT32: "unsigned", DType.UINT16: "unsigned short", DType.UINT8: "unsigned char",
    DType.BOOL: "bool",
}  # fmt: skip
"""C types of elements in memory."""

_INDICES = IndexTypes("int", (1 << 31) - 1, "long long", "LL")


def register_type(dtype: DType) -> str:
    """The C type in which values of *dtype* are computed."""
    return "float" if dtype.is_half else C_TYPES[dtype]


class Emitter(Writer):
    """Emits the body of one kernel; see the module's docstring."""

    def __init__(
        self,
        tables: Tables,
        extents: Mapping[ForKind, Extent],
        written: frozenset[Buffer],
        helpers: dict[str, None],
    ) -> None:
        super().__init__(WORDS, _INDICES, helpers, tables)
        self.extents = extents
        self.written = written
        self.bound: dict[ForKind, Extent] = {}
        self.in_first = False
        """True inside a condition that only the first thread satisfies."""
        self.in_lanes: dict[Load, Code] = {}
        """Vector loads of the current vector loop, each with the code that reads one lane."""
        self.adding: list[Buffer] = []
        """Accumulators in scope that asynchronous instructions add to."""
        self.copies = ""
        """The variable that counts groups of copied boxes; empty if the kernel copies none."""
        self.boxes: dict[tuple[Buffer, BoxedTensor], str] = {}
        """The parameters from which boxes are copied, by what they are maps of."""
        self.cluster = 1
        """The number of neighbouring blocks that run together."""
        self.shared: frozenset[AsyncCopy] = frozenset()
        """The copies that these blocks share."""
        self.by_threads = True
        """Whether threads copy elements themselves (``cp.async``)."""

    def value(self, expr: Expr) -> Code:
        known = self.known.get(expr)
        if known is not None:
            return known
        if is_index(expr) and not self.may_wrap(expr):
            return index(self, expr)
        return named_once(self, expr, self.tables.values[type(expr)](self, expr))

    def type_name(self, dtype: DType) -> str:
        return register_type(dtype)

    def integer_call(self, name: str, wide: bool, *operands: Code) -> str:
        kind = self.indices.of(wide)
        if name in ("min", "max"):
            operands = tuple(Code(f"({kind}){x.at(UNARY)}") if wide else x for x in operands)
        inside = ", ".join(x.text for x in operands)
        if name in ("floor_div", "floor_mod"):
            self.need("division")
            return f"{name}<{kind}>({inside})"
        return f"{name}({inside})"

    @property
    def left_out(self) -> list[ForKind]:
        """Indices that no enclosing loop binds: only the first thread or block along them acts."""
        return [kind for kind, n in self.extents.items() if most(n) > 1 and kind not in self.bound]

    def by_the_first(self) -> AbstractContextManager[None]:
        """Make code emitted in this context run once, not in each thread and block along unbound
        indices."""
        kinds = [] if self.in_first else self.left_out
        return self._first(kinds) if kinds else nullcontext()

    @contextmanager
    def _first(self, kinds: list[ForKind]) -> Iterator[None]:
        with self.block(f"if ({' && '.join(f'{kind.value} == 0' for kind in kinds)})"):
            self.in_first = True
            yield
            self.in_first = False
