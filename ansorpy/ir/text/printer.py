"""Print programs, statements, expressions and definitions as readable, stable pseudo-code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ansorpy.ir.analysis.sharing import shared_parts
from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
    SizeVar,
    Var,
)
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import (
    Alloc,
    AsyncCopy,
    Barrier,
    Buffer,
    Commit,
    Fence,
    For,
    ForKind,
    If,
    Instruction,
    Let,
    Prefetch,
    Program,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
    expressions,
)
from ansorpy.ir.strides import Strides
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["text"]

_PRECEDENCE = {
    BinaryOp.OR: 1, BinaryOp.AND: 2, BinaryOp.BIT_OR: 5, BinaryOp.BIT_XOR: 6, BinaryOp.BIT_AND: 7,
    BinaryOp.SHL: 8, BinaryOp.SHR: 8, BinaryOp.ADD: 9, BinaryOp.SUB: 9, BinaryOp.MUL: 10,
    BinaryOp.DIV: 10, BinaryOp.FLOORDIV: 10, BinaryOp.FLOORMOD: 10, BinaryOp.POW: 12,
}  # fmt: skip
_NOT, _COMPARE, _NEG, _ATOM = 3, 4, 11, 13
_COMBINE = {ReduceKind.SUM: "+=", ReduceKind.PROD: "*="}


def text(node: Program | Stmt | Expr | ComputeDAG) -> str:
    """*node* as pseudo-code; equal programs print identically.

    Variables and buffers of the same name that are live at once are distinguished by a number.
    Repeated parts of a very long expression are named in lines before it.

    >>> i, j = Var("i"), Var("j")
    >>> text((i * 4 + j) // 2 - (j - 1))
    '(i * 4 + j) // 2 - (j - 1)'
    """
    printer = _Printer()
    match node:
        case Expr():
            return "\n".join([*printer.named_parts([node]), printer.expr(node)])
        case Program():
            return "\n".join(printer.program(node))
        case ComputeDAG():
            return "\n".join(
                line + _apart(node.strides.get(op.name))
                for op in node.ops
                for line in printer.tensor(op)
            )
        case _:
            return "\n".join(printer.stmt(node))


class _Printer:
    def __init__(self) -> None:
        self._names: dict[object, str] = {}
        self._taken: set[str] = set()
        self._parts: dict[Expr, Var] = {}

    # Names

    def name(self, thing: Var | Buffer | Tensor) -> str:
        """The name of a variable or buffer; a free one is named at its first use."""
        found = self._names.get(thing)
        return self._bind(thing) if found is None else found

    def _bind(self, thing: Var | Buffer | Tensor) -> str:
        name, n = thing.name, 0
        while name in self._taken:
            n += 1
            name = f"{thing.name}_{n}"
        self._names[thing] = name
        self._taken.add(name)
        return name

    def _free(self, thing: Var | Buffer) -> None:
        self._taken.discard(self._names.pop(thing))

    # Expressions

    def expr(self, e: Expr, outer: int = 0) -> str:
        """*e*, in parentheses if it binds less tightly than *outer*; its name if it has one."""
        part = self._parts.get(e)
        if part is not None:
            return self._names[part]
        code, precedence = _EXPRS[type(e)](self, e)
        return f"({code})" if precedence < outer else code

    def named_parts(self, roots: Sequence[Expr]) -> Iterator[str]:
        """Lines that name repeated parts of *roots*, if they are long."""
        for e in shared_parts(roots):
            if e not in self._parts:
                value, name = self.expr(e), Var("t")
                yield f"{self._bind(name)} = {value}"
                self._parts[e] = name

    def _forget_parts(self, known: int) -> None:
        """Free the names of all parts but the first *known*."""
        while len(self._parts) > known:
            self._free(self._parts.popitem()[1])

    def _const(self, e: Const) -> tuple[str, int]:
        if e.type.is_float:
            return f"{float(e.value)!r}", _ATOM if e.value >= 0 else _NEG
        return f"{e.value}", _ATOM if e.value >= 0 else _NEG

    def _var(self, e: Var) -> tuple[str, int]:
        return self.name(e), _ATOM

    def _size(self, e: SizeVar) -> tuple[str, int]:
        return e.name, _ATOM

    def _binary(self, e: Binary) -> tuple[str, int]:
        if e.op in (BinaryOp.MIN, BinaryOp.MAX):
            return f"{e.op.value}({self.expr(e.a)}, {self.expr(e.b)})", _ATOM
        level = _PRECEDENCE[e.op]
        left, right = (level + 1, level) if e.op is BinaryOp.POW else (level, level + 1)
        return f"{self.expr(e.a, left)} {e.op.value} {self.expr(e.b, right)}", level

    def _compare(self, e: Compare) -> tuple[str, int]:
        level = _COMPARE + 1
        return f"{self.expr(e.a, level)} {e.op.value} {self.expr(e.b, level)}", _COMPARE

    def _call(self, e: Call) -> tuple[str, int]:
        if e.fn is Function.NEG:
            return f"-{self.expr(e.args[0], _NEG)}", _NEG
        if e.fn is Function.NOT:
            return f"not {self.expr(e.args[0], _NOT)}", _NOT
        return f"{e.fn.value}({', '.join(map(self.expr, e.args))})", _ATOM

    def _select(self, e: Select) -> tuple[str, int]:
        return f"select({', '.join(map(self.expr, (e.cond, e.then, e.other)))})", _ATOM

    def _cast(self, e: Cast) -> tuple[str, int]:
        return f"{e.type.value}({self.expr(e.x)})", _ATOM

    def _load(self, e: Load) -> tuple[str, int]:
        return self.element(e.source, e.indices), _ATOM

    def _reduce(self, e: Reduce) -> tuple[str, int]:
        over = ", ".join(f"{self.name(a)} in 0..{a.extent}" for a in e.axes)
        return f"{e.kind.value}({self.expr(e.source)} for {over})", _ATOM

    def element(self, source: Tensor | Buffer, indices: Sequence[Expr]) -> str:
        """``name[indices]``."""
        return f"{self.name(source)}[{', '.join(map(self.expr, indices))}]"

    # Statements

    def stmt(self, s: Stmt) -> Iterator[str]:
        """The lines of *s*."""
        known = len(self._parts)
        yield from self.named_parts(expressions(s))
        yield from _STMTS[type(s)](self, s)
        self._forget_parts(known)

    def _indented(self, s: Stmt) -> Iterator[str]:
        return ("  " + line for line in self.stmt(s))

    def _seq(self, s: Seq) -> Iterator[str]:
        if not s.body:
            yield "pass"
        for part in s.body:
            yield from self.stmt(part)

    def _for(self, s: For) -> Iterator[str]:
        kind = "" if s.kind is ForKind.SERIAL else f"  # {s.kind.value}"
        yield f"for {self._bind(s.var)} in 0..{s.extent}{kind}"
        yield from self._indented(s.body)
        self._free(s.var)

    def _if(self, s: If) -> Iterator[str]:
        yield f"if {self.expr(s.cond)}"
        yield from self._indented(s.then)
        if s.other is not None:
            yield "else"
            yield from self._indented(s.other)

    def _let(self, s: Let) -> Iterator[str]:
        value = self.expr(s.value)
        yield f"{self._bind(s.var)} = {value}"
        yield from self.stmt(s.body)
        self._free(s.var)

    def _alloc(self, s: Alloc) -> Iterator[str]:
        b = s.buffer
        kind = f"{_type(b.dtype, b.shape)}{_apart(b.strides)}"
        turns = f" swizzled by {b.swizzle}" if b.swizzle else ""
        yield f"alloc {self._bind(b)}: {kind}{turns} in {b.scope.value}"
        yield from self.stmt(s.body)
        self._free(b)

    def _store(self, s: Store) -> Iterator[str]:
        place, value = self.element(s.buffer, s.indices), self.expr(s.value)
        if s.reduce is None:
            yield f"{place} = {value}"
        elif s.reduce in _COMBINE:
            yield f"{place} {_COMBINE[s.reduce]} {value}"
        else:
            yield f"{place} = {s.reduce.value}({place}, {value})"

    def _prefetch(self, s: Prefetch) -> Iterator[str]:
        yield f"prefetch {self.name(s.buffer)} at {self.expr(s.offset)}"

    def _barrier(self, s: Barrier) -> Iterator[str]:
        yield f"barrier({s.scope.value})"

    def _shuffle(self, s: Shuffle) -> Iterator[str]:
        place, value = self.element(s.buffer, s.indices), self.expr(s.value)
        yield f"{place} = shuffle({value}, {s.distance})"

    def _instruction(self, s: Instruction) -> Iterator[str]:
        yield f"{s.name}({', '.join(self.element(b, at) for b, at in s.operands)})"

    def _copy(self, s: AsyncCopy) -> Iterator[str]:
        together = f", {s.blocks} blocks" if s.blocks > 1 else ""
        yield f"{self.element(s.buffer, s.indices)} = copy({self.expr(s.value)}{together})"

    def _commit(self, s: Commit) -> Iterator[str]:
        yield f"commit_{s.kind.value}()"

    def _wait(self, s: Wait) -> Iterator[str]:
        yield f"wait_{s.kind.value}({s.pending})"

    def _fence(self, s: Fence) -> Iterator[str]:
        yield f"fence({s.scope.value})"

    # Programs and definitions

    def program(self, p: Program) -> Iterator[str]:
        """The heading with the parameters, then the body."""
        params = ", ".join(
            f"{self._bind(q.buffer)}: {q.role.value} {_type(q.buffer.dtype, q.buffer.shape)}"
            f"{_apart(q.buffer.strides)}"
            for q in p.params
        )
        yield f"{p.name}({params})"
        yield from self._indented(p.body)

    def tensor(self, op: Tensor) -> Iterator[str]:
        """The definition of one operator."""
        kind = _type(op.dtype, op.shape)
        if isinstance(op, PlaceholderOp):
            yield f"{self.name(op)} = placeholder {kind}{', constant' if op.constant else ''}"
        elif isinstance(op, ComputeOp) and op.routine is not None:
            inputs = ", ".join(self.name(source) for source in loads_of(op))
            yield f"{self.name(op)} = {op.routine.name}({inputs})  # {kind}"
        elif isinstance(op, ComputeOp):
            place = self.element(op, op.axes)
            yield from self.named_parts([op.body])
            yield f"{place} = {self.expr(op.body)}  # {kind}"
            for axis in (*op.axes, *op.reduce_axes):
                if axis in self._names:
                    self._free(axis)
            self._forget_parts(0)


def _type(dtype: DType, shape: Sequence[Extent]) -> str:
    return f"{dtype.value}[{', '.join(map(str, shape))}]"


def _apart(strides: Strides | None) -> str:
    return "" if strides is None else f" strides [{', '.join(map(str, strides))}]"


_EXPRS: dict[type[Expr], Callable[..., Any]] = {
    Const: _Printer._const, Var: _Printer._var, Axis: _Printer._var,
    SizeVar: _Printer._size, Binary: _Printer._binary,
    Compare: _Printer._compare, Call: _Printer._call, Select: _Printer._select,
    Cast: _Printer._cast, Load: _Printer._load, Reduce: _Printer._reduce,
}  # fmt: skip
_STMTS: dict[type[Stmt], Callable[..., Iterator[str]]] = {
    Seq: _Printer._seq, For: _Printer._for, If: _Printer._if, Let: _Printer._let,
    Alloc: _Printer._alloc, Store: _Printer._store, Barrier: _Printer._barrier,
    Instruction: _Printer._instruction, Prefetch: _Printer._prefetch, AsyncCopy: _Printer._copy,
    Commit: _Printer._commit, Wait: _Printer._wait,
    Shuffle: _Printer._shuffle, Fence: _Printer._fence,
}  # fmt: skip
