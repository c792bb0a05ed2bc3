"""Check that a loop program is well formed: scopes, types, ranks, bindings and bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ansorpy.errors import LoweringError
from ansorpy.ir.analysis.interval import bounds, can_prove
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    SizeVar,
    Var,
    children,
    is_zero,
)
from ansorpy.ir.extents import Extent, most
from ansorpy.ir.fragments import fragment_shape
from ansorpy.ir.intrinsics import intrinsic, operands_of
from ansorpy.ir.loops import (
    LAUNCH_INDICES,
    Alloc,
    Async,
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
    Param,
    Prefetch,
    Program,
    Role,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
)
from ansorpy.ir.operands import misfit, misplaced
from ansorpy.ir.text.printer import text

__all__ = ["verify"]

_DISTANCES = (1, 2, 4, 8, 16)


def verify(program: Program) -> None:
    """Check that *program* is well formed.

    An access is rejected if the bounds of its index lie entirely outside the buffer; accesses that
    bounds cannot decide are left to the interpreter.

    Raises:
        LoweringError: It is not well formed; the message names the statement.
    """
    checker = _Checker(program.name)
    order = [Role.INPUT, Role.CONSTANT, Role.OUTPUT]
    roles = [order.index(param.role) for param in program.params]
    if roles != sorted(roles):
        checker.fail("parameters must be inputs, then constants, then outputs")
    for param in program.params:
        checker.parameter(param)
    checker.stmt(program.body)


def _is_box(s: Stmt) -> bool:
    while isinstance(s, For) and s.kind is ForKind.BULK:
        s = s.body
    return isinstance(s, AsyncCopy)


class _Checker:
    def __init__(self, program: str):
        self.program = program
        self.ranges: dict[Var, tuple[Extent, Extent]] = {}
        self.buffers: set[Buffer] = set()
        self.read_only: set[Buffer] = set()
        self.kinds: list[ForKind] = []
        self.current: Stmt | None = None
        self.checked: set[Expr] = set()  # in the current scope

    def fail(self, message: str) -> NoReturn:
        """Raise a :class:`LoweringError` with *message* and the current statement."""
        where = "" if self.current is None else f' in "{text(self.current)}"'.split("\n")[0]
        raise LoweringError(f"{self.program}: {message}{where}")

    def parameter(self, param: Param) -> None:
        """Check that a parameter is a global buffer that no other parameter uses."""
        if param.buffer.scope is not Scope.GLOBAL:
            self.fail(f"parameter {param.buffer.name} is in {param.buffer.scope.value} memory")
        self._declare(param.buffer)
        if param.role is not Role.OUTPUT:
            self.read_only.add(param.buffer)

    def stmt(self, s: Stmt) -> None:
        """Check *s* and everything inside it."""
        check = _STMTS.get(type(s))
        if check is None:
            self.fail(f"{type(s).__name__} is not a statement")
        check(self, s)

    def _declare(self, buffer: Buffer) -> None:
        if buffer in self.buffers:
            self.fail(f"{buffer.name} is declared twice")
        if any(most(extent) < 1 for extent in buffer.shape):
            self.fail(f"{buffer.name} has shape {buffer.shape}")
        if (buffer.fragment is None) is (buffer.scope is Scope.WARP):
            self.fail(f"{buffer.name} is in {buffer.scope.value} memory; a warp's has a fragment")
        if buffer.fragment is not None:
            whole = fragment_shape(buffer.fragment)
            if any(n % m for n, m in zip(buffer.shape, whole, strict=True)):
                self.fail(f"{buffer.name} has shape {buffer.shape}, which no {whole} make up")
        self.buffers.add(buffer)

    # Statements

    def _seq(self, s: Seq) -> None:
        for part in s.body:
            self.stmt(part)

    def _for(self, s: For) -> None:
        self.current = s
        if most(s.extent) < 1:
            self.fail(f"the loop over {s.var.name} has extent {s.extent}")
        gpu = any(kind in LAUNCH_INDICES for kind in self.kinds)
        if s.kind is ForKind.PARALLEL and (gpu or self._inside_serial()):
            self.fail(f"the parallel loop over {s.var.name} is inside a loop of another kind")
        if s.kind in LAUNCH_INDICES and ForKind.PARALLEL in self.kinds:
            self.fail(f"the {s.kind.value} loop over {s.var.name} is inside a parallel loop")
        if s.kind is ForKind.BULK and not _is_box(s):
            self.fail(f"the bulk loop over {s.var.name} is not around a copy alone")
        self.kinds.append(s.kind)
        self._bound(s.var, (0, s.extent - 1), s.body)
        self.kinds.pop()

    def _inside_serial(self) -> bool:
        """True inside a parallel loop whose innermost enclosed loop is not parallel."""
        return ForKind.PARALLEL in self.kinds and self.kinds[-1] is not ForKind.PARALLEL

    def _let(self, s: Let) -> None:
        self.current = s
        self._typed(s.value, DType.INT64, f"{s.var.name}")
        self._bound(s.var, bounds(s.value, self.ranges), s.body)

    def _bound(self, var: Var, known: tuple[Extent, Extent], body: Stmt) -> None:
        if var in self.ranges:
            self.fail(f"{var.name} is bound twice")
        self.ranges[var] = known
        self._scoped(body)
        del self.ranges[var]

    def _scoped(self, body: Stmt) -> None:
        """Check *body* in an inner scope; results of checks there may not hold outside."""
        outside, self.checked = self.checked, set()
        self.stmt(body)
        self.checked = outside

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
        self._scoped(s.body)
        self.buffers.remove(s.buffer)

    def _store(self, s: Store) -> None:
        self.current = s
        self._place(s.buffer, s.indices)
        self._writable(s.buffer)
        self._typed(s.value, s.buffer.dtype, f"the value stored to {s.buffer.name}")
        if s.reduce is not None and not s.reduce.combiner.accepts(s.buffer.dtype):
            self.fail(f"{s.reduce.value} of {s.buffer.dtype.value} values is not defined")

    def _instruction(self, s: Instruction) -> None:
        self.current = s
        if not s.operands:
            self.fail("an instruction has no operands")
        for buffer, indices in s.operands:
            self._place(buffer, indices)
        self._writable(s.operands[0][0])
        try:
            operands_of(s)
        except LoweringError as error:
            self.fail(error.message)
        fragments = intrinsic(s.name).fragments
        if not fragments:
            return
        self._in_launch("an instruction of a warp")
        for (buffer, _), wanted in zip(s.operands, fragments, strict=True):
            in_place = buffer.scope is (Scope.WARP if wanted else Scope.SHARED)
            if not in_place or tuple(filter(None, buffer.fragment or ())) != wanted:
                self.fail(f"the layout of {buffer.name} is not the one that {s.name} takes")

    def _prefetch(self, s: Prefetch) -> None:
        self.current = s
        if s.buffer not in self.buffers:
            self.fail(f"{s.buffer.name} is not declared here")
        self._typed(s.offset, DType.INT64, "the offset")

    def _copy(self, s: AsyncCopy) -> None:
        self.current = s
        self._place(s.buffer, s.indices)
        self._typed(s.value, s.buffer.dtype, f"the value copied to {s.buffer.name}")
        if s.buffer.scope is not Scope.SHARED:
            self.fail(f"{s.buffer.name} is in {s.buffer.scope.value} memory, not in shared")
        read = s.value.then if isinstance(s.value, Select) else s.value
        zero = not isinstance(s.value, Select) or is_zero(s.value.other)
        if not isinstance(read, Load) or not _is_outside(read) or not zero:
            self.fail("only an element of global memory, or 0 in its place, can be copied")
        self._in_launch("a copy")

    def _groups(self, s: Commit | Wait) -> None:
        self.current = s
        what = "copies" if s.kind is Async.COPIES else "instructions"
        if isinstance(s, Wait) and s.pending < 0:
            self.fail(f"{s.pending} groups of {what} cannot be pending")
        self._in_launch(f"a group of {what}")

    def _fence(self, s: Fence) -> None:
        self.current = s
        if s.scope not in (Scope.SHARED, Scope.WARP):
            self.fail(f"there is no fence for {s.scope.value} memory")
        self._in_launch("a fence")

    def _barrier(self, s: Barrier) -> None:
        self.current = s
        if s.scope not in (Scope.SHARED, Scope.GLOBAL):
            self.fail(f"there is no barrier for {s.scope.value} memory")
        self._in_launch("a barrier")

    def _in_launch(self, what: str) -> None:
        if not any(kind in LAUNCH_INDICES for kind in self.kinds):
            self.fail(f"{what} is outside of every block and thread loop")

    def _shuffle(self, s: Shuffle) -> None:
        self._store(Store(s.buffer, s.indices, s.value, None))
        self.current = s
        if s.distance not in _DISTANCES:
            self.fail(f"the distance {s.distance} is not one of {_DISTANCES}")
        self._in_launch("an exchange of values")

    def _writable(self, buffer: Buffer) -> None:
        if buffer in self.read_only:
            self.fail(f"{buffer.name} is written but is not an output")

    # Expressions

    def _place(self, buffer: Buffer, indices: Sequence[Expr]) -> None:
        if buffer not in self.buffers:
            self.fail(f"{buffer.name} is not declared here")
        self._fits(misplaced(buffer, indices))
        for d, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            self.expr(index)
            low, high = bounds(index, self.ranges)
            if high < 0 or low >= most(extent):
                self.fail(
                    f"{buffer.name} is accessed at {low}..{high} in dimension {d}, "
                    f"which has {extent} elements"
                )

    def _fits(self, problem: str | None) -> None:
        if problem is not None:
            self.fail(problem)

    def _typed(self, e: Expr, wanted: DType, what: str) -> None:
        self.expr(e)
        if e.dtype is not wanted:
            self.fail(f"{what} is {e.dtype.value}, not {wanted.value}")

    def expr(self, e: Expr) -> None:
        """Check *e* and its operands: bound variables, declared buffers, matching types."""
        if e in self.checked:
            return
        check = _EXPRS.get(type(e))
        if check is None:
            self.fail(f"{type(e).__name__} is not an expression of a loop program")
        check(self, e)
        self._fits(misfit(e))
        self.checked.add(e)

    def _operands(self, e: Expr) -> None:
        for operand in children(e):
            self.expr(operand)

    def _var(self, e: Var) -> None:
        if e not in self.ranges:
            self.fail(f"{e.name} is not bound here")

    def _load(self, e: Load) -> None:
        if not isinstance(e.source, Buffer):
            self.fail(f"{e.source.name} is a tensor, not a buffer")
        self._place(e.source, e.indices)

    def _select(self, e: Select) -> None:
        self.expr(e.cond)
        known = can_prove(e.cond, self.ranges)
        for side, taken in ((e.then, True), (e.other, False)):
            if known in (None, taken):  # a side that is never chosen may read out of bounds
                self.expr(side)

    def _reduce(self, e: Reduce) -> None:
        self.fail("a reduction is left in an expression")


def _is_outside(load: Load) -> bool:
    """True for a load from memory that all blocks can access."""
    return isinstance(load.source, Buffer) and load.source.scope in (Scope.GLOBAL, Scope.WORKSPACE)


_EXPRS: dict[type[Expr], Callable[[_Checker, Any], None]] = {
    Const: _Checker._operands, Var: _Checker._var, Axis: _Checker._var,
    SizeVar: _Checker._operands, Load: _Checker._load,
    Binary: _Checker._operands, Compare: _Checker._operands, Select: _Checker._select,
    Cast: _Checker._operands, Reduce: _Checker._reduce, Call: _Checker._operands,
}  # fmt: skip
_STMTS: dict[type[Stmt], Callable[[_Checker, Any], None]] = {
    Seq: _Checker._seq, For: _Checker._for, Let: _Checker._let, If: _Checker._if,
    Alloc: _Checker._alloc, Store: _Checker._store, Instruction: _Checker._instruction,
    Barrier: _Checker._barrier, AsyncCopy: _Checker._copy, Commit: _Checker._groups,
    Wait: _Checker._groups, Prefetch: _Checker._prefetch, Shuffle: _Checker._shuffle,
    Fence: _Checker._fence,
}  # fmt: skip
