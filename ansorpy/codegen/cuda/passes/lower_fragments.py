"""Rewrite buffers in a warp's registers as arrays of the elements that each lane holds.

::

    alloc A.warp: float16[32, 16] in warp          alloc A.warp: float16[2, 1, 8] in local
    A.warp[16*i + 8*h + y, 8*g + 2*x + l] = ..     A.warp[i, 0, 4*g + 2*h + l] = ..
    mma(.., A.warp[16*i, 0], ..)             -->   mma(.., A.warp[i, 0, 0], ..)

The last index counts the registers of one fragment, the indices before it the fragments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.errors import CodegenError
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.interval import bounds
from ansorpy.ir.expr import Expr, Load, Var, as_expr
from ansorpy.ir.fragments import (
    Fragment,
    fragment_registers,
    fragment_shape,
    in_lane,
    in_register,
    in_tile,
)
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    Instruction,
    Let,
    Program,
    Scope,
    Stmt,
    Store,
)
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.rewrite.simplify import simplify

__all__ = ["held_by_lanes"]

_LANES = {ForKind.THREAD_X: 1, ForKind.THREAD_Y: 4}
"""Stride of the lane number along each thread index: a warp is 4 x 8 threads of a block."""

Ranges = Mapping[Var, tuple[int, int]]


def held_by_lanes(program: Program) -> Program:
    """Replace each buffer in a warp's registers with the part that one lane holds.

    Raises:
        CodegenError: It cannot be proved that each lane accesses only elements it holds.
    """
    return program.with_body(_Held({}, {}, {}).stmt(program.body))


class _Held(Rewriter):
    """Rewrites statements inside loops that bind *indices*; variables are in *ranges*."""

    def __init__(
        self, ranges: Ranges, indices: Mapping[Var, ForKind], own: dict[Buffer, Buffer]
    ) -> None:
        super().__init__()
        self.ranges = ranges
        self.indices = indices
        self.own = own

    def leave(self, e: Expr) -> Expr:
        if isinstance(e, Load) and isinstance(e.source, Buffer) and e.source.fragment is not None:
            return Load(self.own[e.source], self._place(e.source, e.indices))
        return e

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case For(var, extent, kind, _):
                indices = {**self.indices, var: kind} if kind in _LANES else self.indices
                return Rewriter.stmt(self._inside(var, (0, extent - 1), indices), s)
            case Let(var, value, _):
                return Rewriter.stmt(self._inside(var, bounds(value, self.ranges), self.indices), s)
            case Alloc(buffer, body) if buffer.fragment is not None:
                self.own[buffer] = _of_one_lane(buffer, buffer.fragment)
                return Alloc(self.own[buffer], self.stmt(body))
            case Store(buffer, at, value, reduce) if buffer.fragment is not None:
                place = self._place(buffer, at)
                return Store(self.own[buffer], place, self.expr(value), reduce)
            case Instruction(name, operands) if operands[0][0].fragment is not None:
                return Instruction(name, tuple(self._operand(b, at) for b, at in operands))
            case _:
                return super().stmt(s)

    def _inside(self, var: Var, known: tuple[int, int], indices: Mapping[Var, ForKind]) -> _Held:
        return _Held({**self.ranges, var: known}, indices, self.own)

    def _operand(self, buffer: Buffer, at: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        """The start of an instruction's operand."""
        if buffer.fragment is None:
            return buffer, tuple(self.expr(i) for i in at)
        tile = [self._simple(i) for i in in_tile(buffer.fragment, at)]
        return self.own[buffer], (*tile, as_expr(0))

    def _place(self, buffer: Buffer, at: Sequence[Expr]) -> tuple[Expr, ...]:
        fragment = buffer.fragment
        assert fragment is not None, buffer.name
        at = [self.expr(i) for i in at]
        self._require_mine(buffer, in_lane(fragment, at))
        tile = [self._simple(i) for i in in_tile(fragment, at)]
        return (*tile, self._simple(in_register(fragment, at)))

    def _require_mine(self, buffer: Buffer, lane: Expr) -> None:
        """Check that the lane that holds an element is the lane that executes the access."""
        form = linear(self._simple(lane))
        steps = {self.indices.get(v): n for v, n in form.terms.items() if isinstance(v, Var)}
        if len(form.terms) > len(_LANES) or steps != _LANES or form.const:
            raise CodegenError(
                f"cannot prove that each lane accesses only the elements of {buffer.name} it holds",
                hint="bind the loops of its lanes to threadIdx.y (8) and threadIdx.x (4)",
            )

    def _simple(self, e: Expr) -> Expr:
        return simplify(as_expr(e), self.ranges)


def _of_one_lane(buffer: Buffer, fragment: Fragment) -> Buffer:
    whole = fragment_shape(fragment)
    tiles = tuple(n // m for n, m in zip(buffer.shape, whole, strict=True))
    shape = (*tiles, fragment_registers(fragment))
    return Buffer(buffer.name, shape, buffer.dtype, Scope.LOCAL)
