"""Loop nests of whole tables: built once on symbols, then evaluated statement by statement.

A statement depends on only some of the decisions.  It is evaluated once for each distinct setting
of these; except for the tiled stage, there are far fewer settings than candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.schedule.row_numbers import codes_of
from ansorpy.schedule.tables.formulas import Formula, Formulas, Tape, symbols_of
from ansorpy.schedule.tables.nest import Leaf, LeafAccess, Loop, Nest, Settings, nest_of
from ansorpy.schedule.tables.size import Size

if TYPE_CHECKING:
    from ansorpy.schedule.bounds.inference import Bounds

__all__ = ["NestFormulas"]

_Known: TypeAlias = Callable[[Size, Size], Size]
"""The value of the first size if that is a formula, else the second."""

_WORTH = 0.75
"""Settings are evaluated instead of candidates if there are at most this fraction as many."""


@dataclass(frozen=True)
class _Statement:
    """A statement on symbols; ``columns`` are the columns on which it depends.

    ``accesses`` are its distinct reads, then the write; ``reads`` index them in reading order.
    """

    leaf: Leaf
    columns: tuple[int, ...]
    program: Tape
    accesses: tuple[LeafAccess, ...]
    reads: tuple[int, ...]


class NestFormulas:
    """The loop nest of a placed sketch, as formulas over its columns."""

    def __init__(self, bounds: Bounds, formulas: Formulas):
        self._statements: list[_Statement] = []
        self._open = tuple(
            at for at, size in enumerate(formulas.values.values()) if isinstance(size, Formula)
        )
        masks: dict[tuple[str, str], int] = {}
        for leaf in nest_of(bounds).leaves:
            wanted = symbols_of(_sizes(leaf))
            keys = [(loop.stage, loop.name) for loop in leaf.loops]
            mask = 0
            # A statement's numbers depend on the accesses of earlier statements in a common loop.
            for part in (*(f.columns for f in wanted), *(masks.get(key, 0) for key in keys)):
                mask |= part
            masks.update(dict.fromkeys(keys, mask))
            columns = tuple(at for at in range(mask.bit_length()) if mask >> at & 1)
            numbers = {a: n for n, a in enumerate(dict.fromkeys(leaf.accesses))}
            reads = tuple(numbers[a] for a in leaf.accesses)
            accesses = (*numbers, leaf.write)
            program = formulas.program(wanted)
            self._statements.append(_Statement(leaf, columns, program, accesses, reads))

    def of(self, table: Ints) -> Nest:
        """The loop nest of every row of *table*."""
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


def _sizes(leaf: Leaf) -> Iterator[Size]:
    for loop in leaf.loops:
        yield from (loop.extent, loop.parallel, loop.vector, loop.unroll)
    for access in (*leaf.accesses, leaf.write):
        yield from access.shape
        yield access.pad
        for coefs in access.coefs:
            yield from coefs
    yield leaf.max_unroll
    yield leaf.instances
    yield leaf.shared_bytes
    yield leaf.bulk
    yield from leaf.changes_guard


def _settings(table: Ints, columns: tuple[int, ...]) -> Settings | None:
    """The distinct rows of *columns*; None if there are nearly as many as rows in the table."""
    code = codes_of(table[:, columns])
    if code is None or not len(table):
        return None
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return Settings(first, of) if len(first) <= _WORTH * len(table) else None


def _evaluated(statement: _Statement, rows: Ints, settings: Settings | None) -> Leaf:
    values: dict[Size, Size] = {f: column for f, column in statement.program.run(rows).items()}
    known = values.get
    accesses = [_access(a, known) for a in statement.accesses]
    leaf = statement.leaf
    return replace(
        leaf,
        loops=tuple(_loop(loop, known) for loop in leaf.loops),
        accesses=tuple(accesses[at] for at in statement.reads),
        write=accesses[-1],
        max_unroll=known(leaf.max_unroll, leaf.max_unroll),
        changes_guard=tuple(map(known, leaf.changes_guard, leaf.changes_guard)),
        settings=settings,
        instances=known(leaf.instances, leaf.instances),
        shared_bytes=known(leaf.shared_bytes, leaf.shared_bytes),
        bulk=known(leaf.bulk, leaf.bulk),
    )


def _loop(loop: Loop, known: _Known) -> Loop:
    sizes = (loop.extent, loop.parallel, loop.vector, loop.unroll)
    if all(isinstance(size, int) for size in sizes):
        return loop
    extent, parallel, vector, unroll = map(known, sizes, sizes)
    return Loop(loop.stage, loop.name, loop.kind, extent, parallel, vector, unroll, loop.index)


def _access(access: LeafAccess, known: _Known) -> LeafAccess:
    return replace(
        access,
        shape=tuple(map(known, access.shape, access.shape)),
        coefs=tuple(tuple(map(known, coefs, coefs)) for coefs in access.coefs),
        pad=known(access.pad, access.pad),
    )
