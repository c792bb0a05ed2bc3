"""The definition as the loops see it: inlined operators substituted into their readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.expr import Binary, BinaryOp, Expr, Load, walk
from ansorpy.ir.rewrite import substitute
from ansorpy.ir.simplify import simplify
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.dagedit import map_loads, with_body

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["Effective", "Read", "effective"]


@dataclass(frozen=True)
class Read:
    """One tensor as a stage reads it: the index tuples of all its loads."""

    tensor: Tensor
    indices: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class Effective:
    """Operators of the stages that have loops, by stage name; none reads an inlined one."""

    ops: Mapping[str, ComputeOp]

    @cached_property
    def reads(self) -> Mapping[str, tuple[Read, ...]]:
        return {
            name: tuple(Read(t, tuple(indices)) for t, indices in loads_of(op).items())
            for name, op in self.ops.items()
        }

    def index_tuples(self, reader: str, tensor: str) -> tuple[tuple[Expr, ...], ...]:
        """The index tuples with which stage *reader* reads *tensor*."""
        reads = (read for read in self.reads[reader] if read.tensor.name == tensor)
        return tuple(indices for read in reads for indices in read.indices)

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Tensor name -> the stages that read it."""
        readers: dict[str, list[str]] = {}
        for name, reads in self.reads.items():
            for read in reads:
                readers.setdefault(read.tensor.name, []).append(name)
        return {tensor: tuple(names) for tensor, names in readers.items()}


_CACHE: WeakKeyDictionary[ComputeDAG, dict[frozenset[str], Effective]] = WeakKeyDictionary()


def effective(state: State) -> Effective:
    """Substitute every inlined stage of *state* into its readers.

    Cached by DAG and set of inlined stages.
    """
    known = _CACHE.setdefault(state.dag, {})
    key = frozenset(stage.name for stage in state.stages if stage.inlined)
    if key not in known:
        known[key] = _effective(state)
    return known[key]


def _effective(state: State) -> Effective:
    bodies: dict[str, Expr] = {}
    inlined = {stage.name: stage.compute for stage in state.stages if stage.inlined}

    def expand(load: Load) -> Expr:
        op = inlined.get(load.source.name)
        if op is None:
            return load
        body = substitute(bodies[op.name], dict(zip(op.axes, load.indices, strict=True)))
        return map_loads(body, _plain_indices) if any(map(_divides, load.indices)) else body

    ops: dict[str, ComputeOp] = {}
    for stage in state.stages:
        if stage.is_placeholder:
            continue
        body = map_loads(stage.compute.body, expand) if inlined else stage.compute.body
        if stage.inlined:
            bodies[stage.name] = body
        else:
            ops[stage.name] = with_body(stage.compute, body)
    return Effective(ops)


def _divides(index: Expr) -> bool:
    return any(isinstance(e, Binary) and e.op is BinaryOp.FLOORDIV for e in walk(index))


def _plain_indices(load: Load) -> Load:
    """*load* with a quotient of a quotient as one, as bound inference needs it."""
    return Load(load.source, tuple(simplify(index) for index in load.indices))
