"""Checks that a loop program is well formed: scopes, types, ranks, bindings and bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansorpy.errors import LoweringError
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
    Select,
    Var,
)
from ansorpy.ir.interval import Ranges, bounds
from ansorpy.ir.loops import (
    Alloc,
    Barrier,
    Buffer,
    For,
    ForKind,
    If,
    Instruction,
    Let,
    Param,
    Program,
    Role,
    Scope,
    Seq,
    Stmt,
    Store,
)
from ansorpy.ir.printer import text

__all__ = ["verify"]

_HARDWARE = frozenset(kind for kind in ForKind if "Idx." in kind.value)


def verify(program: Program) -> None:
    """Return when *program* is well formed.

    An access is refused when its index lies outside for every iteration that reaches it;
    what bounds cannot decide is left to the interpreter.

    Raises:
        LoweringError: It is not; the message names the statement.
    """
    checker = _Checker(program.name)
    order = [Role.INPUT, Role.CONSTANT, Role.OUTPUT]
    roles = [order.index(param.role) for param in program.params]
    if roles != sorted(roles):
        checker.fail("parameters must be inputs, then constants, then outputs")
    for param in program.params:
        checker.parameter(param)
    checker.stmt(program.body)


class _Checker:
    def __init__(self, program: str):
        self.program = program
        self.ranges: dict[Var, tuple[int, int]] = {}
        self.buffers: set[Buffer] = set()
        self.read_only: set[Buffer] = set()
        self.kinds: list[ForKind] = []
        self.current: Stmt | None = None

    def fail(self, message: str) -> None:
        """Raise *message* with the statement it is about."""
        where = "" if self.current is None else f' in "{text(self.current)}"'.split("\n")[0]
        raise LoweringError(f"{self.program}: {message}{where}")

    def parameter(self, param: Param) -> None:
        """A parameter is a global buffer of its own."""
        if param.buffer.scope is not Scope.GLOBAL:
            self.fail(f"parameter {param.buffer.name} is in {param.buffer.scope.value} memory")
        self._declare(param.buffer)
        if param.role is not Role.OUTPUT:
            self.read_only.add(param.buffer)

    def stmt(self, s: Stmt) -> None:
        """*s* and all inside it."""
        check = _STMTS.get(type(s))
        if check is None:
            self.fail(f"{type(s).__name__} is no statement")
        else:
            check(self, s)

    def _declare(self, buffer: Buffer) -> None:
        if buffer in self.buffers:
            self.fail(f"{buffer.name} is declared twice")
        if any(extent < 1 for extent in buffer.shape):
            self.fail(f"{buffer.name} has shape {buffer.shape}")
        self.buffers.add(buffer)

    # Statements

    def _seq(self, s: Seq) -> None:
        for part in s.body:
            self.stmt(part)

    def _for(self, s: For) -> None:
        self.current = s
        if s.extent < 1:
            self.fail(f"the loop over {s.var.name} has extent {s.extent}")
        gpu = any(kind in _HARDWARE for kind in self.kinds)
        if s.kind is ForKind.PARALLEL and (gpu or self._inside_serial()):
            self.fail(f"the parallel loop over {s.var.name} is inside a loop of another kind")
        if s.kind in _HARDWARE and ForKind.PARALLEL in self.kinds:
            self.fail(f"the {s.kind.value} loop over {s.var.name} is inside a parallel loop")
        self.kinds.append(s.kind)
        self._bound(s.var, (0, s.extent - 1), s.body)
        self.kinds.pop()

    def _inside_serial(self) -> bool:
        """True inside a parallel loop and, further in, one that is not."""
        return ForKind.PARALLEL in self.kinds and self.kinds[-1] is not ForKind.PARALLEL

    def _let(self, s: Let) -> None:
        self.current = s
        self._typed(s.value, DType.INT64, f"{s.var.name}")
        self._bound(s.var, bounds(s.value, self.ranges), s.body)

    def _bound(self, var: Var, known: tuple[int, int], body: Stmt) -> None:
        if var in self.ranges:
            self.fail(f"{var.name} is bound twice")
        self.ranges[var] = known
        self.stmt(body)
        del self.ranges[var]

    def _if(self, s: If) -> None:
        self.current = s
        self._typed(s.cond, DType.BOOL, "the condition")
        self.stmt(s.then)
        if s.other is not None:
            self.stmt(s.other)

    def _alloc(self, s: Alloc) -> None:
        self.current = s
        if s.buffer.scope is Scope.GLOBAL:
            self.fail(f"{s.buffer.name} is allocated in global memory, which callers provide")
        self._declare(s.buffer)
        self.stmt(s.body)
        self.buffers.remove(s.buffer)

    def _store(self, s: Store) -> None:
        self.current = s
        self._place(s.buffer, s.indices)
        self._writable(s.buffer)
        self._typed(s.value, s.buffer.dtype, f"what is stored to {s.buffer.name}")

    def _instruction(self, s: Instruction) -> None:
        self.current = s
        if not s.operands:
            self.fail("an instruction has no operands")
        for buffer, indices in s.operands:
            self._place(buffer, indices)
        self._writable(s.operands[0][0])

    def _barrier(self, s: Barrier) -> None:
        self.current = s
        if s.scope not in (Scope.SHARED, Scope.GLOBAL):
            self.fail(f"there is no barrier for {s.scope.value} memory")
        if not any(kind in _HARDWARE for kind in self.kinds):
            self.fail("a barrier is outside of every block and thread loop")

    def _writable(self, buffer: Buffer) -> None:
        if buffer in self.read_only:
            self.fail(f"{buffer.name} is written but is not an output")

    # Expressions

    def _place(self, buffer: Buffer, indices: Sequence[Expr]) -> None:
        if buffer not in self.buffers:
            self.fail(f"{buffer.name} is not declared here")
        if len(indices) != len(buffer.shape):
            self.fail(f"{buffer.name} has {len(buffer.shape)} dimensions, got {len(indices)}")
        for d, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            self.expr(index)
            if not index.dtype.is_int:
                self.fail(f"{buffer.name} is indexed with a {index.dtype.value}")
            low, high = bounds(index, self.ranges)
            if high < 0 or low >= extent:
                self.fail(
                    f"{buffer.name} is accessed at {low}..{high} in dimension {d}, "
                    f"which has {extent} elements"
                )

    def _typed(self, e: Expr, wanted: DType, what: str) -> None:
        self.expr(e)
        if e.dtype is not wanted:
            self.fail(f"{what} is {e.dtype.value}, not {wanted.value}")

    def expr(self, e: Expr) -> None:
        """*e* and its operands: bound variables, declared buffers, matching types."""
        match e:
            case Var() if e not in self.ranges:
                self.fail(f"{e.name} is not bound here")
            case Load(source, indices):
                if not isinstance(source, Buffer):
                    self.fail(f"{source.name} is a tensor, not a buffer")
                else:
                    self._place(source, indices)
            case Binary(op, a, b):
                self._alike(a, b)
                if op in (BinaryOp.AND, BinaryOp.OR):
                    self._typed(a, DType.BOOL, f"an operand of {op.value}")
            case Compare(_, a, b):
                self._alike(a, b)
            case Select(cond, then, other):
                self._typed(cond, DType.BOOL, "the condition")
                self._alike(then, other)
            case Call(fn, args):
                self._call(fn, args)
            case Cast(_, x):
                self.expr(x)
            case Reduce():
                self.fail("a reduction is left in an expression")
            case Const() | Axis() | Var():
                pass
            case _:
                self.fail(f"{type(e).__name__} is no expression of a loop program")

    def _alike(self, a: Expr, b: Expr) -> None:
        self.expr(a)
        self._typed(b, a.dtype, "the second operand")

    def _call(self, fn: Function, args: Sequence[Expr]) -> None:
        wanted = 3 if fn is Function.FMA else 1
        if len(args) != wanted:
            self.fail(f"{fn.value} takes {wanted} operands, got {len(args)}")
        for arg in args:
            self._typed(arg, args[0].dtype, f"an operand of {fn.value}")


_STMTS: dict[type[Stmt], Callable[[_Checker, Any], None]] = {
    Seq: _Checker._seq, For: _Checker._for, Let: _Checker._let, If: _Checker._if,
    Alloc: _Checker._alloc, Store: _Checker._store, Instruction: _Checker._instruction,
    Barrier: _Checker._barrier,
}  # fmt: skip
