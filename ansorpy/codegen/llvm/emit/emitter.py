"""State while emitting one function: environment, scopes, vector lanes and guards.

The emitter itself knows no node kind; it dispatches on tables (:mod:`.expressions`,
:mod:`.statements`) whose functions take the emitter as their first argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.affine import Affine, lane_values
from ansorpy.codegen.llvm.emit.module import Module
from ansorpy.codegen.llvm.emit.scopes import BlockScope
from ansorpy.codegen.llvm.emit.text import INLINE, FunctionText, Value, mask_bits, mask_literal
from ansorpy.codegen.unsupported import gpu_statement
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import Buffer, Stmt

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.transposes import Block

__all__ = ["Emitter", "Lanes", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer's first element is, and how its elements are laid out.

    ``strides`` are in elements (rows of register tiles may be padded); ``size`` is the number of
    elements that may be accessed, whatever the sizes of dimensions; ``align`` is in bytes.
    """

    pointer: str
    strides: tuple[Extent, ...]
    size: int
    align: int
    in_registers: bool = False


@dataclass(frozen=True, slots=True)
class Lanes:
    """The vector chunk being emitted: *width* lanes; the first *active* of them are in use."""

    width: int
    active: int

    @property
    def is_full(self) -> bool:
        return self.active == self.width

    @property
    def mask(self) -> Value:
        """The active lanes as a constant mask."""
        return mask_literal([lane < self.active for lane in range(self.width)])

    def constants(self, index: Affine) -> list[int]:
        """The constant part of *index* in each lane in use."""
        return lane_values(index, self.width)[: self.active]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which the current code takes effect."""

    cond: Value
    negated: bool


class Emitter:
    """Writes the body of one function; see the module's docstring."""

    def __init__(self, module: Module, text: FunctionText) -> None:
        self.module = module
        self.text = text
        self.env: dict[Var, Affine] = {}
        self.places: dict[Buffer, Place] = {}
        self.allocas = text.out
        text.continue_here()
        self.scopes = [BlockScope(text.out)]
        text.continue_here()
        self.lanes: Lanes | None = None
        self.guards: tuple[Guard, ...] = ()
        self.block: Block | None = None
        self.in_region = False
        self.has_data: dict[Expr, bool] = {}
        self.values: dict[tuple[Expr, tuple[Guard, ...]], Value] = {}
        self.evaluating = False
        self.stored: dict[tuple[str, DType], Value] = {}

    def value(self, expr: Expr) -> Value:
        """Emit *expr*; a value that is the same in all lanes is returned as a scalar.

        A node that an expression uses several times is emitted once: a value is reused if it was
        computed under the same guards, or under an outer part of them.
        """
        outermost = not self.evaluating
        self.evaluating = True
        found = self._known(expr)
        if found is None:
            found = self.module.tables.expressions[type(expr)](self, expr)
            self.values[expr, self.guards] = found
        if outermost:
            self.evaluating = False
            self.values.clear()
        return found

    def _known(self, expr: Expr) -> Value | None:
        for count in range(len(self.guards), -1, -1):
            found = self.values.get((expr, self.guards[:count]))
            if found is not None:
                return found
        return None

    def index(self, expr: Expr) -> Affine:
        """The linear form of *expr* (int64)."""
        return self.module.tables.indices[type(expr)](self, expr)

    def statement(self, stmt: Stmt) -> None:
        """Emit *stmt*.

        Raises:
            CodegenError: A CPU cannot run it.
        """
        emit = self.module.tables.statements.get(type(stmt))
        if emit is None:
            raise gpu_statement(stmt)
        emit(self, stmt)

    @property
    def vector(self) -> Lanes:
        """The vector chunk being emitted; there must be one."""
        assert self.lanes is not None
        return self.lanes

    @property
    def level(self) -> int:
        return len(self.scopes) - 1

    @property
    def scope(self) -> BlockScope:
        return self.scopes[-1]

    def pure(self, level: int, text: str) -> str:
        """Emit instruction *text*, without side effects, at *level*; return its result's name.

        An instruction that is already in the scope is not emitted again.
        """
        hoistable = level < INLINE
        scope = self.scopes[level] if hoistable else self.scope
        name = scope.pure.get(text)
        if name is None:
            name = self.text.fresh()
            lines = scope.prelude if hoistable else self.text.out
            lines.append(f"  {name} = {text}")
            scope.pure[text] = name
        return name

    @contextmanager
    def nested_scope(self) -> Iterator[BlockScope]:
        """Open the scope of a body whose block has just begun (phis may precede the prelude)."""
        self.text.continue_here()
        scope = BlockScope(self.text.out)
        self.text.continue_here()
        self.scopes.append(scope)
        yield scope
        self.scopes.pop()
        self.scope.written |= scope.written
        for buffer in scope.written:
            self.scope.loads.forget(buffer)

    @contextmanager
    def only_if(self, condition: str, taken: str, after: str) -> Iterator[None]:
        """Emit the code of this context into a block *taken* if *condition*, an ``i1``, holds."""
        then, done = self.text.fresh_label(taken), self.text.fresh_label(after)
        self.text.branch_if(condition, then, done)
        self.text.start_block(then)
        with self.nested_scope():
            yield
        self.text.branch(done)
        self.text.start_block(done)
        self.text.continue_here()

    @contextmanager
    def bound(self, values: dict[Var, Affine]) -> Iterator[None]:
        """Bind loop variables for the duration of a body.

        What was computed with other values of theirs, as the steps of one block are, is not reused.
        """
        before = {var: self.env.get(var) for var in values}
        self.env.update(values)
        computed, self.values = self.values, {}
        yield
        self.values = computed
        for var, old in before.items():
            if old is None:
                del self.env[var]
            else:
                self.env[var] = old

    @contextmanager
    def guarded(self, cond: Value, *, negated: bool = False) -> Iterator[None]:
        """Make code emitted in this context take effect only where *cond* holds (or, if negated,
        does not)."""
        before = self.guards
        self.guards = (*before, Guard(cond, negated))
        yield
        self.guards = before

    def uniform_guard(self) -> Value | None:
        """The conjunction of the guards that are the same in all lanes."""
        return self._conjunction([g for g in self.guards if not g.cond.lanes], 0)

    def lane_guard(self) -> Value | None:
        """The conjunction of the guards that differ between lanes."""
        lanes = self.lanes.width if self.lanes else 0
        return self._conjunction([g for g in self.guards if g.cond.lanes], lanes)

    def _conjunction(self, guards: list[Guard], lanes: int) -> Value | None:
        total: Value | None = None
        for guard in guards:
            term = self.negation(guard.cond) if guard.negated else guard.cond
            total = term if total is None else self.both(total, term, lanes)
        return total

    def negation(self, cond: Value) -> Value:
        """The negation of a condition."""
        bits = mask_bits(cond)
        if bits is not None:
            return mask_literal([not bit for bit in bits])
        ones = "true" if not cond.lanes else "splat (i1 true)"
        text = self.pure(cond.level, f"xor {cond.type} {cond.text}, {ones}")
        return Value("i1", text, cond.lanes, cond.level)

    def both(self, a: Value, b: Value, lanes: int) -> Value:
        """The conjunction of two conditions, in *lanes* lanes."""
        a_bits, b_bits = mask_bits(a), mask_bits(b)
        if a_bits is not None and b_bits is not None:
            return mask_literal([x and y for x, y in zip(a_bits, b_bits, strict=True)])
        level = max(a.level, b.level)
        a, b = self.widened(a, lanes), self.widened(b, lanes)
        text = self.pure(level, f"and {a.type} {a.text}, {b.text}")
        return Value("i1", text, lanes, level)

    def widened(self, value: Value, lanes: int) -> Value:
        """*value* with *lanes* lanes; a scalar is repeated in each."""
        if value.lanes == lanes:
            return value
        assert not value.lanes, "a vector cannot change its width"
        level, element = value.level, value.element
        if not value.text.startswith("%"):
            return Value(element, f"splat ({element} {value.text})", lanes, 0)
        kind = f"<{lanes} x {element}>"
        first = self.pure(level, f"insertelement {kind} poison, {value.typed}, i64 0")
        shuffle = f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"
        return Value(element, self.pure(level, shuffle), lanes, level)

    def unified(self, *values: Value) -> tuple[Value, ...]:
        """The values, all with the lanes of the widest."""
        lanes = max(value.lanes for value in values)
        return tuple(self.widened(value, lanes) for value in values)
