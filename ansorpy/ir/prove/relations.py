"""Accesses as isl relations between coordinates of iterations and elements of a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ansorpy.ir.analysis.isl import Domain, Holds, Relation
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.extents import Extent
from ansorpy.ir.prove.digits import Digits
from ansorpy.ir.prove.sites import Access, Site
from ansorpy.ir.symbols import Dim

if TYPE_CHECKING:
    import islpy as isl

__all__ = [
    "Points",
    "Relations",
    "box",
    "example",
    "filled",
    "identity",
    "in_order",
    "padded",
    "related",
]

_MOST = 1 << 40
"""Above all indices and counts."""


class Relations:
    """The relations of one program's accesses, each built once."""

    def __init__(self) -> None:
        self._domains: dict[tuple[Site, frozenset[Var]], Domain] = {}
        self._known: dict[tuple[object, ...], Relation] = {}

    def domain(self, site: Site, roots: Iterable[Expr]) -> Domain:
        """The loop variables that *roots* depend on, in the order of the loops."""
        used = frozenset(v for e in roots for v in site.free(e))
        found = self._domains.get((site, used))
        if found is None:
            extents = {v: n for v, n in site.extents.items() if v in used}
            found = self._domains[site, used] = Domain(
                extents, values=site.values, sizes=site.sizes
            )
        return found

    def elements(
        self, site: Site, access: Access, inputs: Sequence[Expr], outputs: Sequence[Expr] = ()
    ) -> Relation:
        """From *inputs* to *outputs*, then the indices accessed; other loops are projected out."""
        key = (site, access, tuple(inputs), tuple(outputs))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._elements(site, access, inputs, outputs)
        return found

    def _elements(
        self, site: Site, access: Access, inputs: Sequence[Expr], outputs: Sequence[Expr]
    ) -> Relation:
        conditions = (*site.conditions, *access.conditions)
        points = Points(site, access, (*inputs, *outputs, *access.indices, *conditions))
        return points.relation(inputs, (*outputs, *access.indices), conditions, access.buffer.shape)


class Points:
    """The executions of an access, by the loops that *roots* depend on.

    Args:
        roots: All expressions that the methods will be given.
    """

    def __init__(self, site: Site, access: Access | None, roots: Sequence[Expr]):
        used = {v for e in roots for v in site.free(e)}
        extents = {**site.extents, **(access.extents if access is not None else {})}
        mine = {v: n for v, n in extents.items() if v in used}
        self.variables = tuple(mine)
        self._where: dict[tuple[Expr, ...], Holds] = {}
        self.digits = digits = Digits(mine, (*roots, *site.values.values()))
        values = {v: digits.expr(e) for v, e in site.values.items()}
        self.domain = Domain(digits.extents, values={**digits.values, **values}, sizes=site.sizes)

    def relation(
        self,
        inputs: Sequence[Expr],
        outputs: Sequence[Expr],
        conditions: Sequence[Expr],
        shape: Sequence[Extent] = (),
    ) -> Relation:
        """From *inputs* to *outputs* where all *conditions* hold.

        An expression that depends on data may have any value; the last outputs are indices into a
        buffer of *shape* and stay below its extents.
        """
        held = (*self.digits.conditions, *map(self.digits.expr, conditions))
        extents = (*[_MOST] * (len(outputs) - len(shape)), *shape)
        found = self.domain.access(self._rewritten(outputs), extents, conditions=held)
        given = self.domain.access(self._rewritten(inputs), [_MOST] * len(inputs))
        return Relation(given.map.reverse().apply_range(found.map), found.exact and given.exact)

    @property
    def coordinates(self) -> tuple[Var, ...]:
        """The variables that identify an execution."""
        return tuple(self.domain.extents)

    def where(self, conditions: tuple[Expr, ...]) -> Holds:
        """The executions for which all *conditions* hold."""
        found = self._where.get(conditions)
        if found is None:
            if conditions:
                last = self.domain.where(self.digits.expr(conditions[-1]))
                found = self.where(conditions[:-1]) & last
            else:
                found = self.domain.within(self.digits.conditions)
            self._where[conditions] = found
        return found

    def is_affine(self, e: Expr) -> bool:
        """False if *e* depends on data."""
        return self.domain.affine(self.digits.expr(e)) is not None

    def value(self, e: Expr, at: Sequence[int]) -> int:
        """The value of an affine *e* in the execution *at*."""
        import islpy

        found = self.domain.values([self.digits.expr(e)]).map
        for d, n in enumerate(at):
            found = found.fix_val(islpy.dim_type.in_, d, islpy.Val(n))
        return example(found.range())[0]

    def text(self, at: Sequence[int]) -> str:
        """How messages name the execution *at*: ``" where i = 1, j = 0"``; empty without loops."""
        named = ", ".join(f"{v.name} = {self.value(v, at)}" for v in self.variables)
        return f" where {named}" if named else ""

    def _rewritten(self, exprs: Sequence[Expr]) -> list[Expr]:
        return [self.digits.expr(e) for e in exprs]


@lru_cache(maxsize=256)
def related(signs: tuple[str, ...]) -> isl.Map:
    """From points to those with which each coordinate compares as its sign says.

    ``related(("=", "<"))`` is ``{ [a, b] -> [a, c] : b < c }``.
    """
    return _comparing(len(signs), " and ".join(f"a{n} {s} b{n}" for n, s in enumerate(signs)))


@lru_cache(maxsize=256)
def in_order(same: int, loops: int, *, also_equal: bool) -> isl.Map:
    """From points to those equal in the first *same* coordinates and later in the next *loops*.

    With *also_equal*, also to themselves.
    """
    pinned = [f"a{n} = b{n}" for n in range(same + loops)]
    orders = [
        " and ".join([*pinned[:n], f"a{n} < b{n}"]) for n in range(same, same + loops)
    ]  # fmt: skip
    if also_equal:
        orders.append(" and ".join(pinned) or "true")
    return _comparing(same + loops, " or ".join(f"({order})" for order in orders) or "false")


def _comparing(dims: int, condition: str) -> isl.Map:
    import islpy

    mine, others = (", ".join(f"{letter}{n}" for n in range(dims)) for letter in "ab")
    return islpy.Map(f"{{ [{mine}] -> [{others}] : {condition or 'true'} }}")


def identity(of: isl.Map) -> isl.Map:
    """From each input of *of* to itself."""
    import islpy

    return related(("=",) * of.dim(islpy.dim_type.in_))


def padded(of: isl.Map, inputs: int) -> isl.Map:
    """*of* with more inputs, on which nothing depends."""
    import islpy

    return of.add_dims(islpy.dim_type.in_, inputs) if inputs else of


def box(shape: Sequence[Extent], sizes: tuple[Dim, ...]) -> isl.Set:
    """All elements of a buffer of *shape*, which may depend on *sizes*."""
    return Domain({Var(f"d{n}"): extent for n, extent in enumerate(shape)}, sizes=sizes).box


def filled(points: isl.Set, shape: Sequence[Extent], sizes: tuple[Dim, ...]) -> isl.Map:
    """From each of *points* to all elements of a buffer of *shape*."""
    import islpy

    return islpy.Map.from_domain_and_range(points, box(shape, sizes))


def example(of: isl.Set) -> tuple[int, ...]:
    """The coordinates of a point of *of*, which is not empty."""
    import islpy

    point, dims = of.sample_point(), of.dim(islpy.dim_type.set)
    return tuple(
        int(point.get_coordinate_val(islpy.dim_type.set, d).to_python()) for d in range(dims)
    )
