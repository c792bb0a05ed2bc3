"""Loop nests of whole tables: built once on symbols, then evaluated statement by statement.

A statement depends on some of the decisions only.  It is evaluated for their different settings,
which are far fewer than the candidates where a stage is not the one that was tiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ansorpy.schedule.formulas import Formula, Formulas, Program, symbols_of
from ansorpy.schedule.nest import Leaf, LeafAccess, Nest, Settings, build_nest
from ansorpy.schedule.size import Size

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["NestFormulas"]

Ints = npt.NDArray[np.int64]

_WORTH = 0.75
"""Settings are taken apart where they are at most this share of the candidates."""


@dataclass(frozen=True)
class _Statement:
    """A statement on symbols; *columns* are those that it depends on."""

    leaf: Leaf
    columns: tuple[int, ...]
    program: Program


class NestFormulas:
    """The nest of a structure as formulas of its columns."""

    def __init__(self, state: State, formulas: Formulas):
        self._statements: list[_Statement] = []
        self._open = tuple(
            at for at, size in enumerate(formulas.values.values()) if isinstance(size, Formula)
        )
        masks: dict[tuple[str, str], int] = {}
        for leaf in build_nest(state, formulas.values).leaves:
            leaf = _shared(leaf)
            wanted = symbols_of(_sizes(leaf))
            keys = [(loop.stage, loop.name) for loop in leaf.loops]
            mask = 0
            # What earlier statements touch inside a common loop is among a statement's numbers.
            for part in (*(f.columns for f in wanted), *(masks.get(key, 0) for key in keys)):
                mask |= part
            masks.update(dict.fromkeys(keys, mask))
            columns = tuple(at for at in range(mask.bit_length()) if mask >> at & 1)
            self._statements.append(_Statement(leaf, columns, formulas.program(wanted)))

    def of(self, table: Ints) -> Nest:
        """The nest of every row of *table*."""
        found: dict[tuple[int, ...], Settings | None] = {}
        leaves = []
        for statement in self._statements:
            if statement.columns not in found:
                every = statement.columns == self._open
                found[statement.columns] = None if every else _settings(table, statement.columns)
            settings = found[statement.columns]
            rows = table if settings is None else table[settings.first]
            leaves.append(_evaluated(statement, rows, settings))
        return Nest(tuple(leaves))


def _shared(leaf: Leaf) -> Leaf:
    """*leaf* with equal accesses being one object."""
    one: dict[LeafAccess, LeafAccess] = {}
    return replace(leaf, accesses=tuple(one.setdefault(a, a) for a in leaf.accesses))


def _sizes(leaf: Leaf) -> Iterator[Size]:
    for loop in leaf.loops:
        yield from (loop.extent, loop.parallel, loop.vector, loop.unroll)
    for access in (*leaf.accesses, leaf.write):
        yield from access.shape
        for coefs in access.coefs:
            yield from coefs
    yield leaf.max_unroll
    yield from leaf.asks


def _settings(table: Ints, columns: tuple[int, ...]) -> Settings | None:
    """The different rows of some *columns*; None where they are nearly as many as the rows."""
    if not len(table):
        return None
    code = np.zeros(len(table), dtype=np.int64)
    span = 1
    for at in columns:
        least, most = int(table[:, at].min()), int(table[:, at].max())
        span *= most - least + 1
        if span >= 2**63:
            return None
        code = code * (most - least + 1) + (table[:, at] - least)
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return Settings(first, of) if len(first) <= _WORTH * len(table) else None


def _evaluated(statement: _Statement, rows: Ints, settings: Settings | None) -> Leaf:
    leaf, values = statement.leaf, statement.program.run(rows)

    def known(size: Size) -> Size:
        return values[size] if isinstance(size, Formula) else size

    accesses = {a: _access(a, known) for a in (*leaf.accesses, leaf.write)}
    return replace(
        leaf,
        loops=tuple(
            replace(
                loop,
                extent=known(loop.extent),
                parallel=known(loop.parallel),
                vector=known(loop.vector),
                unroll=known(loop.unroll),
            )
            for loop in leaf.loops
        ),
        accesses=tuple(accesses[a] for a in leaf.accesses),
        write=accesses[leaf.write],
        max_unroll=known(leaf.max_unroll),
        asks=tuple(map(known, leaf.asks)),
        settings=settings,
    )


def _access(access: LeafAccess, known: Callable[[Size], Size]) -> LeafAccess:
    return replace(
        access,
        shape=tuple(map(known, access.shape)),
        coefs=tuple(tuple(map(known, coefs)) for coefs in access.coefs),
    )
