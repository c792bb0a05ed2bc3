"""List the accesses of a loop program, in program order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Call,
    Const,
    Expr,
    Function,
    Load,
    Reduce,
    Select,
    Var,
    as_expr,
    children,
    const,
)
from ansorpy.ir.extents import least, most
from ansorpy.ir.intrinsics import expand, intrinsic, operand_dims, operand_tensors
from ansorpy.ir.loops import (
    LAUNCH_INDICES,
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
    Program,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
    launch_extents,
    walk_stmts,
)
from ansorpy.ir.prove.sites import Access, Home, Region, Site, SiteContext
from ansorpy.ir.sizes import fixed, fixed_all

__all__ = ["SYNCHRONISING", "sites_of"]

SYNCHRONISING = (Barrier, Commit, Fence, Wait)
"""Statements that order accesses; they have none of their own."""

_MOST_PATHS = 8
"""The number of conditions under which the loads of a shared expression are told apart."""
_PERHAPS = const(0.0, DType.FLOAT32) < const(1.0, DType.FLOAT32)
"""Stands for conditions that are left out: proofs know nothing of floats."""

_Conditions = tuple[Expr, ...]


def sites_of(program: Program) -> tuple[Site, ...]:
    """The sites of *program* in program order."""
    homes = {param.buffer: Home(None) for param in program.params}
    walker = _Walker()
    walker.stmt(program.body, SiteContext(homes=homes, sizes=program.dims))
    return tuple(walker.sites)


class _Walker:
    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.negations: dict[Expr, Expr] = {}

    def stmt(self, s: Stmt, around: SiteContext) -> None:
        """Add the sites of *s*."""
        match s:
            case Seq(body):
                for n, part in enumerate(body):
                    self.stmt(part, around.inside(s, n))
            case For():
                self._for(s, around)
            case If(cond, then, other):
                self._reads((cond,), s, around)
                inner = around.inside(s)
                self.stmt(then, replace(inner, conditions=(*around.conditions, *conjuncts(cond))))
                if other is not None:
                    inner = around.inside(s, 1)
                    conditions = (*around.conditions, self._not(cond))
                    self.stmt(other, replace(inner, conditions=conditions))
            case Let(var, value, body):
                self._reads((value,), s, around)
                values = {**around.values, var: value}
                self.stmt(body, replace(around.inside(s), values=values))
            case Alloc(buffer, body):
                homes = {**around.homes, buffer: Home(around.position)}
                self.stmt(body, replace(around.inside(s), homes=homes))
            case Instruction() if not intrinsic(s.name).fragments:
                self.stmt(expand(s), around.inside(s))
            case _:
                self._leaf(s, around)

    def _for(self, s: For, around: SiteContext) -> None:
        inner = around.inside(s)
        if s.kind in LAUNCH_INDICES:
            self.stmt(s.body, _bound(s, around, inner))
            return
        conditions = _some(s, around.conditions)
        inner = replace(inner, extents={**around.extents, s.var: s.extent}, conditions=conditions)
        if s.kind is ForKind.PARALLEL:
            inner = _in_parallel(s, around, inner)
        self.stmt(s.body, inner)

    def _leaf(self, s: Stmt, around: SiteContext) -> None:
        match s:
            case Store(buffer, indices, value, reduce):
                accesses = [*self._loads((*indices, value))]
                if reduce is not None:
                    accesses.append(Access(buffer, indices, False))
                accesses.append(Access(buffer, indices, True))
            case Shuffle(buffer, indices, value) | AsyncCopy(buffer, indices, value):
                accesses = [*self._loads((*indices, value)), Access(buffer, indices, True)]
            case Instruction(_, operands):
                roots = [index for _, at in operands for index in at]
                accesses = [*self._loads(roots), *_operands(s)]
            case _ if isinstance(s, SYNCHRONISING):
                accesses = []
            case _:
                return
        self._add(s, around, accesses)

    def _add(self, s: Stmt, around: SiteContext, accesses: Sequence[Access]) -> None:
        self.sites.append(Site(**vars(around), stmt=s, accesses=tuple(accesses)))

    def _reads(self, roots: Sequence[Expr], s: Stmt, around: SiteContext) -> None:
        """Add the loads that *s* evaluates before the statements inside it."""
        accesses = list(self._loads(roots))
        if accesses:
            self._add(s, around.inside(s, -1), accesses)

    def _loads(self, roots: Sequence[Expr]) -> Iterator[Access]:
        """Each load in *roots*, with the conditions under which it is evaluated."""
        pending: dict[_Conditions, list[Expr]] = {(): list(reversed(roots))}
        seen: dict[Expr, list[_Conditions]] = {}
        while pending:
            conditions, stack = pending.popitem()
            while stack:
                e = stack.pop()
                if type(e) is Const or type(e) is Var:
                    continue
                here = _evaluated(conditions, seen.setdefault(e, []))
                if here is None:
                    continue
                parts = stack if here is conditions else pending.setdefault(here, [])
                if isinstance(e, Select):
                    parts.append(e.cond)
                    self._defer_sides(e, here, pending)
                    continue
                if isinstance(e, Load) and isinstance(e.source, Buffer):
                    yield Access(e.source, e.indices, False, here)
                parts.extend(reversed(children(e)))

    def _defer_sides(
        self,
        e: Select,
        conditions: _Conditions,
        pending: dict[_Conditions, list[Expr]],
    ) -> None:
        """Defer the sides of a select until its condition, or the negation, is known."""
        for side, cond in ((e.then, e.cond), (e.other, self._not(e.cond))):
            if type(side) is not Const:
                pending.setdefault((*conditions, *conjuncts(cond)), []).append(side)

    def _not(self, cond: Expr) -> Expr:
        """The negation of *cond*: the same object each time."""
        return self.negations.setdefault(cond, Call(Function.NOT, (cond,)))


def _evaluated(conditions: _Conditions, known: list[_Conditions]) -> _Conditions | None:
    """Where an expression that was met where each of *known* holds, and now where *conditions*
    hold, has loads to be listed; None if some of *known* say so already.

    Where an expression is met on many paths, that is where what they have in common holds.
    """
    here = set(conditions)
    if any(here.issuperset(fewer) for fewer in known):
        return None
    if len(known) < _MOST_PATHS:
        known.append(conditions)
        return conditions
    common = tuple(c for c in conditions if all(c in others for others in known))
    known[:] = [common] * _MOST_PATHS  # still full, so that the next path shortens it at once
    return conditions if common == conditions else (*common, _PERHAPS)


def _some(s: For, conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """*conditions*, and that the loop *s* has an iteration, if it may have none."""
    return conditions if least(s.extent) >= 1 else (*conditions, as_expr(s.extent) > 0)


def _bound(s: For, around: SiteContext, inner: SiteContext) -> SiteContext:
    """The context of the body of a loop over a block or thread index."""
    if around.region is None:
        region = Region(s, around.position, launch_extents(s))
        inner = replace(inner, region=region, homes=_fresh(around))
    first, conditions = around.index.get(s.kind), _some(s, around.conditions)
    if first is None:
        return replace(
            inner, extents={**around.extents, s.var: s.extent}, conditions=conditions,
            index={**around.index, s.kind: s.var},
        )  # fmt: skip
    if most(around.extents[first] - s.extent) > 0:
        conditions = (*conditions, first < as_expr(s.extent))
    return replace(inner, values={**around.values, s.var: first}, conditions=conditions)


def _in_parallel(s: For, around: SiteContext, inner: SiteContext) -> SiteContext:
    """The context of the body of a parallel loop; each iteration has its own local buffers."""
    region = around.region
    if region is None:
        region = Region(s, around.position, {}, _is_collapsed(s))
    return replace(inner, region=region, homes=_fresh(around))


def _is_collapsed(s: For) -> bool:
    """True when all parallel loops in *s* are nested directly in each other."""
    body: Stmt = s
    while isinstance(body, For) and body.kind is ForKind.PARALLEL:
        body = body.body
    return not any(isinstance(x, For) and x.kind is ForKind.PARALLEL for x in walk_stmts(body))


def _fresh(around: SiteContext) -> dict[Buffer, Home]:
    """The homes of buffers where a region starts: its threads have their own local buffers."""
    return {
        buffer: Home(around.position) if buffer.scope is Scope.LOCAL else home
        for buffer, home in around.homes.items()
    }


def _operands(s: Instruction) -> Iterator[Access]:
    """The accesses of a team's instruction: its reads, then its writes.

    A buffer in a warp's registers may already be the part that one lane holds, whose last
    dimension counts the lane's registers: the instruction accesses all of them.
    """
    pattern = intrinsic(s.name).pattern
    tensors = operand_tensors(pattern)
    found: list[Access] = []
    for (buffer, at), tensor in zip(s.operands, tensors, strict=True):
        if buffer.scope is Scope.LOCAL:
            own = {len(at) - 1: fixed(buffer.shape[-1])}
        else:
            own = dict(zip(operand_dims(buffer, tensor), fixed_all(tensor.shape), strict=True))
        variables = {d: Var(f"{tensor.name}{d}") for d in own}
        indices = tuple(index + variables[d] if d in own else index for d, index in enumerate(at))
        extents = {variables[d]: extent for d, extent in own.items()}
        found.append(Access(buffer, indices, False, (), extents))
    total = found[0]
    yield from found[1:]
    if isinstance(pattern.body, Reduce):
        yield total
    yield replace(total, is_write=True)
