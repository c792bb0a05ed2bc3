"""The operators that loops compute, with inlined ones substituted into their readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.expr import Binary, BinaryOp, Expr, Load, walk
from ansorpy.ir.rewrite.rewriter import Rewriter, substitute
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.lowering.dag_edit import map_loads, with_body
from ansorpy.schedule.stage import Stage

__all__ = ["InlinedDAG", "Read", "inlined"]


@dataclass(frozen=True)
class Read:
    """One tensor as a stage reads it: the index tuples of all its loads."""

    tensor: Tensor
    indices: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class InlinedDAG:
    """Operators of the stages that have loops, by stage name; none reads an inlined operator.

    This is not a :class:`ComputeDAG`: bodies here load operators of the original DAG, and ``ops``
    may have another body under the same name.  So operators are compared by name.
    """

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


_CACHE: WeakKeyDictionary[ComputeDAG, dict[frozenset[str], InlinedDAG]] = WeakKeyDictionary()


def inlined(dag: ComputeDAG, stages: Sequence[Stage]) -> InlinedDAG:
    """*dag* with the operators of inlined *stages* substituted into their readers.

    Cached by DAG and set of inlined stages.
    """
    known = _CACHE.setdefault(dag, {})
    key = frozenset(stage.name for stage in stages if stage.inlined)
    if key not in known:
        known[key] = _inlined(stages)
    return known[key]


def _inlined(stages: Sequence[Stage]) -> InlinedDAG:
    expansion = _Expansion({stage.name: stage.compute for stage in stages if stage.inlined})
    return InlinedDAG({
        stage.name: with_body(stage.compute, expansion.whole(stage.compute.body))
        for stage in stages
        if not stage.is_placeholder and not stage.inlined
    })  # fmt: skip


_Element = tuple[str, tuple[tuple[frozenset[tuple[Expr, int]], int], ...]]
"""An element of an inlined operator: its name and the affine forms of the indices."""


class _Expansion(Rewriter):
    """Replaces loads of inlined operators by the operators' bodies.

    Each element is expanded once and shared, however often it is read.  So a chain of stages that
    read their input twice grows linearly with the number of stages.
    """

    def __init__(self, inlined: Mapping[str, ComputeOp]):
        super().__init__()
        self._inlined = inlined
        self._own: dict[_Element, Expr] = {}
        self._whole: dict[_Element, Expr] = {}

    def whole(self, body: Expr) -> Expr:
        """*body* without loads of inlined operators."""
        pending = list(self._read(body))
        while pending:
            element = pending[-1]
            missing = [e for e in self._read(self._own[element]) if e not in self._whole]
            if missing and element not in self._whole:
                pending += missing
            else:
                self._whole.setdefault(element, self.expr(self._own[pending.pop()]))
        return self.expr(body)

    def expr(self, e: Expr) -> Expr:
        element = self._element(e)
        return super().expr(e) if element is None else self._whole[element]

    def _read(self, body: Expr) -> Iterator[_Element]:
        """The elements of inlined operators that *body* reads."""
        for e in walk(body):
            element = self._element(e)
            if element is not None:
                if element not in self._own:
                    self._own[element] = self._at(e)
                yield element

    def _element(self, e: Expr) -> _Element | None:
        if not isinstance(e, Load) or e.source.name not in self._inlined:
            return None
        forms = map(linear, e.indices)
        return e.source.name, tuple((frozenset(f.terms.items()), f.const) for f in forms)

    def _at(self, load: Expr) -> Expr:
        """The body of the operator that *load* reads, at the indices of *load*."""
        assert isinstance(load, Load)
        op = self._inlined[load.source.name]
        body = substitute(op.body, dict(zip(op.axes, load.indices, strict=True)))
        return map_loads(body, _plain_indices) if any(map(_divides, load.indices)) else body


def _divides(index: Expr) -> bool:
    return any(isinstance(e, Binary) and e.op is BinaryOp.FLOORDIV for e in walk(index))


def _plain_indices(load: Load) -> Load:
    """*load* with quotients of quotients combined, as bound inference requires."""
    return Load(load.source, tuple(simplify(index) for index in load.indices))
