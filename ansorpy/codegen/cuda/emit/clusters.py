"""Neighbouring blocks that run together on an SM each (a cluster) and share copies of boxes.

The blocks of a cluster run the same code in step: all barriers of such a kernel are the cluster's.
So what one block has read, the others have read too before any of them copies over it.
Source: PTX ISA, ``cp.async.bulk.tensor`` with ``.multicast::cluster``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.codegen.accesses import free_vars
from ansorpy.codegen.cuda.emit.copies import source_of
from ansorpy.codegen.cuda.passes.split_kernels import KernelNest
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Binary, Const, Expr, Var
from ansorpy.ir.interpret.numerics import BINARY
from ansorpy.ir.loops import (
    AsyncCopy,
    Barrier,
    For,
    ForKind,
    If,
    Stmt,
    substatements,
    walk_stmts,
)

__all__ = ["Cluster", "cluster_of"]


_MOST = 1 << 20
"""The most blocks for which it is found out whether neighbours copy the same."""


class Cluster(NamedTuple):
    """The number of neighbouring blocks along x that run together, and the copies they share."""

    blocks: int
    copies: frozenset[AsyncCopy]


ALONE = Cluster(1, frozenset())


def cluster_of(nest: KernelNest) -> Cluster:
    """The cluster in which the blocks of a kernel run; :data:`ALONE` if they can share no copies.

    Blocks share the copies that ask for it and that are the same for all of a cluster.  Clusters
    must divide the grid, and all blocks must pass the same barriers.
    """
    asked = [s for s in walk_stmts(nest.body) if isinstance(s, AsyncCopy) and s.blocks > 1]
    blocks, extent = max((s.blocks for s in asked), default=1), nest.grid[0]
    if blocks == 1 or not isinstance(extent, int) or extent % blocks or extent > _MOST:
        return ALONE
    indices = [
        s.var for s in walk_stmts(nest.body) if isinstance(s, For) and s.kind is ForKind.BLOCK_X
    ]
    if len(indices) != 1 or not _passes(nest.body, Barrier):
        return ALONE
    at = {indices[0]: np.arange(extent)}
    alike = frozenset(
        s for s in asked
        if s.blocks == blocks and all(_alike(i, at, blocks) for i in source_of(s)[0].indices)
    )  # fmt: skip
    in_step = all(
        not any(part in alike for part in walk_stmts(s)) or free_vars(s.cond).isdisjoint(at)
        for s in walk_stmts(nest.body) if isinstance(s, If)
    )  # fmt: skip
    return Cluster(blocks, alike) if alike and in_step else ALONE


def _passes(s: Stmt, kind: type[Stmt], *, conditional: bool = False) -> bool:
    """Whether no statement of a *kind* in *s* is under a condition."""
    if isinstance(s, kind):
        return not conditional
    inside = conditional or isinstance(s, If)
    return all(_passes(part, kind, conditional=inside) for part in substatements(s))


def _alike(index: Expr, at: Mapping[Var, Ints], blocks: int) -> bool:
    """Whether *index* is the same in all blocks of each cluster, whatever other variables are."""
    total: Ints = np.zeros(next(iter(at.values())).shape, dtype=np.int64)
    for atom, factor in linear(index).terms.items():
        free = free_vars(atom)
        if free.isdisjoint(at):
            continue
        value = _value(atom, at) if free <= at.keys() else None
        if value is None:
            return False
        total = total + value * factor
    rows = total.reshape(-1, blocks)
    return bool((rows == rows[:, :1]).all())


def _value(e: Expr, at: Mapping[Var, Ints]) -> Any:
    """The values of *e* for those of its variables; None if it is not arithmetic on these."""
    if isinstance(e, Const):
        return int(e.value)
    if isinstance(e, Var):
        return at.get(e)
    if not isinstance(e, Binary):
        return None
    a, b = _value(e.a, at), _value(e.b, at)
    return None if a is None or b is None else BINARY[e.op](a, b)
